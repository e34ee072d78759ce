//! The chapters about the calls of the API.

use domain::MessageStatus;
use domain::message::{PAGE_CHARS, PAGES_MAX_DEFAULT};
use domain::number::{DIGITS_MAX, DIGITS_MIN, LOCAL_DIGITS};
use domain::records::PriceTable;
use leptos::prelude::*;

use crate::price_table::listed as listed_prices;
use crate::ui::{StateMark, Table};

/// A parameter or field: name, whether it must be there, meaning.
type Entry = (&'static str, &'static str, String);

fn listed(label: &'static str, second: &'static str, entries: &[Entry]) -> AnyView {
    Table::wide(entries)
        .styled("key", "Name", |entry| entry.0)
        .column(second, |entry| entry.1)
        .column("Meaning", |entry| entry.2.clone())
        .in_region(label)
}

/// The chapter about keys: how a call is authorised.
pub fn keys(key: &str, base_url: &str) -> impl IntoView + use<> {
    view! {
        <h2 id="keys">"Keys"</h2>
        <p>
            "An application has an API key and a test key, shown once when they are made. A key \
             allows everything its owner can do: keep it on your servers. The header keeps it out \
             of the logs of proxies:"
        </p>
        <pre tabindex="0"><code>{format!(
            "curl {base_url}/sms/balance --header 'Authorization: Bearer {key}'",
        )}</code></pre>
    }
}

/// The chapter about `/sms/send`.
pub fn send(key: &str, base_url: &str, currency: &str) -> impl IntoView + use<> {
    let parameters =
        vec![
        (
            "number",
            "yes",
            format!(
                "{DIGITS_MIN} to {DIGITS_MAX} digits: exactly {LOCAL_DIGITS} are a local number; \
                 an international one has its country code, with or without a + before it."
            ),
        ),
        (
            "message",
            "yes",
            format!(
                "The text in UTF-8, up to {} characters. {PAGE_CHARS} characters are a page, the \
                 unit of the price.",
                PAGE_CHARS * PAGES_MAX_DEFAULT
            ),
        ),
        (
            "requestid",
            "no",
            "1 to 255 characters of your own, to find the message by. Two sends with the same one \
             are two messages."
                .to_owned(),
        ),
        ("dryrun", "no", "1: everything but storing, charging and sending.".to_owned()),
    ];
    let fields =
        vec![
        (
            "code, message, text",
            "always",
            "200 and SUCCESS, or see Codes; message and text are the same words.".to_owned(),
        ),
        ("transid", "on 200", "The message's own id.".to_owned()),
        ("balance", "on 200", "What can still be spent, a number.".to_owned()),
        ("pages, cost, currency", "on 200", format!("What was charged, in {currency}.")),
        (
            "warnings",
            "on 200",
            "looks_local: an international number that reads as country code and local number, \
             which would cost less without the code."
                .to_owned(),
        ),
        ("requestid", "when given", "As it was given.".to_owned()),
        ("reason", "on errors", "A stable word; see Codes.".to_owned()),
    ];
    view! {
        <h2 id="send">"Send a message"</h2>
        <p>
            <code>"GET"</code> " or " <code>"POST /sms/send/<API_KEY>"</code>
            ". Parameters stand in the query, in form fields, which may be parts of a multipart \
             body, or in a JSON object."
        </p>
        <pre tabindex="0"><code>{format!(
            "curl {base_url}/sms/send/{key} \\\n  --data number=58001234 \\\n  --data-urlencode \
             'message=Your code is 4711' \\\n  --data requestid=login-81",
        )}</code></pre>
        <h3>"Parameters"</h3>
        {listed("Parameters of a send", "Required", &parameters)}
        <h3>"Answer"</h3>
        {listed("Fields of the answer to a send", "Present", &fields)}
        <p>
            "200 means that the message is on disk, charged once, and will be handed to a carrier \
             or its charge released. Without an answer, send again with the same header "
            <code>"Idempotency-Key"</code>
            ": for 24 hours after a 200, the same request with the same key is given the same \
             answer, and nothing is sent or charged twice."
        </p>
    }
}

/// The chapter about `/sms/bulk` and `/sms/batches`.
pub fn bulk(key: &str, base_url: &str) -> impl IntoView + use<> {
    view! {
        <h2 id="bulk">"Send a file"</h2>
        <p>
            <code>"POST /sms/bulk/<API_KEY>"</code> " takes either " <code>"bulksms"</code>
            ", a file with number, comma and message in each line, or " <code>"numbers"</code>
            ", a file with a number in each line, and " <code>"message"</code>
            "; as multipart or form fields. requestid, dryrun and Idempotency-Key work as above; a \
             dry run with an Idempotency-Key is asked for in the query. In form fields a leading + \
             is written %2B, or comes as the space that it decodes to. An application has a few \
             uploads under way at most, with both of its keys together: one more is refused before \
             it is read."
        </p>
        <pre tabindex="0"><code>{format!(
            "curl {base_url}/sms/bulk/{key} --form bulksms=@rows.csv\n\
             curl {base_url}/sms/bulk/{key} --form numbers=@numbers.txt --form message=Hello",
        )}</code></pre>
        <p>
            "Files are UTF-8, without a header line. Everything after the first comma is the \
             message; one that starts with a quote is a quoted CSV field and may hold line breaks. \
             It is all or nothing: a bad row refuses the file, and errors names the first 20 with \
             line, reason and detail. Otherwise the answer has batchid, rows, pages and cost, \
             which has left the balance."
        </p>
        <p>
            <code>"GET /sms/batches/<API_KEY>"</code> " and "
            <code>"GET /sms/batches/<API_KEY>/<batchid>"</code> " count its messages by status."
        </p>
    }
}

/// The chapter about `/sms/reports`.
pub fn reports(key: &str, base_url: &str) -> impl IntoView + use<> {
    let parameters = vec![
        (
            "transid, requestid, batchid, number, status",
            "no",
            "Only messages with this value.".to_owned(),
        ),
        (
            "from, to",
            "no",
            "Only messages from this moment on, and before that one: in RFC 3339, or a date, \
             which begins at midnight UTC."
                .to_owned(),
        ),
        (
            "limit",
            "no",
            "1 to 1000 messages at once; 100 unless given.".to_owned(),
        ),
        (
            "cursor",
            "no",
            "The value of next in the answer before; as long as there is one, there may be more \
             messages, also after an answer with fewer than limit."
                .to_owned(),
        ),
        ("format", "no", "json, or csv for a table.".to_owned()),
    ];
    view! {
        <h2 id="reports">"Ask what became of messages"</h2>
        <p>
            <code>"GET /sms/reports/<API_KEY>"</code> " lists the key's messages, newest first; "
            <code>"GET /sms/reports/<API_KEY>/<transid>"</code>
            " is one of them, with its timeline and its explained charge."
        </p>
        <pre tabindex="0"><code>{format!("curl '{base_url}/sms/reports/{key}?requestid=login-81'")}</code></pre>
        {listed("Parameters of reports", "Required", &parameters)}
    }
}

/// The chapter about `/sms/balance`.
pub fn balance(key: &str, base_url: &str) -> impl IntoView + use<> {
    view! {
        <h2 id="balance">"Ask for the balance"</h2>
        <p>
            <code>"GET /sms/balance/<API_KEY>"</code> " answers " <code>"balance"</code> " and "
            <code>"currency"</code> "."
        </p>
        <pre tabindex="0"><code>{format!("curl {base_url}/sms/balance/{key}")}</code></pre>
    }
}

/// The chapter about `/sms/prices`, with the prices.
pub fn prices(key: &str, base_url: &str, table: &PriceTable) -> impl IntoView + use<> {
    let currency = &table.currency;
    let coming = (!table.coming.is_empty()).then(|| {
        let rows =
            listed_prices(&table.coming, currency).in_region("Prices that are set for later");
        view! {
            <p>"From later moments on:"</p>
            {rows}
        }
    });
    view! {
        <h2 id="prices">"Ask for the prices"</h2>
        <p>
            <code>"GET /sms/prices/<API_KEY>"</code>
            " lists the prices per page, each with the moment from which it is in force; with "
            <code>"number"</code> " it answers what a page to that number costs, as "
            <code>"price"</code>
            ". Of the prefixes that an international number begins with, the longest that has a \
             price decides. A message keeps the price of its acceptance."
        </p>
        <pre tabindex="0"><code>{format!("curl '{base_url}/sms/prices/{key}?number=27821234567'")}</code></pre>
        {listed_prices(&table.in_force, currency).in_region("Prices in force")}
        {coming}
    }
}

const fn meaning(status: MessageStatus) -> &'static str {
    match status {
        MessageStatus::Queued => "Accepted, stored and charged; waits for a carrier.",
        MessageStatus::Sending => "On its way to a carrier.",
        MessageStatus::Unknown => "Handed over, and the carrier's answer is missing.",
        MessageStatus::Submitted => "A carrier took it. From here on the charge stays.",
        MessageStatus::Delivered => "The handset has it.",
        MessageStatus::Failed => "The network gave up.",
        MessageStatus::Expired => "Its time ran out; at the latest after 48 hours.",
        MessageStatus::Rejected => "No carrier took it; the charge is released.",
    }
}

/// The chapter about the statuses of a message.
pub fn statuses() -> impl IntoView {
    let statuses = Table::wide(&MessageStatus::ALL)
        .column("Status", |status| view! { <StateMark state=*status/> })
        .column(
            "Final",
            |status| if status.is_final() { "yes" } else { "no" },
        )
        .column("Meaning", |status| meaning(*status))
        .in_region("Statuses of a message");
    view! {
        <h2 id="statuses">"Statuses"</h2>
        {statuses}
    }
}

/// The chapter about the test key: which number leads to which outcome of a message.
pub fn outcomes() -> impl IntoView {
    let numbers = [
        ("00000001", "delivered"),
        ("00000002", "failed: the handset is unavailable"),
        ("00000003", "expired"),
        ("00000004", "rejected: the carrier refuses it"),
        ("00000005", "delivered after 30 seconds"),
        (
            "00000501 to 00000505",
            "the send, or the whole upload, answers that code",
        ),
    ];
    let outcomes = Table::narrow(&numbers)
        .styled("key", "Number", |number| number.0)
        .column("Outcome", |number| number.1)
        .in_region("Numbers with a fixed outcome");
    view! {
        <h2 id="test">"Test key"</h2>
        <p>
            "It takes the same calls with the same checks and answers, works while the application \
             is Pending, spends play money (1,000, filled up daily) and sends to nobody. These \
             numbers decide what becomes of a message:"
        </p>
        {outcomes}
    }
}
