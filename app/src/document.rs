//! The HTML document around each page. Only the server renders it.

use std::fs::read_to_string;
use std::sync::Arc;

use domain::Theme;
use leptos::prelude::*;
use leptos_meta::{HashedStylesheet, MetaTags};

use crate::App;
use crate::footer::Footer;
use crate::parts::part_of;
use crate::portal_request::CurrentRequest;
use crate::ui::PlainHeader;

/// The list of the files of each part of the program.
#[derive(Clone)]
pub struct PartFiles(Arc<str>);

impl PartFiles {
    /// Reads the list that the build writes. A development build has none.
    pub fn read(options: &LeptosOptions) -> Self {
        let list = options.hash_files.then(|| read_to_string(options.hash_file.as_ref()).ok());
        Self(list.flatten().unwrap_or_default().into())
    }

    /// Returns the names of a part's files.
    fn of_part(&self, part: &str) -> impl Iterator<Item = &str> {
        let files = self.0.lines().find_map(|line| line.strip_prefix(part)?.strip_prefix(": "));
        files.unwrap_or_default().split(' ').filter(|file| !file.is_empty())
    }
}

/// The HTML document around each page.
pub fn shell(options: LeptosOptions, files: &PartFiles) -> impl IntoView + use<> {
    let path = path();
    let links = links_of_part(&options, files, &path);
    let theme = theme();
    let footer = use_context::<CurrentRequest>().map(|request| request.site().footer.view());
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
                <AutoReload options=options.clone()/>
                <HydrationScripts options/>
                {links}
                <MetaTags/>
            </head>
            <body><App/>{footer}</body>
        </html>
    }
}

/// Makes the browser load the page's part of the code together with the program. Otherwise the
/// program would request it only once it has started.
fn links_of_part(options: &LeptosOptions, files: &PartFiles, path: &str) -> impl IntoView + use<> {
    let links = files.of_part(part_of(path)).map(|file| {
        let href = format!("/{}/{file}", options.site_pkg_dir);
        view! {
            <link
                rel="preload"
                href=href
                r#as="fetch"
                r#type="application/wasm"
                crossorigin="anonymous"
            />
        }
    });
    links.collect_view()
}

/// Returns the path of the requested page.
fn path() -> String {
    let request = use_context::<http::request::Parts>();
    request.map_or_else(String::new, |request| request.uri.path().to_owned())
}

/// Returns the page's description for search engines and link previews.
fn description(path: &str) -> &'static str {
    match path {
        "/docs" => {
            "The HTTP API of Heliograph: calls, parameters, answers and reasons for refusals, with \
             examples."
        }
        "/register" => "Create a Heliograph account to send text messages from your systems.",
        "/login" | "/login/code" => "Sign in to Heliograph.",
        "/forgot" => "Set a new password for your Heliograph account.",
        _ => "Heliograph sends text messages for your systems, through one HTTP API.",
    }
}

/// Returns the theme that this browser used last, so that the page has it from the first byte.
fn theme() -> Theme {
    let request = use_context::<CurrentRequest>();
    request.map_or_else(Theme::default, |request| request.theme())
}

/// Returns the `color-scheme` that the browser uses until the styles are loaded.
const fn color_scheme(theme: Theme) -> &'static str {
    match theme {
        Theme::System => "light dark",
        Theme::Light => "light",
        Theme::Dark => "dark",
    }
}

/// Renders a page outside the portal's routes. It says why a request was refused or failed.
pub fn error_page(
    options: &LeptosOptions,
    footer: &Footer,
    theme: Theme,
    title: &'static str,
    sentence: &str,
    request_id: &str,
) -> String {
    let (options, sentence) = (options.clone(), sentence.to_owned());
    let request_id = format!("Request ID: {request_id}");
    let footer = footer.view();
    let page = view! {
        <html lang="en" data-theme=theme.as_str()>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content=color_scheme(theme)/>
                // `inner_html`, because Leptos writes a comment after each text node, and the title
                // would show that comment.
                <title inner_html=format!("{title} · Heliograph")></title>
                <link rel="icon" type="image/svg+xml" href="/favicon.svg"/>
                <HashedStylesheet options id="leptos"/>
            </head>
            <body>
                <PlainHeader/>
                <main id="main">
                    <div class="page-head"><h1>{title}</h1></div>
                    <p class="alert">{sentence}</p>
                    <p><a href="/applications">"Go to My Applications"</a></p>
                    <p class="request-id">{request_id}</p>
                </main>
                {footer}
            </body>
        </html>
    };
    format!("<!DOCTYPE html>{}", page.to_html())
}
