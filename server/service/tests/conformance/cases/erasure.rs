//! Requests about one phone number: the copy of its data, and its erasure.

use domain::support::ReceiptKind;
use domain::{EventType, KeyKind, MessageStatus, Number, Reason};
use serde_json::Value;
use service::{
    Actor, Attempt, DueEvent, Erasure, EventData, KeyAccess, OptOutAuthor, OptOutChange,
    OptOutFilter, RawReceipt, SendError, SubmitOutcome, WebhookChange,
};

use super::inbound::{HANDSET, MINUTE_MS, add_number, receive, text};
use super::verifications::{of_number, start_with};
use crate::database::Backend;
use crate::network::taken_as;
use crate::sending::{Sending, receipt};
use crate::uploads::{accepted, batch};
use crate::world::{World, money, request};

on_each_backend![
    an_erased_number_is_nowhere_and_facts_and_money_stay,
    an_erased_opt_out_still_counts_and_can_be_removed,
    what_is_open_keeps_the_number,
];

const LOCAL: &str = "57000001";
const OTHER: &str = "57000002";
const SECRETS: [&str; 5] = [LOCAL, "outbound secret", "inbound secret", "row secret", "my-id"];

fn number() -> Number {
    Number::parse(LOCAL).unwrap()
}

async fn erase(sending: &Sending) -> Erasure {
    let (world, account) = (&sending.world, &sending.customer.account);
    let actor = Actor::Account(account.id);
    world.service.messages().erase_number(&actor, account.id, &number()).await.unwrap()
}

async fn export(sending: &Sending) -> Value {
    let (messages, account) = (sending.world.service.messages(), &sending.customer.account);
    let actor = Actor::Account(account.id);
    let mut export = messages.export_number(&actor, account.id, &number()).await.unwrap();
    let mut file = String::new();
    while let Some(part) = export.next_part().await.unwrap() {
        file += &part;
    }
    serde_json::from_str(&file).unwrap()
}

async fn opt_out(world: &World, access: &KeyAccess, change: OptOutChange) -> (u64, u64) {
    let applications = world.service.applications();
    let author = OptOutAuthor::Program;
    let changed = applications.change_opt_outs(access, change, author, None).await.unwrap();
    (changed.added, changed.removed)
}

/// Claims all messages, and lets the carrier deliver them.
async fn deliver_all(sending: &Sending, name: &str) {
    for (place, handed) in sending.claim("acme").await.iter().enumerate() {
        let name = format!("{name}{place}");
        sending.answer(handed, taken_as(&name)).await;
        sending.receive(receipt(&name, MessageStatus::Delivered)).await;
    }
}

/// Delivers the events that are due to an endpoint that answers with the number of each one.
async fn deliver_events(world: &World) {
    let webhooks = world.service.webhooks();
    let leased = webhooks.lease_due(10).await.unwrap().pop().unwrap();
    while let Some(batch) = webhooks.next_batch(&leased).await.unwrap() {
        let attempt = |event: &DueEvent| Attempt {
            at: world.now(),
            delivered: true,
            status: Some(200),
            latency_ms: 1,
            error: None,
            answer: Some(format!("thanks for {}", number_of(&event.event.data))),
            retry_after_ms: None,
        };
        let attempts = batch.events.iter().map(attempt).collect();
        if !webhooks.record(&leased, batch, attempts).await.unwrap() {
            break;
        }
    }
}

fn number_of(data: &EventData) -> &str {
    match data {
        EventData::Message(message) => &message.number,
        EventData::Batch(_) | EventData::Inbound(_) | EventData::Other(_) => LOCAL,
    }
}

/// Stores something about the number in every table that can have it.
async fn fill(sending: &Sending) -> KeyAccess {
    let Sending { world, customer } = sending;
    let access = world.access(&customer.live).await;
    let types = Some(vec![EventType::Delivered, EventType::Received, EventType::OptOutAdded]);
    let url = world.service.webhooks().endpoint_url("https://example.com/hook").unwrap();
    let change = WebhookChange::Create { url, types };
    world.service.webhooks().change(&access, change, None).await.unwrap();
    add_number(world, None, customer.reference).await;
    let mut sent = request(&customer.live, LOCAL, "outbound secret");
    sent.requestid = Some(domain::RequestId::parse("my-id").unwrap());
    let sent = world.service.messages().send(sent).await.unwrap().transid.unwrap();
    world.send(&customer.live, OTHER).await.unwrap();
    accepted(world, customer, &format!("+266{LOCAL},row secret\n{OTHER},kept\n")).await;
    world.expand_all().await;
    start_with(&world.service, &customer.live, of_number(LOCAL), None).await.unwrap();
    deliver_all(sending, "m").await;
    receive(world, vec![text("inbound secret")]).await;
    let raw = RawReceipt {
        kind: ReceiptKind::Final,
        text_id: Some("m0".to_owned()),
        parameter_id: None,
        number: format!("+266{LOCAL}"),
        state: "DELIVRD".to_owned(),
        error: None,
        raw: format!("id:m0 to:{LOCAL}"),
        message_id: None,
    };
    // An answer has no ID, but its message is known.
    let refused = SubmitOutcome::Refused { error: "invalid_destination".to_owned() };
    let answer = RawReceipt::of_answer(&refused, sent, &format!("266{LOCAL}")).unwrap();
    world.service.delivery().keep_raw_receipts("acme", vec![raw, answer]);
    world.service.delivery().store_raw_receipts().await.unwrap();
    assert_eq!(opt_out(world, &access, OptOutChange::Add(number())).await, (1, 0));
    deliver_events(world).await;
    world.pass(11 * MINUTE_MS);
    access
}

async fn an_erased_number_is_nowhere_and_facts_and_money_stay(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let Sending { world, customer } = &sending;
    fill(&sending).await;
    let balance = world.balance(&customer.live).await;
    let exported = export(&sending).await;
    let records = exported["records"].as_array().unwrap();
    let count = |kind: &str| records.iter().filter(|record| record["type"] == kind).count();
    let kinds = ["message", "inbound_message", "verification", "opt_out", "receipt", "answer"];
    assert_eq!(kinds.map(count), [3, 1, 1, 1, 1, 1], "{exported:#}");
    assert!(count("webhook_attempt") >= 5, "{exported:#}");
    let written = exported.to_string();
    assert!(SECRETS.iter().all(|secret| written.contains(secret)), "{written}");
    assert!(!written.contains(OTHER), "{written}");

    let done = erase(&sending).await;
    let counts = (done.messages, done.inbound, done.verifications, done.opt_outs, done.receipts);
    assert_eq!((counts, done.open, done.uploads), ((3, 1, 1, 1, 2), 0, 0));
    let contents = world.database.contents(&world.service).await;
    let contents = String::from_utf8_lossy(&contents);
    for secret in SECRETS {
        assert!(!contents.contains(secret), "{secret}");
    }
    assert!(contents.contains(OTHER) && contents.contains("kept"));
    assert_eq!(world.balance(&customer.live).await, balance);
    assert_eq!(export(&sending).await["records"].as_array().unwrap().len(), 1);
    assert_eq!(erase(&sending).await, Erasure::default());
    world.assert_sound().await;
}

async fn an_erased_opt_out_still_counts_and_can_be_removed(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let Sending { world, customer } = &sending;
    let access = fill(&sending).await;
    assert_eq!(erase(&sending).await.opt_outs, 1);
    let refused = Err(SendError::Refused(Reason::OptedOut));
    for form in [LOCAL, HANDSET] {
        assert_eq!(world.send(&customer.live, form).await, refused);
    }
    world.send(&customer.live, OTHER).await.unwrap();
    world.send(&customer.test, LOCAL).await.unwrap();
    let id = accepted(world, customer, &format!("{LOCAL},no\n{OTHER},yes\n")).await;
    world.expand_all().await;
    let found = batch(world, customer, id).await;
    assert_eq!((found.counts.get(MessageStatus::Rejected), found.released), (1, money("0.05")));

    let applications = world.service.applications();
    let filter = OptOutFilter { limit: 10, ..OptOutFilter::default() };
    let all = applications.opt_outs(&access, &filter).await.unwrap().items;
    assert_eq!((all.len(), all[0].number.as_deref()), (1, None));
    let by_number = OptOutFilter { number: Some(number()), ..filter };
    assert_eq!(applications.opt_outs(&access, &by_number).await.unwrap().items, all);
    let test = KeyAccess { kind: KeyKind::Test, ..access };
    assert_eq!(applications.opt_outs(&test, &by_number).await.unwrap().items, []);
    // The number opts out again, and is erased once more.
    opt_out(world, &access, OptOutChange::Add(number())).await;
    deliver_all(&sending, "n").await;
    assert_eq!(erase(&sending).await.opt_outs, 1);
    assert_eq!(world.send(&customer.live, LOCAL).await, refused);
    assert_eq!(opt_out(world, &access, OptOutChange::Remove(number())).await, (0, 1));
    assert_eq!(opt_out(world, &access, OptOutChange::Remove(number())).await, (0, 0));
    world.send(&customer.live, LOCAL).await.unwrap();
    world.assert_sound().await;
}

async fn what_is_open_keeps_the_number(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let Sending { world, customer } = &sending;
    let access = world.access(&customer.live).await;
    world.send(&customer.live, LOCAL).await.unwrap();
    start_with(&world.service, &customer.live, of_number(LOCAL), None).await.unwrap();
    accepted(world, customer, &format!("{LOCAL},hello\n")).await;
    opt_out(world, &access, OptOutChange::Add(number())).await;
    let done = erase(&sending).await;
    assert_eq!((done.open, done.uploads), (3, 1));
    assert_eq!((done.messages, done.verifications, done.opt_outs), (0, 0, 0));
    world.expand_all().await;
    // The opt-out rejects all of them: on PostgreSQL after the claim, and before the next one.
    sending.assert_nothing_due("acme").await;
    sending.assert_nothing_due("acme").await;
    world.pass(11 * MINUTE_MS);
    let done = erase(&sending).await;
    assert_eq!((done.open, done.uploads), (0, 0));
    assert_eq!((done.messages, done.verifications, done.opt_outs), (3, 1, 1));
    world.assert_sound().await;
}
