//! Fields for passwords: what is typed can be shown, and a new password is weighed.

use domain::Password;
use domain::password::{InvalidPassword, Strength};
use leptos::prelude::*;

use super::FormState;
use super::field::described_by;

/// A field for a password under its label. Where scripts run, a button beside it shows what is
/// typed.
#[component]
pub fn PasswordBox(
    label: &'static str,
    name: &'static str,
    autocomplete: &'static str,
    /// For a password that is to be chosen: the email that it is weighed against.
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

/// The button that shows or hides what is typed; without scripts there is none.
#[component]
fn ShowButton(is_shown: RwSignal<bool>) -> impl IntoView {
    let runs = RwSignal::new(false);
    // Effects run in the browser alone, after hydration: the server's page has no button.
    Effect::new(move || runs.set(true));
    let toggle = move |_| is_shown.update(|is_shown| *is_shown = !*is_shown);
    let word = move || {
        if is_shown.get() {
            "Hide password"
        } else {
            "Show password"
        }
    };
    move || {
        runs.get()
            .then(|| view! { <button type="button" class="button" on:click=toggle>{word}</button> })
    }
}

/// How strong the password is that is typed, and why. It says what the server will say, as far as
/// the browser knows, and never keeps the form back.
#[component]
fn Meter(id: String, text: RwSignal<String>, email: RwSignal<String>) -> impl IntoView {
    let weighed = move || (!text.with(String::is_empty)).then(|| weigh(&text.get(), &email.get()));
    let sentence = move || {
        weighed().map_or_else(
            || InvalidPassword::Length.to_string(),
            |(_, sentence)| sentence,
        )
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

/// The meter's level, 0 for a password that would be refused, and the sentence to it.
fn weigh(text: &str, email: &str) -> (u8, String) {
    let valid = Password::parse(text);
    if let Err(invalid) = valid.and_then(|password| password.must_differ_from(email)) {
        return (0, invalid.to_string());
    }
    let strength = Strength::of(text, email);
    (strength as u8 + 1, strength.sentence().to_owned())
}
