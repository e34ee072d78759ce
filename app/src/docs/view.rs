//! The data of the API reference page.

use serde::{Deserialize, Serialize};

/// The reference as the server renders it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Written {
    /// Only part of the page. It isn't sent to the browser a second time as data.
    #[serde(skip)]
    pub html: String,
    pub base_url: String,
}
