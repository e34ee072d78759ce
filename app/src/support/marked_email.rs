//! Emails, as staff see them.

use domain::Email;
use domain::account::letter_name;
use leptos::prelude::*;

use super::links::account_path;

/// Renders an email as a link to its account, with a warning below it if some letters may look like
/// others.
#[component]
pub fn MarkedEmail(
    email: String,
    /// The account's ID, if it is known.
    #[prop(optional, into)]
    id: Option<i64>,
) -> impl IntoView {
    let href = id.map_or_else(|| account_path(&email), |id| format!("/support/accounts/{id}"));
    view! {
        <a href=href>{email.clone()}</a>
        <LetterWarning email/>
    }
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
