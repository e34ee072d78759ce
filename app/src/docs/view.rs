//! The data of the API reference page.

use serde::{Deserialize, Serialize};

/// The reference as the server renders it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Written {
    /// The chapters. The page contains them, so they aren't sent again as data.
    #[serde(skip)]
    pub html: String,
    pub base_url: String,
}
