//! The fields of account forms, each the same wherever it stands.

use leptos::prelude::*;

use crate::ui::{Field, FormState, PasswordBox};

/// The email of the account.
#[component]
pub fn EmailField(
    /// A signal that gets the text as it is typed, for other fields to read.
    #[prop(optional)]
    typed: Option<RwSignal<String>>,
    form: FormState,
) -> impl IntoView {
    view! {
        <Field
            label="Email"
            name="email"
            kind="email"
            autocomplete="username"
            required=true
            typed=typed
            form
        />
    }
}

/// The password that the account has now.
#[component]
pub fn PasswordField(
    #[prop(default = "Password")] label: &'static str,
    form: FormState,
) -> impl IntoView {
    view! { <PasswordBox label name="password" autocomplete="current-password" form/> }
}

/// A code of the authenticator app.
#[component]
pub fn CodeField(form: FormState) -> impl IntoView {
    view! { <Field label="Code" name="code" autocomplete="one-time-code" required=true form/> }
}

/// One of the recovery codes.
#[component]
pub fn RecoveryCodeField(form: FormState) -> impl IntoView {
    view! { <Field label="Recovery code" name="recovery_code" required=true form/> }
}

/// A password that the account is to have, weighed while it is typed.
#[component]
pub fn NewPasswordField(
    #[prop(default = "New password")] label: &'static str,
    /// The account's email, empty where the page doesn't know it.
    email: RwSignal<String>,
    form: FormState,
) -> impl IntoView {
    view! {
        <PasswordBox
            label
            name="new_password"
            autocomplete="new-password"
            weighed_against=email
            form
        />
    }
}
