//! `/support/numbers`: the numbers that handsets send messages to, and their applications.

use domain::DeskAct;
use domain::records::InboundNumberRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::confirm::confirm_button;
use super::links::application_link;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{BUTTONS, Field, FormState, Loaded, Page, PostForm, SubmitButton, Table};
#[cfg(feature = "ssr")]
use {
    super::confirm::CONFIRM_PATH,
    crate::portal_request::{redirect_to, staff},
    crate::problem::Cause,
    crate::ui::address,
    domain::{Keyword, Number, Reference, Refusal},
};

const NUMBERS_PATH: &str = "/support/numbers";

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

/// Checks a number for an application, and opens the confirmation.
#[server(prefix = "/fn", endpoint = "ask-number")]
pub async fn check_number(
    number: String,
    #[server(default)] keyword: String,
    reference: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| {
        let problem = problem.typed("number", &number).typed("keyword", &keyword);
        problem.typed("reference", &reference)
    };
    let (current, _) = staff().await.map_err(keep)?;
    let asking = async {
        let (number, keyword) = parsed(&number, &keyword)?;
        let reference =
            Reference::parse(reference.trim()).map_err(|_| Refusal::NoSuchApplication)?;
        let support = current.service().support();
        let number = support.check_inbound_number(&number, keyword.as_ref(), reference).await?;
        let keyword = keyword.map_or_else(String::new, |keyword| format!("{keyword} "));
        Ok(format!("{number} {keyword}{reference}"))
    };
    let subject = asking.await.map_err(|error: service::Error| {
        // The page itself exists.
        let is_unknown = error.refusal() == Some(&Refusal::NoSuchApplication);
        keep(if is_unknown { Cause::ReferenceUnknown.into() } else { error.into() })
    })?;
    let act = DeskAct::AddNumber.as_str();
    let parameters = [("act", act), ("subject", &subject), ("next", NUMBERS_PATH)];
    redirect_to(&address(CONFIRM_PATH, parameters))
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
    let add = FormState::new::<CheckNumber>("add-number-alert");
    let data = PageData::new(|| LoadSupportNumbers {});
    view! { <Loaded data render=move |data| view! { <Numbers data add/> }/> }
}

#[component]
fn Numbers(data: NumbersView, add: FormState) -> impl IntoView {
    view! {
        <Page title="Numbers">
            <p class="lead">
                "An application gets the messages that people send to its number. Applications can \
                 share a number: the first word of a message then decides."
            </p>
            <p><a href="/support/inbound">"Unassigned messages"</a></p>
            {listed(&data.numbers)}
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

fn listed(numbers: &[InboundNumberRecord]) -> AnyView {
    Table::wide(numbers)
        .styled("figures", "Number", |number| number.number.clone())
        .column("Keyword", keyword)
        .styled("key", "Application", |number| application_link(number.reference))
        .time("Added (UTC)", |number| number.created_at)
        .styled(BUTTONS, "Action", |number| {
            let about = format!("{} {}", number.number, keyword(number));
            let about = about.trim_end();
            let subject = format!("{about} {}", number.reference);
            confirm_button(DeskAct::RemoveNumber, about, subject, NUMBERS_PATH.to_owned())
        })
        .in_region_or("Numbers", "No application has a number.")
}

/// Returns the keyword of a number, or an empty text.
fn keyword(number: &InboundNumberRecord) -> String {
    number.keyword.as_ref().map(ToString::to_string).unwrap_or_default()
}
