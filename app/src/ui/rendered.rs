//! Parts of pages that the server alone renders, and the browser takes as they come: what draws them is
//! not among what the browser has to load.

use serde::{Deserialize, Serialize};

/// HTML that a view of ours was rendered to; every text in it is escaped. Nothing in it is interactive but
/// links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rendered(String);

impl Rendered {
    #[cfg(feature = "ssr")]
    pub fn of(view: impl leptos::IntoView) -> Self {
        use leptos::prelude::RenderHtml as _;
        Self(view.into_view().to_html())
    }

    /// For an element's `inner_html`.
    #[must_use]
    pub fn html(&self) -> String {
        self.0.clone()
    }
}
