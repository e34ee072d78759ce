//! An email as staff see it.

use domain::Email;
use domain::account::letter_name;
use leptos::prelude::*;

/// An email, with a warning under it where it has letters that may look like others.
#[component]
pub fn MarkedEmail(email: String) -> impl IntoView {
    view! { {email.clone()} <LetterWarning email/> }
}

/// The warning alone, for where the email stands in a title.
#[component]
pub fn LetterWarning(email: String) -> impl IntoView {
    Email::unusual_letters(&email).map(|letters| {
        let names: Vec<_> = letters.chars().map(letter_name).collect();
        let warning = format!("Unusual letters: {}", names.join(", "));
        view! { <div class="fine">{warning}</div> }
    })
}
