//! The setting for characters outside GSM-7: send them or replace them.

use domain::Reference;
#[cfg(feature = "ssr")]
use domain::limits::LimitsChange;
use leptos::prelude::*;
#[cfg(feature = "ssr")]
use service::LimitsAuthor;

#[cfg(feature = "ssr")]
use crate::portal_request::{redirect_to, signed_in};
use crate::problem::Problem;
use crate::ui::{Choice, FormState, PostForm, SubmitButton};

const FIELD: &str = "replace";
const CHOICES: [(&str, &str); 2] =
    [("false", "Send every text as it is"), ("true", "Replace common characters")];

/// Saves the setting.
#[server(prefix = "/fn", endpoint = "set-characters")]
pub async fn set_characters(reference: Reference, replace: bool) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed(FIELD, &replace.to_string());
    let (current, account) = signed_in().await.map_err(keep)?;
    let author = LimitsAuthor::Owner(account.id);
    let change = LimitsChange::of_characters(replace);
    current.service().applications().change_limits(reference, author, change).await?;
    redirect_to(&format!("/applications/{reference}/settings?characters=1"))
}

/// The current setting, and the form to change it.
#[component]
pub fn CharactersSection(reference: Reference, in_force: bool, form: FormState) -> impl IntoView {
    let in_force = in_force.to_string();
    let chosen = form.typed(FIELD).unwrap_or(in_force);
    let options = CHOICES.map(|(value, label)| (value.to_owned(), label.to_owned()));
    view! {
        <section>
            <h2 id="characters">"Characters"</h2>
            <p>
                "A text with a character outside the SMS alphabet GSM-7 takes up to three times as \
                 many segments, and some handsets don't show it. Often the only such characters \
                 are “curly quotes”, dashes – like this one – or accents that a word processor \
                 or a language has."
            </p>
            <p>
                "If you choose so, straight quotes, hyphens, three dots, spaces and letters \
                 without the accent take their place. A text that has other characters too, such \
                 as an emoji, or that would have more pages, is sent as it is. Reports show what \
                 was sent."
            </p>
            <PostForm form>
                <input type="hidden" name="reference" value=reference.to_string()/>
                <Choice
                    label="Characters outside GSM-7"
                    name=FIELD
                    options=options.to_vec()
                    chosen
                />
                <SubmitButton label="Save characters" form/>
            </PostForm>
        </section>
    }
}
