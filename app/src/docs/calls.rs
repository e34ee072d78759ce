//! The chapters about API calls.

use leptos::prelude::*;
use serde_json::Value;

use super::call::{Call, Parameter, Way, calls};
use super::events::{about_events, about_webhooks};
use super::reasons::anchor;
use crate::ui::{Table, TableRegion};

/// The chapters: the path segment that their calls share, the anchor and the heading. The anchor
/// `prices` belongs to the price list.
const CHAPTERS: [(&str, &str, &str); 14] = [
    ("send", "send", "Send a message"),
    ("bulk", "bulk", "Send a file"),
    ("batches", "batches", "Look up and pause uploaded files"),
    ("cancel", "cancel", "Cancel messages"),
    ("reports", "reports", "Look up messages"),
    ("inbound", "inbound", "Read inbound messages"),
    ("events", "events", "Events"),
    ("webhooks", "webhooks", "Webhooks"),
    ("optouts", "optouts", "Opt-outs"),
    ("limits", "limits", "Limits"),
    ("verify", "verify", "Verify numbers with one-time codes"),
    ("test", "test-inbound", "Receive test messages and move the test clock"),
    ("balance", "balance", "Get the balance"),
    ("prices", "ask-prices", "Get the prices"),
];

/// The address of the page that checks files. It has to be replaced for each reader.
pub const FILE_CHECK: &str = "/applications/YOUR_REFERENCE/check-file";

/// Renders a chapter for each group of calls.
pub fn call_chapters(document: &Value, base_url: &str, key: &str) -> AnyView {
    let calls = calls(document);
    let chapters = CHAPTERS.map(|(subject, anchor, heading)| {
        let own = calls.iter().filter(|call| call.subject() == subject);
        let own: Vec<_> = own.map(|call| shown(call, base_url, key)).collect();
        let about = match subject {
            "events" => Some(about_events(document)),
            "webhooks" => Some(about_webhooks()),
            "bulk" => Some(about_files()),
            _ => None,
        };
        view! {
            <h2 id=anchor>{heading}</h2>
            {about}
            {own}
        }
        .into_any()
    });
    Vec::from(chapters).into_any()
}

fn about_files() -> AnyView {
    view! {
        <p>
            "The page " <a href=FILE_CHECK rel="external">"Check a file"</a>
            " of your application shows what a file costs, which of its lines are bad, and how to \
             export it from a spreadsheet. It stores and sends nothing."
        </p>
    }
    .into_any()
}

fn shown(call: &Call<'_>, base_url: &str, key: &str) -> AnyView {
    let request = format!("{} {}", call.method, call.path.replace("{key}", "<API_KEY>"));
    let description = call.description().map(str::to_owned);
    let kinds = call.kinds_of_body();
    let body = (!kinds.is_empty()).then(|| {
        let kinds = kinds.join(", ");
        let about = call.about_body().map(str::to_owned);
        view! { <p>"The body is one of " {kinds} ". " {about}</p> }
    });
    let ways: Vec<_> = call
        .ways()
        .iter()
        .map(|way| {
            let about = way.about.map(|about| view! { <p>{about.to_owned()}</p> });
            let curl = call.curl(way, base_url, key);
            view! {
                {about}
                <pre tabindex="0"><code>{curl}</code></pre>
                {parameters(way, &request)}
            }
            .into_any()
        })
        .collect();
    view! {
        <h3 id=format!("call-{}", call.id())><code>{request.clone()}</code></h3>
        <p>{call.summary().to_owned()} ". " {description}</p>
        {body}
        {ways}
        {answer(call, &request)}
        {refusals(call)}
    }
    .into_any()
}

fn parameters(way: &Way<'_>, request: &str) -> Option<AnyView> {
    if way.parameters.is_empty() {
        return None;
    }
    let what = way.parameters.iter().find(|parameter| parameter.required);
    let with = what.filter(|_| way.about.is_some());
    let label = match with {
        Some(Parameter { name, .. }) => format!("Parameters of {request} with {name}"),
        None => format!("Parameters of {request}"),
    };
    let table = Table::wide(&way.parameters)
        .styled("key", "Name", |parameter| parameter.name.to_owned())
        .column("In", |parameter| parameter.places.join(" or "))
        .column("Required", |parameter| yes_or_no(parameter.required))
        .column("Meaning", |parameter| parameter.meaning.clone())
        .view();
    Some(view! { <TableRegion label>{table}</TableRegion> }.into_any())
}

const fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

/// Shows the 200 response.
fn answer(call: &Call<'_>, request: &str) -> AnyView {
    let fields = call.fields();
    let table = Table::wide(&fields)
        .styled("key", "Name", |field| field.name.clone())
        .column("Always there", |field| yes_or_no(field.required))
        .column("Meaning", |field| field.meaning.clone())
        .view();
    let label = format!("Fields of the answer to {request}");
    let example =
        call.example().map(|example| view! { <pre tabindex="0"><code>{example}</code></pre> });
    view! {
        <details>
            <summary>"Answer 200"</summary>
            {example}
            <TableRegion label>{table}</TableRegion>
        </details>
    }
    .into_any()
}

/// Lists the reasons of all other responses, each with a link to its meaning.
fn refusals(call: &Call<'_>) -> AnyView {
    let by_status: Vec<_> = call
        .refusals()
        .into_iter()
        .map(|(status, reasons)| {
            let links: Vec<_> = reasons
                .into_iter()
                .map(|reason| {
                    let link = format!("#{}", anchor(reason));
                    view! {
                        " "
                        <a href=link rel="external">{reason.to_owned()}</a>
                    }
                })
                .collect();
            let status = format!("HTTP {status}:");
            view! { <li>{status} {links}</li> }
        })
        .collect();
    view! {
        <details>
            <summary>"Other answers"</summary>
            <ul>{by_status}</ul>
        </details>
    }
    .into_any()
}
