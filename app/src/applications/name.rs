//! The display name of an application, and deleting one that was never used.

#[cfg(feature = "ssr")]
use domain::ApplicationName;
use domain::records::ApplicationRecord;
use domain::{APPLICATION_NAME_CHARS_MAX, Reference};
use leptos::prelude::*;

#[cfg(feature = "ssr")]
use crate::portal_request::{signed_in, step_up};
use crate::problem::Problem;
use crate::ui::{Field, FormState, PostForm, StepUpField, SubmitButton};

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
    leptos_axum::redirect(&format!("/applications/{reference}/settings?named=1"));
    Ok(())
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
    leptos_axum::redirect("/applications?deleted=1");
    Ok(())
}

/// The form that deletes the application.
#[component]
pub fn DeleteSection(application: ApplicationRecord, form: FormState) -> impl IntoView {
    view! {
        <section>
            <h2 id="delete">"Delete"</h2>
            <p>
                {format!(
                    "{} never sent a message and has no balance. If you delete it, its keys stop \
                     working at once, and its reference {} is never used again. You can't undo \
                     this, but you can create another application.",
                    application.display_name(),
                    application.reference,
                )}
            </p>
            <PostForm form>
                <input type="hidden" name="reference" value=application.reference.to_string()/>
                <StepUpField form/>
                <SubmitButton label="Delete this application" form danger=true/>
            </PostForm>
        </section>
    }
}

/// The form for the display name.
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
