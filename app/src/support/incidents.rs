//! Notes about incidents on the page of the carriers. Staff open and end them there.

use domain::DeskAct;
use domain::incident::{INCIDENT_CHARS_MAX, IncidentRecord};
use leptos::prelude::*;

#[cfg(feature = "ssr")]
use super::confirm::CONFIRM_PATH;
use super::confirm::confirm_button;
use crate::problem::Problem;
use crate::ui::{BUTTONS, Choice, Field, FormState, PostForm, SubmitButton, Table};
#[cfg(feature = "ssr")]
use crate::{
    portal_request::{redirect_to, staff},
    problem::Cause,
    ui::address,
};
#[cfg(feature = "ssr")]
use domain::{Refusal, incident::parse_incident};

/// The path of the page.
pub const CARRIERS_PATH: &str = "/support/carriers";

/// Checks a note, and opens the confirmation.
#[server(prefix = "/fn", endpoint = "ask-incident")]
pub async fn check_incident(
    text: String,
    #[server(default)] carrier: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("text", &text).typed("carrier", &carrier);
    staff().await.map_err(keep)?;
    let refused = |error| keep(Cause::from(Refusal::from(error)).into());
    let text = parse_incident(&text).map_err(refused)?;
    let subject = format!("{carrier} {text}");
    let act = DeskAct::OpenIncident.as_str();
    let parameters = [("act", act), ("subject", &subject), ("next", CARRIERS_PATH)];
    redirect_to(&address(CONFIRM_PATH, parameters))
}

/// Renders the open notes, and the form that opens another one.
#[component]
pub fn Incidents(
    /// The open notes, kept up to date.
    open: Memo<Vec<IncidentRecord>>,
    /// The names of the carriers.
    carriers: Vec<String>,
    form: FormState,
) -> impl IntoView {
    let none = (String::new(), "none".to_owned());
    let names = carriers.into_iter().map(|name| (name.clone(), name));
    let options = std::iter::once(none).chain(names).collect::<Vec<_>>();
    let chosen = form.typed("carrier").unwrap_or_default();
    let hint = format!(
        "At most {INCIDENT_CHARS_MAX} characters. Example: Delivery to international numbers is \
         slow. The page adds the time."
    );
    view! {
        <section>
            <h2>"Notes for customers"</h2>
            <p>
                "Customers see the open notes on the pages of their applications and reports. They \
                 don't see the carrier."
            </p>
            {move || open.with(|open| listed(open))}
            <PostForm form>
                <Field label="Note" name="text" hint required=true form/>
                <Choice label="Carrier" name="carrier" options chosen/>
                <SubmitButton label="Open note" form/>
            </PostForm>
        </section>
    }
}

fn listed(notes: &[IncidentRecord]) -> AnyView {
    Table::wide(notes)
        .column("Note", |note| note.text.clone())
        .column("Carrier", |note| note.carrier.clone().unwrap_or_else(|| "none".to_owned()))
        .time("Since (UTC)", |note| note.began_at)
        .styled(BUTTONS, "Action", |note| {
            let (subject, next) = (note.id.to_string(), CARRIERS_PATH.to_owned());
            confirm_button(DeskAct::EndIncident, &note.text, subject, next)
        })
        .in_region_or("Open notes", "No note is open.")
}
