//! The fills of a chart's bars: a colour and a pattern for each, so that a part is told by its
//! pattern too.

use domain::MessageStatus;
use leptos::prelude::*;

/// A fill: the class of its colour, which the style sheet has, its turn in degrees, and how wide
/// its stripes are.
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

    /// The fill of an account's application: it has one of each category.
    pub const fn of_application(place: usize) -> Self {
        if place.is_multiple_of(2) {
            Self("ink-moving", 0, 6)
        } else {
            Self("ink-waiting", 45, 3)
        }
    }

    /// The pattern, which bars name by its id.
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
