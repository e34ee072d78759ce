//! `/account/number`: the data of one phone number, to download or to erase.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::{NUMBER_EXPORT_PATH, NUMBER_PATH};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    AcceptedNotice, Confirmation, ConfirmationForm, Field, FormState, Loaded, Page, SearchForm,
    address,
};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{missing_step_up, redirect_to, signed_in, step_up},
    crate::problem::{Cause, Filter},
    domain::Number,
    service::Actor,
};

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Erasing {
    /// The number as it was typed. Empty at first.
    number: String,
    /// The consequences of the erasure, or the reason that there is no such number.
    confirmation: Result<Option<Confirmation>, Problem>,
}

/// Loads the page's data.
#[server(prefix = "/fn", endpoint = "erasing", input = GetUrl)]
pub async fn load_erasing(#[server(default)] number: String) -> Result<Erasing, Problem> {
    let (current, account) = signed_in().await?;
    let confirmation = match (number.is_empty(), Number::parse_typed(&number)) {
        (true, _) => Ok(None),
        (false, Err(_)) => Err(Cause::Filter(Filter::Number).into()),
        (false, Ok(parsed)) => {
            let step_up = missing_step_up(&current, &account).await?;
            Ok(Some(Confirmation { step_up, ..confirmation(&parsed) }))
        }
    };
    Ok(Erasing { number, confirmation })
}

/// Erases a phone number in the account's rows.
#[server(prefix = "/fn", endpoint = "erase-number")]
pub async fn erase_number(
    number: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let parsed = Number::parse_typed(&number).map_err(|_| Cause::Filter(Filter::Number))?;
    step_up(&current, &account, &credential).await?;
    let actor = Actor::Account(account.id);
    let erased = current.service().messages().erase_number(&actor, account.id, &parsed).await?;
    let notice = if erased.open + erased.uploads > 0 { "partly" } else { "erased" };
    redirect_to(&address(NUMBER_PATH, [(notice, "1")]))
}

#[cfg(feature = "ssr")]
fn confirmation(number: &Number) -> Confirmation {
    Confirmation {
        facts: vec![("Number".to_owned(), number.digits().to_owned())],
        effects: [
            "The number and all texts to and from it are erased in the messages, inbound messages, \
             verifications and events of all your applications, also in those you have deleted.",
            "Statuses, times and prices stay, so your statements and reports add up as before.",
            "If the number opted out, your applications still can't send to it.",
            "Messages that are still on their way, and uploads that are scheduled, keep the \
             number. Cancel them before, or erase the number again afterwards.",
        ]
        .map(str::to_owned)
        .to_vec(),
        undo: "An erasure can't be undone.".to_owned(),
        step_up: None,
    }
}

#[component]
pub fn NumberPage() -> impl IntoView {
    let query = use_query_map();
    let number = Memo::new(move |_| {
        let number = query.with(|query| query.get("number"));
        number.unwrap_or_default().trim().to_owned()
    });
    let data = PageData::new(move || LoadErasing { number: number.get() });
    view! { <Loaded data render=|erasing| view! { <Erase erasing/> }/> }
}

#[component]
fn Erase(erasing: Erasing) -> impl IntoView {
    let Erasing { number, confirmation } = erasing;
    let search = FormState::plain("number-alert", confirmation.as_ref().err().cloned());
    let form = FormState::new::<EraseNumber>("erase-alert").loading_next();
    let typed = number.clone();
    let found = confirmation.ok().flatten().map(|confirmation| {
        let href = address(NUMBER_EXPORT_PATH, [("number", number.as_str())]);
        view! {
            <h2>"Download"</h2>
            <p>
                <a class="button" href=href download="heliograph-number.json" rel="external">
                    "Download the number's data"
                </a>
            </p>
            <h2>"Erase"</h2>
            <ConfirmationForm
                confirmation
                label="Erase number"
                danger=true
                back="/account".to_owned()
                form
            >
                <input type="hidden" name="number" value=number/>
            </ConfirmationForm>
        }
    });
    view! {
        <Page title="Data of a phone number">
            <AcceptedNotice parameter="erased" sentence="The number is erased."/>
            <AcceptedNotice
                parameter="partly"
                sentence="The number is erased, except in messages and uploads that are still on \
                          their way. Erase it again when they are final."
            />
            <p>
                "If somebody asks you for their data or for its erasure, enter their number here."
            </p>
            <SearchForm path=NUMBER_PATH label="Phone number" button="Continue" form=search>
                <Field label="Number" name="number" kind="tel" value=typed required=true form=search/>
            </SearchForm>
            {found}
        </Page>
    }
}
