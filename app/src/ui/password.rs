//! Password fields. The user can reveal the password, and a new password is rated.

use domain::Password;
use domain::password::{InvalidPassword, Strength};
use leptos::prelude::*;

use super::FormState;
use super::field::described_by;

/// A labelled password field. If scripts run, a button next to it reveals the password.
#[component]
pub fn PasswordBox(
    label: &'static str,
    name: &'static str,
    autocomplete: &'static str,
    /// For a new password: the email that the rating compares it with.
    #[prop(optional)]
    weighed_against: Option<RwSignal<String>>,
    form: FormState,
) -> impl IntoView {
    let id = form.id_of(name);
    let text = RwSignal::new(String::new());
    let is_shown = RwSignal::new(false);
    let is_invalid = move || form.is_about(name);
    let hint_id = weighed_against.map(|_| format!("{id}-hint"));
    let problem_id = format!("{id}-problem");
    let described_by = described_by(hint_id.clone(), problem_id.clone(), name, form);

    view! {
        <div class="field">
            <label for=id.clone()>{label}</label>
            <div class="password-row">
                <input
                    id=id
                    type=move || if is_shown.get() { "text" } else { "password" }
                    name=name
                    autocomplete=autocomplete
                    required=true
                    spellcheck="false"
                    autocapitalize="none"
                    aria-invalid=move || is_invalid().then_some("true")
                    aria-describedby=described_by
                    on:input=move |event| text.set(event_target_value(&event))
                />
                <ShowButton is_shown/>
            </div>
            {form.beside(problem_id, name)}
            {hint_id
                .zip(weighed_against)
                .map(|(id, email)| view! { <Meter id text email/> })}
        </div>
    }
}

/// The button that reveals or hides the password. Shown only if scripts run.
#[component]
fn ShowButton(is_shown: RwSignal<bool>) -> impl IntoView {
    let runs = RwSignal::new(false);
    // Effects run only in the browser, after hydration, so the server's page has no button.
    Effect::new(move || runs.set(true));
    let toggle = move |_| is_shown.update(|is_shown| *is_shown = !*is_shown);
    let word = move || {
        if is_shown.get() { "Hide password" } else { "Show password" }
    };
    move || {
        runs.get()
            .then(|| view! { <button type="button" class="button" on:click=toggle>{word}</button> })
    }
}

/// Rates the password while it is typed, and says why. The sentences match the server's as far as
/// the browser can tell. Never prevents the form from being sent.
#[component]
fn Meter(id: String, text: RwSignal<String>, email: RwSignal<String>) -> impl IntoView {
    let weighed = move || (!text.with(String::is_empty)).then(|| weigh(&text.get(), &email.get()));
    let sentence = move || {
        weighed().map_or_else(|| InvalidPassword::Length.to_string(), |(_, sentence)| sentence)
    };
    view! {
        {move || {
            weighed()
                .map(|(level, _)| {
                    view! { <meter class="strength" min="0" max="3" value=level aria-hidden="true"/> }
                })
        }}
        <p id=id class="hint" aria-live="polite">{sentence}</p>
    }
}

/// Returns the meter's level and its sentence. Level 0 is a password that would be refused.
fn weigh(text: &str, email: &str) -> (u8, String) {
    let valid = Password::parse(text);
    if let Err(invalid) = valid.and_then(|password| password.must_differ_from(email)) {
        return (0, invalid.to_string());
    }
    let strength = Strength::of(text, email);
    (strength as u8 + 1, strength.sentence().to_owned())
}
