//! The search in the staff portal.

use domain::support::Found;
use domain::{ApplicationName, RequestId, Transid};
use service::{Actor, AuditFilter, SendRequest};

use crate::database::Backend;
use crate::network::taken_as;
use crate::sending::Sending;
use crate::uploads::{accepted, rows};
use crate::world::{Customer, HOUR_MS, World, request};

on_each_backend![
    one_text_finds_accounts_applications_batches_and_deposits,
    messages_are_found_by_number_and_request_id,
    a_text_is_shown_only_with_an_entry,
    a_message_is_shown_with_what_the_carrier_said,
];

async fn search(world: &World, text: &str) -> Found {
    world.service.support().desk_search(text).await.unwrap()
}

async fn sent(world: &World, customer: &Customer, number: &str, requestid: &str) -> Transid {
    let sending = SendRequest {
        requestid: Some(RequestId::parse(requestid).unwrap()),
        ..request(&customer.live, number, "secret words")
    };
    let sent = world.service.messages().send(sending).await.unwrap();
    sent.transid.unwrap()
}

fn transids(found: &Found) -> Vec<Transid> {
    let messages = found.messages.iter();
    messages.map(|(_, message)| message.transid).collect()
}

async fn one_text_finds_accounts_applications_batches_and_deposits(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("customer@example.org", "100").await;
    world.account("custom@example.org").await;
    let reference = customer.reference.to_string();
    for (text, count) in [("CUSTOM", 2), ("customer@example.org", 1), ("example", 2)] {
        assert_eq!(search(&world, text).await.accounts.len(), count, "{text}");
    }
    for text in [format!(" {reference} "), reference[1..].to_owned()] {
        let found = search(&world, &text).await;
        assert_eq!(found.applications[0].0.email, "customer@example.org", "{text}");
    }
    let named = ApplicationName::parse("Kiosk at the market").unwrap();
    let applications = world.service.applications();
    let naming = applications.set_name(customer.account.id, customer.reference, named.as_ref());
    naming.await.unwrap();
    assert_eq!(search(&world, "the MARKET").await.applications.len(), 1);
    let batch = accepted(&world, &customer, &rows(3)).await;
    let found = search(&world, &batch.to_string()).await;
    assert_eq!((found.batches[0].0.reference, found.batches[0].1.rows), (customer.reference, 3));
    world.deposit("bank-77", customer.reference, "5").await;
    let found = search(&world, "bank-77").await;
    assert_eq!(found.deposits[0].assigned_to, Some(customer.reference));
    for text in ["", " ", "nothing", "m_0000000000001", "b_0000000000001", "a\0b"] {
        assert!(search(&world, text).await.is_empty(), "{text:?}");
    }
    assert!(search(&world, &"x".repeat(10_000)).await.is_empty());
}

async fn messages_are_found_by_number_and_request_id(backend: Backend) {
    let world = World::new(backend).await;
    let one = world.active("one@example.org", "100").await;
    let two = world.active("two@example.org", "100").await;
    let old = sent(&world, &one, "57000001", "order 1").await;
    world.pass(8 * 24 * HOUR_MS);
    let first = sent(&world, &one, "57000001", "order-2").await;
    world.pass(1);
    let second = sent(&world, &two, "26657000001", "order-2").await;
    sent(&world, &two, "57000002", "order-3").await;

    for text in ["57000001", "+266 57-00-00-01", "26657000001", "order-2"] {
        let found = search(&world, text).await;
        assert_eq!(transids(&found), [second, first], "{text}");
        assert!(!found.incomplete);
    }
    assert!(search(&world, "order 1").await.is_empty());
    for number in ["57000001", "26657000001", "+266 57 000 001"] {
        let within = format!("{} {number}", one.reference);
        assert_eq!(transids(&search(&world, &within).await), [first, old], "{number}");
    }
    let found = search(&world, "one@example.org order 1").await;
    assert_eq!(transids(&found), [old]);
    let found = search(&world, &first.to_string()).await;
    assert_eq!(transids(&found), [first]);
    let (owner, message) = &found.messages[0];
    assert_eq!(owner.email, "one@example.org");
    assert_eq!(message.chars, "secret words".len());
    assert!(!serde_json::to_string(&found).unwrap().contains("secret"));
}

async fn a_text_is_shown_only_with_an_entry(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("customer@example.org", "100").await;
    let staff = world.account("staff@example.org").await;
    let transid = sent(&world, &customer, "57000001", "r").await;
    let file = world.service.support().message_file(transid).await.unwrap().unwrap();
    assert_eq!((file.record.message.as_str(), file.chars), ("", 12));
    let actor = Actor::Account(staff.id);
    let text = world.service.support().show_text(&actor, transid).await.unwrap();
    assert_eq!(text, "secret words");
    let filter =
        AuditFilter { subject: Some(transid.to_string()), limit: 10, ..AuditFilter::default() };
    let entries = world.service.support().audit(&filter).await.unwrap().items;
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].action.as_str(), entries[0].who.as_str()),
        ("message.text", "staff@example.org")
    );
    // The reference of the application finds it too, and that of another doesn't.
    let other = world.active("other@example.org", "1").await;
    for (reference, found) in [(customer.reference, true), (other.reference, false)] {
        let filter = AuditFilter { subject: Some(reference.to_string()), ..filter.clone() };
        let entries = world.service.support().audit(&filter).await.unwrap().items;
        assert_eq!(entries.iter().any(|entry| entry.action == "message.text"), found);
        assert!(entries.len() > 1 && entries.is_sorted_by(|newer, older| newer.id > older.id));
    }
    let unknown = Transid(1);
    assert!(world.service.support().show_text(&actor, unknown).await.is_err());
    assert_eq!(world.service.support().message_file(unknown).await.unwrap(), None);
}

async fn a_message_is_shown_with_what_the_carrier_said(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    let outcomes = [1, 2].map(|n| (n, taken_as(&format!("c{n}"))));
    sending.answer_segments(&handed, 2, &outcomes).await;
    let service = &sending.world.service;
    let file = service.support().message_file(handed.id()).await.unwrap().unwrap();
    assert_eq!(file.carrier.as_deref(), Some("acme"));
    let segments: Vec<_> = (file.segments.iter())
        .map(|segment| (segment.segment, segment.carrier_id.as_deref()))
        .collect();
    assert_eq!(segments, [(1, Some("c1")), (2, Some("c2"))]);
    assert!(file.charge.why.contains("a local number"));
    assert_eq!(file.owner.reference, sending.customer.reference);
}
