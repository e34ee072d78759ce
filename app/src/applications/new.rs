//! `/applications/new`.

use domain::{Category, SenderName};
use leptos::prelude::*;

use crate::account::LoadAccount;
use crate::client::read;
#[cfg(feature = "ssr")]
use crate::portal_request::{CurrentRequest, signed_in};
use crate::problem::{Cause, Problem};
use crate::ui::{Choice, Field, FormAlert, FormState, Page, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use {super::keys::NewKeys, domain::Reference, domain::records::AccountRecord};

/// Creates an application and shows its keys on its page, once.
#[server(prefix = "/fn", endpoint = "create-application")]
pub async fn create_application(category: String, sender: String) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let created = create(&current, &account, &category, &sender).await;
    let reference = created.map_err(|problem| {
        problem
            .typed("category", &category)
            .typed("sender", &sender)
    })?;
    leptos_axum::redirect(&format!("/applications/{reference}"));
    Ok(())
}

#[cfg(feature = "ssr")]
async fn create(
    current: &CurrentRequest,
    account: &AccountRecord,
    category: &str,
    sender: &str,
) -> Result<Reference, Problem> {
    let category = Category::parse(category).ok_or(Cause::Category)?;
    let sender = (!sender.is_empty())
        .then(|| SenderName::parse(sender))
        .transpose()?;
    let new = current
        .service()
        .create_application(account.id, category, sender.as_ref())
        .await?;
    let keys = NewKeys {
        live: Some(new.live_key.expose().to_owned()),
        test: Some(new.test_key.expose().to_owned()),
    };
    current.keep_keys(new.reference, &keys).await?;
    Ok(new.reference)
}

/// The sentence about a sender name that can't be used, while it is typed.
pub(super) fn judge_sender(text: &str) -> Option<String> {
    SenderName::parse(text)
        .err()
        .map(|_| Cause::SenderName.sentence().into_owned())
}

#[component]
pub fn NewApplicationPage() -> impl IntoView {
    // Nobody who is signed out should fill the form in.
    let data = Resource::new(|| (), |()| read(LoadAccount {}));
    view! { <crate::ui::Loaded data render=|_| view! { <Form/> }/> }
}

#[component]
fn Form() -> impl IntoView {
    let form = FormState::new::<CreateApplication>("new-application-alert");
    let categories = Category::ALL
        .into_iter()
        .map(|category| (category.as_str().to_owned(), category.as_str().to_owned()))
        .collect();
    let chosen = form.typed("category").unwrap_or_default();

    view! {
        <Page title="New application">
            <p class="lead">
                "You get an API key and a test key. The test key works at once; the API key when the application is active."
            </p>
            <PostForm form>
                <FormAlert form/>
                <Choice label="Category" name="category" options=categories chosen/>
                <Field
                    label="Sender name"
                    name="sender"
                    autocomplete="off"
                    hint="Optional: 1 to 11 letters and digits, which recipients see as the sender. It is used once we have accepted it."
                    judge=judge_sender
                    form
                />
                <SubmitButton label="Create application" form primary=true/>
            </PostForm>
        </Page>
    }
}
