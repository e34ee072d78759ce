//! The fills of a chart's bars. Each has a colour and a pattern, so that parts can be told apart
//! without colours.

use domain::MessageStatus;
use domain::status::Mark;
use leptos::prelude::*;

/// A fill: the CSS class of its colour, its rotation in degrees, and the width of its stripes.
#[derive(Clone, Copy)]
pub struct Fill(&'static str, i16, u8);

impl Fill {
    pub const fn of_status(status: MessageStatus) -> Self {
        let bar = status.bar();
        let ink = match bar.mark {
            Mark::Good => "ink-good",
            Mark::Moving => "ink-moving",
            Mark::Waiting | Mark::Unclear => "ink-waiting",
            Mark::Bad => "ink-bad",
        };
        Self(ink, bar.turn, bar.stripe)
    }

    /// Returns the fill of good and bad outcomes: whole for good ones, striped for bad ones.
    pub const fn of_outcome(is_good: bool) -> Self {
        if is_good { Self("ink-good", 0, 6) } else { Self("ink-bad", 45, 3) }
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
