//! The fills of a chart's bars. Each has a colour and a pattern, so that parts can be told apart
//! without colours.

use domain::MessageStatus;
use leptos::prelude::*;

/// A fill: the CSS class of its colour, its rotation in degrees, and the width of its stripes.
#[derive(Clone, Copy)]
pub struct Fill(&'static str, i16, u8);

impl Fill {
    pub const fn of_status(status: MessageStatus) -> Self {
        match status {
            MessageStatus::Delivered => Self("ink-good", 0, 6),
            MessageStatus::Submitted => Self("ink-moving", 45, 4),
            MessageStatus::Sending => Self("ink-moving", 45, 2),
            MessageStatus::Queued => Self("ink-waiting", 0, 1),
            MessageStatus::Unknown => Self("ink-waiting", 0, 4),
            MessageStatus::Failed => Self("ink-bad", -45, 4),
            MessageStatus::Expired => Self("ink-bad", -45, 2),
            MessageStatus::Rejected => Self("ink-bad", 90, 3),
        }
    }

    /// Returns the fill of an application. There are two, because an account has at most one
    /// application of each category.
    pub const fn of_application(place: usize) -> Self {
        if place.is_multiple_of(2) { Self("ink-moving", 0, 6) } else { Self("ink-waiting", 45, 3) }
    }

    /// Returns the SVG pattern. Bars refer to it by `id`.
    pub fn pattern(self, id: String) -> impl IntoView {
        let Self(ink, turn, stripe) = self;
        view! {
            <pattern
                id=id
                class=ink
                width="6"
                height="6"
                patternUnits="userSpaceOnUse"
                patternTransform=format!("rotate({turn})")
            >
                <rect class="wash" width="6" height="6"></rect>
                <rect width=stripe.to_string() height="6"></rect>
            </pattern>
        }
    }
}
