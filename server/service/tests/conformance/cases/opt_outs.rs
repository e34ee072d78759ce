//! Opt-outs: the lists, and the messages that they stop.

use std::collections::BTreeSet;

use domain::history::HistoryAction;
use domain::records::Paged;
use domain::{
    BulkWriting, EventType, KeyKind, MessageStatus, Number, OptOutRecord, OptOutSource, Reason,
    Refusal, Timestamp,
};
use futures_util::future::join_all;
use service::{
    ChangedOptOuts, Error, EventData, EventFilter, IdempotencyKey, KeyAccess, OptOutAuthor,
    OptOutChange, OptOutFilter, SendError, SendRequest, SubmitOutcome, UploadError,
};

use super::events::page;
use crate::database::Backend;
use crate::network::taken_as;
use crate::sending::{Handed, Sending};
use crate::uploads::{batch, plain, upload};
use crate::world::{Customer, World, keyed, money, request};

on_each_backend![
    a_send_to_an_opted_out_number_is_refused_and_free,
    a_number_has_one_opt_out_in_all_its_forms,
    sends_that_arrive_together_are_judged_one_by_one,
    a_replayed_send_is_answered_although_the_recipient_opted_out,
    rows_to_opted_out_numbers_are_rejected_and_their_price_is_released,
    a_message_accepted_before_the_opt_out_is_rejected_when_it_is_claimed,
    a_message_of_which_a_carrier_has_a_part_goes_on,
    opt_outs_are_listed_newest_first,
    a_change_has_an_event_and_a_repetition_has_none,
    a_change_under_an_idempotency_key_is_made_once,
    a_file_adds_its_numbers_completely_or_not_at_all,
    the_history_shows_what_the_owner_changed,
];

const REFUSED: SendError = SendError::Refused(Reason::OptedOut);

fn number(text: &str) -> Number {
    Number::parse(text).unwrap()
}

async fn change(
    world: &World,
    access: &KeyAccess,
    change: OptOutChange,
    key: Option<&str>,
) -> service::Result<ChangedOptOuts> {
    let key = key.map(|key| IdempotencyKey::parse(key).unwrap());
    let applications = world.service.applications();
    applications.change_opt_outs(access, change, OptOutAuthor::Program, key.as_ref()).await
}

async fn add(world: &World, access: &KeyAccess, text: &str) -> u64 {
    change(world, access, OptOutChange::Add(number(text)), None).await.unwrap().added
}

async fn remove(world: &World, access: &KeyAccess, text: &str) -> u64 {
    change(world, access, OptOutChange::Remove(number(text)), None).await.unwrap().removed
}

async fn list(
    world: &World,
    access: &KeyAccess,
    filter: OptOutFilter,
) -> service::Result<Paged<OptOutRecord>> {
    world.service.applications().opt_outs(access, &filter).await
}

fn of(limit: i64) -> OptOutFilter {
    OptOutFilter { limit, ..OptOutFilter::default() }
}

fn numbers(page: &Paged<OptOutRecord>) -> Vec<&str> {
    page.items.iter().map(|record| record.number.as_deref().unwrap_or("erased")).collect()
}

/// Reads a file of numbers.
fn file(world: &World, access: &KeyAccess, text: &str) -> Result<OptOutChange, UploadError> {
    let mut file = world.service.messages().number_file(access, BulkWriting::Plain).unwrap();
    for piece in text.as_bytes().chunks(7) {
        file.write(piece)?;
    }
    file.finish()
}

fn events_after(cursor: Option<String>) -> EventFilter {
    EventFilter { cursor, limit: 1000, ..EventFilter::default() }
}

async fn customer_with(world: &World, balance: &str) -> (Customer, KeyAccess) {
    let customer = world.active("one@example.org", balance).await;
    let access = world.access(&customer.live).await;
    (customer, access)
}

async fn a_send_to_an_opted_out_number_is_refused_and_free(backend: Backend) {
    let world = World::new(backend).await;
    let (customer, access) = customer_with(&world, "1").await;
    // The application is cached before the opt-out.
    world.send(&customer.live, "71234568").await.unwrap();
    assert_eq!(add(&world, &access, "71234568").await, 1);
    for dry_run in [false, true] {
        let send = SendRequest { dry_run, ..request(&customer.live, "71234568", "hello") };
        assert_eq!(world.service.messages().send(send).await, Err(REFUSED));
    }
    world.send(&customer.live, "71234567").await.unwrap();
    world.send(&customer.test, "71234568").await.unwrap();
    assert_eq!(world.balance(&customer.live).await, money("0.9"));
    assert_eq!(remove(&world, &access, "71234568").await, 1);
    world.send(&customer.live, "71234568").await.unwrap();
    // The test key has a list of its own.
    let test = KeyAccess { kind: KeyKind::Test, ..access };
    add(&world, &test, "71234568").await;
    assert_eq!(world.send(&customer.test, "71234568").await, Err(REFUSED));
    world.send(&customer.live, "71234568").await.unwrap();
    world.assert_sound().await;
}

async fn a_number_has_one_opt_out_in_all_its_forms(backend: Backend) {
    let world = World::new(backend).await;
    let (customer, access) = customer_with(&world, "1").await;
    let forms = ["71234568", "+26671234568", "26671234568"];
    for form in forms {
        assert_eq!(add(&world, &access, form).await, 1);
        for again in forms {
            assert_eq!(add(&world, &access, again).await, 0);
            assert_eq!(world.send(&customer.live, again).await, Err(REFUSED), "{form} {again}");
        }
        // With a plus sign, these 8 digits are an international number.
        world.send(&customer.live, "+71234568").await.unwrap();
        let found = list(&world, &access, of(10)).await.unwrap();
        assert_eq!(numbers(&found), ["26671234568"]);
        for again in forms {
            let filter = OptOutFilter { number: Some(number(again)), ..of(10) };
            assert_eq!(list(&world, &access, filter).await.unwrap().items, found.items);
        }
        assert_eq!(remove(&world, &access, forms[0]).await, 1);
        assert_eq!(remove(&world, &access, form).await, 0);
    }
}

async fn sends_that_arrive_together_are_judged_one_by_one(backend: Backend) {
    let world = World::new(backend).await;
    let (customer, access) = customer_with(&world, "10").await;
    for n in (0..40).step_by(4) {
        add(&world, &access, &format!("{:08}", 71_000_000 + n)).await;
    }
    let recipients = (0..40).map(|n| format!("{:08}", 71_000_000 + n));
    let recipients: Vec<String> = recipients.collect();
    let sends = recipients.iter().map(|number| world.send(&customer.live, number));
    for (n, sent) in join_all(sends).await.into_iter().enumerate() {
        assert_eq!(sent.is_ok(), n % 4 != 0, "{n} {sent:?}");
    }
    assert_eq!(world.balance(&customer.live).await, money("8.5"));
    world.assert_sound().await;
}

async fn a_replayed_send_is_answered_although_the_recipient_opted_out(backend: Backend) {
    let world = World::new(backend).await;
    let (customer, access) = customer_with(&world, "1").await;
    let send = || keyed("k", request(&customer.live, "71234568", "hello"));
    let first = world.service.messages().send(send()).await.unwrap();
    add(&world, &access, "71234568").await;
    let again = world.service.messages().send(send()).await.unwrap();
    assert_eq!((again.transid, again.replayed), (first.transid, true));
    let other = keyed("other", request(&customer.live, "71234568", "hello"));
    assert_eq!(world.service.messages().send(other).await, Err(REFUSED));
}

async fn rows_to_opted_out_numbers_are_rejected_and_their_price_is_released(backend: Backend) {
    let world = World::new(backend).await;
    let (customer, access) = customer_with(&world, "1").await;
    let start = page(&world, &customer, events_after(None)).await.next;
    add(&world, &access, "71234568").await;
    add(&world, &access, "+4915112345678").await;
    let rows = "71234567,a\n71234568,b\n4915112345678,c\n+26671234568,d\n71234568,e\n";
    let answer = upload(&world.service, &customer.live, None, rows, plain()).await.unwrap();
    assert_eq!((answer.rows, answer.opted_out, answer.cost), (5, 4, money("0.65")));
    world.expand_all().await;
    assert_eq!(world.balance(&customer.live).await, money("0.95"));
    let found = batch(&world, &customer, answer.batchid.unwrap()).await;
    assert_eq!(found.counts.get(MessageStatus::Rejected), 4);
    assert_eq!(found.counts.get(MessageStatus::Queued), 1);
    assert_eq!(found.released, money("0.6"));
    let events = page(&world, &customer, events_after(Some(start)));
    let rejected = events.await.events.into_iter().filter_map(|event| match event.data {
        EventData::Message(record) => Some((record.status, record.error.clone())),
        _ => None,
    });
    let expected = (MessageStatus::Rejected, Some("opted_out".to_owned()));
    assert!(rejected.clone().all(|found| found == expected));
    let (_, claimed) = world.service.delivery().claim("sandbox", 100).await.unwrap();
    assert_eq!(claimed.len(), 1);
    world.assert_sound().await;
}

async fn a_message_accepted_before_the_opt_out_is_rejected_when_it_is_claimed(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, customer) = (&sending.world, &sending.customer);
    let access = world.access(&customer.live).await;
    let send = async |number: &str| {
        let sent = world.send(&customer.live, number).await;
        sent.unwrap().transid.unwrap()
    };
    let (stopped, other) = (send("71234568").await, send("71234567").await);
    let rows = "71234568,a\n71234569,b\n";
    upload(&world.service, &customer.live, None, rows, plain()).await.unwrap();
    world.expand_all().await;
    add(world, &access, "+26671234568").await;
    let claimed: BTreeSet<_> = sending.claim("acme").await.iter().map(Handed::id).collect();
    assert_eq!((claimed.len(), claimed.contains(&other)), (2, true));
    // On PostgreSQL the messages are rejected after the claim, and before the next one.
    sending.assert_nothing_due("acme").await;
    sending.assert_ended(stopped, MessageStatus::Rejected, "opted_out").await;
    let detail = sending.detail(stopped).await;
    assert_eq!((detail.charge.charged, detail.charge.released), (money("0.05"), money("0.05")));
    sending.assert_balance("99.9").await;
    world.pass(world.service.limits().lease_ms);
    sending.assert_nothing_due("acme").await;
    sending.assert_sound().await;
}

async fn a_message_of_which_a_carrier_has_a_part_goes_on(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let world = &sending.world;
    let access = world.access(&sending.customer.live).await;
    let handed = sending.submitted().await;
    let throttled = SubmitOutcome::Throttled { error: "busy".to_owned() };
    let outcomes = [(1, taken_as("c1")), (2, throttled)];
    sending.answer_segments(&handed, 2, &outcomes).await;
    add(world, &access, "12345678").await;
    world.pass(2000);
    assert_eq!(sending.claim_one("acme").await.id(), handed.id());
    sending.assert_sound().await;
}

async fn opt_outs_are_listed_newest_first(backend: Backend) {
    let world = World::new(backend).await;
    let (_, access) = customer_with(&world, "0").await;
    assert_eq!(list(&world, &access, of(10)).await.unwrap().items, []);
    let mut added = Vec::new();
    for n in 0..5 {
        world.pass(1000);
        let number = format!("49151{n:08}");
        add(&world, &access, &number).await;
        let (number, source) = (Some(number), OptOutSource::Api);
        let record = OptOutRecord { number, source, created_at: world.now() };
        added.insert(0, record);
    }
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = list(&world, &access, OptOutFilter { cursor, ..of(2) }).await.unwrap();
        found.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, added);
    let unknown = OptOutFilter { number: Some(number("4915100000009")), ..of(2) };
    assert_eq!(list(&world, &access, unknown).await.unwrap().items, []);
    let filter = OptOutFilter { cursor: Some("o_1".to_owned()), ..of(2) };
    let refused = list(&world, &access, filter).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::InvalidCursor))));
    let test = KeyAccess { kind: KeyKind::Test, ..access };
    assert_eq!(list(&world, &test, of(10)).await.unwrap().items, []);
}

/// Returns the types and the data of the events of opt-outs.
async fn events(world: &World, access: &KeyAccess) -> Vec<(EventType, String)> {
    let types = Some(vec![EventType::OptOutAdded, EventType::OptOutRemoved]);
    let filter = EventFilter { types, limit: 1000, ..EventFilter::default() };
    let found = world.service.webhooks().events(access, &filter).await.unwrap();
    let data = found.events.into_iter().map(|event| match event.data {
        EventData::Other(data) => (event.kind, data),
        other => panic!("{other:?}"),
    });
    data.collect()
}

async fn a_change_has_an_event_and_a_repetition_has_none(backend: Backend) {
    let world = World::new(backend).await;
    let (_, access) = customer_with(&world, "0").await;
    let added_at: Timestamp = world.now();
    for _ in 0..2 {
        add(&world, &access, "71234568").await;
    }
    world.pass(1000);
    for _ in 0..2 {
        remove(&world, &access, "+26671234568").await;
    }
    let data = format!(r#"{{"created_at":"{added_at}","number":"26671234568","source":"api"}}"#);
    let expected = [EventType::OptOutAdded, EventType::OptOutRemoved];
    assert_eq!(events(&world, &access).await, expected.map(|kind| (kind, data.clone())));
    let test = KeyAccess { kind: KeyKind::Test, ..access };
    assert_eq!(events(&world, &test).await, []);
}

async fn a_change_under_an_idempotency_key_is_made_once(backend: Backend) {
    let world = World::new(backend).await;
    let (_, access) = customer_with(&world, "0").await;
    let add = |text: &str| OptOutChange::Add(number(text));
    let first = change(&world, &access, add("71234568"), Some("k")).await.unwrap();
    assert_eq!((first.rows, first.added, first.replayed), (1, 1, false));
    let again = change(&world, &access, add("+26671234568"), Some("k")).await.unwrap();
    assert_eq!(again, ChangedOptOuts { replayed: true, ..first });
    for other in [add("71234567"), OptOutChange::Remove(number("71234568"))] {
        let refused = change(&world, &access, other, Some("k")).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&Refusal::IdempotencyMismatch));
    }
    let rows = (72_000_000..72_001_200).fold(String::new(), |rows, n| rows + &format!("{n}\n"));
    let import = || file(&world, &access, &rows).unwrap();
    let first = change(&world, &access, import(), Some("file")).await.unwrap();
    assert_eq!((first.rows, first.added), (1200, 1200));
    remove(&world, &access, "72000000").await;
    let again = change(&world, &access, import(), Some("file")).await.unwrap();
    assert_eq!(again, ChangedOptOuts { replayed: true, ..first });
    // Nothing was added again.
    assert_eq!(remove(&world, &access, "72000000").await, 0);
}

async fn a_file_adds_its_numbers_completely_or_not_at_all(backend: Backend) {
    let world = World::new(backend).await;
    let (_, access) = customer_with(&world, "0").await;
    let bad = "71234568\n\n712345\u{200b}68\n7123\n+49 151\n";
    let Err(UploadError::Bad(bad)) = file(&world, &access, bad) else { panic!("not refused") };
    let lines: Vec<u64> = bad.errors.iter().map(|error| error.line).collect();
    assert_eq!((lines, bad.error_count), (vec![2, 3, 5], 3));
    assert!(matches!(file(&world, &access, ""), Err(UploadError::Bad(_))));
    assert_eq!(list(&world, &access, of(10)).await.unwrap().items, []);
    add(&world, &access, "71234568").await;
    // Three transactions add them.
    let rows = (0..1200).fold(String::new(), |rows, n| rows + &format!("+491510000{n:04}\r\n"));
    let rows = rows + "71234568\r\n+26671234569\r\n71234569";
    let import = file(&world, &access, &rows).unwrap();
    let changed = change(&world, &access, import, None).await.unwrap();
    assert_eq!((changed.rows, changed.added), (1203, 1201));
    assert_eq!(events(&world, &access).await.len(), 1000);
    let found = list(&world, &access, of(1000)).await.unwrap();
    let rest = list(&world, &access, OptOutFilter { cursor: found.next.clone(), ..of(1000) });
    let rest = rest.await.unwrap();
    let all: BTreeSet<_> = numbers(&found).into_iter().chain(numbers(&rest)).collect();
    assert_eq!((all.len(), rest.next.clone()), (1202, None));
    assert!(all.contains("26671234569") && all.contains("4915100001199"));
}

async fn the_history_shows_what_the_owner_changed(backend: Backend) {
    let world = World::new(backend).await;
    let (customer, access) = customer_with(&world, "0").await;
    let owner = OptOutAuthor::Owner(customer.account.id);
    let applications = world.service.applications();
    let rows = file(&world, &access, "71234568\n71234569\n").unwrap();
    for change in [
        rows,
        OptOutChange::Add(number("+4915112345678")),
        OptOutChange::Add(number("+4915112345678")),
        OptOutChange::Remove(number("71234568")),
    ] {
        applications.change_opt_outs(&access, change, owner, None).await.unwrap();
    }
    let page = list(&world, &access, of(10)).await.unwrap();
    assert!(page.items.iter().all(|record| record.source == OptOutSource::Portal));
    let (account, reference) = (customer.account.id, customer.reference);
    let entries = applications.application_history(account, reference).await.unwrap();
    let entries = entries.into_iter().map(|entry| (entry.action, entry.detail.unwrap_or_default()));
    let entries: Vec<_> = entries.take(3).collect();
    let expected = [
        (HistoryAction::OptOutRemoved, "•••••568"),
        (HistoryAction::OptOutAdded, "••••••••••678"),
        (HistoryAction::OptOutsImported, "2 rows"),
    ];
    assert_eq!(entries, expected.map(|(action, detail)| (action, detail.to_owned())));
}
