//! `/applications/new`: creating an application.

use domain::{Category, SenderName};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::account::Unconfirmed;
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::{CurrentRequest, redirect_to, signed_in};
use crate::problem::Problem;
use crate::ui::{Choice, Field, FormState, Loaded, Page, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use {
    super::new_keys::NewKeys,
    crate::problem::Cause,
    domain::records::{AccountRecord, ApplicationRecord},
    domain::{Reference, SenderState},
};

/// Creates an application and redirects to its page, which shows its keys once. An empty sender
/// name means none.
#[server(prefix = "/fn", endpoint = "create-application")]
pub async fn create_application(
    category: String,
    #[server(default)] sender: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("category", &category).typed("sender", &sender);
    let (current, account) = signed_in().await.map_err(keep)?;
    let created = create(&current, &account, &category, &sender).await;
    let reference = created.map_err(keep)?;
    redirect_to(&format!("/applications/{reference}"))
}

#[cfg(feature = "ssr")]
async fn create(
    current: &CurrentRequest,
    account: &AccountRecord,
    category: &str,
    sender: &str,
) -> Result<Reference, Problem> {
    let category = Category::parse(category).ok_or(Cause::Category)?;
    let sender = (!sender.is_empty()).then(|| SenderName::parse(sender)).transpose()?;
    let new = current
        .service()
        .applications()
        .create_application(account.id, category, sender.as_ref())
        .await?;
    let keys = NewKeys::of(&[new.live_key, new.test_key]);
    let kept = current.keep_keys(new.reference, &keys).await;
    kept.map_err(Problem::after_change)?;
    Ok(new.reference)
}

/// Checks a sender name while it is typed. Returns a sentence if the name is invalid.
pub(super) fn sender_name_fault(text: &str) -> Option<String> {
    let invalid = SenderName::parse(text).err()?;
    Some(invalid.to_string())
}

/// The facts that decide which application an account can create.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Possible {
    /// The account's email, if it must be confirmed first.
    unconfirmed: Option<String>,
    /// The categories of the account's applications.
    taken: Vec<Category>,
    /// Whether one of its applications has no sender name. Then a second one must have a name.
    has_senderless: bool,
}

/// Loads what the account can create.
#[server(prefix = "/fn", endpoint = "new-application", input = GetUrl)]
pub async fn load_possible() -> Result<Possible, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let applications = service.applications().of_account(account.id).await?;
    let is_senderless =
        |application: &ApplicationRecord| application.sender_state == SenderState::None;
    let must = service.accounts().must_confirm(account.id).await?;
    Ok(Possible {
        unconfirmed: must.then_some(account.email),
        has_senderless: applications.iter().any(is_senderless),
        taken: applications.iter().map(|one| one.category).collect(),
    })
}

#[component]
pub fn NewApplicationPage() -> impl IntoView {
    // Load data first: this redirects a signed-out customer before the form is filled in.
    let data = PageData::new(|| LoadPossible {});
    let render = |possible: Possible| {
        let content = match possible.unconfirmed.clone() {
            Some(email) => view! { <Unconfirmed email/> }.into_any(),
            None if Category::ALL.iter().all(|one| possible.taken.contains(one)) => {
                view! { <NonePossible/> }.into_any()
            }
            None => view! { <Form possible/> }.into_any(),
        };
        view! { <Page title="New application">{content}</Page> }
    };
    view! { <Loaded data render/> }
}

#[component]
fn NonePossible() -> impl IntoView {
    view! {
        <p>
            "You have an application of each category already; an account has at most one of each. "
            <a href="/applications">"Go to My Applications"</a>
        </p>
    }
}

#[component]
fn Form(possible: Possible) -> impl IntoView {
    let form = FormState::new::<CreateApplication>("new-application-alert");
    let has_sms = possible.taken.contains(&Category::Sms);
    let categories = Category::ALL.into_iter().map(|category| {
        let word = if possible.taken.contains(&category) {
            format!("{category} (you have one)")
        } else {
            category.to_string()
        };
        (category.as_str().to_owned(), word)
    });
    // Few want an application that sends nothing, so it is never chosen for them.
    let first = has_sms.then(|| (String::new(), "Choose a category".to_owned()));
    let categories = first.into_iter().chain(categories).collect();
    let chosen = form.typed("category");
    let chosen = chosen.or_else(|| (!has_sms).then(|| Category::Sms.to_string()));
    let need = match (has_sms, possible.has_senderless) {
        (false, false) => "Optional",
        (false, true) => "Required, because your other application has none",
        (true, false) => "Not needed for Electricity, which sends nothing",
        (true, true) => {
            "Required although Electricity sends nothing, because an account has at most one \
             application without a name"
        }
    };

    view! {
        <p class="lead">
            "An account has at most one application of each category. SMS sends text messages: its \
             test key works at once, its API key as soon as the application is active. "
            {super::NOT_FOR_SMS}
        </p>
        <PostForm form>
            <Choice
                label="Category"
                name="category"
                options=categories
                chosen=chosen.unwrap_or_default()
                form
            />
            <Field
                label="Sender name"
                name="sender"
                hint=format!(
                    "{need}: 1 to 11 letters and digits, which recipients see as the sender. \
                     With a name, nothing can be sent for real until we have accepted it.",
                )
                check=sender_name_fault
                form
            />
            <SubmitButton label="Create application" form primary=true/>
        </PostForm>
    }
}
