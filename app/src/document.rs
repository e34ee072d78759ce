//! The document around the pages, which the server sends with each.

use domain::Theme;
use leptos::prelude::*;
use leptos_meta::{HashedStylesheet, MetaTags};

use crate::App;
use crate::portal_request::CurrentRequest;
use crate::ui::PlainHeader;

/// The document around the pages.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    let path = path();
    let code = code_of_page(&options, &path);
    let theme = theme();
    view! {
        <!DOCTYPE html>
        <html lang="en" data-theme=theme.as_str()>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content=color_scheme(theme)/>
                <meta name="description" content=description(&path)/>
                <link rel="icon" type="image/svg+xml" href="/favicon.svg"/>
                <HashedStylesheet options=options.clone() id="leptos"/>
                <AutoReload options/>
                <HydrationScripts options=code/>
                <MetaTags/>
            </head>
            <body>
                <App/>
            </body>
        </html>
    }
}

/// Where the code is that the browser runs for the requested page: only pages of staff have the
/// code of pages of staff, so that customers needn't load it.
fn code_of_page(options: &LeptosOptions, path: &str) -> LeptosOptions {
    let is_support = path.starts_with("/support");
    let mut options = options.clone();
    // While developing there is one code for all pages.
    if is_support && options.hash_files {
        options.output_name = "support".into();
        options.hash_file = options
            .hash_file
            .replace("hash.txt", "support-hash.txt")
            .into();
    }
    options
}

/// The path of the requested page.
fn path() -> String {
    let request = use_context::<http::request::Parts>();
    request.map_or_else(String::new, |request| request.uri.path().to_owned())
}

/// What search engines and shared links say of a page.
fn description(path: &str) -> &'static str {
    match path {
        "/docs" => {
            "The HTTP API of Heliograph: its calls, their parameters, answers and reasons of \
             refusals, with examples."
        }
        "/register" => "Create an account of Heliograph, to send text messages from your systems.",
        "/login" | "/login/code" => "Sign in to Heliograph.",
        "/forgot" => "Set a new password for an account of Heliograph.",
        _ => "Heliograph sends text messages for your systems, by one HTTP API.",
    }
}

/// The colours that the browser last saw the portal in: the page has them from its first byte on.
fn theme() -> Theme {
    let request = use_context::<CurrentRequest>();
    request.map_or_else(Theme::default, |request| request.theme())
}

/// The colours of what the browser draws before it has the styles.
const fn color_scheme(theme: Theme) -> &'static str {
    match theme {
        Theme::System => "light dark",
        Theme::Light => "light",
        Theme::Dark => "dark",
    }
}

/// A page that isn't one of the portal's: why a request was refused or couldn't be answered.
pub fn error_page(
    options: &LeptosOptions,
    theme: Theme,
    title: &'static str,
    sentence: &str,
    request_id: &str,
) -> String {
    let (options, sentence) = (options.clone(), sentence.to_owned());
    let request_id = format!("Request ID: {request_id}");
    let page = view! {
        <html lang="en" data-theme=theme.as_str()>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content=color_scheme(theme)/>
                // The comments that mark the ends of texts would be shown here.
                <title inner_html=format!("{title} · Heliograph")></title>
                <link rel="icon" type="image/svg+xml" href="/favicon.svg"/>
                <HashedStylesheet options id="leptos"/>
            </head>
            <body>
                <PlainHeader/>
                <main id="main">
                    <div class="page-head">
                        <h1>{title}</h1>
                    </div>
                    <p class="alert">{sentence}</p>
                    <p>
                        <a href="/applications">"Go to My Applications"</a>
                    </p>
                    <p class="request-id">{request_id}</p>
                </main>
            </body>
        </html>
    };
    format!("<!DOCTYPE html>{}", page.to_html())
}
