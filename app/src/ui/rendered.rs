//! Parts of pages that the server alone renders, and the browser takes as they come: what draws
//! them is not among what the browser has to load.

use serde::{Deserialize, Serialize};

/// HTML that a view of ours was rendered to; every text in it is escaped. Nothing in it is
/// interactive but links and plain forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Rendered {
    html: String,
    /// Stands in the page already.
    placed: bool,
}

impl Rendered {
    #[cfg(feature = "ssr")]
    pub fn of(view: impl leptos::IntoView) -> Self {
        use leptos::prelude::RenderHtml as _;
        view.into_view().to_html().into()
    }

    /// For an element's `inner_html`.
    #[must_use]
    pub fn html(&self) -> String {
        self.html.clone()
    }

    /// To be called on what a page is rendered from. The server writes a page's data beside it, for
    /// the browser to take over; this needn't stand there a second time, since an element with
    /// `inner_html` is taken over as it is.
    #[must_use]
    pub fn placed(self) -> Self {
        Self {
            placed: cfg!(feature = "ssr"),
            ..self
        }
    }
}

impl From<String> for Rendered {
    fn from(html: String) -> Self {
        Self {
            html,
            placed: false,
        }
    }
}

impl From<Rendered> for String {
    fn from(rendered: Rendered) -> Self {
        if rendered.placed {
            Self::new()
        } else {
            rendered.html
        }
    }
}
