//! The introductions of the chapters about events and webhooks.

use domain::EventType;
use leptos::prelude::*;
use serde_json::Value;

use super::schema::list;
use crate::ui::Table;

/// The address of the receivers in the quick start. It has to be replaced for each reader.
pub const RECEIVERS: &str = "/applications/YOUR_REFERENCE/start#receive";

const HEADERS: [(&str, &str); 3] = [
    ("webhook-id", "The event's ID. All attempts of an event have the same one."),
    ("webhook-timestamp", "When we made this attempt, in Unix seconds."),
    (
        "webhook-signature",
        "v1, and a signature in base64. For a day after you change the secret, there are two, \
         separated by a space.",
    ),
];

/// Explains events and lists their types.
pub fn about_events(document: &Value) -> AnyView {
    let types = Table::wide(&EventType::ALL)
        .styled("key", "Type", |kind| kind.as_str())
        .column("Meaning", |kind| format!("{}.", summary(document, *kind)))
        .column("Data", |kind| data(document, *kind))
        .in_region("Types of events");
    let example = document.pointer(
        "/paths/~1sms~1events~1{key}/get/responses/200/content/application~1json/example/events/0",
    );
    let example = example.and_then(|example| serde_json::to_string_pretty(example).ok());
    view! {
        <p>
            "An event says what happened to your application or to one of its messages. Your \
             program can get events in two ways: we send them to an endpoint (see "
            <a href="#webhooks" rel="external">"Webhooks"</a>
            "), or your program polls. Both get the same JSON:"
        </p>
        <pre tabindex="0"><code>{example}</code></pre>
        {types}
        <p>
            "We may add types at any time, so ignore those that you don't know. The API key gets \
             the events of real messages, and the test key those of test messages. Both get the \
             events of the application itself. The field " <code>"test"</code>
            " says which key an event is for."
        </p>
        <p>
            "To poll, make the following call every few seconds. Handle the events, store the \
             value of " <code>"next"</code> ", and pass it as " <code>"cursor"</code>
            " in the next call. No event is missing or repeated."
        </p>
    }
    .into_any()
}

fn hook(document: &Value, kind: EventType) -> &Value {
    &document["webhooks"][kind.as_str()]["post"]
}

fn summary(document: &Value, kind: EventType) -> String {
    hook(document, kind)["summary"].as_str().unwrap_or_default().to_owned()
}

/// Describes the field `data` of a type.
fn data(document: &Value, kind: EventType) -> AnyView {
    let body = &hook(document, kind)["requestBody"]["content"]["application/json"]["schema"];
    let schema = &body["allOf"][1]["properties"]["data"];
    match schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        Some("EventMessage") => view! {
            "A " <a href="#reports" rel="external">"report"</a> " without " <code>"message"</code>
        }
        .into_any(),
        Some("InboundMessage") => view! {
            "An " <a href="#inbound" rel="external">"inbound message"</a>
        }
        .into_any(),
        Some("OptOut") => {
            view! { "An " <a href="#optouts" rel="external">"opt-out"</a> }.into_any()
        }
        Some(_) => view! { "A " <a href="#batches" rel="external">"batch"</a> }.into_any(),
        None => {
            let names: Vec<&str> =
                list(&schema["required"]).iter().filter_map(Value::as_str).collect();
            match names.as_slice() {
                [] => "No fields".into_any(),
                names => names.join(", ").into_any(),
            }
        }
    }
}

/// Explains deliveries: the request, how to verify it, and the attempts.
pub fn about_webhooks() -> AnyView {
    let headers = Table::wide(&HEADERS)
        .styled("key", "Header", |header| header.0)
        .column("Meaning", |header| header.1)
        .in_region("Headers of a delivery");
    view! {
        <p>
            "A webhook is a request that delivers an event to your program. An application's page "
            <a href=RECEIVERS>"Quick start"</a>
            " has the commands that create and test an endpoint, and complete receivers in \
             JavaScript, Python, PHP and Java."
        </p>
        <p>
            "We send each event by POST, with a JSON body and these headers. Answer with any 2xx \
             status within 15 seconds. If your program needs more time, store the event, answer, \
             and handle it afterwards. We don't follow redirects."
        </p>
        {headers}
        <h3 id="signatures">"Verify a delivery"</h3>
        <p>
            "Anyone who knows the address of your endpoint can send requests to it. The signature \
             proves that we sent a request. It follows the specification Standard Webhooks, whose \
             libraries verify it for you: for example, the package "
            <code>"standardwebhooks"</code> " on npm and on PyPI. Without a library:"
        </p>
        <ol>
            <li>
                "Read the body as bytes. Parse it only after you have verified it, because other \
                 JSON with the same content has another signature."
            </li>
            <li>
                "Take the part of the secret after " <code>"whsec_"</code>
                " and decode it from base64. This is the key."
            </li>
            <li>
                "Compute the HMAC-SHA256 of " <code>"id.timestamp.body"</code>
                " with this key. The ID and the timestamp are those of the headers. Encode the \
                 result in base64, and write " <code>"v1,"</code> " before it."
            </li>
            <li>
                "Compare it with each signature of the header, with a function that takes the same \
                 time for all texts. One of them must match."
            </li>
            <li>
                "Check that the timestamp differs from your clock by at most 5 minutes. Otherwise \
                 someone who recorded a request could send it again later."
            </li>
            <li>"If a check fails, answer 401 and ignore the request."</li>
        </ol>
        <p>
            "To change the secret, call the endpoint with " <code>"rotate=1"</code>
            ". For 24 hours, each delivery has two signatures, one with the new secret and one \
             with the old one. Your program can use either secret in this time."
        </p>
        <h3 id="attempts">"Failed deliveries"</h3>
        <p>
            "If your endpoint doesn't answer with a 2xx status, we try again after 5 seconds, 1 \
             minute, 5 minutes, 30 minutes, 2 hours, 5 hours, 10 hours, 14 hours and 20 hours. \
             Each pause varies by up to a fifth. If your answer has the header "
            <code>"Retry-After"</code> ", we wait at least that long, up to an hour."
        </p>
        <p>
            "We disable an endpoint if it answers 410, or if all attempts fail for three days. You \
             get a mail. Call the endpoint with " <code>"enable=1"</code>
            " to enable it. It then gets the events of the last three days that it missed. For \
             older events, use " <code>"replay_from"</code> "."
        </p>
        <h3 id="repeated">"Repetition and order"</h3>
        <p>
            "We deliver each event at least once. An event arrives again if we didn't get your \
             answer, for example. Store the " <code>"webhook-id"</code>
            " of each event that you have handled. If it comes again, answer with a 2xx status and \
             do nothing."
        </p>
        <p>
            "The events of one message arrive in order, unless one of them had to be attempted \
             again. Events of different messages can arrive in any order. The field "
            <code>"timestamp"</code> " says when an event happened."
        </p>
    }
    .into_any()
}
