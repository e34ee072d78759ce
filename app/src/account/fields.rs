//! The fields of account forms, each the same wherever it stands.

use domain::Password;
use leptos::prelude::*;

use crate::problem::Cause;
use crate::ui::{Field, FormState};

/// The e-mail of the account.
#[component]
pub fn EmailField(form: FormState) -> impl IntoView {
    view! {
        <Field label="Email" name="email" kind="email" autocomplete="username" required=true form/>
    }
}

/// The password that the account has now.
#[component]
pub fn PasswordField(
    #[prop(default = "Password")] label: &'static str,
    form: FormState,
) -> impl IntoView {
    view! {
        <Field
            label
            name="password"
            kind="password"
            autocomplete="current-password"
            required=true
            form
        />
    }
}

/// A password that the account is to have, checked while it is typed.
#[component]
pub fn NewPasswordField(
    #[prop(default = "New password")] label: &'static str,
    form: FormState,
) -> impl IntoView {
    view! {
        <Field
            label
            name="new_password"
            kind="password"
            autocomplete="new-password"
            required=true
            hint=Cause::Password.sentence()
            check=|text| Some(Password::parse(text).err()?.to_string())
            form
        />
    }
}
