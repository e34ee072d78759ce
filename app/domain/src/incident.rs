//! Incident notes: staff tell customers what is slow or doesn't work now.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::printable::is_control;

/// The most characters of a note.
pub const INCIDENT_CHARS_MAX: usize = 300;
/// The most notes that are open at a time.
pub const INCIDENTS_MAX: usize = 5;

/// The text can't be a note: it is empty, too long, or has control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidIncident;

/// An open note about an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncidentRecord {
    pub id: i64,
    /// Read by customers.
    pub text: String,
    /// The carrier that it is about, for staff; `None` for a note about no certain carrier.
    pub carrier: Option<String>,
    pub began_at: Timestamp,
}

/// The text of a note as it is stored: without space around it.
///
/// # Errors
/// When there is none, it is too long, or it has control characters or line ends.
pub fn parse_incident(text: &str) -> Result<String, InvalidIncident> {
    let text = text.trim();
    let length = text.chars().count();
    if length == 0 || length > INCIDENT_CHARS_MAX || text.contains(is_control) {
        return Err(InvalidIncident);
    }
    Ok(text.to_owned())
}
