//! Labelled form fields.

use leptos::prelude::*;

use super::FormState;

/// A labelled one-line field. Keeps its text when the form comes back with a problem.
#[component]
pub fn Field(
    label: &'static str,
    name: &'static str,
    #[prop(default = "text")] kind: &'static str,
    #[prop(default = "off")] autocomplete: &'static str,
    /// Whether the browser refuses to submit the form while the field is empty.
    #[prop(optional)]
    required: bool,
    /// A sentence below the field about the expected text.
    #[prop(optional, into)]
    hint: Option<String>,
    /// The initial text.
    #[prop(optional, into)]
    value: Option<String>,
    /// The maximum number of characters. The browser accepts no more.
    #[prop(optional)]
    maxlength: Option<u16>,
    /// The ID of the list with suggested texts.
    #[prop(optional_no_strip)]
    list: Option<&'static str>,
    form: FormState,
    /// Checks the text while it is typed. Returns a sentence if the text is invalid.
    #[prop(optional)]
    check: Option<fn(&str) -> Option<String>>,
    /// A signal that receives the text as it is typed, for other fields to read.
    #[prop(optional_no_strip)]
    typed: Option<RwSignal<String>>,
) -> impl IntoView {
    let id = form.id_of(name);
    let fault = RwSignal::new(None::<String>);
    let is_invalid = move || fault.with(Option::is_some) || form.is_about(name);
    // Once the server has refused the field, the server's sentence is shown instead.
    let shown_fault = Signal::derive(move || fault.get().filter(|_| !form.is_about(name)));
    // A field with neither hint nor check has no paragraph below it.
    let hint_id = (hint.is_some() || check.is_some()).then(|| format!("{id}-hint"));
    let problem_id = format!("{id}-problem");
    let described_by = described_by(hint_id.clone(), problem_id.clone(), name, form);
    let text_at_first = form.typed(name).or(value);
    let on_input = move |event| {
        let text = event_target_value(&event);
        if let Some(typed) = typed {
            typed.set(text.clone());
        }
        if let Some(check) = check {
            fault.set(if text.is_empty() { None } else { check(&text) });
        }
    };

    view! {
        <div class="field">
            <label for=id.clone()>{label}</label>
            <input
                id=id
                type=kind
                name=name
                value=text_at_first
                autocomplete=autocomplete
                list=list
                maxlength=maxlength
                required=required
                spellcheck="false"
                autocapitalize="none"
                aria-invalid=move || is_invalid().then_some("true")
                aria-describedby=described_by
                on:input=on_input
            />
            {form.beside(problem_id, name)}
            {hint_id.map(|id| view! { <FieldHint id hint fault=shown_fault/> })}
        </div>
    }
}

/// Returns the IDs for `aria-describedby`: the hint's, and the problem's if the form's problem is
/// about the field.
pub(super) fn described_by(
    hint_id: Option<String>,
    problem_id: String,
    name: &'static str,
    form: FormState,
) -> impl Fn() -> Option<String> + Send + Sync + 'static {
    move || {
        let problem = form.is_about(name).then_some(&problem_id);
        let ids: Vec<_> = problem.into_iter().chain(&hint_id).cloned().collect();
        (!ids.is_empty()).then(|| ids.join(" "))
    }
}

/// The sentence below a field: what is wrong with the typed text, or else the hint.
#[component]
fn FieldHint(id: String, hint: Option<String>, fault: Signal<Option<String>>) -> impl IntoView {
    view! {
        <p id=id class="hint" aria-live="polite">
            {move || fault.get().or_else(|| hint.clone()).unwrap_or_default()}
        </p>
    }
}

/// Prepares a text for a `<textarea>`. Leptos writes the text into the page unescaped: a text with
/// a closing tag would end the element, and the browser would drop a leading line break.
pub fn text_in_area(text: &str) -> String {
    if cfg!(feature = "ssr") {
        format!("\n{}", text.replace('&', "&amp;").replace('<', "&lt;"))
    } else {
        text.to_owned()
    }
}

/// A labelled field for the only file of a page. Its children are the hint below it.
#[component]
pub fn FileField(
    label: &'static str,
    name: &'static str,
    #[prop(optional)] accept: Option<&'static str>,
    children: Children,
) -> impl IntoView {
    view! {
        <div class="field">
            <label for="file">{label}</label>
            <input
                id="file"
                type="file"
                name=name
                accept=accept
                required
                aria-describedby="file-hint"
            />
            <p id="file-hint" class="hint">{children()}</p>
        </div>
    }
}

/// A labelled field for several lines.
///
/// Leptos leaves out the children of a `<textarea>` when it hydrates a page, so it would never
/// change the text that the server wrote. The default value changes it, and keeps what is typed.
#[component]
pub fn TextArea(
    label: &'static str,
    #[prop(into)] id: String,
    name: &'static str,
    rows: &'static str,
    text: String,
    #[prop(optional)] required: bool,
    #[prop(optional)] hint: Option<&'static str>,
    /// A signal that receives the text as it is typed.
    #[prop(optional)]
    typed: Option<RwSignal<Option<String>>>,
) -> impl IntoView {
    let hint_id = hint.map(|_| format!("{id}-hint"));
    let on_input = move |event| {
        if let Some(typed) = typed {
            typed.set(Some(event_target_value(&event)));
        }
    };
    view! {
        <div class="field">
            <label for=id.clone()>{label}</label>
            <textarea
                id=id
                name=name
                rows=rows
                dir="auto"
                required=required
                prop:defaultValue=text.clone()
                aria-describedby=hint_id.clone()
                on:input=on_input
            >
                {text_in_area(&text)}
            </textarea>
            {hint_id.map(|id| view! { <p id=id class="hint">{hint}</p> })}
        </div>
    }
}

/// A labelled list with one selected option.
#[component]
pub fn Choice(
    label: &'static str,
    name: &'static str,
    /// The value and the text of each option.
    options: Vec<(String, String)>,
    /// The value that is selected initially.
    #[prop(optional, into)]
    chosen: Option<String>,
    /// The form, if its problem can be about this field.
    #[prop(optional)]
    form: Option<FormState>,
    /// A sentence below the list about what its options mean. Needs `form`.
    #[prop(optional)]
    hint: Option<&'static str>,
) -> impl IntoView {
    let id = format!("field-{name}");
    let problem_id = format!("{id}-problem");
    let hint_id = hint.map(|_| format!("{id}-hint"));
    let is_invalid = move || form.is_some_and(|form| form.is_about(name));
    let described_by =
        form.map(|form| described_by(hint_id.clone(), problem_id.clone(), name, form));
    view! {
        <div class="field">
            <label for=id.clone()>{label}</label>
            <select
                id=id
                name=name
                aria-invalid=move || is_invalid().then_some("true")
                aria-describedby=move || described_by.as_ref()?()
            >
                {options
                    .into_iter()
                    .map(|(value, word)| {
                        let selected = chosen.as_deref() == Some(&value);
                        view! { <option value=value selected=selected>{word}</option> }
                    })
                    .collect_view()}
            </select>
            {form.map(|form| form.beside(problem_id, name))}
            {hint_id.map(|id| view! { <p id=id class="hint">{hint}</p> })}
        </div>
    }
}
