//! The data of the reference's page.

use serde::{Deserialize, Serialize};

/// What the server writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Written {
    /// Stands in the page once, and isn't sent to the browser a second time.
    #[serde(skip)]
    pub html: String,
    pub base_url: String,
}
