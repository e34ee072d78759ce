//! `/support/numbers`: the numbers that handsets send messages to, and their applications.

use domain::records::InboundNumberRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::desk::removal_form;
use super::links::application_link;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    BUTTONS, Field, FormAlert, FormState, Loaded, Page, PostForm, SubmitButton, Table,
};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::staff,
    crate::problem::Cause,
    domain::{Keyword, Number, Reference, Refusal},
    service::Actor,
};

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NumbersView {
    numbers: Vec<InboundNumberRecord>,
}

/// Loads the numbers for staff.
#[server(prefix = "/fn", endpoint = "support-numbers", input = GetUrl)]
pub async fn load_support_numbers() -> Result<NumbersView, Problem> {
    let (current, _) = staff().await?;
    Ok(NumbersView { numbers: current.service().support().inbound_numbers().await? })
}

/// Gives the messages to a number to an application.
#[server(prefix = "/fn", endpoint = "add-number")]
pub async fn add_number(
    number: String,
    #[server(default)] keyword: String,
    reference: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let adding = async {
        let (number, keyword) = parsed(&number, &keyword)?;
        let reference =
            Reference::parse(reference.trim()).map_err(|_| Refusal::NoSuchApplication)?;
        let (actor, support) = (Actor::Account(account.id), current.service().support());
        support.add_inbound_number(&actor, &number, keyword, reference).await
    };
    adding.await.map_err(|error: service::Error| {
        let problem = Problem::from(error).typed("number", &number).typed("keyword", &keyword);
        problem.typed("reference", &reference)
    })
}

/// Takes the messages to a number from its application.
#[server(prefix = "/fn", endpoint = "remove-number")]
pub async fn remove_number(
    number: String,
    #[server(default)] keyword: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let (number, keyword) = parsed(&number, &keyword).map_err(Cause::from)?;
    let (actor, support) = (Actor::Account(account.id), current.service().support());
    Ok(support.remove_inbound_number(&actor, &number, keyword).await?)
}

/// Parses a number, and a keyword unless it is empty.
#[cfg(feature = "ssr")]
fn parsed(number: &str, keyword: &str) -> Result<(Number, Option<Keyword>), Refusal> {
    let number = Number::parse_typed(number).map_err(|_| Refusal::InboundNumberInvalid)?;
    let keyword = match keyword.trim() {
        "" => None,
        text => Some(Keyword::parse(text).map_err(|_| Refusal::KeywordInvalid)?),
    };
    Ok((number, keyword))
}

#[component]
pub fn NumbersPage() -> impl IntoView {
    let add = FormState::new::<AddNumber>("add-number-alert");
    let remove = FormState::new::<RemoveNumber>("remove-number-alert");
    let data = PageData::new(move || {
        add.accepted.track();
        remove.accepted.track();
        LoadSupportNumbers {}
    });
    view! { <Loaded data render=move |data| view! { <Numbers data add remove/> }/> }
}

#[component]
fn Numbers(data: NumbersView, add: FormState, remove: FormState) -> impl IntoView {
    view! {
        <Page title="Numbers">
            <p class="lead">
                "An application gets the messages that people send to its number. Applications can \
                 share a number: the first word of a message then decides."
            </p>
            <p><a href="/support/inbound">"Messages to numbers that nobody has"</a></p>
            <FormAlert form=remove/>
            {listed(&data.numbers, remove)}
            <h2>"Add a number"</h2>
            <PostForm form=add>
                <Field label="Number" name="number" required=true form=add/>
                <Field
                    label="Keyword"
                    name="keyword"
                    hint="Leave it empty to add all messages that start with no other keyword."
                    form=add
                />
                <Field
                    label="Application"
                    name="reference"
                    hint="Its reference."
                    required=true
                    form=add
                />
                <SubmitButton label="Add" form=add/>
            </PostForm>
        </Page>
    }
}

fn listed(numbers: &[InboundNumberRecord], form: FormState) -> AnyView {
    Table::wide(numbers)
        .styled("figures", "Number", |number| number.number.clone())
        .column("Keyword", keyword)
        .styled("key", "Application", |number| application_link(number.reference))
        .time("Added (UTC)", |number| number.created_at)
        .styled(BUTTONS, "Action", move |number| {
            // The number has its country code already.
            let written = format!("+{}", number.number);
            let fields = vec![("number", written), ("keyword", keyword(number))];
            let about = format!("{} {}", number.number, keyword(number));
            removal_form(form, "Remove", about.trim(), fields)
        })
        .in_region_or("Numbers", "No application has a number.")
}

/// Returns the keyword of a number, or an empty text.
fn keyword(number: &InboundNumberRecord) -> String {
    number.keyword.as_ref().map(ToString::to_string).unwrap_or_default()
}
