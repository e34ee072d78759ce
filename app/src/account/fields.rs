//! The fields that account forms share.

use leptos::prelude::*;

use crate::ui::{Field, FormState, PasswordBox};

/// The account's email.
#[component]
pub fn EmailField(
    /// A signal that receives the text as it is typed, for other fields to read.
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

/// The account's current password.
#[component]
pub fn PasswordField(
    #[prop(default = "Password")] label: &'static str,
    form: FormState,
) -> impl IntoView {
    view! { <PasswordBox label name="password" autocomplete="current-password" form/> }
}

/// A code from the authenticator app.
#[component]
pub fn CodeField(form: FormState) -> impl IntoView {
    view! { <Field label="Code" name="code" autocomplete="one-time-code" required=true form/> }
}

#[component]
pub fn RecoveryCodeField(form: FormState) -> impl IntoView {
    view! { <Field label="Recovery code" name="recovery_code" required=true form/> }
}

/// A new password, rated while it is typed.
#[component]
pub fn NewPasswordField(
    #[prop(default = "New password")] label: &'static str,
    /// The account's email. Empty if the page doesn't know it.
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
