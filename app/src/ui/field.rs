//! Labelled fields of forms.

use leptos::prelude::*;

use super::FormState;

/// A one-line field under its label. Keeps what was typed when the form comes back with a problem.
#[component]
pub fn Field(
    label: &'static str,
    name: &'static str,
    #[prop(default = "text")] kind: &'static str,
    autocomplete: &'static str,
    /// Whether the browser should insist on it.
    #[prop(optional)]
    required: bool,
    /// What to know before typing.
    #[prop(optional, into)]
    hint: Option<String>,
    /// What stands in it at first.
    #[prop(optional, into)]
    value: Option<String>,
    form: FormState,
    /// Judges what is being typed: a sentence when it can't be used.
    #[prop(optional)]
    judge: Option<fn(&str) -> Option<String>>,
) -> impl IntoView {
    let id = format!("field-{name}");
    let hint_id = format!("{id}-hint");
    let verdict = RwSignal::new(None::<String>);
    let blamed = move || {
        verdict.with(Option::is_some)
            || form.problem.with(|problem| {
                problem
                    .as_ref()
                    .is_some_and(|problem| problem.cause.field() == Some(name))
            })
    };
    // Where there is nothing to say, nothing takes up room or is pointed to.
    let has_hint = hint.is_some() || judge.is_some();
    let described_by = {
        let hint_id = hint_id.clone();
        move || match (has_hint, blamed()) {
            (true, true) => Some(format!("{hint_id} {}", form.alert)),
            (true, false) => Some(hint_id.clone()),
            (false, true) => Some(form.alert.to_owned()),
            (false, false) => None,
        }
    };
    let typed = form.typed(name).or(value);
    let on_input = move |event| {
        if let Some(judge) = judge {
            let text = event_target_value(&event);
            verdict.set(if text.is_empty() { None } else { judge(&text) });
        }
    };

    view! {
        <div class="field">
            <label for=id.clone()>{label}</label>
            <input
                id=id
                type=kind
                name=name
                value=typed
                autocomplete=autocomplete
                required=required
                spellcheck="false"
                autocapitalize="none"
                aria-invalid=move || blamed().then_some("true")
                aria-describedby=described_by
                on:input=on_input
            />
            {has_hint
                .then(|| {
                    view! {
                        <p id=hint_id class="hint" aria-live="polite">
                            {move || verdict.get().or_else(|| hint.clone()).unwrap_or_default()}
                        </p>
                    }
                })}
        </div>
    }
}

/// A choice among words.
#[component]
pub fn Choice(
    label: &'static str,
    name: &'static str,
    /// Value and word of each.
    options: Vec<(String, String)>,
    /// The value that is chosen at first.
    #[prop(optional, into)]
    chosen: Option<String>,
) -> impl IntoView {
    let id = format!("field-{name}");
    view! {
        <div class="field">
            <label for=id.clone()>{label}</label>
            <select id=id name=name>
                {options
                    .into_iter()
                    .map(|(value, word)| {
                        let selected = chosen.as_deref() == Some(&value);
                        view! { <option value=value selected=selected>{word}</option> }
                    })
                    .collect_view()}
            </select>
        </div>
    }
}
