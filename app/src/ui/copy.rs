//! A field for copying a secret that is shown only once.

use leptos::prelude::*;

/// A read-only field that selects its text on focus. If scripts run, a button copies the text.
#[component]
pub fn SecretField(
    label: &'static str,
    name: &'static str,
    value: String,
    /// The button's label.
    copy_label: &'static str,
) -> impl IntoView {
    let id = format!("field-{name}");
    let runs = RwSignal::new(false);
    let copied = RwSignal::new(false);
    // Effects run only in the browser, after hydration, so the server's page has no button.
    Effect::new(move || runs.set(true));
    let field = NodeRef::<leptos::html::Input>::new();
    let select = move || {
        if let Some(field) = field.get_untracked() {
            field.select();
        }
    };

    view! {
        <div class="field secret">
            <label for=id.clone()>{label}</label>
            <div class="secret-row">
                <input
                    id=id
                    name=name
                    class="key"
                    type="text"
                    readonly=true
                    autocomplete="off"
                    spellcheck="false"
                    value=value.clone()
                    node_ref=field
                    on:focus=move |_| select()
                />
                {move || {
                    let value = value.clone();
                    runs.get()
                        .then(|| {
                            view! {
                                <button
                                    type="button"
                                    class="button"
                                    on:click=move |_| {
                                        select();
                                        copy(value.clone(), copied);
                                    }
                                >
                                    {copy_label}
                                </button>
                            }
                        })
                }}
            </div>
            <p class="hint" role="status">{move || if copied.get() { "Copied." } else { "" }}</p>
        </div>
    }
}

/// Buttons that copy a text and print the page. They need scripts, and aren't shown without.
#[component]
pub fn Copying(text: String, label: &'static str) -> impl IntoView {
    let runs = RwSignal::new(false);
    let copied = RwSignal::new(false);
    Effect::new(move || runs.set(true));
    move || {
        let text = text.clone();
        runs.get().then(|| {
            view! {
                <button
                    type="button"
                    class="button"
                    on:click=move |_| copy(text.clone(), copied)
                >
                    {label}
                </button>
                <button type="button" class="button" on:click=|_| print()>"Print this page"</button>
                <p class="hint" role="status">
                    {move || if copied.get() { "Copied." } else { "" }}
                </p>
            }
        })
    }
}

#[cfg(feature = "hydrate")]
fn print() {
    // Without a printer there is nothing to do.
    let _ = window().print();
}

#[cfg(not(feature = "hydrate"))]
const fn print() {}

/// Copies a text to the clipboard. Sets `copied` to whether that succeeded. Browsers forbid it on a
/// page without TLS, where the text is only selected.
#[cfg(feature = "hydrate")]
fn copy(text: String, copied: RwSignal<bool>) {
    if !window().is_secure_context() {
        return;
    }
    leptos::task::spawn_local(async move {
        let written = window().navigator().clipboard().write_text(&text);
        copied.set(wasm_bindgen_futures::JsFuture::from(written).await.is_ok());
    });
}

#[cfg(not(feature = "hydrate"))]
fn copy(_text: String, _copied: RwSignal<bool>) {}
