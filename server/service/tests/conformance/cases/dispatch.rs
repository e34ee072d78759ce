//! Messages from the queue to their end: claims, results, receipts, expiry.

use std::time::{Duration, Instant};

use domain::{MessageStatus, Money};
use service::{Actor, Claimed, Lease, Leases, MessageFilter, Receipt, SubmitOutcome, Submitted};

use crate::database::Backend;
use crate::network::{self, answered, taken_as};
use crate::world::{HOUR_MS, World, money};

on_each_backend![
    a_message_goes_from_queued_to_delivered_and_never_back,
    a_refused_message_is_rejected_and_its_price_given_back_once,
    the_charge_stays_once_a_carrier_took_the_message,
    a_claim_lasts_as_long_as_the_settings_say_and_no_submit_starts_in_its_last_sixth,
    a_lost_lease_changes_nothing_and_the_message_is_claimed_again,
    a_retry_waits_and_stands_in_the_timeline,
    a_held_message_waits_and_no_attempt_counts,
    a_clean_stop_and_a_restart_give_claims_back,
    messages_of_a_suspended_application_wait_and_expire,
    after_48_hours_everything_is_final_and_only_what_no_carrier_took_is_given_back,
    a_restart_finds_what_awaits_a_receipt,
    a_search_by_status_finds_the_messages_that_have_it,
    an_expired_message_is_not_claimed,
    a_claimed_message_does_not_stop_the_expiry_of_later_ones,
    an_expiry_under_a_clock_that_is_ahead_does_not_hide_later_messages_from_the_next,
    a_receipt_that_comes_before_the_submit_is_recorded_is_final,
    play_money_given_back_the_next_day_does_not_exceed_the_daily_amount,
];

const CARRIER: &str = service::SANDBOX_CARRIER;

async fn claim(world: &World) -> (Lease, Vec<Claimed>) {
    world.service.delivery().claim(CARRIER, 100).await.unwrap()
}

fn accepted(message: &Claimed) -> Submitted {
    answered(message, taken_as("c"))
}

fn refused(message: &Claimed) -> Submitted {
    answered(message, network::refused())
}

fn receipt(message: &Claimed, status: MessageStatus) -> Receipt {
    Receipt { id: message.id, application_id: message.application_id, status, error: None }
}

async fn a_message_goes_from_queued_to_delivered_and_never_back(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    assert_eq!(world.status(&customer, sent.transid.unwrap()).await, MessageStatus::Queued);
    let (lease, messages) = claim(&world).await;
    assert_eq!(world.status(&customer, sent.transid.unwrap()).await, MessageStatus::Sending);
    assert!(claim(&world).await.1.is_empty(), "a claimed message is nobody else's");
    world.record(CARRIER, &lease, vec![accepted(&messages[0])]).await;
    assert_eq!(world.status(&customer, sent.transid.unwrap()).await, MessageStatus::Submitted);
    world.assert_sound().await;
    let delivered = receipt(&messages[0], MessageStatus::Delivered);
    world.service.delivery().record_receipts(vec![delivered]).await.unwrap();
    world.pass(1000);
    let late = receipt(&messages[0], MessageStatus::Failed);
    world.service.delivery().record_receipts(vec![late]).await.unwrap();
    world.record(CARRIER, &lease, vec![refused(&messages[0])]).await;
    assert_eq!(world.status(&customer, sent.transid.unwrap()).await, MessageStatus::Delivered);
    let detail = world.message(&customer, sent.transid.unwrap()).await;
    let steps: Vec<_> = detail.timeline.iter().map(|step| step.status.as_str()).collect();
    assert_eq!(steps, ["queued", "sending", "submitted", "delivered", "failed"]);
    assert_eq!(world.balance(&customer.live).await, money("0.95"));
    world.assert_sound().await;
}

async fn a_refused_message_is_rejected_and_its_price_given_back_once(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    let test = world.send(&customer.test, "12345678").await.unwrap();
    assert_eq!(test.balance, money("999.95"));
    let (lease, messages) = claim(&world).await;
    let results: Vec<_> = messages.iter().map(refused).collect();
    for _ in 0..2 {
        world.record(CARRIER, &lease, results.clone()).await;
    }
    assert_eq!(world.balance(&customer.live).await, money("1"));
    assert_eq!(world.balance(&customer.test).await, money("1000"));
    let detail = world.message(&customer, messages[0].id).await;
    assert_eq!(detail.record.status, MessageStatus::Rejected);
    assert_eq!((detail.charge.charged, detail.charge.released), (money("0.05"), money("0.05")));
    world.assert_sound().await;
}

async fn the_charge_stays_once_a_carrier_took_the_message(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    let (lease, messages) = claim(&world).await;
    let results = messages.iter().map(accepted).collect();
    world.record(CARRIER, &lease, results).await;
    let ends = [MessageStatus::Failed, MessageStatus::Expired, MessageStatus::Rejected];
    let receipts = messages.iter().zip(ends).map(|(message, end)| receipt(message, end)).collect();
    world.service.delivery().record_receipts(receipts).await.unwrap();
    assert_eq!(world.balance(&customer.live).await, money("0.85"));
    world.assert_sound().await;
}

async fn a_claim_lasts_as_long_as_the_settings_say_and_no_submit_starts_in_its_last_sixth(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    let (before, now) = (Instant::now(), world.service.clock().now());
    let (lease, _) = claim(&world).await;
    let after = Instant::now();
    let lease_ms = world.service.limits().lease_ms;
    assert_eq!(lease.until, now.plus_ms(lease_ms));
    // Both clocks give the lease the same end, except for the safety margin.
    let submitting = Duration::from_millis(lease_ms.unsigned_abs() * 5 / 6);
    assert!(lease.not_after >= before + submitting);
    assert!(lease.not_after <= after + submitting);
    world.pass(lease_ms - 1);
    assert_eq!(world.service.delivery().end_leases(Leases::Over).await.unwrap(), 0);
    world.pass(1);
    assert_eq!(world.service.delivery().end_leases(Leases::Over).await.unwrap(), 1);
}

async fn a_lost_lease_changes_nothing_and_the_message_is_claimed_again(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    let (old, messages) = claim(&world).await;
    world.pass(60_000);
    assert_eq!(world.service.delivery().end_leases(Leases::Over).await.unwrap(), 1);
    let (new, again) = claim(&world).await;
    assert_eq!(again[0].id, sent.transid.unwrap());
    world.record(CARRIER, &old, vec![refused(&messages[0])]).await;
    assert_eq!(world.status(&customer, sent.transid.unwrap()).await, MessageStatus::Sending);
    assert_eq!(world.balance(&customer.live).await, money("0.95"));
    world.record(CARRIER, &new, vec![accepted(&again[0])]).await;
    assert_eq!(world.status(&customer, sent.transid.unwrap()).await, MessageStatus::Submitted);
    world.assert_sound().await;
}

async fn a_retry_waits_and_stands_in_the_timeline(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    let (lease, messages) = claim(&world).await;
    let retry = SubmitOutcome::Temporary { error: "busy".to_owned() };
    world.record(CARRIER, &lease, vec![answered(&messages[0], retry)]).await;
    world.pass(4999);
    assert!(claim(&world).await.1.is_empty());
    world.pass(1);
    let (_, again) = claim(&world).await;
    let detail = world.message(&customer, again[0].id).await;
    assert!(detail.timeline.iter().any(|step| step.detail.as_deref() == Some("busy")));
    world.assert_sound().await;
}

async fn a_held_message_waits_and_no_attempt_counts(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    let held = SubmitOutcome::Held { error: "no_credit".to_owned() };
    let retry = SubmitOutcome::Temporary { error: "busy".to_owned() };
    // The wait after a temporary refusal would be longer if the others had counted.
    for outcome in [held.clone(), held.clone(), held, retry] {
        let (lease, messages) = claim(&world).await;
        world.record(CARRIER, &lease, vec![answered(&messages[0], outcome)]).await;
        world.pass(4999);
        assert!(claim(&world).await.1.is_empty());
        world.pass(1);
    }
    let (_, messages) = claim(&world).await;
    let detail = world.message(&customer, messages[0].id).await;
    assert_eq!(detail.record.status, MessageStatus::Sending);
    // Customers don't read about the operator's account.
    let mut steps = detail.timeline.iter();
    assert!(!steps.any(|step| step.detail.as_deref() == Some("no_credit")), "{detail:?}");
    world.assert_sound().await;
}

async fn a_clean_stop_and_a_restart_give_claims_back(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    for _ in 0..2 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    let (lease, messages) = claim(&world).await;
    let back = answered(&messages[0], SubmitOutcome::NotSent);
    world.record(CARRIER, &lease, vec![back]).await;
    assert_eq!(claim(&world).await.1.len(), 1);
    let world = world.reopen().await;
    assert_eq!(world.service.delivery().end_leases(Leases::All).await.unwrap(), 2);
    assert_eq!(claim(&world).await.1.len(), 2);
    world.assert_sound().await;
}

async fn messages_of_a_suspended_application_wait_and_expire(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let staff = Actor::CommandLine;
    world.send(&customer.live, "12345678").await.unwrap();
    world.service.applications().suspend(&staff, customer.reference, "why").await.unwrap();
    assert!(claim(&world).await.1.is_empty());
    world.service.applications().reinstate(&staff, customer.reference).await.unwrap();
    world.service.delivery().resume_deferred().await.unwrap();
    assert_eq!(claim(&world).await.1.len(), 1);
    world.service.applications().suspend(&staff, customer.reference, "why").await.unwrap();
    world.assert_sound().await;
    world.pass(48 * HOUR_MS + 1);
    world.service.delivery().end_leases(Leases::Over).await.unwrap();
    assert_eq!(world.service.delivery().expire().await.unwrap(), 1);
    assert_eq!(world.balance(&customer.live).await, money("1"));
    world.assert_sound().await;
}

async fn after_48_hours_everything_is_final_and_only_what_no_carrier_took_is_given_back(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "100").await;
    for _ in 0..600 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    let (lease, messages) = claim(&world).await;
    let results = messages.iter().take(10).map(accepted).collect();
    world.record(CARRIER, &lease, results).await;
    world.pass(48 * HOUR_MS - 1);
    assert_eq!(world.service.delivery().expire().await.unwrap(), 0);
    world.pass(2);
    world.send(&customer.live, "12345678").await.unwrap();
    // A message doesn't expire while its claim lasts, because its carrier may still respond.
    world.service.delivery().end_leases(Leases::Over).await.unwrap();
    assert_eq!(world.service.delivery().expire().await.unwrap(), 600);
    assert_eq!(world.service.delivery().expire().await.unwrap(), 0);
    // 100 minus 601 × 0.05, plus the released 590 × 0.05.
    assert_eq!(world.balance(&customer.live).await, money("99.45"));
    let access = world.access(&customer.live).await;
    for (message, error) in [(&messages[0], "no_receipt"), (&messages[50], "expired_in_queue")] {
        let record =
            world.service.messages().message(&access, message.id).await.unwrap().unwrap().record;
        assert_eq!((record.status, record.error.as_deref()), (MessageStatus::Expired, Some(error)));
    }
    world.pass(11 * 60_000);
    world.assert_sound().await;
}

async fn a_restart_finds_what_awaits_a_receipt(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    for _ in 0..5 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    let (lease, messages) = claim(&world).await;
    let results = messages.iter().map(accepted).collect();
    world.record(CARRIER, &lease, results).await;
    let done = receipt(&messages[2], MessageStatus::Delivered);
    world.service.delivery().record_receipts(vec![done]).await.unwrap();
    let world = world.reopen().await;
    let mut found = Vec::new();
    let mut after = None;
    let later = world.now().plus_ms(1);
    loop {
        let page = world.service.delivery().outstanding(CARRIER, later, after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        found.extend(page.into_iter().map(|message| message.id));
    }
    let expected: Vec<_> = [0, 1, 3, 4].map(|n: usize| messages[n].id).to_vec();
    assert_eq!(found, expected);
}

async fn a_search_by_status_finds_the_messages_that_have_it(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    for _ in 0..4 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    let (_, claimed) = world.service.delivery().claim(CARRIER, 1).await.unwrap();
    let access = world.access(&customer.live).await;
    let filter =
        |status| MessageFilter { status: Some(status), limit: 10, ..MessageFilter::default() };
    let sending =
        world.service.messages().list(&access, &filter(MessageStatus::Sending)).await.unwrap();
    assert_eq!(sending.items.iter().map(|m| m.transid).collect::<Vec<_>>(), [claimed[0].id]);
    let queued =
        world.service.messages().list(&access, &filter(MessageStatus::Queued)).await.unwrap();
    assert_eq!(queued.items.len(), 3);
    assert_eq!(world.service.delivery().queue_state().await.unwrap().waiting, 4);
    assert_ne!(world.balance(&customer.live).await, Money::ZERO);
}

async fn an_expired_message_is_not_claimed(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let old = world.send(&customer.live, "12345678").await.unwrap();
    world.pass(48 * HOUR_MS + 1);
    let new = world.send(&customer.live, "12345678").await.unwrap();
    let (_, claimed) = claim(&world).await;
    assert_eq!(
        claimed.iter().map(|message| message.id).collect::<Vec<_>>(),
        [new.transid.unwrap()]
    );
    assert_eq!(world.service.delivery().expire().await.unwrap(), 1);
    assert_eq!(world.status(&customer, old.transid.unwrap()).await, MessageStatus::Expired);
    assert_eq!(world.balance(&customer.live).await, money("0.95"));
    world.assert_sound().await;
}

async fn a_claimed_message_does_not_stop_the_expiry_of_later_ones(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "100").await;
    for _ in 0..1100 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    world.pass(48 * HOUR_MS - 10_000);
    let (lease, messages) = world.service.delivery().claim(CARRIER, 1).await.unwrap();
    world.pass(20_000);
    assert_eq!(world.service.delivery().expire().await.unwrap(), 1099);
    let late = vec![accepted(&messages[0])];
    assert_eq!(world.record(CARRIER, &lease, late).await, [messages[0].id]);
    assert_eq!(world.service.delivery().expire().await.unwrap(), 1);
    assert_eq!(world.balance(&customer.live).await, money("99.95"));
    world.pass(11 * 60_000);
    world.service.delivery().expire().await.unwrap();
    world.assert_sound().await;
}

async fn an_expiry_under_a_clock_that_is_ahead_does_not_hide_later_messages_from_the_next(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    world.pass(1000 * HOUR_MS);
    world.service.delivery().expire().await.unwrap();
    world.pass(-1000 * HOUR_MS);
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    world.pass(48 * HOUR_MS + 1);
    assert_eq!(world.service.delivery().expire().await.unwrap(), 1);
    assert_eq!(world.status(&customer, sent.transid.unwrap()).await, MessageStatus::Expired);
    world.assert_sound().await;
}

async fn a_receipt_that_comes_before_the_submit_is_recorded_is_final(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    let (_, messages) = claim(&world).await;
    let failed = receipt(&messages[0], MessageStatus::Expired);
    world.service.delivery().record_receipts(vec![failed]).await.unwrap();
    world.pass(60_000);
    assert!(claim(&world).await.1.is_empty());
    assert_eq!(world.service.delivery().queue_state().await.unwrap().waiting, 0);
    assert_eq!(world.status(&customer, sent.transid.unwrap()).await, MessageStatus::Expired);
}

async fn play_money_given_back_the_next_day_does_not_exceed_the_daily_amount(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    world.send(&customer.test, "12345678").await.unwrap();
    world.pass(domain::timestamp::DAY_MS);
    let (lease, messages) = claim(&world).await;
    let sent = world.send(&customer.test, "0000").await.unwrap();
    assert_eq!(sent.balance, money("999.75"));
    world.record(CARRIER, &lease, vec![refused(&messages[0])]).await;
    assert_eq!(world.balance(&customer.test).await, money("999.8"));
    let (lease, messages) = claim(&world).await;
    world.record(CARRIER, &lease, vec![refused(&messages[0])]).await;
    assert_eq!(world.balance(&customer.test).await, money("1000"));
}
