//! Notes about incidents on the page of the carriers. Staff open and end them there.

use domain::incident::{INCIDENT_CHARS_MAX, IncidentRecord};
use leptos::prelude::*;

use super::desk::row_form;
#[cfg(feature = "ssr")]
use crate::portal_request::staff;
use crate::problem::Problem;
use crate::ui::{BUTTONS, Choice, Field, FormAlert, FormState, PostForm, SubmitButton, Table};
#[cfg(feature = "ssr")]
use service::Actor;

/// Opens a note, which customers can read from then on.
#[server(prefix = "/fn", endpoint = "open-incident")]
pub async fn open_incident(
    text: String,
    #[server(default)] carrier: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let carrier = Some(carrier.as_str()).filter(|name| !name.is_empty());
    let actor = Actor::Account(account.id);
    let delivery = current.service().delivery();
    let opening = delivery.open_incident(&actor, &text, carrier);
    opening.await.map(drop).map_err(|error| {
        let problem = Problem::from(error);
        problem.typed("text", &text).typed("carrier", carrier.unwrap_or_default())
    })
}

/// Ends a note.
#[server(prefix = "/fn", endpoint = "end-incident")]
pub async fn end_incident(id: i64) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let actor = Actor::Account(account.id);
    Ok(current.service().delivery().end_incident(&actor, id).await.map(drop)?)
}

/// The forms of the notes.
#[derive(Clone, Copy)]
pub struct IncidentForms {
    open: FormState,
    end: FormState,
}

impl IncidentForms {
    pub fn new() -> Self {
        Self {
            open: FormState::new::<OpenIncident>("open-incident-alert"),
            end: FormState::new::<EndIncident>("end-incident-alert"),
        }
    }

    /// Returns the number of times that a note was opened or ended since the page was opened.
    pub fn accepted(self) -> usize {
        self.open.accepted.get() + self.end.accepted.get()
    }
}

/// Renders the open notes, and the form that opens another one.
#[component]
pub fn Incidents(
    /// The open notes, kept up to date.
    open: Memo<Vec<IncidentRecord>>,
    /// The names of the carriers.
    carriers: Vec<String>,
    forms: IncidentForms,
) -> impl IntoView {
    let none = (String::new(), "none".to_owned());
    let names = carriers.into_iter().map(|name| (name.clone(), name));
    let options = std::iter::once(none).chain(names).collect::<Vec<_>>();
    let chosen = forms.open.typed("carrier").unwrap_or_default();
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
            <FormAlert form=forms.end/>
            {move || open.with(|open| listed(open, forms.end))}
            <PostForm form=forms.open>
                <Field label="Note" name="text" hint required=true form=forms.open/>
                <Choice label="Carrier" name="carrier" options chosen/>
                <SubmitButton label="Open note" form=forms.open/>
            </PostForm>
        </section>
    }
}

fn listed(notes: &[IncidentRecord], form: FormState) -> AnyView {
    Table::wide(notes)
        .column("Note", |note| note.text.clone())
        .column("Carrier", |note| note.carrier.clone().unwrap_or_else(|| "none".to_owned()))
        .time("Since (UTC)", |note| note.began_at)
        .styled(BUTTONS, "Action", move |note| {
            row_form(form, "End", &note.text, vec![("id", note.id.to_string())])
        })
        .in_region_or("Open notes", "No note is open.")
}
