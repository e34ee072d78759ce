//! The form field for step-up authentication.

use domain::Refusal;
use leptos::prelude::*;

use super::{Field, FormState, PasskeyButton};
use crate::problem::Cause;

/// A field for a code of the authenticator app, with a button for a passkey if the account has one.
/// An account without the app gets a field for the password. The field appears after the server has
/// refused the form because the credential was missing, or at once with `missing`. Its name is
/// `credential`.
#[component]
pub fn StepUpField(
    form: FormState,
    #[prop(default = "Code of your authenticator app")] code_label: &'static str,
    /// The refusal that asks for the credential, if the page knew it when it was loaded.
    #[prop(optional_no_strip)]
    missing: Option<Refusal>,
) -> impl IntoView {
    let at_first = missing.and_then(|refusal| asked(&Cause::Refused(refusal), None));
    // Two problems in a row that need the same credential share one field, so that its text stays.
    // After another problem there is no field, because the server checks the credential first.
    let asked = Memo::new(move |before: Option<&Option<Asked>>| {
        let before = before.copied().flatten();
        form.problem.with(|problem| match problem {
            Some(problem) => asked(&problem.cause, before),
            None => at_first,
        })
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

/// Returns the credential that a problem calls for. `before` is the one that the previous problem
/// called for.
const fn asked(cause: &Cause, before: Option<Asked>) -> Option<Asked> {
    match cause {
        // After a wrong code, the user keeps the same choice.
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
