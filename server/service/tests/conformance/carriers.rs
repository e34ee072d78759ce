//! Carriers: segments, receipts by the carrier's names, lost answers, other ways.

use std::num::NonZeroU32;

use domain::routing::{Route, Routes};
use domain::{Kind, LostAnswer, MessageStatus, Timestamp, Transid};
use service::{
    Actor, CarrierInfo, CarrierReceipt, Claimed, Lease, Leases, Network, SubmitOutcome, Submitted,
    user_reference,
};

use crate::world::{Customer, HOUR_MS, World, answered, money, refused, taken_as};

const STAFF: Actor = Actor::CommandLine;
/// How long a message waits for a receipt before it is sent once more.
const RESEND_MS: i64 = 30_000;

pub fn network(routes: &[(&str, u32, Option<Kind>)]) -> Network {
    let route = |(carrier, priority, kind): &(&str, u32, Option<Kind>)| Route {
        carrier: (*carrier).to_owned(),
        priority: *priority,
        weight: NonZeroU32::MIN,
        kind: *kind,
        prefix: None,
        application: None,
        sender: None,
    };
    let info = |name: &str| CarrierInfo {
        name: name.to_owned(),
        sandbox: false,
        whole: false,
    };
    Network {
        carriers: vec![info("acme"), info("beta")],
        routes: Routes::new(routes.iter().map(route).collect()),
        country_code: "266".to_owned(),
        default_sender: "Heliograph".to_owned(),
    }
}

/// One carrier that takes everything.
async fn world() -> (World, Customer) {
    let world = World::with(network(&[("acme", 1, None)])).await;
    let customer = world.active("one@example.org", "100").await;
    (world, customer)
}

async fn claim(world: &World, carrier: &str) -> (Lease, Vec<Claimed>) {
    world.service.claim(carrier, 100).await.unwrap()
}

/// Sends one and claims it for acme.
async fn claimed(world: &World, customer: &Customer) -> (Lease, Claimed) {
    world.send(&customer.live, "12345678").await.unwrap();
    let (lease, mut messages) = claim(world, "acme").await;
    assert_eq!(messages.len(), 1);
    (lease, messages.remove(0))
}

fn parts(message: &Claimed, segments: u16, outcomes: &[(u16, SubmitOutcome)]) -> Submitted {
    Submitted {
        segments,
        outcomes: outcomes.to_vec(),
        ..answered(message, SubmitOutcome::NotSent)
    }
}

fn lost() -> SubmitOutcome {
    SubmitOutcome::Unknown {
        error: "the connection was lost".to_owned(),
    }
}

fn throttled() -> SubmitOutcome {
    SubmitOutcome::Throttled {
        error: "throttled".to_owned(),
    }
}

fn receipt(name: &str, status: MessageStatus) -> CarrierReceipt {
    CarrierReceipt {
        names: vec![name.to_owned()],
        status,
        error: (status != MessageStatus::Delivered).then(|| status.to_string()),
        user_reference: None,
        number: String::new(),
        sender: String::new(),
        submitted_at: None,
    }
}

async fn report(world: &World, receipts: Vec<CarrierReceipt>) {
    let service = &world.service;
    service
        .record_carrier_receipts("acme", receipts)
        .await
        .unwrap();
}

async fn policy(world: &World, customer: &Customer, policy: LostAnswer) {
    world
        .service
        .set_lost_answer(customer.account.id, customer.reference, policy)
        .await
        .unwrap();
}

async fn detail(world: &World, customer: &Customer, id: Transid) -> domain::records::MessageDetail {
    let access = world.access(&customer.live).await;
    let found = world.service.message(&access, id).await.unwrap();
    found.unwrap()
}

async fn status(world: &World, customer: &Customer, id: Transid) -> MessageStatus {
    detail(world, customer, id).await.record.status
}

async fn error(world: &World, customer: &Customer, id: Transid) -> Option<String> {
    detail(world, customer, id).await.record.error
}

#[tokio::test]
async fn a_message_is_delivered_when_all_its_segments_are() {
    use MessageStatus::{Delivered, Expired, Failed, Submitted};
    for (ends, expected) in [
        ([Delivered, Delivered, Delivered], Delivered),
        ([Delivered, Expired, Failed], Failed),
        ([Expired, Delivered, Delivered], Expired),
    ] {
        let (world, customer) = world().await;
        let (lease, message) = claimed(&world, &customer).await;
        let outcomes = [1, 2, 3].map(|n| (n, taken_as(&format!("c{n}"))));
        let result = parts(&message, 3, &outcomes);
        let taken = world.record("acme", &lease, vec![result]).await;
        assert_eq!(taken, [message.id]);
        let found = detail(&world, &customer, message.id).await.record;
        assert_eq!(
            (found.status, found.segments, found.pages),
            (Submitted, 3, 1)
        );
        for (n, end) in (1..).zip(ends) {
            assert_eq!(status(&world, &customer, message.id).await, Submitted);
            world.assert_sound().await;
            report(&world, vec![receipt(&format!("c{n}"), end)]).await;
        }
        assert_eq!(status(&world, &customer, message.id).await, expected);
        assert_eq!(world.balance(&customer.live).await, money("99.95"));
        world.assert_sound().await;
    }
}

#[tokio::test]
async fn segments_that_were_not_taken_follow_those_that_were() {
    let (world, customer) = world().await;
    let (lease, message) = claimed(&world, &customer).await;
    let outcomes = [
        (1, taken_as("c1")),
        (2, throttled()),
        (3, SubmitOutcome::NotSent),
    ];
    world
        .record("acme", &lease, vec![parts(&message, 3, &outcomes)])
        .await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Sending
    );
    world.assert_sound().await;
    world.pass(1000);
    let (lease, again) = claim(&world, "acme").await;
    assert_eq!(again[0].handed_over, [1]);
    let outcomes = [(2, taken_as("c2")), (3, taken_as("c3"))];
    world
        .record("acme", &lease, vec![parts(&message, 3, &outcomes)])
        .await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Submitted
    );
    world.assert_sound().await;
}

#[tokio::test]
async fn the_charge_stays_when_the_rest_of_a_message_is_refused_or_runs_out_of_time() {
    let (world, customer) = world().await;
    let (lease, message) = claimed(&world, &customer).await;
    let outcomes = [(1, taken_as("c1")), (2, refused())];
    world
        .record("acme", &lease, vec![parts(&message, 2, &outcomes)])
        .await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Failed
    );
    world.assert_sound().await;
    let (lease, message) = claimed(&world, &customer).await;
    let outcomes = [(1, taken_as("d1")), (2, throttled())];
    world
        .record("acme", &lease, vec![parts(&message, 2, &outcomes)])
        .await;
    world.pass(48 * HOUR_MS + 1);
    world.service.expire().await.unwrap();
    let error = error(&world, &customer, message.id).await;
    assert_eq!(error.as_deref(), Some("expired_in_part"));
    assert_eq!(world.balance(&customer.live).await, money("99.9"));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_part_that_failed_fails_the_message_though_nothing_is_heard_of_the_rest() {
    let (world, customer) = world().await;
    let (lease, message) = claimed(&world, &customer).await;
    let outcomes = [(1, taken_as("c1")), (2, taken_as("c2"))];
    world
        .record("acme", &lease, vec![parts(&message, 2, &outcomes)])
        .await;
    report(&world, vec![receipt("c2", MessageStatus::Failed)]).await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Submitted
    );
    world.pass(48 * HOUR_MS + 1);
    world.service.expire().await.unwrap();
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Failed
    );
    assert_eq!(world.balance(&customer.live).await, money("99.95"));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_receipt_before_the_answer_waits_for_it() {
    let (world, customer) = world().await;
    let (lease, message) = claimed(&world, &customer).await;
    report(&world, vec![receipt("c1", MessageStatus::Delivered)]).await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Sending
    );
    world
        .record("acme", &lease, vec![answered(&message, taken_as("c1"))])
        .await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Delivered
    );
    let carriers = world.service.carriers().await.unwrap();
    let acme = carriers
        .iter()
        .find(|carrier| carrier.name == "acme")
        .unwrap();
    assert_eq!((acme.receipts_parked, acme.receipts_matched), (1, 1));
    world.assert_sound().await;
}

#[tokio::test]
async fn receipts_that_come_twice_late_or_for_nothing_change_nothing() {
    let (world, customer) = world().await;
    let (lease, message) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&message, taken_as("c1"))])
        .await;
    report(&world, vec![receipt("c1", MessageStatus::Delivered)]).await;
    report(&world, vec![receipt("c1", MessageStatus::Delivered)]).await;
    let steps = |detail: &domain::records::MessageDetail| detail.timeline.len();
    let before = steps(&detail(&world, &customer, message.id).await);
    report(&world, vec![receipt("nobody", MessageStatus::Delivered)]).await;
    report(&world, vec![receipt("c1", MessageStatus::Failed)]).await;
    let after = detail(&world, &customer, message.id).await;
    // What contradicts the first one is told.
    assert_eq!(steps(&after), before + 1);
    assert_eq!(after.record.status, MessageStatus::Delivered);
    world.pass(8 * 24 * HOUR_MS);
    world.service.expire().await.unwrap();
    world.service.forget_segments().await.unwrap();
    report(&world, vec![receipt("c1", MessageStatus::Failed)]).await;
    assert_eq!(
        steps(&detail(&world, &customer, message.id).await),
        before + 1
    );
    world.assert_sound().await;
}

#[tokio::test]
async fn an_id_that_a_carrier_uses_again_means_the_younger_message() {
    let (world, customer) = world().await;
    let (lease, first) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&first, taken_as("c1"))])
        .await;
    let (lease, second) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&second, taken_as("c1"))])
        .await;
    report(&world, vec![receipt("c1", MessageStatus::Delivered)]).await;
    assert_eq!(
        status(&world, &customer, first.id).await,
        MessageStatus::Submitted
    );
    assert_eq!(
        status(&world, &customer, second.id).await,
        MessageStatus::Delivered
    );
}

#[tokio::test]
async fn a_lost_answer_is_waited_for_and_never_sent_again() {
    let (world, customer) = world().await;
    let (lease, message) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&message, lost())])
        .await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Unknown
    );
    world.assert_sound().await;
    world.pass(RESEND_MS * 10);
    assert!(claim(&world, "acme").await.1.is_empty());
    world.pass(48 * HOUR_MS);
    world.service.expire().await.unwrap();
    let found = detail(&world, &customer, message.id).await;
    assert_eq!(found.record.status, MessageStatus::Expired);
    assert_eq!(found.record.error.as_deref(), Some("no_answer"));
    assert_eq!(found.charge.released, money("0"));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_lost_answer_is_sent_once_more_where_the_application_wants_it() {
    let (world, customer) = world().await;
    policy(&world, &customer, LostAnswer::Resend).await;
    let (lease, message) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&message, lost())])
        .await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Unknown
    );
    assert!(
        claim(&world, "acme").await.1.is_empty(),
        "it waits for a receipt first"
    );
    world.pass(RESEND_MS);
    let (lease, again) = claim(&world, "acme").await;
    assert_eq!((again[0].id, again[0].handed_over.len()), (message.id, 0));
    world.assert_sound().await;
    // Once more and never again, whatever becomes of it.
    world
        .record("acme", &lease, vec![answered(&message, lost())])
        .await;
    world.pass(RESEND_MS * 10);
    assert!(claim(&world, "acme").await.1.is_empty());
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Unknown
    );
    world.assert_sound().await;
}

#[tokio::test]
async fn a_second_try_that_is_refused_gives_nothing_back() {
    let (world, customer) = world().await;
    policy(&world, &customer, LostAnswer::Resend).await;
    let (lease, message) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&message, lost())])
        .await;
    world.pass(RESEND_MS);
    let (lease, again) = claim(&world, "acme").await;
    world
        .record("acme", &lease, vec![answered(&again[0], refused())])
        .await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Unknown
    );
    assert_eq!(world.balance(&customer.live).await, money("99.95"));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_receipt_ends_the_waiting_for_the_second_try() {
    let (world, customer) = world().await;
    policy(&world, &customer, LostAnswer::Resend).await;
    let (lease, message) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&message, lost())])
        .await;
    let echoed = CarrierReceipt {
        user_reference: Some(user_reference(message.id, 1)),
        number: message.address.clone(),
        ..receipt("c1", MessageStatus::Delivered)
    };
    report(&world, vec![echoed]).await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Delivered
    );
    world.pass(RESEND_MS);
    assert!(claim(&world, "acme").await.1.is_empty());
    world.assert_sound().await;
}

#[tokio::test]
async fn a_name_that_comes_late_keeps_a_message_from_being_sent_again() {
    let (world, customer) = world().await;
    policy(&world, &customer, LostAnswer::Resend).await;
    let (lease, message) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&message, lost())])
        .await;
    // The answer after its time: it changes no status, but it is known.
    world
        .record("acme", &lease, vec![answered(&message, taken_as("c1"))])
        .await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Unknown
    );
    world.pass(RESEND_MS);
    let (lease, again) = claim(&world, "acme").await;
    assert_eq!(again[0].handed_over, [1]);
    world
        .record("acme", &lease, vec![parts(&again[0], 1, &[])])
        .await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Submitted
    );
    report(&world, vec![receipt("c1", MessageStatus::Delivered)]).await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Delivered
    );
    world.assert_sound().await;
}

#[tokio::test]
async fn a_receipt_without_a_known_name_finds_the_one_message_that_fits() {
    let (world, customer) = world().await;
    let unnamed = |message: &Claimed, submitted_at: Timestamp| CarrierReceipt {
        names: Vec::new(),
        number: message.address.clone(),
        sender: message.sender.clone(),
        submitted_at: Some(submitted_at),
        ..receipt("", MessageStatus::Delivered)
    };
    let (lease, first) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&first, lost())])
        .await;
    let now = world.now();
    // Too far away, and to somebody else.
    report(&world, vec![unnamed(&first, now.plus_ms(11 * 60_000))]).await;
    let other = CarrierReceipt {
        number: "26687654321".to_owned(),
        ..unnamed(&first, now)
    };
    report(&world, vec![other]).await;
    assert_eq!(
        status(&world, &customer, first.id).await,
        MessageStatus::Unknown
    );
    // Two fit: nobody can tell.
    let (lease, second) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&second, lost())])
        .await;
    report(&world, vec![unnamed(&first, now)]).await;
    assert_eq!(
        status(&world, &customer, first.id).await,
        MessageStatus::Unknown
    );
    let echoed = CarrierReceipt {
        user_reference: Some(user_reference(second.id, 1)),
        ..unnamed(&second, now)
    };
    report(&world, vec![echoed]).await;
    assert_eq!(
        status(&world, &customer, second.id).await,
        MessageStatus::Delivered
    );
    report(&world, vec![unnamed(&first, now.plus_ms(9 * 60_000))]).await;
    assert_eq!(
        status(&world, &customer, first.id).await,
        MessageStatus::Delivered
    );
    world.assert_sound().await;
}

#[tokio::test]
async fn what_a_dead_process_had_claimed_is_unknown() {
    let (world, customer) = world().await;
    let careful = claimed(&world, &customer).await.1;
    policy(&world, &customer, LostAnswer::Resend).await;
    let (_, bold) = claimed(&world, &customer).await;
    let world = world.reopen().await;
    assert_eq!(world.service.end_leases(Leases::All).await.unwrap(), 2);
    world.assert_sound().await;
    // The policy is the application's, when the claim ends.
    for message in [&careful, &bold] {
        let found = status(&world, &customer, message.id).await;
        assert_eq!(found, MessageStatus::Unknown);
    }
    world.pass(RESEND_MS);
    let (_, again) = claim(&world, "acme").await;
    assert_eq!(again.len(), 2);
    // A second crash: never a third time.
    world.pass(60_000);
    assert_eq!(world.service.end_leases(Leases::Over).await.unwrap(), 2);
    world.pass(RESEND_MS);
    assert!(claim(&world, "acme").await.1.is_empty());
    world.assert_sound().await;
}

#[tokio::test]
async fn a_message_goes_where_its_route_says() {
    let routes = [
        ("acme", 1, Some(Kind::Local)),
        ("beta", 2, Some(Kind::International)),
    ];
    let world = World::with(network(&routes)).await;
    let customer = world.active("one@example.org", "100").await;
    world.send(&customer.live, "12345678").await.unwrap();
    world.send(&customer.live, "+12345678901").await.unwrap();
    world.send(&customer.test, "12345678").await.unwrap();
    for (carrier, address) in [
        ("acme", "26612345678"),
        ("beta", "12345678901"),
        (service::SANDBOX_CARRIER, "26612345678"),
    ] {
        let (_, claimed) = claim(&world, carrier).await;
        let addresses: Vec<_> = claimed.iter().map(|m| m.address.as_str()).collect();
        assert_eq!(addresses, [address], "{carrier}");
    }
}

#[tokio::test]
async fn without_a_route_a_message_is_rejected_and_given_back() {
    let world = World::with(network(&[("acme", 1, Some(Kind::Local))])).await;
    let customer = world.active("one@example.org", "1").await;
    let sent = world.send(&customer.live, "+12345678901").await.unwrap();
    assert_eq!(sent.balance, money("0.75"));
    world.service.reroute("").await.unwrap();
    let found = detail(&world, &customer, sent.transid.unwrap()).await;
    assert_eq!(found.record.status, MessageStatus::Rejected);
    assert_eq!(found.record.error.as_deref(), Some("no_route"));
    assert_eq!(world.balance(&customer.live).await, money("1"));
    world.assert_sound().await;
}

#[tokio::test]
async fn messages_leave_a_carrier_that_cannot_take_them() {
    let world = World::with(network(&[("acme", 1, None), ("beta", 2, None)])).await;
    let customer = world.active("one@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    world.service.set_usable("acme", false);
    world.send(&customer.live, "12345678").await.unwrap();
    assert_eq!(
        claim(&world, "beta").await.1.len(),
        1,
        "a new one goes the other way"
    );
    world.service.reroute("acme").await.unwrap();
    assert_eq!(
        claim(&world, "beta").await.1.len(),
        1,
        "one that waited too"
    );
    world.service.set_usable("beta", false);
    world.send(&customer.live, "12345678").await.unwrap();
    world.service.reroute("beta").await.unwrap();
    world.service.set_usable("acme", true);
    assert_eq!(
        claim(&world, "acme").await.1.len(),
        1,
        "with no other it waits for the first"
    );
    world.assert_sound().await;
}

#[tokio::test]
async fn one_message_probes_a_carrier_that_cannot_be_relied_on() {
    let world = World::with(network(&[("acme", 1, None), ("beta", 2, None)])).await;
    let customer = world.active("one@example.org", "2").await;
    let service = &world.service;
    let three = async || {
        for _ in 0..3 {
            world.send(&customer.live, "12345678").await.unwrap();
        }
        let (_, by_acme) = claim(&world, "acme").await;
        let (_, by_beta) = claim(&world, "beta").await;
        (by_acme.len(), by_beta.len())
    };
    // One that is usable isn't probed.
    service.let_probe("acme", true);
    service.set_usable("acme", false);
    assert_eq!(three().await, (0, 3));
    service.let_probe("acme", true);
    service.set_usable("acme", false);
    assert_eq!(three().await, (1, 2));
    assert_eq!(three().await, (0, 3));
    service.let_probe("acme", true);
    service.let_probe("acme", false);
    assert_eq!(three().await, (0, 3));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_refused_message_is_offered_to_every_other_carrier_once() {
    let world = World::with(network(&[("acme", 1, None), ("beta", 2, None)])).await;
    let customer = world.active("one@example.org", "1").await;
    let (lease, message) = claimed(&world, &customer).await;
    world
        .record("acme", &lease, vec![answered(&message, refused())])
        .await;
    assert_eq!(
        status(&world, &customer, message.id).await,
        MessageStatus::Sending
    );
    let (lease, again) = claim(&world, "beta").await;
    assert_eq!(again.len(), 1);
    world
        .record("beta", &lease, vec![answered(&message, refused())])
        .await;
    let found = detail(&world, &customer, message.id).await;
    assert_eq!(found.record.status, MessageStatus::Rejected);
    let told = |step: &domain::records::TimelineEntry| {
        step.detail.as_deref() == Some("refused by acme: refused_by_carrier")
    };
    assert!(found.timeline.iter().any(told), "{:?}", found.timeline);
    assert_eq!(world.balance(&customer.live).await, money("1"));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_carrier_that_is_throttled_or_busy_loses_the_message_to_another() {
    let world = World::with(network(&[("acme", 1, None), ("beta", 2, None)])).await;
    let customer = world.active("one@example.org", "1").await;
    let busy = SubmitOutcome::Temporary {
        error: "busy".to_owned(),
    };
    for outcome in [throttled(), busy] {
        let (lease, message) = claimed(&world, &customer).await;
        world
            .record("acme", &lease, vec![answered(&message, outcome)])
            .await;
        world.pass(5000);
        assert!(claim(&world, "acme").await.1.is_empty());
        assert_eq!(claim(&world, "beta").await.1.len(), 1);
    }
    // What has begun to go one way stays there, and what didn't leave at all may.
    let (lease, message) = claimed(&world, &customer).await;
    let outcomes = [(1, taken_as("c1")), (2, throttled())];
    world
        .record("acme", &lease, vec![parts(&message, 2, &outcomes)])
        .await;
    let (lease, other) = claimed(&world, &customer).await;
    world
        .record(
            "acme",
            &lease,
            vec![answered(&other, SubmitOutcome::NotSent)],
        )
        .await;
    world.service.set_usable("acme", false);
    world.service.reroute("acme").await.unwrap();
    world.pass(1000);
    assert_eq!(claim(&world, "acme").await.1[0].id, message.id);
    assert_eq!(claim(&world, "beta").await.1[0].id, other.id);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_drained_carrier_is_known_as_such() {
    let (world, _) = world().await;
    let service = &world.service;
    assert!(service.drain_carrier(&STAFF, "acme").await.unwrap());
    assert!(!service.drain_carrier(&STAFF, "acme").await.unwrap());
    assert_eq!(service.drained_carriers().await.unwrap(), ["acme"]);
    assert!(service.drain_carrier(&STAFF, "nobody").await.is_err());
    assert!(service.resume_carrier(&STAFF, "acme").await.unwrap());
    assert!(service.drained_carriers().await.unwrap().is_empty());
}

/// Whatever a process knows of it: the claim looks by itself.
#[tokio::test]
async fn nothing_is_claimed_for_a_drained_carrier() {
    let (world, customer) = world().await;
    let service = &world.service;
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    world.pass(10_000);
    assert!(service.drain_carrier(&STAFF, "acme").await.unwrap());
    assert!(claim(&world, "acme").await.1.is_empty());
    // Nobody has to look again and again meanwhile.
    assert_eq!(service.next_due("acme").await.unwrap(), None);
    assert_eq!(service.drained_carriers().await.unwrap(), ["acme"]);
    assert!(service.resume_carrier(&STAFF, "acme").await.unwrap());
    assert!(service.next_due("acme").await.unwrap().is_some());
    let (_, claimed) = claim(&world, "acme").await;
    assert_eq!(Some(claimed[0].id), sent.transid);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_carrier_that_is_down_gets_nothing_that_another_put_off() {
    let world = World::with(network(&[("acme", 1, None), ("beta", 2, None)])).await;
    let customer = world.active("one@example.org", "1").await;
    world.service.set_usable("beta", false);
    let (lease, message) = claimed(&world, &customer).await;
    let put_off = answered(&message, throttled());
    world.record("acme", &lease, vec![put_off]).await;
    world.pass(1000);
    let (lease, again) = claim(&world, "acme").await;
    assert_eq!(again.len(), 1, "it waits for the one that works");
    // What was refused waits for the other one, though it is down.
    world
        .record("acme", &lease, vec![answered(&message, refused())])
        .await;
    assert_eq!(claim(&world, "beta").await.1.len(), 1);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_test_message_has_no_other_way_than_the_sandbox() {
    let world = World::with(network(&[("acme", 1, None), ("beta", 2, None)])).await;
    let customer = world.active("one@example.org", "1").await;
    let sent = world.send(&customer.test, "00000004").await.unwrap();
    let (lease, messages) = claim(&world, service::SANDBOX_CARRIER).await;
    let result = answered(&messages[0], refused());
    world
        .record(service::SANDBOX_CARRIER, &lease, vec![result])
        .await;
    let access = world.access(&customer.test).await;
    let id = sent.transid.unwrap();
    let found = world.service.message(&access, id).await.unwrap().unwrap();
    assert_eq!(found.record.status, MessageStatus::Rejected);
    world.assert_sound().await;
}

#[tokio::test]
async fn what_comes_back_from_a_carrier_that_is_down_goes_another_way() {
    let world = World::with(network(&[("acme", 1, None), ("beta", 2, None)])).await;
    let customer = world.active("one@example.org", "1").await;
    let (lease, message) = claimed(&world, &customer).await;
    world.service.set_usable("acme", false);
    world.service.reroute("acme").await.unwrap();
    let back = answered(&message, SubmitOutcome::NotSent);
    world.record("acme", &lease, vec![back]).await;
    assert_eq!(claim(&world, "beta").await.1.len(), 1);
    world.assert_sound().await;
}
