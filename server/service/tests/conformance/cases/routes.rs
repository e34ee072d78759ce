//! The choice of a message's carrier, and of another one if that carrier doesn't accept it.

use domain::carrier_figures::CarrierEvent;
use domain::opening_hours::{Days, OpeningHours, Span};
use domain::records::TimelineEntry;
use domain::routing::{Route, RouteOrder, Routes};
use domain::{Kind, MessageStatus, Zone};
use service::{Actor, Network, SANDBOX_CARRIER, SubmitOutcome};

use crate::database::Backend;
use crate::network::{answered, network, refused, taken_as, throttled};
use crate::sending::{Sending, receipt};
use crate::world::HOUR_MS;

on_each_backend![
    a_message_goes_to_the_carrier_of_its_route,
    a_message_without_a_route_is_rejected_and_its_price_given_back,
    messages_leave_a_carrier_that_cannot_take_them,
    one_message_at_a_time_probes_a_carrier_that_is_not_usable,
    a_refused_message_is_offered_to_every_other_carrier_once,
    a_rejected_message_is_offered_to_no_other_carrier,
    a_message_goes_to_another_carrier_when_its_own_is_throttled_or_busy,
    a_drained_carrier_is_listed_until_it_is_resumed,
    nothing_is_claimed_for_a_drained_carrier,
    a_message_that_was_deferred_stays_when_the_other_carrier_is_down,
    a_refused_test_message_goes_to_no_other_carrier,
    a_message_that_was_not_sent_by_a_carrier_that_is_down_goes_to_another,
    messages_wait_until_a_route_opens,
    the_carrier_that_delivers_more_is_preferred,
];

const STAFF: Actor = Actor::CommandLine;

async fn a_message_goes_to_the_carrier_of_its_route(backend: Backend) {
    let routes = [("acme", 1, Some(Kind::Local)), ("beta", 2, Some(Kind::International))];
    let sending = Sending::by(backend, &routes).await;
    let (world, customer) = (&sending.world, &sending.customer);
    world.send(&customer.live, "12345678").await.unwrap();
    world.send(&customer.live, "+12345678901").await.unwrap();
    world.send(&customer.test, "12345678").await.unwrap();
    for (carrier, address) in
        [("acme", "26612345678"), ("beta", "12345678901"), (SANDBOX_CARRIER, "26612345678")]
    {
        let claimed = sending.claim(carrier).await;
        let addresses: Vec<_> = claimed.iter().map(|h| h.message.address.as_str()).collect();
        assert_eq!(addresses, [address], "{carrier}");
    }
}

async fn a_message_without_a_route_is_rejected_and_its_price_given_back(backend: Backend) {
    let sending = Sending::by(backend, &[("acme", 1, Some(Kind::Local))]).await;
    let (world, live) = (&sending.world, &sending.customer.live);
    let sent = world.send(live, "+12345678901").await.unwrap();
    sending.assert_balance("99.75").await;
    world.service.delivery().reroute("").await.unwrap();
    let id = sent.transid.unwrap();
    sending.assert_ended(id, MessageStatus::Rejected, "no_route").await;
    sending.assert_balance("100").await;
    sending.assert_sound().await;
}

async fn messages_leave_a_carrier_that_cannot_take_them(backend: Backend) {
    let sending = Sending::by_acme_or_beta(backend).await;
    let service = &sending.world.service;
    let waiting = sending.send().await;
    service.delivery().set_usable("acme", false);
    // A new message goes to beta, and the waiting one follows.
    let new = sending.send().await;
    assert_eq!(sending.claim_one("beta").await.id(), new);
    service.delivery().reroute("acme").await.unwrap();
    assert_eq!(sending.claim_one("beta").await.id(), waiting);
    // Without another carrier, the message waits for its first choice.
    service.delivery().set_usable("beta", false);
    let last = sending.send().await;
    service.delivery().reroute("beta").await.unwrap();
    service.delivery().set_usable("acme", true);
    assert_eq!(sending.claim_one("acme").await.id(), last);
    sending.assert_sound().await;
}

async fn one_message_at_a_time_probes_a_carrier_that_is_not_usable(backend: Backend) {
    let sending = Sending::by_acme_or_beta(backend).await;
    let service = &sending.world.service;
    let send_three = async || {
        for _ in 0..3 {
            sending.send().await;
        }
        let by_acme = sending.claim("acme").await.len();
        (by_acme, sending.claim("beta").await.len())
    };
    // A usable carrier isn't probed.
    service.delivery().let_probe("acme", true);
    service.delivery().set_usable("acme", false);
    assert_eq!(send_three().await, (0, 3));
    service.delivery().let_probe("acme", true);
    service.delivery().set_usable("acme", false);
    assert_eq!(send_three().await, (1, 2));
    assert_eq!(send_three().await, (0, 3));
    service.delivery().let_probe("acme", true);
    service.delivery().let_probe("acme", false);
    assert_eq!(send_three().await, (0, 3));
    sending.assert_sound().await;
}

async fn a_refused_message_is_offered_to_every_other_carrier_once(backend: Backend) {
    let sending = Sending::by_acme_or_beta(backend).await;
    let by_acme = sending.submitted().await;
    let id = by_acme.id();
    sending.answer(&by_acme, refused()).await;
    sending.assert_status(id, MessageStatus::Sending).await;
    let by_beta = sending.claim_one("beta").await;
    sending.answer(&by_beta, refused()).await;
    sending.assert_status(id, MessageStatus::Rejected).await;
    let timeline = sending.detail(id).await.timeline;
    let told = |step: &TimelineEntry| {
        step.detail.as_deref() == Some("refused by acme: refused_by_carrier")
    };
    assert!(timeline.iter().any(told), "{timeline:?}");
    sending.assert_balance("100").await;
    sending.assert_sound().await;
}

async fn a_rejected_message_is_offered_to_no_other_carrier(backend: Backend) {
    let sending = Sending::by_acme_or_beta(backend).await;
    let by_acme = sending.submitted().await;
    let rejected = SubmitOutcome::Rejected { error: "blacklisted".to_owned() };
    sending.answer(&by_acme, rejected).await;
    sending.assert_status(by_acme.id(), MessageStatus::Rejected).await;
    sending.assert_nothing_due("beta").await;
    sending.assert_balance("100").await;
    sending.assert_sound().await;
}

async fn a_message_goes_to_another_carrier_when_its_own_is_throttled_or_busy(backend: Backend) {
    let sending = Sending::by_acme_or_beta(backend).await;
    let busy = SubmitOutcome::Temporary { error: "busy".to_owned() };
    let held = SubmitOutcome::Held { error: "no_credit".to_owned() };
    for outcome in [throttled(), busy, held] {
        let handed = sending.submitted().await;
        sending.answer(&handed, outcome).await;
        sending.world.pass(5000);
        sending.assert_nothing_due("acme").await;
        sending.claim_one("beta").await;
    }
    // A message stays if the carrier accepted a segment. It may move if nothing was sent.
    let begun = sending.submitted().await;
    let outcomes = [(1, taken_as("c1")), (2, throttled())];
    sending.answer_segments(&begun, 2, &outcomes).await;
    let other = sending.submitted().await;
    sending.answer(&other, SubmitOutcome::NotSent).await;
    let service = &sending.world.service;
    service.delivery().set_usable("acme", false);
    service.delivery().reroute("acme").await.unwrap();
    sending.world.pass(1000);
    assert_eq!(sending.claim_one("acme").await.id(), begun.id());
    assert_eq!(sending.claim_one("beta").await.id(), other.id());
    sending.assert_sound().await;
}

async fn a_drained_carrier_is_listed_until_it_is_resumed(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let service = &sending.world.service;
    assert!(service.delivery().drain_carrier(&STAFF, "acme", true).await.unwrap());
    assert!(!service.delivery().drain_carrier(&STAFF, "acme", true).await.unwrap());
    assert_eq!(service.delivery().drained_carriers().await.unwrap(), ["acme"]);
    assert!(service.delivery().drain_carrier(&STAFF, "nobody", true).await.is_err());
    assert!(service.delivery().resume_carrier(&STAFF, "acme").await.unwrap());
    assert!(service.delivery().drained_carriers().await.unwrap().is_empty());
}

/// The claim itself checks whether the carrier is drained. The process needn't know.
async fn nothing_is_claimed_for_a_drained_carrier(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let service = &sending.world.service;
    let id = sending.send().await;
    sending.world.pass(10_000);
    assert!(service.delivery().drain_carrier(&STAFF, "acme", true).await.unwrap());
    sending.assert_nothing_due("acme").await;
    assert_eq!(service.delivery().drained_carriers().await.unwrap(), ["acme"]);
    assert!(service.delivery().resume_carrier(&STAFF, "acme").await.unwrap());
    assert_eq!(sending.claim_one("acme").await.id(), id);
    sending.assert_sound().await;
}

async fn a_message_that_was_deferred_stays_when_the_other_carrier_is_down(backend: Backend) {
    let sending = Sending::by_acme_or_beta(backend).await;
    sending.world.service.delivery().set_usable("beta", false);
    let handed = sending.submitted().await;
    sending.answer(&handed, throttled()).await;
    sending.world.pass(1000);
    let again = sending.claim_one("acme").await;
    // A refused message waits for the other carrier although that one is down.
    sending.answer(&again, refused()).await;
    sending.claim_one("beta").await;
    sending.assert_sound().await;
}

async fn a_refused_test_message_goes_to_no_other_carrier(backend: Backend) {
    let sending = Sending::by_acme_or_beta(backend).await;
    let (world, customer) = (&sending.world, &sending.customer);
    let sent = world.send(&customer.test, "00000004").await.unwrap();
    let (lease, messages) = world.service.delivery().claim(SANDBOX_CARRIER, 100).await.unwrap();
    let result = answered(&messages[0], refused());
    world.record(SANDBOX_CARRIER, &lease, vec![result]).await;
    let access = world.access(&customer.test).await;
    let id = sent.transid.unwrap();
    let found = world.service.messages().message(&access, id).await.unwrap().unwrap();
    assert_eq!(found.record.status, MessageStatus::Rejected);
    world.assert_sound().await;
}

async fn a_message_that_was_not_sent_by_a_carrier_that_is_down_goes_to_another(backend: Backend) {
    let sending = Sending::by_acme_or_beta(backend).await;
    let handed = sending.submitted().await;
    sending.world.service.delivery().set_usable("acme", false);
    sending.world.service.delivery().reroute("acme").await.unwrap();
    sending.answer(&handed, SubmitOutcome::NotSent).await;
    sending.claim_one("beta").await;
    sending.assert_sound().await;
}

/// Returns a network in which the routes are changed.
fn changed(routes: &[(&str, u32, Option<Kind>)], change: impl Fn(&mut Route)) -> Network {
    let network = network(routes);
    let mut routes = network.routes.as_slice().to_vec();
    routes.iter_mut().for_each(change);
    Network { routes: Routes::new(routes), ..network }
}

async fn messages_wait_until_a_route_opens(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, delivery) = (&sending.world, sending.world.service.delivery());
    // The route opens in an hour or two.
    let hour = world.now().unix_ms() / HOUR_MS % 24;
    let (from, to) = ((hour + 2) % 24, (hour + 4) % 24);
    let span = Span::parse(&format!("{from:02}:00-{to:02}:00")).unwrap();
    let hours = OpeningHours { span, days: Days::ALL, zone: Zone::default() };
    let network = changed(&[("acme", 1, None)], |route| route.hours = Some(hours.clone()));
    delivery.set_network(network);
    let id = sending.send().await;
    delivery.reroute("").await.unwrap();
    sending.assert_status(id, MessageStatus::Queued).await;
    sending.assert_nothing_due("acme").await;
    // Its row isn't written again for ten minutes, unless the route opens earlier.
    let due = async || {
        let mut conn = world.database.connect().await;
        let due_at: i64 =
            sqlx::query_scalar("SELECT due_at FROM queue").fetch_one(&mut conn).await.unwrap();
        due_at
    };
    let first = due().await;
    assert_eq!(first, world.now().unix_ms() + 10 * 60_000);
    let opening = world.now().unix_ms() / HOUR_MS * HOUR_MS + 2 * HOUR_MS;
    world.pass(opening - 5 * 60_000 - world.now().unix_ms());
    delivery.reroute("").await.unwrap();
    assert_eq!(due().await, opening);
    world.pass(5 * 60_000);
    delivery.reroute("").await.unwrap();
    assert_eq!(sending.claim_one("acme").await.id(), id);
    // A message that still waits for the carrier when the route closes waits for the next day.
    let late = sending.send().await;
    assert!(rerouted(&sending).await, "a route has opened");
    assert!(!rerouted(&sending).await);
    world.pass(2 * HOUR_MS + HOUR_MS / 2);
    assert!(rerouted(&sending).await, "the route has closed");
    sending.assert_nothing_due("acme").await;
    sending.assert_status(late, MessageStatus::Queued).await;
    world.pass(22 * HOUR_MS);
    assert!(rerouted(&sending).await, "the route has opened again");
    assert_eq!(sending.claim_one("acme").await.id(), late);
    sending.assert_sound().await;
}

/// Checks the messages that wait for carriers, as the worker does. Returns false if only those
/// without a carrier had to be checked.
async fn rerouted(sending: &Sending) -> bool {
    let delivery = sending.world.service.delivery();
    let carriers = delivery.carriers_to_check().await.unwrap();
    for carrier in carriers.iter().map(String::as_str).chain([""]) {
        delivery.reroute(carrier).await.unwrap();
    }
    !carriers.is_empty()
}

async fn the_carrier_that_delivers_more_is_preferred(backend: Backend) {
    const EACH: usize = 20;
    let sending = Sending::by_acme(backend).await;
    let delivery = sending.world.service.delivery();
    let routes = [("acme", 1, None), ("beta", 1, None)];
    delivery.set_network(changed(&routes, |route| route.order = RouteOrder::Quality));
    for (carrier, other, status) in
        [("acme", "beta", MessageStatus::Failed), ("beta", "acme", MessageStatus::Delivered)]
    {
        delivery.set_usable(other, false);
        for number in 0..EACH {
            sending.send().await;
            let handed = sending.claim_one(carrier).await;
            let id = format!("{carrier}{number}");
            sending.answer(&handed, taken_as(&id)).await;
            let receipts = vec![receipt(&id, status)];
            delivery.record_carrier_receipts(carrier, receipts).await.unwrap();
        }
        delivery.set_usable(other, true);
    }
    delivery.store_carrier_figures().await.unwrap();
    delivery.update_qualities().await.unwrap();
    let hours = delivery.carrier_hours("acme").await.unwrap();
    let (last, others) = hours.split_last().unwrap();
    assert_eq!(others.len(), 23);
    let counts = [CarrierEvent::Accepted, CarrierEvent::Failed].map(|event| {
        let all: u64 = hours.iter().map(|hour| hour.counts.get(event)).sum();
        (all, last.counts.get(event))
    });
    assert_eq!(counts, [(20, 20), (20, 20)]);
    for _ in 0..2 * EACH {
        sending.send().await;
    }
    let (by_acme, by_beta) = (sending.claim("acme").await.len(), sending.claim("beta").await.len());
    // One in 40 messages tries acme.
    assert!(by_beta > 3 * by_acme, "{by_acme} and {by_beta}");
    assert_eq!(by_acme + by_beta, 2 * EACH);
    sending.assert_sound().await;
}
