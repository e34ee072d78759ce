//! The portal, built twice: rendered by the server (`ssr`), taken over in the browser (`hydrate`).

use leptos::prelude::*;
use leptos_meta::{MetaTags, Stylesheet, Title, provide_meta_context};
use leptos_router::components::{Route, Router, Routes};
use leptos_router::path;

/// The document around the pages.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    view! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <AutoReload options=options.clone()/>
                <HydrationScripts options/>
                <MetaTags/>
            </head>
            <body>
                <App/>
            </body>
        </html>
    }
}

/// The pages.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();

    view! {
        <Stylesheet href="/pkg/heliograph.css"/>
        <Title text="Heliograph"/>
        <Router>
            <main>
                <Routes fallback=|| "Not found">
                    <Route path=path!("/") view=Home/>
                </Routes>
            </main>
        </Router>
    }
}

#[component]
fn Home() -> impl IntoView {
    let (pressed, set_pressed) = signal(0_u32);

    view! {
        <h1>"Heliograph"</h1>
        <button on:click=move |_| set_pressed.update(|n| *n += 1)>"Pressed " {pressed} " times"</button>
    }
}
