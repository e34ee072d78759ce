//! Incident notes, as customers see them on their pages.

use domain::Timestamp;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use service::Service;

#[cfg(feature = "ssr")]
use crate::problem::Problem;
use crate::ui::DateTime;

/// An open incident note, without the fields that are for staff only.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IncidentNote {
    text: String,
    began_at: Timestamp,
}

/// Returns the open notes, oldest first.
#[cfg(feature = "ssr")]
pub async fn incident_notes(service: &Service) -> Result<Vec<IncidentNote>, Problem> {
    let notes = service.delivery().incidents().await?.into_iter();
    let notes = notes.map(|note| IncidentNote { text: note.text, began_at: note.began_at });
    Ok(notes.collect())
}

/// Shows a notice for each note.
#[component]
pub fn IncidentNotices(notes: Vec<IncidentNote>) -> impl IntoView {
    let notices = notes.into_iter().map(|IncidentNote { text, began_at }| {
        view! {
            <p class="notice">
                {text} <span class="fine">" since " <DateTime at=began_at with_zone=true/></span>
            </p>
        }
    });
    notices.collect_view()
}
