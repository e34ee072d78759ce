//! `/applications/new`: creating an application.

use domain::{Category, SenderName};
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::account::Unconfirmed;
use crate::client::call;
#[cfg(feature = "ssr")]
use crate::portal_request::{CurrentRequest, signed_in};
use crate::problem::Problem;
use crate::ui::{Choice, Field, FormState, Loaded, Page, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use {
    super::new_keys::NewKeys, crate::problem::Cause, domain::Reference,
    domain::records::AccountRecord,
};

/// Creates an application, and shows its keys once on its page. An empty sender name is none.
///
/// # Errors
/// When nobody is signed in, category or sender name can't be used, the account has such an
/// application, or the service fails.
#[server(prefix = "/fn", endpoint = "create-application")]
pub async fn create_application(
    category: String,
    #[server(default)] sender: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| {
        problem
            .typed("category", &category)
            .typed("sender", &sender)
    };
    let (current, account) = signed_in().await.map_err(keep)?;
    let created = create(&current, &account, &category, &sender).await;
    let reference = created.map_err(keep)?;
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
    let keys = NewKeys::of(&[new.live_key, new.test_key]);
    let kept = current.keep_keys(new.reference, &keys).await;
    kept.map_err(Problem::after_change)?;
    Ok(new.reference)
}

/// The sentence about a sender name that can't be used, while it is typed.
pub(super) fn sender_name_fault(text: &str) -> Option<String> {
    let invalid = SenderName::parse(text).err()?;
    Some(invalid.to_string())
}

/// The e-mail that the account must confirm first, if it must.
///
/// # Errors
/// When nobody is signed in, or the service fails.
#[server(prefix = "/fn", endpoint = "must-confirm", input = GetUrl)]
pub async fn must_confirm() -> Result<Option<String>, Problem> {
    let (current, account) = signed_in().await?;
    let must = current.service().must_confirm(account.id).await?;
    Ok(must.then_some(account.email))
}

#[component]
pub fn NewApplicationPage() -> impl IntoView {
    // A customer who is signed out is sent to the sign-in page before filling the form in.
    let data = Resource::new(|| (), |()| call(MustConfirm {}));
    let render = |unconfirmed: Option<String>| match unconfirmed {
        Some(email) => Either::Left(view! {
            <Page title="New application">
                <Unconfirmed email/>
            </Page>
        }),
        None => Either::Right(view! { <Form/> }),
    };
    view! { <Loaded data render/> }
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
                "You get an API key and a test key. The test key works at once, the API key as \
                 soon as the application is active."
            </p>
            <PostForm form>
                <Choice label="Category" name="category" options=categories chosen/>
                <Field
                    label="Sender name"
                    name="sender"
                    hint="Optional: 1 to 11 letters and digits, which recipients see as the \
                          sender. The name is used once we have accepted it."
                    check=sender_name_fault
                    form
                />
                <SubmitButton label="Create application" form primary=true/>
            </PostForm>
        </Page>
    }
}
