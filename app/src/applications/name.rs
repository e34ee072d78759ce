//! The display name of an application, and deleting one that was never used.

#[cfg(feature = "ssr")]
use domain::ApplicationName;
use domain::records::ApplicationRecord;
use domain::{APPLICATION_NAME_CHARS_MAX, Reference};
use leptos::prelude::*;

#[cfg(feature = "ssr")]
use crate::portal_request::{redirect_to, signed_in, step_up};
use crate::problem::Problem;
use crate::ui::{
    Confirmation, ConfirmationForm, Field, FormState, PostForm, SubmitButton, parameter,
};

/// The parameter of the settings page that asks to confirm the deletion.
const DELETE: &str = "delete";

/// Names an application. An empty name restores the default one.
#[server(prefix = "/fn", endpoint = "set-name")]
pub async fn set_name(
    reference: Reference,
    #[server(default)] name: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("name", &name);
    let (current, account) = signed_in().await.map_err(keep)?;
    let parsed = ApplicationName::parse(&name).map_err(|invalid| keep(invalid.into()))?;
    let applications = current.service().applications();
    let set = applications.set_name(account.id, reference, parsed.as_ref()).await;
    set.map_err(|error| keep(error.into()))?;
    redirect_to(&format!("/applications/{reference}/settings?named=1"))
}

/// Deletes an application that never sent a message and has no balance.
#[server(prefix = "/fn", endpoint = "delete-application")]
pub async fn delete_application(
    reference: Reference,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    step_up(&current, &account, &credential).await?;
    current.service().applications().delete_application(account.id, reference).await?;
    redirect_to("/applications?deleted=1")
}

/// The part of the settings that deletes the application, after a confirmation, or says why it
/// can't be deleted.
#[component]
pub fn DeleteSection(
    application: ApplicationRecord,
    can_delete: bool,
    form: FormState,
) -> impl IntoView {
    let settings = format!("/applications/{}/settings", application.reference);
    let asked = parameter(DELETE);
    let content = move || {
        if !can_delete {
            return view! {
                <p>
                    "An application that has sent a message or has a balance can't be deleted. To \
                     stop it, "
                    <a href=format!("/applications/{}/keys", application.reference)>
                        "replace its key"
                    </a>
                    ", or close your account."
                </p>
            }
            .into_any();
        }
        if asked.read().is_none() {
            let href = format!("{settings}?{DELETE}=1#delete");
            return view! {
                <p>"The application never sent a live message and has no balance."</p>
                <p><a class="button button-danger" href=href>"Delete this application"</a></p>
            }
            .into_any();
        }
        let reference = application.reference.to_string();
        let confirmation = Confirmation {
            facts: vec![("Application".to_owned(), application.display_name())],
            effects: [
                "Its keys stop working at once, and its requests are withdrawn.",
                "Its reference is never used again. You can create another application.",
            ]
            .map(str::to_owned)
            .to_vec(),
            undo: "You can't undo this.".to_owned(),
            step_up: None,
        };
        view! {
            <ConfirmationForm
                confirmation
                label="Delete this application"
                danger=true
                back=settings.clone()
                form
            >
                <input type="hidden" name="reference" value=reference/>
            </ConfirmationForm>
        }
        .into_any()
    };
    view! {
        <section>
            <h2 id="delete">"Delete"</h2>
            {content}
        </section>
    }
}

#[component]
pub fn NameSection(application: ApplicationRecord, form: FormState) -> impl IntoView {
    let default = ApplicationRecord { name: None, ..application.clone() }.display_name();
    view! {
        <section>
            <h2 id="name">"Name"</h2>
            <PostForm form>
                <input type="hidden" name="reference" value=application.reference.to_string()/>
                <Field
                    label="Name"
                    name="name"
                    hint=format!(
                        "Up to {APPLICATION_NAME_CHARS_MAX} characters. You see it on these pages \
                         and in mails; recipients never do. Leave the field empty for \
                         \"{default}\".",
                    )
                    value=application.name.unwrap_or_default()
                    form
                />
                <SubmitButton label="Save name" form/>
            </PostForm>
        </section>
    }
}
