//! Messages from handsets: stored once, joined, decoded, and given to the right application.

use domain::inbound::{DefaultAlphabet, InboundRecord, PartPosition};
use domain::opt_out::Command;
use domain::{Keyword, MessageStatus, Number, Reference, Refusal};
use service::{
    Actor, Error, EventData, EventFilter, InboundContent, InboundDelivery, InboundFilter, Receipt,
    SANDBOX_CARRIER, SubmitOutcome,
};

use super::history::contents;
use crate::database::Backend;
use crate::network::answered;
use crate::world::{Customer, HOUR_MS, World};

on_each_backend![
    a_message_goes_to_the_application_of_its_number_with_an_event,
    a_shared_number_is_split_by_keyword,
    a_delivery_that_a_carrier_repeats_is_stored_once,
    parts_are_joined_in_any_order_and_among_those_of_others,
    a_handset_that_reuses_a_reference_loses_no_part,
    missing_parts_are_marked_after_ten_minutes,
    a_message_of_255_parts_is_joined,
    messages_for_nobody_are_kept_and_assigned_later,
    numbers_are_given_to_one_application_per_keyword,
    garbage_is_stored_whatever_its_coding,
    lists_are_filtered_and_continued,
    old_messages_and_notes_are_deleted,
    old_texts_and_numbers_are_removed,
    the_answer_of_a_test_number_is_stored_with_the_receipt_and_once,
];

const CARRIER: &str = "acme";
pub const HANDSET: &str = "26657000001";
const OURS: &str = "26650000009";
const STAFF: Actor = Actor::CommandLine;
pub const MINUTE_MS: i64 = 60_000;

fn octets(data_coding: u8, esm_class: u8, payload: &[u8]) -> InboundContent {
    InboundContent::Octets {
        esm_class,
        data_coding,
        payload: payload.to_vec(),
        sar: None,
        alphabet: DefaultAlphabet::Gsm7,
    }
}

fn from(number: &str, content: InboundContent) -> InboundDelivery {
    InboundDelivery { number: number.to_owned(), recipient: OURS.to_owned(), content }
}

/// Returns a message in Latin-1.
pub fn text(text: &str) -> InboundDelivery {
    let latin1: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap()).collect();
    from(HANDSET, octets(3, 0, &latin1))
}

/// Returns a part with a header that has an 8-bit reference.
pub fn part(
    number: &str,
    reference: u8,
    (sequence, total): (u8, u8),
    text: &str,
) -> InboundDelivery {
    let header = [5, 0, 3, reference, total, sequence];
    from(number, octets(3, 0x40, &[&header, text.as_bytes()].concat()))
}

pub async fn receive(world: &World, deliveries: Vec<InboundDelivery>) {
    world.service.delivery().record_inbound(CARRIER, deliveries).await.unwrap();
}

pub async fn add_number(world: &World, keyword: Option<&str>, reference: Reference) {
    add(world, keyword, reference).await.unwrap();
}

async fn add(world: &World, keyword: Option<&str>, reference: Reference) -> service::Result<()> {
    let number = Number::parse(OURS).unwrap();
    let keyword = keyword.map(|keyword| Keyword::parse(keyword).unwrap());
    world.service.support().add_inbound_number(&STAFF, &number, keyword, reference).await
}

/// Opens a world with a customer who has the number.
async fn with_number(backend: Backend) -> (World, Customer) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    add_number(&world, None, customer.reference).await;
    (world, customer)
}

fn everything() -> InboundFilter {
    InboundFilter { limit: 1000, ..InboundFilter::default() }
}

/// Returns the messages of a customer, oldest first.
async fn list(world: &World, customer: &Customer) -> Vec<InboundRecord> {
    let access = world.access(&customer.live).await;
    let page = world.service.messages().inbound(&access, &everything()).await.unwrap();
    page.items.into_iter().rev().collect()
}

pub async fn texts(world: &World, customer: &Customer) -> Vec<String> {
    list(world, customer).await.into_iter().map(|message| message.message).collect()
}

async fn kept(world: &World) -> Vec<String> {
    let page = world.service.support().unassigned_inbound(None, 100).await.unwrap();
    page.items.into_iter().map(|message| message.message).collect()
}

async fn events(world: &World, customer: &Customer, cursor: Option<String>) -> service::EventPage {
    let access = world.access(&customer.live).await;
    let filter = EventFilter { limit: 100, cursor, ..EventFilter::default() };
    world.service.webhooks().events(&access, &filter).await.unwrap()
}

async fn a_message_goes_to_the_application_of_its_number_with_an_event(backend: Backend) {
    let (world, customer) = with_number(backend).await;
    let start = events(&world, &customer, None).await.next;
    let mut hello = text("Hello");
    // The local form of the same numbers.
    hello.number = "57000001".into();
    hello.recipient = "+26650000009".into();
    receive(&world, vec![hello]).await;
    receive(&world, vec![text("stop!")]).await;
    let found = list(&world, &customer).await;
    assert_eq!(
        found[0],
        InboundRecord {
            inboundid: found[0].inboundid,
            number: HANDSET.to_owned(),
            recipient: OURS.to_owned(),
            message: "Hello".to_owned(),
            segments: 1,
            keyword: None,
            optout: None,
            test: false,
            received_at: world.now(),
        }
    );
    assert_eq!(found[1].optout, Some(Command::Stop));
    let page = events(&world, &customer, Some(start)).await;
    let data = page.events.iter().filter_map(|event| match &event.data {
        EventData::Inbound(message) => Some((event.kind.as_str(), message.as_ref().clone())),
        _ => None,
    });
    let data: Vec<_> = data.collect();
    assert_eq!(data, found.into_iter().map(|it| ("message.received", it)).collect::<Vec<_>>());
    let test = world.access(&customer.test).await;
    let of_tests = world.service.messages().inbound(&test, &everything()).await.unwrap();
    assert_eq!(of_tests.items, []);
    world.assert_sound().await;
}

async fn a_shared_number_is_split_by_keyword(backend: Backend) {
    let (world, one) = with_number(backend).await;
    let two = world.pending("two@example.org").await;
    add_number(&world, Some("Crème"), two.reference).await;
    let all = ["creme please", "Creme stop", "cremes", "", "hello creme", "CRÈME"];
    receive(&world, all.map(text).to_vec()).await;
    assert_eq!(texts(&world, &one).await, ["cremes", "", "hello creme"]);
    let found = list(&world, &two).await;
    let found: Vec<_> =
        found.iter().map(|it| (it.message.as_str(), it.keyword.as_deref(), it.optout)).collect();
    assert_eq!(
        found,
        [
            ("creme please", Some("CREME"), None),
            ("Creme stop", Some("CREME"), Some(Command::Stop)),
            ("CRÈME", Some("CREME"), None),
        ]
    );
}

async fn a_delivery_that_a_carrier_repeats_is_stored_once(backend: Backend) {
    let (world, customer) = with_number(backend).await;
    receive(&world, vec![text("one"), text("one"), text("two")]).await;
    receive(&world, vec![text("two"), text("one")]).await;
    let mut elsewhere = text("one");
    elsewhere.number = "26657000002".into();
    receive(&world, vec![elsewhere]).await;
    assert_eq!(texts(&world, &customer).await, ["one", "two", "one"]);
    // An equal text that comes later is another message.
    world.pass(6 * MINUTE_MS);
    receive(&world, vec![text("one")]).await;
    assert_eq!(texts(&world, &customer).await.len(), 4);
    // Parts, and a message that the carrier names.
    receive(&world, vec![part(HANDSET, 1, (1, 2), "a")]).await;
    receive(&world, vec![part(HANDSET, 1, (1, 2), "a"), part(HANDSET, 1, (2, 2), "b")]).await;
    receive(&world, vec![part(HANDSET, 1, (2, 2), "b")]).await;
    let named = |text: &str, id: &str| {
        let message_id = Some(id.to_owned());
        from(HANDSET, InboundContent::Text { text: text.to_owned(), message_id })
    };
    receive(&world, vec![named("yes", "7"), named("yes", "8"), named("yes", "7")]).await;
    assert_eq!(texts(&world, &customer).await[4..], ["ab", "yes", "yes"]);
}

async fn parts_are_joined_in_any_order_and_among_those_of_others(backend: Backend) {
    let (world, customer) = with_number(backend).await;
    let other = "26657000002";
    receive(&world, vec![part(HANDSET, 9, (3, 3), "C"), part(other, 9, (2, 2), "2")]).await;
    receive(&world, vec![part(HANDSET, 9, (1, 3), "A")]).await;
    assert_eq!(texts(&world, &customer).await, [""; 0]);
    receive(&world, vec![part(other, 9, (1, 2), "1"), part(HANDSET, 9, (2, 3), "B")]).await;
    let mut found = list(&world, &customer).await;
    found.sort_by(|a, b| a.message.cmp(&b.message));
    let found: Vec<_> = found.iter().map(|it| (it.message.as_str(), it.segments)).collect();
    assert_eq!(found, [("12", 2), ("ABC", 3)]);
    // The position may be in the SAR parameters, and a character may be split.
    let sar = |sequence: u8, payload: &[u8]| {
        let sar = PartPosition::of_sar(500, 2, sequence);
        let (esm_class, data_coding, payload) = (0, 8, payload.to_vec());
        let alphabet = DefaultAlphabet::Gsm7;
        from(HANDSET, InboundContent::Octets { esm_class, data_coding, payload, sar, alphabet })
    };
    receive(&world, vec![sar(2, &[0xde, 0x42]), sar(1, &[0x00, 0x21, 0xd8, 0x3d])]).await;
    assert_eq!(texts(&world, &customer).await[2], "!🙂");
}

async fn a_handset_that_reuses_a_reference_loses_no_part(backend: Backend) {
    let (world, customer) = with_number(backend).await;
    receive(&world, vec![part(HANDSET, 5, (1, 2), "a"), part(HANDSET, 5, (1, 2), "c")]).await;
    receive(&world, vec![part(HANDSET, 5, (2, 2), "b"), part(HANDSET, 5, (2, 2), "d")]).await;
    assert_eq!(texts(&world, &customer).await, ["ab", "cd"]);
}

async fn missing_parts_are_marked_after_ten_minutes(backend: Backend) {
    let (world, customer) = with_number(backend).await;
    let delivery = world.service.delivery();
    receive(&world, vec![part(HANDSET, 1, (2, 4), "b")]).await;
    world.pass(9 * MINUTE_MS);
    receive(&world, vec![part(HANDSET, 1, (4, 4), "d"), part(HANDSET, 2, (1, 2), "x")]).await;
    delivery.join_inbound().await.unwrap();
    assert_eq!(texts(&world, &customer).await, [""; 0]);
    world.pass(MINUTE_MS + 1);
    delivery.join_inbound().await.unwrap();
    assert_eq!(texts(&world, &customer).await, ["[…]b[…]d"]);
    assert_eq!(list(&world, &customer).await[0].segments, 4);
    // The other message still waits for its part.
    receive(&world, vec![part(HANDSET, 2, (2, 2), "y")]).await;
    assert_eq!(texts(&world, &customer).await[1..], ["xy"]);
}

async fn a_message_of_255_parts_is_joined(backend: Backend) {
    let (world, customer) = with_number(backend).await;
    let all = (1..=255).rev().map(|n| part(HANDSET, 1, (n, 255), &format!("{n} ")));
    receive(&world, all.collect()).await;
    let found = list(&world, &customer).await;
    let expected: String = (1..=255).map(|n| n.to_string() + " ").collect();
    assert_eq!((found[0].message.as_str(), found[0].segments), (expected.as_str(), 255));
}

async fn messages_for_nobody_are_kept_and_assigned_later(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let start = events(&world, &customer, None).await.next;
    receive(&world, vec![text("first"), text("NEWS second"), text("third")]).await;
    assert_eq!(kept(&world).await, ["third", "NEWS second", "first"]);
    let support = world.service.support();
    let refused = support.assign_inbound(&STAFF, OURS).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::NoSuchInboundNumber));
    add_number(&world, Some("NEWS"), customer.reference).await;
    assert_eq!(support.assign_inbound(&STAFF, OURS).await.unwrap(), 1);
    assert_eq!(kept(&world).await, ["third", "first"]);
    add_number(&world, None, customer.reference).await;
    assert_eq!(support.assign_inbound(&STAFF, OURS).await.unwrap(), 2);
    assert_eq!(kept(&world).await, [""; 0]);
    assert_eq!(texts(&world, &customer).await, ["first", "NEWS second", "third"]);
    assert_eq!(events(&world, &customer, Some(start)).await.events.len(), 3);
}

async fn numbers_are_given_to_one_application_per_keyword(backend: Backend) {
    let (world, one) = with_number(backend).await;
    let two = world.pending("two@example.org").await;
    let refusal = |done: service::Result<()>| match done {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    let taken = add(&world, None, two.reference).await;
    assert_eq!(refusal(taken), Refusal::InboundNumberTaken);
    let command = add(&world, Some("Stop"), two.reference).await;
    assert_eq!(refusal(command), Refusal::KeywordIsCommand);
    add_number(&world, Some("news"), two.reference).await;
    let support = world.service.support();
    let listed = support.inbound_numbers().await.unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|it| (it.number.as_str(), it.keyword.as_ref().map(Keyword::as_str), it.reference))
        .collect();
    assert_eq!(listed, [(OURS, None, one.reference), (OURS, Some("NEWS"), two.reference)]);
    let messages = world.service.messages();
    let own = messages.account_numbers(two.account.id, two.reference).await.unwrap();
    assert_eq!((own.len(), &own[0].keyword), (1, &Some(Keyword::parse("NEWS").unwrap())));
    let strange = messages.account_numbers(one.account.id, two.reference).await;
    assert_eq!(refusal(strange.map(drop)), Refusal::NoSuchApplication);
    let local = Number::parse("50000009").unwrap();
    support.remove_inbound_number(&STAFF, &local, None).await.unwrap();
    let gone = support.remove_inbound_number(&STAFF, &local, None).await;
    assert_eq!(refusal(gone), Refusal::NoSuchInboundNumber);
    assert_eq!(support.inbound_numbers().await.unwrap().len(), 1);
}

async fn garbage_is_stored_whatever_its_coding(backend: Backend) {
    let (world, customer) = with_number(backend).await;
    let garbage: Vec<u8> = (0..140_u8).map(|n| n.wrapping_mul(97) ^ 0x5a).collect();
    let all = (0..=u8::MAX).flat_map(|coding| {
        [0, 0x40].map(|esm_class| from(HANDSET, octets(coding, esm_class, &garbage)))
    });
    receive(&world, all.collect()).await;
    receive(&world, vec![from("", octets(0, 0, b"")), from("x\0y", octets(3, 0, b"a\0b"))]).await;
    let long = "1".repeat(5000);
    receive(&world, vec![from(&long, octets(4, 0, b"\0\xff"))]).await;
    let found = list(&world, &customer).await;
    assert_eq!(found.len(), 512 + 3);
    let last: Vec<_> = found[512..].iter().map(|it| it.message.as_str()).collect();
    assert_eq!(last, ["", "ab", "00ff"]);
    assert_eq!(found[513].number, "xy");
}

async fn lists_are_filtered_and_continued(backend: Backend) {
    let (world, customer) = with_number(backend).await;
    let others = Number::parse("26650000008").unwrap();
    let support = world.service.support();
    support.add_inbound_number(&STAFF, &others, None, customer.reference).await.unwrap();
    for n in 0..6_u8 {
        let mut delivery = text(&n.to_string());
        delivery.number = format!("2665700000{}", n % 2);
        if n >= 3 {
            delivery.recipient = "26650000008".into();
        }
        receive(&world, vec![delivery]).await;
        world.pass(1000);
    }
    let access = world.access(&customer.live).await;
    let found = async |filter: InboundFilter| {
        let page = world.service.messages().inbound(&access, &filter).await.unwrap();
        let texts: String = page.items.iter().map(|it| it.message.as_str()).collect();
        (texts, page.next)
    };
    let number = |text: &str| Some(Number::parse(text).unwrap());
    let by_number = InboundFilter { number: number("57000001"), ..everything() };
    assert_eq!(found(by_number.clone()).await.0, "531");
    let by_both = InboundFilter { recipient: number("+26650000008"), ..by_number };
    assert_eq!(found(by_both).await.0, "53");
    let by_recipient = InboundFilter { recipient: number(OURS), ..everything() };
    assert_eq!(found(by_recipient).await.0, "210");
    let start = world.now().plus_ms(-6000);
    let times = InboundFilter {
        from: Some(start.plus_ms(2000)),
        to: Some(start.plus_ms(4000)),
        ..everything()
    };
    assert_eq!(found(times).await.0, "32");
    let part = |text: &str| InboundFilter { text: text.to_owned(), ..everything() };
    receive(&world, vec![text("50% OFF_now"), text("50 cents off")]).await;
    assert_eq!(found(part("off_")).await.0, "50% OFF_now");
    assert_eq!(found(part("0%")).await.0, "50% OFF_now");
    assert_eq!(found(part("50 c")).await.0, "50 cents off");
    let before = InboundFilter { to: Some(world.now()), ..everything() };
    let (first, next) = found(InboundFilter { limit: 4, ..before.clone() }).await;
    let (rest, end) = found(InboundFilter { cursor: next, ..before }).await;
    assert_eq!((first.as_str(), rest.as_str(), end), ("5432", "10", None));
    let messages = world.service.messages();
    let (account, reference) = (customer.account.id, customer.reference);
    let own = messages.account_inbound(account, reference, &everything()).await.unwrap();
    assert_eq!(own.items.len(), 8);
    let bad = InboundFilter { cursor: Some("x".to_owned()), ..everything() };
    let refused = messages.inbound(&access, &bad).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::InvalidCursor));
}

async fn old_messages_and_notes_are_deleted(backend: Backend) {
    let (world, customer) = with_number(backend).await;
    let mut nobodys = text("to nobody");
    nobodys.recipient = "1234".into();
    receive(&world, vec![text("old"), nobodys]).await;
    let days = world.service.limits().history_days;
    world.pass((days - 1) * 24 * HOUR_MS);
    world.service.operations().forget_inbound().await.unwrap();
    assert_eq!(texts(&world, &customer).await, ["old"]);
    receive(&world, vec![text("old")]).await;
    world.pass(25 * HOUR_MS);
    world.service.operations().forget_inbound().await.unwrap();
    assert_eq!(texts(&world, &customer).await.len(), 1);
    assert_eq!(kept(&world).await, [""; 0]);
}

async fn old_texts_and_numbers_are_removed(backend: Backend) {
    let mut world = World::new(backend).await;
    world.limits.text_days = 10;
    world.limits.mask_numbers_days = 20;
    let world = world.reopen().await;
    let customer = world.pending("one@example.org").await;
    add_number(&world, Some("shop"), customer.reference).await;
    receive(&world, vec![text("shop whisper"), text("nobody's whisper")]).await;
    let after = async |days: i64| {
        world.pass(days * 24 * HOUR_MS);
        world.service.operations().mask_numbers().await.unwrap();
        world.service.operations().erase_texts().await.unwrap();
        (texts(&world, &customer).await, kept(&world).await)
    };
    let both = |text: &str, other: &str| (vec![text.to_owned()], vec![other.to_owned()]);
    assert_eq!(after(10).await, both("shop whisper", "nobody's whisper"));
    assert_eq!(after(1).await, both("", ""));
    let found = contents(&world).await;
    assert!(!found.contains("whisper") && found.contains(HANDSET));
    assert_eq!(after(10).await, both("", ""));
    assert!(!contents(&world).await.contains(HANDSET));
    // Masked messages can still be assigned.
    add_number(&world, None, customer.reference).await;
    assert_eq!(world.service.support().assign_inbound(&STAFF, OURS).await.unwrap(), 1);
    let numbers = list(&world, &customer).await.into_iter().map(|message| message.number);
    assert_eq!(numbers.collect::<Vec<_>>(), ["••••••••001", "••••••••001"]);
    world.assert_sound().await;
}

async fn the_answer_of_a_test_number_is_stored_with_the_receipt_and_once(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let sent = world.send(&customer.test, "00000008").await.unwrap().transid.unwrap();
    let delivery = world.service.delivery();
    let (lease, claimed) = delivery.claim(SANDBOX_CARRIER, 10).await.unwrap();
    let accepted = SubmitOutcome::Accepted { carrier_message_id: None };
    world.record(SANDBOX_CARRIER, &lease, vec![answered(&claimed[0], accepted)]).await;
    let receipt = Receipt {
        id: sent,
        application_id: claimed[0].application_id,
        status: MessageStatus::Delivered,
        error: None,
    };
    let access = world.access(&customer.test).await;
    let messages = world.service.messages();
    // A process that didn't learn of the commit repeats the report.
    for _ in 0..2 {
        delivery.record_test_answer(receipt.clone()).await.unwrap();
        let found = messages.message(&access, sent).await.unwrap().unwrap();
        assert_eq!(found.record.status, MessageStatus::Delivered);
        assert_eq!(messages.inbound(&access, &everything()).await.unwrap().items.len(), 1);
    }
    world.assert_sound().await;
}
