//! The logo.

use leptos::prelude::*;

/// The logo: a mirror that reflects a ray of sunlight. It is decorative, since the name is next to
/// it.
#[component]
pub fn Mark() -> impl IntoView {
    view! {
        <svg
            class="mark"
            viewBox="0 0 32 32"
            width="28"
            height="28"
            aria-hidden="true"
            focusable="false"
        >
            <circle class="mark-sun" cx="7" cy="7" r="4"/>
            <path class="mark-ray" d="M10.5 10.5 17 17M20.5 14.5 29 6M22 20l7 1"/>
            <path class="mark-mirror" d="M9 22 22 9.5"/>
            <path class="mark-stand" d="M15.5 16.5V28M10 28h11"/>
        </svg>
    }
}
