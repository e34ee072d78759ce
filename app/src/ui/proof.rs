//! The field of a form that asks again who is signed in.

use domain::Refusal;
use leptos::prelude::*;

use super::{Field, FormState};
use crate::problem::Cause;

/// A field for a code of the authenticator app, or for the password of an account without one;
/// shown once the form was refused for want of it. Its name is `proof`.
#[component]
pub fn ProofField(
    form: FormState,
    #[prop(default = "Code")] code_label: &'static str,
) -> impl IntoView {
    // Two problems in a row that ask for the same are one field, which keeps what is typed.
    let asked = Memo::new(move |_| form.problem.with(|problem| asked(&problem.as_ref()?.cause)));
    move || {
        asked.get().map(|asked| match asked {
            Asked::Code => view! {
                <Field label=code_label name="proof" autocomplete="one-time-code" required=true form/>
            }
            .into_any(),
            Asked::Password => view! {
                <Field
                    label="Password"
                    name="proof"
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
    Password,
}

const fn asked(cause: &Cause) -> Option<Asked> {
    match cause {
        Cause::Refused(Refusal::CodeNeeded | Refusal::ProofCodeWrong) => Some(Asked::Code),
        Cause::Refused(Refusal::PasswordNeeded | Refusal::ProofPasswordWrong) => {
            Some(Asked::Password)
        }
        _ => None,
    }
}
