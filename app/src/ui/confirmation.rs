//! The confirmation of an action that affects others or can't be undone.

use domain::Refusal;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::{FormState, PostForm, StepUpField, SubmitButton};

/// The contents of a confirmation. The server writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The affected account, application and amount. Each has a term and a text.
    pub facts: Vec<(String, String)>,
    /// The consequences, one sentence each.
    pub effects: Vec<String>,
    /// Whether the action can be undone, and how.
    pub undo: String,
    /// The refusal that asks for step-up authentication, if it is needed.
    pub step_up: Option<Refusal>,
}

impl Confirmation {
    /// Creates a confirmation on a page that shows what is affected.
    pub fn of(effect: String, undo: &str) -> Self {
        Self { effects: vec![effect], undo: undo.to_owned(), ..Self::default() }
    }
}

/// The confirmation with its form: what is affected, what happens, whether it can be undone, and
/// one button. The form's other fields are `children`.
#[component]
pub fn ConfirmationForm(
    confirmation: Confirmation,
    /// The button's text.
    label: &'static str,
    /// Whether the action takes something away.
    danger: bool,
    /// The page to go back to.
    back: String,
    form: FormState,
    children: Children,
) -> impl IntoView {
    let Confirmation { facts, effects, undo, step_up } = confirmation;
    let effects: Vec<_> = effects.into_iter().map(|effect| view! { <li>{effect}</li> }).collect();
    view! {
        {confirmed_facts(facts)}
        <ul class="effects">{effects} <li>{undo}</li></ul>
        <PostForm form>
            {children()}
            <StepUpField form missing=step_up/>
            <div class="buttons">
                <SubmitButton label form primary={!danger} danger/>
                <a class="button button-quiet" href=back>"Back"</a>
            </div>
        </PostForm>
    }
}

/// Renders what a confirmation is about.
pub fn confirmed_facts(facts: Vec<(String, String)>) -> impl IntoView {
    let facts = facts.into_iter().map(|(term, text)| {
        view! {
            <div>
                <dt>{term}</dt>
                <dd>{text}</dd>
            </div>
        }
    });
    let facts: Vec<_> = facts.collect();
    (!facts.is_empty()).then(|| view! { <dl class="facts">{facts}</dl> })
}
