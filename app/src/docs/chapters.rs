//! The chapters that aren't about calls.

use crate::price_table::listed as listed_prices;
use crate::ui::{StateMark, Table};
use domain::records::PriceTable;
use domain::{DeliveryError, MessageStatus};
use leptos::prelude::*;

/// The chapters about keys and about retries.
pub fn keys(key: &str, base_url: &str) -> impl IntoView + use<> {
    view! {
        <h2 id="keys">"Keys"</h2>
        <p>
            "An application has an API key and a test key. Each is shown only once, when it is \
             created. Anyone who has a key can do everything that its owner can do with it, so \
             keep it on your servers. In a header, it stays out of the logs of proxies:"
        </p>
        <pre tabindex="0"><code>{format!(
            "curl --retry 3 {base_url}/sms/balance --header 'Authorization: Bearer {key}'",
        )}</code></pre>
        <h2 id="repeat">"Calls without an answer"</h2>
        <p>
            "200 means that the message is on disk and charged once. It will be submitted to a \
             carrier, or its charge will be released. If you get no answer, send again with the \
             same header "
            <code>"Idempotency-Key"</code>
            ". For 24 hours after a 200, the same request with the same key gets the same answer, \
             and nothing is sent or charged twice."
        </p>
        <p>
            "429 means that there are too many requests, and 503 that the service can't answer \
             now. Nothing was sent or charged. Wait for the number of seconds in the header "
            <code>"Retry-After"</code>
            ", then send the same request again, with the same header "
            <code>"Idempotency-Key"</code>
            ". The examples on this page do so with curl's option "
            <code>"--retry"</code>
            ", and an application's page Quick start has programs in five languages."
        </p>
    }
}

/// The chapter with the price list.
pub fn prices(table: &PriceTable) -> impl IntoView + use<> {
    let currency = &table.currency;
    let coming = (!table.coming.is_empty()).then(|| {
        let rows =
            listed_prices(&table.coming, currency).in_region("Prices that are set for later");
        view! {
            <p>"Upcoming prices:"</p>
            {rows}
        }
    });
    view! {
        <h2 id="prices">"Prices"</h2>
        <p>
            "An international number costs the price of the longest prefix in this list that it \
             begins with. A message keeps the price at which it was accepted."
        </p>
        {listed_prices(&table.in_force, currency).in_region("Prices in force")}
        {coming}
    }
}

/// The chapter about the statuses of a message.
pub fn statuses() -> impl IntoView {
    let statuses = Table::wide(&MessageStatus::ALL)
        .column("Status", |status| view! { <StateMark state=*status/> })
        .column("Final", |status| if status.is_final() { "yes" } else { "no" })
        .column("Meaning", |status| status.meaning())
        .in_region("Statuses of a message");
    view! {
        <h2 id="statuses">"Statuses"</h2>
        {statuses}
    }
}

/// The chapter about delivery errors.
pub fn errors() -> impl IntoView {
    let errors = Table::wide(&DeliveryError::ALL)
        .styled("key", "Error", |error| error.as_str())
        .column("Meaning", |error| error.meaning())
        .column("What to do", |error| error.advice())
        .in_region("Errors of messages");
    view! {
        <h2 id="errors">"Errors of messages"</h2>
        <p>
            "The field " <code>"error"</code>
            " of a report says why a message isn't delivered. It is one of these codes, which are \
             stable. An underscore and the network's or the carrier's own code may follow, as in "
            <code>"undeliverable_011"</code>
            ", so programs should compare only the beginning."
        </p>
        {errors}
    }
}

/// The chapter about the test key, with the outcome for each test number.
pub fn outcomes() -> impl IntoView {
    let numbers = [
        ("00000001", "delivered"),
        ("00000002", "failed: the handset is unavailable"),
        ("00000003", "expired"),
        ("00000004", "rejected: the carrier refuses it"),
        ("00000005", "delivered after 30 seconds"),
        ("00000006", "delivered on the second attempt, after 5 seconds"),
        ("00000007", "delivered; the receipt comes before the carrier's answer"),
        ("00000008", "delivered; the recipient answers, and the answer is an inbound message"),
        ("00000501 to 00000505", "the send, or the whole upload, gets that code"),
    ];
    let outcomes = Table::narrow(&numbers)
        .styled("key", "Number", |number| number.0)
        .column("Outcome", |number| number.1)
        .in_region("Numbers with a fixed outcome");
    view! {
        <h2 id="test">"Test key"</h2>
        <p>
            "The test key takes the same calls with the same checks and answers. It works while \
             the application is Pending, spends the test balance (1,000, filled up daily) and \
             sends to nobody. These numbers decide what becomes of a message:"
        </p>
        {outcomes}
        <p>
            <code>"POST /sms/test/inbound/<TEST_KEY>"</code>
            " with " <code>"number"</code> ", " <code>"recipient"</code> " and "
            <code>"message"</code>
            " lets a message arrive as if a handset had sent it. STOP and START change the test \
             key's opt-outs."
        </p>
        <p>
            <code>"POST /sms/test/clock/<TEST_KEY>"</code>
            " with " <code>"advance"</code>
            " moves the clock of the application's test key ahead by that many seconds, up to 35 \
             days in all. Scheduled messages, expiries, receipts and further attempts to deliver \
             events then follow at once, so a test of two days takes a second. "
            <code>"sendat"</code> " and " <code>"send_at"</code>
            " are times of this clock. Times of what has happened, such as "
            <code>"created_at"</code> ", the filters of reports, quiet hours, "
            <code>"webhook-timestamp"</code>
            ", test money and daily limits keep to real time. Messages that you send while the clock \
             moves count as sent afterwards. " <code>"reset=1"</code>
            " goes back to real time: messages and batches that are still scheduled wait for their \
             times again, and all other pauses go on from where they are. Live messages and live \
             endpoints never move."
        </p>
    }
}
