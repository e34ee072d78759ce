//! `/applications/{reference}/start`: programs that send the first message, a text counter, and the
//! recent API calls.

use domain::Category;
use domain::records::ApplicationRecord;
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::NOT_FOR_SMS;
use super::call_log::{CallView, call_log};
use super::frame::ApplicationFrame;
use crate::counter::{CounterData, LoadCounter, TextCounter};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{Loaded, in_path, parameter, tabs};
#[cfg(feature = "ssr")]
use {super::application_view::owned, super::programs::Program, crate::portal_request::signed_in};

/// The languages: the value in the page's address, and the name.
const LANGUAGES: [(&str, &str); 5] = [
    ("curl", "curl"),
    ("javascript", "JavaScript"),
    ("python", "Python"),
    ("php", "PHP"),
    ("java", "Java"),
];

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuickStartView {
    application: ApplicationRecord,
    language: String,
    /// The file name and the command that runs the file. `None` for a shell command.
    file: Option<(String, String)>,
    program: String,
    /// Recent calls, newest first.
    calls: Vec<CallView>,
}

/// Loads the program in a language, and the recent calls. A cookie remembers the language for the
/// next request without one.
#[server(prefix = "/fn", endpoint = "quick-start", input = GetUrl)]
pub async fn load_quick_start(
    reference: String,
    #[server(default)] language: String,
) -> Result<QuickStartView, Problem> {
    let (current, account) = signed_in().await?;
    let application = owned(current.service(), account.id, &reference).await?;
    let program = match Program::find(&language) {
        Some(program) => {
            current.keep_language(program.language);
            program
        }
        None => (current.language())
            .and_then(|language| Program::find(&language))
            .unwrap_or_else(Program::first),
    };
    let calls =
        current.service().applications().api_calls(account.id, application.reference).await?;
    Ok(QuickStartView {
        calls: calls.into_iter().map(CallView::from).collect(),
        application,
        language: program.language.to_owned(),
        file: (program.file).map(|(file, command)| (file.to_owned(), command.to_owned())),
        program: program.text(&current.site().base_url),
    })
}

#[component]
pub fn QuickStartPage() -> impl IntoView {
    let reference = in_path("reference");
    let language = parameter("language");
    let data = PageData::new(move || LoadQuickStart {
        reference: reference.get(),
        language: language.get().unwrap_or_default(),
    });
    let counter = PageData::new(|| LoadCounter {});
    view! { <Loaded data render=move |data| view! { <Start data counter/> }/> }
}

#[component]
fn Start(data: QuickStartView, counter: PageData<CounterData>) -> impl IntoView {
    let application = data.application.clone();
    let calls = call_log(&data.calls);
    let content = match application.category {
        Category::Sms => Either::Left(view! {
            {quick_start(data)}
            <TextCounter data=counter/>
        }),
        Category::Electricity => Either::Right(view! { <p>{NOT_FOR_SMS}</p> }),
    };
    view! {
        <ApplicationFrame application at="Quick start">
            {content}
            {calls}
        </ApplicationFrame>
    }
}

fn quick_start(data: QuickStartView) -> impl IntoView {
    let reference = data.application.reference;
    let page = format!("/applications/{reference}/start");
    let languages = LANGUAGES.map(|(language, name)| {
        let href = format!("{page}?language={language}#quick-start");
        (href, name, language == data.language)
    });
    let run = data.file.map(|(file, command)| {
        view! { <p>"Save it as " <code>{file}</code> " and run " <code>{command}</code> "."</p> }
    });
    view! {
        <h2 id="quick-start">"Quick start"</h2>
        <p>
            "The programs read the key from an environment variable, so that it isn't in a file \
             that you share. With the test key, they send to nobody and cost nothing:"
        </p>
        <pre tabindex="0"><code>{format!("export HELIOGRAPH_KEY={reference}ht_YOUR_TEST_KEY")}</code></pre>
        <p class="fine">
            "Paste your full test key. It is shown only once, when you create it. If you no longer \
             have it, create a new one "
            <a href=format!("/applications/{reference}/keys")>"under Keys"</a> "."
        </p>
        {tabs("Languages", languages)}
        {run}
        <pre tabindex="0"><code>{data.program}</code></pre>
        <p>
            "The test key delivers to any number except those that "
            <a href="/docs#test" rel="external">"stand for failures"</a> "."
        </p>
        <p>
            "With the API key, which begins with " <code>{format!("{reference}hk_")}</code>
            ", the same program sends for real. All calls, fields and codes are in the "
            <a href="/docs" rel="external">"API reference"</a> "."
        </p>
    }
}
