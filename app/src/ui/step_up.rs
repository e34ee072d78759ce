//! The field of a form that asks again who is signed in.

use domain::Refusal;
use leptos::prelude::*;

use super::{Field, FormState, PasskeyButton};
use crate::problem::Cause;

/// A field for a code of the authenticator app, with a button for a passkey where the account has
/// one; or for the password of an account without the app. It is shown once the form was refused
/// for want of it. Its name is `credential`.
#[component]
pub fn StepUpField(
    form: FormState,
    #[prop(default = "Code")] code_label: &'static str,
) -> impl IntoView {
    // Two problems in a row that ask for the same are one field, which keeps what is typed.
    let asked = Memo::new(move |before: Option<&Option<Asked>>| {
        let before = before.copied().flatten();
        form.problem
            .with(|problem| asked(&problem.as_ref()?.cause, before))
    });
    move || {
        asked.get().map(|asked| match asked {
            Asked::Code => view! {
                <Field label=code_label name="credential" autocomplete="one-time-code" required=true form/>
            }
            .into_any(),
            Asked::CodeOrPasskey => view! {
                <Field label=code_label name="credential" autocomplete="one-time-code" required=true form/>
                <PasskeyButton form field="credential"/>
            }
            .into_any(),
            Asked::Password => view! {
                <Field
                    label="Password"
                    name="credential"
                    kind="password"
                    autocomplete="current-password"
                    required=true
                    form
                />
            }
            .into_any(),
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Code,
    CodeOrPasskey,
    Password,
}

/// What a problem asks for, after another one asked for `before`.
const fn asked(cause: &Cause, before: Option<Asked>) -> Option<Asked> {
    match cause {
        // A wrong code leaves the choice that there was.
        Cause::Refused(Refusal::StepUpCodeWrong) if before.is_some() => before,
        Cause::Refused(Refusal::CodeNeeded | Refusal::StepUpCodeWrong) => Some(Asked::Code),
        Cause::NoPasskeyUsed
        | Cause::Refused(
            Refusal::CodeOrPasskeyNeeded
            | Refusal::PasskeyRefused
            | Refusal::PasskeyCopied
            | Refusal::PasskeyOver,
        ) => Some(Asked::CodeOrPasskey),
        Cause::Refused(Refusal::PasswordNeeded | Refusal::StepUpPasswordWrong) => {
            Some(Asked::Password)
        }
        _ => None,
    }
}
