//! Emails, as staff see them.

use domain::Email;
use domain::account::letter_name;
use leptos::prelude::*;

/// Renders an email, with a warning below it if some letters may look like others.
#[component]
pub fn MarkedEmail(email: String) -> impl IntoView {
    view! { {email.clone()} <LetterWarning email/> }
}

/// Renders only the warning. Use it if the email is in the page's title.
#[component]
pub fn LetterWarning(email: String) -> impl IntoView {
    Email::unusual_letters(&email).map(|letters| {
        let names: Vec<_> = letters.chars().map(letter_name).collect();
        let warning = format!("Unusual letters: {}", names.join(", "));
        view! { <div class="fine">{warning}</div> }
    })
}
