//! `/applications/new`.

use domain::{Category, SenderName};
use leptos::form::ActionForm;
use leptos::prelude::*;

use crate::client::PortalClient;
use crate::problem::{Cause, Problem};
use crate::ui::{Choice, Field, FormAlert, Page, SubmitButton, problem_of};
#[cfg(feature = "ssr")]
use crate::visit::{Visit, signed_in};
#[cfg(feature = "ssr")]
use {super::keys::NewKeys, domain::Reference, domain::records::AccountRecord};

/// Creates an application and shows its keys on its page, once.
#[server(prefix = "/fn", endpoint = "create-application", client = PortalClient)]
pub async fn create_application(category: String, sender: String) -> Result<(), Problem> {
    let (visit, account) = signed_in().await?;
    let created = create(&visit, &account, &category, &sender).await;
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
    visit: &Visit,
    account: &AccountRecord,
    category: &str,
    sender: &str,
) -> Result<Reference, Problem> {
    let category = Category::parse(category).ok_or(Cause::Category)?;
    let sender = (!sender.is_empty())
        .then(|| SenderName::parse(sender))
        .transpose()?;
    let new = visit
        .service()
        .create_application(account.id, category, sender.as_ref())
        .await?;
    let keys = NewKeys {
        live: Some(new.live_key.expose().to_owned()),
        test: Some(new.test_key.expose().to_owned()),
    };
    visit.keep_keys(new.reference, &keys).await?;
    Ok(new.reference)
}

/// Nobody who is signed out should fill the form in.
#[server(
    prefix = "/fn",
    endpoint = "may-create",
    input = leptos::server_fn::codec::GetUrl,
    client = PortalClient
)]
pub async fn may_create() -> Result<(), Problem> {
    signed_in().await.map(drop)
}

/// The sentence about a sender name that can't be used, while it is typed.
pub(super) fn judge_sender(text: &str) -> Option<String> {
    SenderName::parse(text)
        .err()
        .map(|_| Cause::SenderName.sentence().into_owned())
}

#[component]
pub fn NewApplicationPage() -> impl IntoView {
    let data = Resource::new(|| (), |()| may_create());
    view! { <crate::ui::Loaded data render=|()| view! { <Form/> }/> }
}

#[component]
fn Form() -> impl IntoView {
    let action = ServerAction::<CreateApplication>::new();
    let problem = problem_of(action);
    let alert = "new-application-alert";
    let categories = Category::ALL
        .into_iter()
        .map(|category| (category.as_str().to_owned(), category.as_str().to_owned()))
        .collect();
    let chosen = problem
        .with_untracked(|problem| problem.as_ref().and_then(|p| p.text_of("category")))
        .unwrap_or_default();

    view! {
        <Page title="New application">
            <p class="lead">
                "You get an API key and a test key. The test key works at once; the API key when the application is active."
            </p>
            <ActionForm action attr:class="form">
                <FormAlert id=alert problem/>
                <Choice label="Category" name="category" options=categories chosen/>
                <Field
                    label="Sender name"
                    name="sender"
                    autocomplete="off"
                    hint="Optional: 1 to 11 letters and digits, which recipients see as the sender. It is used once we have accepted it."
                    judge=judge_sender
                    problem=(problem, alert)
                />
                <SubmitButton label="Create application" pending=action.pending() primary=true/>
            </ActionForm>
        </Page>
    }
}
