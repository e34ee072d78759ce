//! `/applications/{reference}/start`: programs that send the first message and receive events, a
//! text counter, and the recent API calls.

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
use {
    super::application_view::owned,
    super::programs::{LOCAL_ENDPOINT, Program, Programs, create_endpoint, test_endpoint},
    crate::portal_request::signed_in,
};

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
    sender: ProgramView,
    receiver: Option<ProgramView>,
    /// Whether this server may deliver to a receiver on its own machine.
    is_local: bool,
    /// Shell commands.
    create_endpoint: String,
    test_endpoint: String,
    /// Recent calls, newest first.
    calls: Vec<CallView>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ProgramView {
    /// The file name and the command that runs the file. `None` for a shell command.
    file: Option<(String, String)>,
    text: String,
}

#[cfg(feature = "ssr")]
impl ProgramView {
    fn new(program: &Program, base_url: &str) -> Self {
        Self {
            file: program.file.map(|(file, command)| (file.to_owned(), command.to_owned())),
            text: program.text(base_url),
        }
    }
}

/// Loads the programs in a language, and the recent calls. A cookie remembers the language for the
/// next request without one.
#[server(prefix = "/fn", endpoint = "quick-start", input = GetUrl)]
pub async fn load_quick_start(
    reference: String,
    #[server(default)] language: String,
) -> Result<QuickStartView, Problem> {
    let (current, account) = signed_in().await?;
    let application = owned(current.service(), account.id, &reference).await?;
    let programs = match Programs::find(&language) {
        Some(programs) => {
            current.keep_language(programs.language);
            programs
        }
        None => (current.language())
            .and_then(|language| Programs::find(&language))
            .unwrap_or_else(Programs::first),
    };
    let calls =
        current.service().applications().api_calls(account.id, application.reference).await?;
    let base_url = &current.site().base_url;
    let shown = |program: &Program| ProgramView::new(program, base_url);
    let is_local = current.service().webhooks().endpoint_url(LOCAL_ENDPOINT).is_ok();
    Ok(QuickStartView {
        calls: calls.into_iter().map(CallView::from).collect(),
        application,
        language: programs.language.to_owned(),
        sender: shown(&programs.sender),
        receiver: programs.receiver.as_ref().map(shown),
        is_local,
        create_endpoint: create_endpoint(base_url, is_local),
        test_endpoint: test_endpoint(base_url),
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
            {quick_start(&data)}
            {receive_events(data)}
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

fn quick_start(data: &QuickStartView) -> impl IntoView + use<> {
    let reference = data.application.reference;
    let page = format!("/applications/{reference}/start");
    let languages = LANGUAGES.map(|(language, name)| {
        let href = format!("{page}?language={language}#quick-start");
        (href, name, language == data.language)
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
        {program(data.sender.clone())}
        <p>
            "The test key delivers to any number except those that "
            <a href="/docs#test" rel="external">"stand for failures"</a> "."
        </p>
        <p>
            "With the API key, which begins with " <code>{format!("{reference}hk_")}</code>
            ", the same program sends for real. All calls, fields and codes are in the "
            <a href="/docs" rel="external">"API reference"</a> "."
        </p>
        <p>
            "Your system can also upload a file of messages. "
            <a href=format!("/applications/{reference}/check-file")>"Check a file"</a>
            " first to see what it costs and which lines are bad."
        </p>
    }
}

fn program(program: ProgramView) -> impl IntoView {
    let run = program.file.map(|(file, command)| {
        view! { <p>"Save it as " <code>{file}</code> " and run " <code>{command}</code> "."</p> }
    });
    view! {
        {run}
        <pre tabindex="0"><code>{program.text}</code></pre>
    }
}

fn receive_events(data: QuickStartView) -> impl IntoView {
    let public = (!data.is_local).then(|| {
        view! {
            <p class="fine">
                "Replace the example with an https address that leads to your program. The \
                 receivers on this page listen on port 8000 of your machine, so you need a web \
                 server or a tunnel that forwards to it."
            </p>
        }
    });
    let receiver = match data.receiver {
        Some(receiver) => Either::Left(view! {
            <p>
                "The receiver verifies each request with the secret, ignores repeated events, and \
                 prints the others."
            </p>
            {program(receiver)}
        }),
        None => Either::Right(view! {
            <p>
                "To receive events, you need a program. Choose JavaScript, Python, PHP or Java \
                 above to see one."
            </p>
        }),
    };
    view! {
        <h2 id="receive">"Receive events"</h2>
        <p>
            "We can send events to your program, for example when a message is delivered. Create \
             an endpoint, which is the address that gets the events:"
        </p>
        <pre tabindex="0"><code>{data.create_endpoint}</code></pre>
        {public}
        <p>
            "The answer has the endpoint's ID. It also has the secret, which is shown only this \
             once. Put the secret into the environment of your program:"
        </p>
        <pre tabindex="0"><code>"export HELIOGRAPH_WEBHOOK_SECRET=whsec_YOUR_SECRET"</code></pre>
        {receiver}
        <p>
            "Put your endpoint's ID into this command, which sends a test event. The answer shows \
             the status that your program returned:"
        </p>
        <pre tabindex="0"><code>{data.test_endpoint}</code></pre>
        <p>
            "This endpoint gets the events of messages that you send with the test key. For real \
             messages, create another one with the API key. The API reference lists "
            <a href="/docs#events" rel="external">"all events"</a> " and explains "
            <a href="/docs#webhooks" rel="external">"how we deliver them"</a> "."
        </p>
    }
}
