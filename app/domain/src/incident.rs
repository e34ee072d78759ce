//! Incident notes, in which staff tell customers what is slow or broken right now.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::printable::is_control;

/// The maximum number of characters in a note.
pub const INCIDENT_CHARS_MAX: usize = 300;
/// The maximum number of open notes.
pub const INCIDENTS_MAX: usize = 5;

/// The text isn't a valid note: it is empty, too long, or has control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidIncident;

/// An open note about an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncidentRecord {
    pub id: i64,
    /// The text that customers read.
    pub text: String,
    /// The carrier that the note is about, for staff. `None` if it isn't about a particular
    /// carrier.
    pub carrier: Option<String>,
    pub began_at: Timestamp,
}

/// Returns the text of a note as it is stored, without white space around it.
///
/// # Errors
/// Returns an error if the text is empty, too long, or has control characters or line ends.
pub fn parse_incident(text: &str) -> Result<String, InvalidIncident> {
    let text = text.trim();
    let length = text.chars().count();
    if length == 0 || length > INCIDENT_CHARS_MAX || text.contains(is_control) {
        return Err(InvalidIncident);
    }
    Ok(text.to_owned())
}
