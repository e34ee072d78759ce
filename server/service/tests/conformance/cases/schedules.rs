//! Scheduled messages and batches, validity, cancelling and pausing.

use domain::records::{BatchRecord, BatchStatus, TimelineEntry};
use domain::{BatchId, EventType, KeyKind, MessageStatus, Reason, Schedule, Transid, Validity};
use service::{
    Actor, AuditFilter, BatchChange, BatchRequest, CancelTarget, Cancelled, EventFilter,
    IdempotencyKey, SendError, SendRequest, StopAuthor, SubmitOutcome,
};
use sqlx::{Executor as _, Row as _};

use super::events::page;
use crate::database::Backend;
use crate::network::{answered, lost, taken_as, throttled};
use crate::sending::Sending;
use crate::uploads::{batch, plain, rows, upload};
use crate::world::{HOUR_MS, World, keyed, money, request};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * HOUR_MS;

on_each_backend![
    a_scheduled_message_goes_out_at_its_time,
    a_time_that_has_just_passed_means_now,
    a_time_that_is_too_far_away_is_refused,
    a_repeated_scheduled_send_is_answered_even_after_its_time,
    a_dry_run_with_a_time_stores_nothing,
    the_forty_eight_hours_begin_at_the_time,
    a_message_expires_at_the_end_of_its_validity,
    what_is_left_of_the_validity_goes_to_the_carrier,
    an_unanswered_message_outlives_its_validity,
    a_cancelled_message_is_released_once,
    what_a_carrier_has_cannot_be_cancelled,
    a_message_that_waits_for_another_attempt_can_be_cancelled,
    a_cancellation_and_a_claim_exclude_each_other,
    cancellations_are_kept_to_their_key,
    a_scheduled_batch_begins_at_its_time,
    a_scheduled_batch_is_cancelled_at_once,
    a_cancelled_batch_leaves_only_what_carriers_have,
    a_row_that_comes_back_after_its_batch_was_cancelled_is_released_once,
    a_cancellation_that_was_cut_off_is_answered_with_its_totals,
    a_cancelled_batch_that_is_not_expanded_yet_releases_its_rest,
    a_cancellation_of_a_batch_counts_exactly_what_it_stops,
    everything_scheduled_is_cancelled,
    the_day_of_scheduled_messages_ends_in_the_zone_of_the_account,
    a_paused_batch_waits_until_it_is_resumed,
    a_paused_batch_expires,
    a_batch_that_has_ended_is_neither_paused_nor_resumed,
    scheduled_messages_are_listed_by_their_time,
    nothing_is_dropped_while_it_waits_for_its_time,
    a_scheduled_message_holds_back_no_other,
    owner_and_staff_each_end_only_their_own_pause,
    staff_give_a_reason_and_pause_only_what_is_open,
];

pub fn at(world: &World, after_ms: i64) -> Schedule {
    Schedule { send_at: Some(world.now().plus_ms(after_ms)), validity: None }
}

fn of_events() -> EventFilter {
    EventFilter { limit: 10, ..EventFilter::default() }
}

pub fn valid_for(minutes: &str) -> Schedule {
    Schedule { send_at: None, validity: Validity::parse(minutes) }
}

pub async fn send(sending: &Sending, schedule: Schedule) -> Result<Transid, Reason> {
    let request = SendRequest { schedule, ..request(&sending.customer.live, "12345678", "hello") };
    match sending.world.service.messages().send(request).await {
        Ok(sent) => Ok(sent.transid.unwrap()),
        Err(SendError::Refused(reason)) => Err(reason),
        Err(SendError::Lost) => panic!("no answer"),
    }
}

pub async fn uploaded(sending: &Sending, count: usize, schedule: Schedule) -> BatchId {
    let request = BatchRequest { schedule, ..plain() };
    let (service, key) = (&sending.world.service, &sending.customer.live);
    let accepted = upload(service, key, None, &rows(count), request).await.unwrap();
    accepted.batchid.unwrap()
}

pub async fn cancel(
    sending: &Sending,
    target: CancelTarget,
) -> Result<Cancelled, service::Refusal> {
    let access = sending.world.access(&sending.customer.live).await;
    let messages = sending.world.service.messages();
    let cancelled = messages.cancel(&access, target, StopAuthor::Program, None).await;
    cancelled.map_err(|error| error.refusal().unwrap().clone())
}

pub async fn cancel_one(sending: &Sending, id: Transid) -> Result<Cancelled, service::Refusal> {
    cancel(sending, CancelTarget::Message(id)).await
}

async fn change(sending: &Sending, id: BatchId, change: BatchChange) -> BatchRecord {
    try_change(sending, id, change).await.unwrap()
}

async fn try_change(
    sending: &Sending,
    id: BatchId,
    change: BatchChange,
) -> Result<BatchRecord, service::Refusal> {
    let access = sending.world.access(&sending.customer.live).await;
    let messages = sending.world.service.messages();
    let changed = messages.change_batch(&access, id, change, StopAuthor::Program, None).await;
    changed.map(|changed| changed.batch).map_err(|error| error.refusal().unwrap().clone())
}

/// Returns the types of the events about messages and batches. The first call makes the service
/// store them.
async fn events(sending: &Sending) -> Vec<EventType> {
    let page = page(&sending.world, &sending.customer, of_events()).await;
    let kinds = page.events.into_iter().map(|event| event.kind);
    let earlier = [EventType::Activated, EventType::DepositReceived];
    kinds.filter(|kind| !earlier.contains(kind)).collect()
}

/// Does what follows a cancellation or a resumption, and checks every invariant before and after.
async fn follow(sending: &Sending) {
    sending.assert_sound().await;
    while sending.world.service.messages().follow_stops().await.unwrap() {
        sending.assert_sound().await;
    }
    sending.assert_sound().await;
}

async fn record(sending: &Sending, id: BatchId) -> BatchRecord {
    batch(&sending.world, &sending.customer, id).await
}

async fn counts(sending: &Sending, id: BatchId, status: MessageStatus) -> i64 {
    record(sending, id).await.counts.get(status)
}

/// Submits and delivers everything that is due.
async fn deliver_all(sending: &Sending) {
    loop {
        let claimed = sending.claim("acme").await;
        if claimed.is_empty() {
            return;
        }
        for handed in claimed {
            let name = handed.id().to_string();
            sending.answer(&handed, taken_as(&name)).await;
            sending.receive(crate::sending::receipt(&name, MessageStatus::Delivered)).await;
        }
    }
}

async fn a_scheduled_message_goes_out_at_its_time(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let id = send(&sending, at(&sending.world, 3 * DAY_MS)).await.unwrap();
    let due = sending.world.now().plus_ms(3 * DAY_MS);
    sending.assert_balance("99.95").await;
    let detail = sending.detail(id).await;
    assert_eq!(detail.record.status, MessageStatus::Scheduled);
    assert_eq!(detail.record.send_at, Some(due));
    let [TimelineEntry { status, detail, .. }] = detail.timeline.as_slice() else {
        panic!("{:?}", detail.timeline);
    };
    assert_eq!(*status, MessageStatus::Scheduled);
    assert_eq!(detail.as_deref(), Some(format!("scheduled for {due}").as_str()));
    sending.world.pass(3 * DAY_MS - 1);
    sending.world.service.delivery().expire().await.unwrap();
    sending.assert_nothing_due("acme").await;
    sending.assert_sound().await;
    sending.world.pass(1);
    let handed = sending.claim_one("acme").await;
    assert_eq!(handed.message.expires_at, due.plus_ms(48 * HOUR_MS));
    sending.answer(&handed, taken_as("one")).await;
    sending.world.pass(500);
    sending.receive(crate::sending::receipt("one", MessageStatus::Delivered)).await;
    sending.assert_status(id, MessageStatus::Delivered).await;
    sending.assert_sound().await;
}

async fn a_time_that_has_just_passed_means_now(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    for ms in [0, -1, -5 * MINUTE_MS] {
        let id = send(&sending, at(&sending.world, ms)).await.unwrap();
        let record = sending.detail(id).await.record;
        assert_eq!((record.status, record.send_at), (MessageStatus::Queued, None), "{ms}");
    }
    let soon = send(&sending, at(&sending.world, 1)).await.unwrap();
    sending.assert_status(soon, MessageStatus::Scheduled).await;
    assert_eq!(sending.claim("acme").await.len(), 3);
}

async fn a_time_that_is_too_far_away_is_refused(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    for ms in [35 * DAY_MS + 1, -5 * MINUTE_MS - 1, i64::MAX, i64::MIN] {
        let refused = send(&sending, at(&sending.world, ms)).await;
        assert_eq!(refused, Err(Reason::InvalidParameter), "{ms}");
    }
    send(&sending, at(&sending.world, 35 * DAY_MS)).await.unwrap();
    sending.assert_balance("99.95").await;
}

async fn a_repeated_scheduled_send_is_answered_even_after_its_time(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let schedule = at(&sending.world, HOUR_MS);
    let order = |schedule| {
        let order = request(&sending.customer.live, "12345678", "hello");
        keyed("one", SendRequest { schedule, ..order })
    };
    let messages = sending.world.service.messages();
    let first = messages.send(order(schedule)).await.unwrap();
    assert_eq!(first.send_at, schedule.send_at);
    sending.world.pass(2 * HOUR_MS);
    let again = messages.send(order(schedule)).await.unwrap();
    assert_eq!(
        (again.transid, again.send_at, again.replayed),
        (first.transid, first.send_at, true)
    );
    let other = messages.send(order(Schedule::default())).await;
    assert_eq!(other, Err(SendError::Refused(Reason::IdempotencyMismatch)));
    sending.assert_balance("99.95").await;
}

async fn a_dry_run_with_a_time_stores_nothing(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let schedule = at(&sending.world, HOUR_MS);
    let order = request(&sending.customer.live, "12345678", "hello");
    let order = SendRequest { dry_run: true, schedule, ..order };
    let sent = sending.world.service.messages().send(order).await.unwrap();
    assert_eq!((sent.transid, sent.send_at), (None, schedule.send_at));
    sending.assert_balance("100").await;
    sending.world.pass(HOUR_MS);
    sending.assert_nothing_due("acme").await;
}

async fn the_forty_eight_hours_begin_at_the_time(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let waiting = send(&sending, at(&sending.world, 10 * DAY_MS)).await.unwrap();
    let taken = send(&sending, at(&sending.world, 10 * DAY_MS)).await.unwrap();
    sending.send().await;
    let now = sending.claim_one("acme").await;
    sending.answer(&now, taken_as("now")).await;
    sending.world.pass(10 * DAY_MS);
    let claimed = sending.claim("acme").await;
    let handed = claimed.iter().find(|handed| handed.id() == taken).unwrap();
    sending.answer(handed, taken_as("one")).await;
    let other = claimed.iter().find(|handed| handed.id() == waiting).unwrap();
    sending.answer(other, throttled()).await;
    let expire = async || sending.world.service.delivery().expire().await.unwrap();
    assert_eq!(expire().await, 1);
    sending.assert_ended(now.id(), MessageStatus::Expired, "no_receipt").await;
    sending.world.pass(48 * HOUR_MS - 1);
    assert_eq!(expire().await, 0);
    sending.assert_sound().await;
    sending.world.pass(1);
    sending.assert_nothing_due("acme").await;
    assert_eq!(expire().await, 1);
    sending.world.pass(1);
    assert_eq!(expire().await, 1);
    sending.assert_ended(waiting, MessageStatus::Expired, "expired_in_queue").await;
    sending.assert_ended(taken, MessageStatus::Expired, "no_receipt").await;
    sending.assert_balance("99.9").await;
    sending.assert_sound().await;
}

async fn a_message_expires_at_the_end_of_its_validity(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let id = send(&sending, valid_for("1")).await.unwrap();
    let schedule = Schedule { validity: Validity::parse("60"), ..at(&sending.world, DAY_MS) };
    let later = send(&sending, schedule).await.unwrap();
    let file = BatchRequest { schedule: valid_for("1"), ..plain() };
    let (service, key) = (&sending.world.service, &sending.customer.live);
    let file = upload(service, key, None, &rows(3), file).await.unwrap().batchid.unwrap();
    sending.world.expand_all().await;
    sending.world.pass(MINUTE_MS - 1);
    let expire = async || sending.world.service.delivery().expire().await.unwrap();
    assert_eq!(expire().await, 0);
    sending.world.pass(1);
    sending.assert_nothing_due("acme").await;
    assert_eq!(expire().await, 4);
    sending.assert_ended(id, MessageStatus::Expired, "validity").await;
    assert_eq!(counts(&sending, file, MessageStatus::Expired).await, 3);
    sending.assert_balance("99.95").await;
    sending.world.pass(DAY_MS + 59 * MINUTE_MS - 1);
    assert_eq!(expire().await, 0);
    sending.world.pass(1);
    assert_eq!(expire().await, 1);
    sending.assert_ended(later, MessageStatus::Expired, "validity").await;
    sending.assert_balance("100").await;
    sending.assert_sound().await;
}

async fn what_is_left_of_the_validity_goes_to_the_carrier(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    send(&sending, valid_for("30")).await.unwrap();
    let until = sending.world.now().plus_ms(30 * MINUTE_MS);
    sending.world.pass(10 * MINUTE_MS);
    assert_eq!(sending.claim_one("acme").await.message.expires_at, until);
    // The longest validity is that of every message.
    send(&sending, valid_for("2880")).await.unwrap();
    let until = sending.world.now().plus_ms(48 * HOUR_MS);
    assert_eq!(sending.claim_one("acme").await.message.expires_at, until);
}

async fn an_unanswered_message_outlives_its_validity(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    sending.set_lost_answer(domain::LostAnswer::Resend).await;
    let id = send(&sending, valid_for("1")).await.unwrap();
    let handed = sending.claim_one("acme").await;
    sending.answer(&handed, lost()).await;
    sending.world.pass(MINUTE_MS);
    sending.world.service.delivery().expire().await.unwrap();
    sending.assert_status(id, MessageStatus::Unknown).await;
    sending.assert_nothing_due("acme").await;
    sending.assert_sound().await;
    sending.world.pass(48 * HOUR_MS);
    sending.world.service.delivery().expire().await.unwrap();
    sending.assert_ended(id, MessageStatus::Expired, "no_answer").await;
    sending.assert_sound().await;
}

async fn a_cancelled_message_is_released_once(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    assert_eq!(events(&sending).await, []);
    let ids = [
        send(&sending, at(&sending.world, HOUR_MS)).await.unwrap(),
        send(&sending, Schedule::default()).await.unwrap(),
    ];
    for id in ids {
        let cancelled = cancel_one(&sending, id).await.unwrap();
        assert_eq!((cancelled.messages, cancelled.released), (1, money("0.05")));
        assert_eq!(cancel_one(&sending, id).await, Err(service::Refusal::NotCancellable));
        let detail = sending.detail(id).await;
        assert_eq!(detail.record.status, MessageStatus::Cancelled);
        assert_eq!((detail.record.released, detail.record.error), (money("0.05"), None));
        let last = detail.timeline.last().unwrap();
        assert_eq!(last.status, MessageStatus::Cancelled);
        assert_eq!(last.detail.as_deref(), Some("cancelled with the API key"));
        assert_eq!(detail.timeline.len(), 2);
    }
    sending.assert_balance("100").await;
    sending.world.pass(HOUR_MS);
    sending.assert_nothing_due("acme").await;
    let events = events(&sending).await;
    assert_eq!(events, [EventType::Cancelled, EventType::Cancelled]);
    sending.assert_sound().await;
}

async fn what_a_carrier_has_cannot_be_cancelled(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    let refused = Err(service::Refusal::NotCancellable);
    assert_eq!(cancel_one(&sending, handed.id()).await, refused);
    sending.answer(&handed, taken_as("one")).await;
    assert_eq!(cancel_one(&sending, handed.id()).await, refused);
    sending.receive(crate::sending::receipt("one", MessageStatus::Delivered)).await;
    sending.assert_status(handed.id(), MessageStatus::Delivered).await;
    assert_eq!(cancel_one(&sending, handed.id()).await, refused);
    let unanswered = sending.submitted().await;
    sending.answer(&unanswered, lost()).await;
    assert_eq!(cancel_one(&sending, unanswered.id()).await, refused);
    sending.assert_balance("99.9").await;
    sending.assert_sound().await;
}

async fn a_message_that_waits_for_another_attempt_can_be_cancelled(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let handed = sending.submitted().await;
    sending.answer(&handed, throttled()).await;
    sending.assert_status(handed.id(), MessageStatus::Sending).await;
    assert_eq!(cancel_one(&sending, handed.id()).await.unwrap().messages, 1);
    sending.assert_balance("100").await;
    sending.assert_sound().await;
}

async fn a_cancellation_and_a_claim_exclude_each_other(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let mut cancelled = 0;
    for _ in 0..20 {
        let id = sending.send().await;
        let (claimed, stopped) =
            futures_util::join!(sending.claim("acme"), cancel_one(&sending, id));
        assert_eq!(claimed.len() + usize::from(stopped.is_ok()), 1);
        cancelled += i64::from(stopped.is_ok());
        if let [handed] = claimed.as_slice() {
            sending.answer(handed, taken_as(&id.to_string())).await;
        }
    }
    let paid = domain::Money::from_micros((20 - cancelled) * 50_000);
    let balance = money("100").checked_sub(paid).unwrap();
    assert_eq!(sending.world.balance(&sending.customer.live).await, balance);
    sending.assert_sound().await;
}

async fn cancellations_are_kept_to_their_key(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let world = &sending.world;
    let other = world.active("two@example.org", "1").await;
    let id = send(&sending, at(world, HOUR_MS)).await.unwrap();
    let file = uploaded(&sending, 2, at(world, HOUR_MS)).await;
    let messages = world.service.messages();
    for key in [&sending.customer.test, &other.live] {
        let access = world.access(key).await;
        for (target, refusal) in [
            (CancelTarget::Message(id), service::Refusal::NoSuchMessage),
            (CancelTarget::Batch(file), service::Refusal::NoSuchBatch),
        ] {
            let refused = messages.cancel(&access, target, StopAuthor::Program, None).await;
            assert_eq!(refused.unwrap_err().refusal(), Some(&refusal));
        }
    }
    let key = IdempotencyKey::parse("stop").unwrap();
    let access = world.access(&sending.customer.live).await;
    let cancel =
        async |target| messages.cancel(&access, target, StopAuthor::Program, Some(&key)).await;
    // It works while the application is suspended.
    let suspended = world.service.applications();
    suspended.suspend(&Actor::CommandLine, sending.customer.reference, "why").await.unwrap();
    let first = cancel(CancelTarget::Message(id)).await.unwrap();
    let again = cancel(CancelTarget::Message(id)).await.unwrap();
    assert_eq!((first.replayed, again), (false, Cancelled { replayed: true, ..first }));
    let mismatch = cancel(CancelTarget::Batch(file)).await.unwrap_err();
    assert_eq!(mismatch.refusal(), Some(&service::Refusal::IdempotencyMismatch));
    sending.assert_sound().await;
}

async fn a_scheduled_batch_begins_at_its_time(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let id = uploaded(&sending, 5, at(&sending.world, 3 * DAY_MS)).await;
    sending.assert_balance("99.75").await;
    sending.world.expand_all().await;
    let found = record(&sending, id).await;
    assert_eq!(
        (found.status, found.counts.get(MessageStatus::Scheduled)),
        (BatchStatus::Scheduled, 5)
    );
    assert_eq!(found.send_at, Some(sending.world.now().plus_ms(3 * DAY_MS)));
    sending.assert_sound().await;
    sending.world.pass(3 * DAY_MS - 1);
    sending.world.service.delivery().expire().await.unwrap();
    sending.world.expand_all().await;
    assert_eq!(record(&sending, id).await.status, BatchStatus::Scheduled);
    let next = sending.world.service.messages().next_start().await.unwrap();
    assert_eq!(next, Some(std::time::Duration::from_millis(1)));
    sending.world.pass(1);
    sending.world.expand_all().await;
    let found = record(&sending, id).await;
    assert_eq!((found.status, found.counts.get(MessageStatus::Queued)), (BatchStatus::Sending, 5));
    sending.assert_sound().await;
    deliver_all(&sending).await;
    assert_eq!(record(&sending, id).await.status, BatchStatus::Done);
    sending.assert_sound().await;
}

async fn a_scheduled_batch_is_cancelled_at_once(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    assert_eq!(events(&sending).await, []);
    let id = uploaded(&sending, 5, at(&sending.world, HOUR_MS)).await;
    let cancelled = cancel(&sending, CancelTarget::Batch(id)).await.unwrap();
    assert_eq!((cancelled.messages, cancelled.released), (5, money("0.25")));
    sending.assert_balance("100").await;
    let found = record(&sending, id).await;
    assert_eq!(
        (found.status, found.counts.get(MessageStatus::Cancelled)),
        (BatchStatus::Cancelled, 5)
    );
    assert_eq!((found.released, found.done_at), (money("0.25"), Some(sending.world.now())));
    sending.world.database.assert_spools(0).await;
    let refused = cancel(&sending, CancelTarget::Batch(id)).await;
    assert_eq!(refused, Err(service::Refusal::NotCancellable));
    sending.world.pass(HOUR_MS);
    sending.world.expand_all().await;
    sending.assert_nothing_due("acme").await;
    assert_eq!(events(&sending).await, [EventType::BatchDone]);
    sending.assert_sound().await;
}

async fn a_cancelled_batch_leaves_only_what_carriers_have(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let id = uploaded(&sending, 8, Schedule::default()).await;
    sending.world.expand_all().await;
    let (lease, claimed) = sending.world.service.delivery().claim("acme", 4).await.unwrap();
    assert_eq!(claimed.len(), 4);
    let [taken, waits, goes_on, again] = &claimed[..] else { panic!() };
    let results = vec![answered(taken, taken_as("one")), answered(waits, throttled())];
    sending.world.record("acme", &lease, results).await;
    // Four rows are queued, and one waits for another attempt.
    let cancelled = cancel(&sending, CancelTarget::Batch(id)).await.unwrap();
    assert_eq!((cancelled.messages, cancelled.released), (5, money("0.25")));
    // A repetition while rows follow has the same totals.
    assert_eq!(cancel(&sending, CancelTarget::Batch(id)).await.unwrap(), cancelled);
    sending.assert_nothing_due("acme").await;
    // A row that was claimed goes on, unless it comes back and no carrier has it.
    let results = vec![answered(goes_on, taken_as("two")), answered(again, throttled())];
    sending.world.record("acme", &lease, results).await;
    follow(&sending).await;
    assert_eq!(counts(&sending, id, MessageStatus::Cancelled).await, 6);
    sending.assert_status(again.id, MessageStatus::Cancelled).await;
    let refused = cancel(&sending, CancelTarget::Batch(id)).await;
    assert_eq!(refused, Err(service::Refusal::NotCancellable));
    sending.world.pass(HOUR_MS);
    sending.assert_nothing_due("acme").await;
    for name in ["one", "two"] {
        sending.receive(crate::sending::receipt(name, MessageStatus::Delivered)).await;
    }
    let found = record(&sending, id).await;
    assert_eq!(
        (found.status, found.counts.get(MessageStatus::Delivered)),
        (BatchStatus::Cancelled, 2)
    );
    assert_eq!((found.released, found.done_at), (money("0.3"), Some(sending.world.now())));
    sending.assert_balance("99.9").await;
    sending.assert_sound().await;
}

/// A row of a cancelled batch may come back after all others have become cancelled.
async fn a_row_that_comes_back_after_its_batch_was_cancelled_is_released_once(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let id = uploaded(&sending, 4, Schedule::default()).await;
    sending.world.expand_all().await;
    let (lease, claimed) = sending.world.service.delivery().claim("acme", 4).await.unwrap();
    let [not_sent, taken, lost_answer, busy] = &claimed[..] else { panic!() };
    let nothing = cancel(&sending, CancelTarget::Batch(id)).await;
    assert_eq!(nothing, Err(service::Refusal::NotCancellable));
    let more = uploaded(&sending, 2, Schedule::default()).await;
    sending.world.expand_all().await;
    let (other_lease, other) = sending.world.service.delivery().claim("acme", 1).await.unwrap();
    let cancelled = cancel(&sending, CancelTarget::Batch(more)).await.unwrap();
    assert_eq!(cancelled.messages, 1);
    follow(&sending).await;
    // The other batch wasn't cancelled, so its rows wait for another attempt.
    let results = vec![
        answered(not_sent, SubmitOutcome::NotSent),
        answered(taken, taken_as("one")),
        answered(lost_answer, lost()),
        answered(busy, throttled()),
    ];
    sending.world.record("acme", &lease, results).await;
    for _ in 0..2 {
        let results = vec![answered(&other[0], SubmitOutcome::NotSent)];
        sending.world.record("acme", &other_lease, results).await;
        follow(&sending).await;
    }
    assert_eq!(counts(&sending, more, MessageStatus::Cancelled).await, 2);
    let found = record(&sending, more).await;
    assert_eq!((found.released, found.done_at.is_some()), (money("0.1"), true));
    assert_eq!(counts(&sending, id, MessageStatus::Cancelled).await, 0);
    sending.world.pass(HOUR_MS);
    assert_eq!(sending.claim("acme").await.len(), 2);
    sending.assert_sound().await;
}

async fn a_cancellation_that_was_cut_off_is_answered_with_its_totals(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let id = uploaded(&sending, 4, Schedule::default()).await;
    sending.world.expand_all().await;
    let access = sending.world.access(&sending.customer.live).await;
    let key = IdempotencyKey::parse("k").unwrap();
    let ask = async || {
        let (messages, target) = (sending.world.service.messages(), CancelTarget::Batch(id));
        messages.cancel(&access, target, StopAuthor::Program, Some(&key)).await.unwrap()
    };
    let first = ask().await;
    assert_eq!((first.messages, first.replayed), (4, false));
    // The state between the two commits: the batch is stopped, and its rows aren't counted.
    let mut conn = sending.world.database.connect().await;
    for statement in [
        "UPDATE batches SET cancelled_rows = NULL, cancelled_cost = NULL",
        "UPDATE idempotency SET answer = 'null'",
    ] {
        conn.execute(statement).await.unwrap();
    }
    sending.world.pass(11_000);
    follow(&sending).await;
    assert_eq!(counts(&sending, id, MessageStatus::Cancelled).await, 4);
    for _ in 0..2 {
        assert_eq!(ask().await, Cancelled { replayed: true, ..first });
    }
    let other = cancel(&sending, CancelTarget::Batch(id)).await;
    assert_eq!(other, Err(service::Refusal::NotCancellable));
    sending.assert_sound().await;
}

async fn a_cancelled_batch_that_is_not_expanded_yet_releases_its_rest(backend: Backend) {
    let sending = Sending::by(backend, &[("acme", 1, None)]).await;
    sending.world.deposit("more", sending.customer.reference, "1000").await;
    let id = uploaded(&sending, 12_000, Schedule::default()).await;
    sending.world.service.messages().expand(id).await.unwrap();
    let expanded = record(&sending, id).await;
    assert_eq!(expanded.status, BatchStatus::Expanding);
    let handed = sending.claim("acme").await;
    let left = 12_000 - i64::try_from(handed.len()).unwrap();
    let cancelled = cancel(&sending, CancelTarget::Batch(id)).await.unwrap();
    assert_eq!(cancelled.messages, left);
    assert_eq!(cancelled.released, domain::Money::from_micros(left * 50_000));
    sending.world.expand_all().await;
    follow(&sending).await;
    sending.world.database.assert_spools(0).await;
    let found = record(&sending, id).await;
    assert_eq!(found.counts.get(MessageStatus::Cancelled), left);
    assert_eq!(found.released, cancelled.released);
    sending.assert_nothing_due("acme").await;
}

async fn a_cancellation_of_a_batch_counts_exactly_what_it_stops(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    for _ in 0..6 {
        let id = uploaded(&sending, 60, Schedule::default()).await;
        sending.world.expand_all().await;
        let delivery = sending.world.service.delivery();
        let claim = async || delivery.claim("acme", 7).await.unwrap();
        let (first, second, cancelled, third) = futures_util::join!(
            claim(),
            claim(),
            cancel(&sending, CancelTarget::Batch(id)),
            claim()
        );
        let cancelled = cancelled.unwrap();
        let mut claimed = 0;
        for (lease, messages) in [first, second, third] {
            claimed += i64::try_from(messages.len()).unwrap();
            let results = messages.iter().map(|message| answered(message, throttled())).collect();
            sending.world.record("acme", &lease, results).await;
        }
        assert_eq!(cancelled.messages, 60 - claimed);
        follow(&sending).await;
        // No carrier took the messages that were claimed.
        assert_eq!(counts(&sending, id, MessageStatus::Cancelled).await, 60);
        assert_eq!(record(&sending, id).await.released, money("3"));
        sending.world.pass(HOUR_MS);
        sending.assert_nothing_due("acme").await;
        sending.assert_sound().await;
    }
}

async fn everything_scheduled_is_cancelled(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let world = &sending.world;
    for hours in [1, 2, 24] {
        send(&sending, at(world, hours * HOUR_MS)).await.unwrap();
    }
    let file = uploaded(&sending, 4, at(world, 30 * HOUR_MS / 60)).await;
    let now = sending.send().await;
    let access = world.access(&sending.customer.live).await;
    let messages = world.service.messages();
    let scheduled = messages.scheduled(&access).await.unwrap();
    assert_eq!((scheduled.messages, scheduled.next), (7, Some(world.now().plus_ms(HOUR_MS / 2))));
    // The day has just begun.
    assert_eq!(scheduled.today, 6);
    let of_batches = (scheduled.of_batches.rows, scheduled.of_batches.reserved);
    assert_eq!(of_batches, (4, money("0.2")));
    let author = StopAuthor::Owner(sending.customer.account.id);
    let cancelled = messages.cancel_scheduled(&access, author).await.unwrap();
    assert_eq!((cancelled.messages, cancelled.released), (7, money("0.35")));
    assert_eq!(messages.scheduled(&access).await.unwrap().messages, 0);
    assert_eq!(record(&sending, file).await.status, BatchStatus::Cancelled);
    sending.assert_status(now, MessageStatus::Queued).await;
    let again = messages.cancel_scheduled(&access, author).await.unwrap_err();
    assert_eq!(again.refusal(), Some(&service::Refusal::NotCancellable));
    sending.assert_balance("99.95").await;
    sending.assert_sound().await;
}

async fn the_day_of_scheduled_messages_ends_in_the_zone_of_the_account(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let world = &sending.world;
    // The clock begins at midnight in UTC. 21:59 and 23:00 are 23:59 and 01:00 in Johannesburg.
    for minutes in [22 * 60 - 1, 23 * 60] {
        send(&sending, at(world, minutes * MINUTE_MS)).await.unwrap();
    }
    uploaded(&sending, 4, at(world, 23 * HOUR_MS)).await;
    let access = world.access(&sending.customer.live).await;
    let account = sending.customer.account.id;
    for (zone, today) in [(None, 6), (Some("Africa/Johannesburg"), 1)] {
        world.service.accounts().set_time_zone(account, zone).await.unwrap();
        let scheduled = world.service.messages().scheduled(&access).await.unwrap();
        assert_eq!((scheduled.messages, scheduled.today), (6, today), "{zone:?}");
    }
    sending.assert_sound().await;
}

async fn a_paused_batch_waits_until_it_is_resumed(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let id = uploaded(&sending, 3, Schedule::default()).await;
    let unexpanded = uploaded(&sending, 2, Schedule::default()).await;
    sending.world.service.messages().expand(id).await.unwrap();
    for file in [id, unexpanded] {
        for _ in 0..2 {
            assert_eq!(
                change(&sending, file, BatchChange::Pause).await.status,
                BatchStatus::Paused
            );
        }
    }
    sending.world.expand_all().await;
    sending.assert_nothing_due("acme").await;
    sending.assert_nothing_due("acme").await;
    // Other messages aren't held up.
    let other = sending.submitted().await;
    sending.answer(&other, taken_as("other")).await;
    follow(&sending).await;
    sending.assert_nothing_due("acme").await;
    for file in [id, unexpanded] {
        for _ in 0..2 {
            let status = change(&sending, file, BatchChange::Resume).await.status;
            assert!(matches!(status, BatchStatus::Sending | BatchStatus::Expanding), "{status:?}");
        }
    }
    follow(&sending).await;
    sending.world.expand_all().await;
    deliver_all(&sending).await;
    for file in [id, unexpanded] {
        assert_eq!(record(&sending, file).await.status, BatchStatus::Done);
    }
    sending.assert_sound().await;
}

async fn a_paused_batch_expires(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let expanded = uploaded(&sending, 2, valid_for("60")).await;
    sending.world.expand_all().await;
    let file = uploaded(&sending, 2, valid_for("60")).await;
    let later = uploaded(&sending, 2, at(&sending.world, HOUR_MS)).await;
    for id in [expanded, file, later] {
        change(&sending, id, BatchChange::Pause).await;
    }
    sending.assert_nothing_due("acme").await;
    sending.world.pass(HOUR_MS);
    sending.world.service.delivery().expire().await.unwrap();
    sending.world.expand_all().await;
    for id in [expanded, file] {
        assert_eq!(counts(&sending, id, MessageStatus::Expired).await, 2);
    }
    sending.assert_sound().await;
    assert_eq!(counts(&sending, later, MessageStatus::Scheduled).await, 2);
    sending.world.pass(48 * HOUR_MS);
    sending.world.expand_all().await;
    assert_eq!(counts(&sending, later, MessageStatus::Expired).await, 2);
    sending.assert_balance("100").await;
    sending.assert_sound().await;
}

async fn a_batch_that_has_ended_is_neither_paused_nor_resumed(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let done = uploaded(&sending, 1, Schedule::default()).await;
    sending.world.expand_all().await;
    deliver_all(&sending).await;
    let cancelled = uploaded(&sending, 1, at(&sending.world, HOUR_MS)).await;
    cancel(&sending, CancelTarget::Batch(cancelled)).await.unwrap();
    for id in [done, cancelled] {
        for action in [BatchChange::Pause, BatchChange::Resume] {
            let refused = try_change(&sending, id, action).await;
            assert_eq!(refused, Err(service::Refusal::BatchEnded));
        }
    }
    let refused = try_change(&sending, BatchId(1), BatchChange::Pause).await;
    assert_eq!(refused, Err(service::Refusal::NoSuchBatch));
}

/// Returns the actions of staff on a batch, newest first, each with its reason.
async fn audited(sending: &Sending, id: BatchId) -> Vec<(String, Option<String>)> {
    let filter = AuditFilter { subject: Some(id.to_string()), limit: 10, ..AuditFilter::default() };
    let found = sending.world.service.support().audit(&filter).await.unwrap();
    found.items.into_iter().map(|entry| (entry.action, entry.detail)).collect()
}

async fn owner_and_staff_each_end_only_their_own_pause(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let id = uploaded(&sending, 2, Schedule::default()).await;
    sending.world.expand_all().await;
    let (support, staff) = (sending.world.service.support(), Actor::CommandLine);
    let reference = sending.customer.reference;
    support.pause_batch(&staff, reference, id, " Complaints ").await.unwrap();
    let again = support.pause_batch(&staff, reference, id, "Again").await.unwrap_err();
    let before = |refusal: Option<&service::Refusal>| match refusal {
        Some(service::Refusal::NothingToDo { decided }) => decided.is_some(),
        _ => false,
    };
    assert!(before(again.refusal()), "{again:?}");
    let found = record(&sending, id).await;
    assert_eq!(found.status, BatchStatus::Paused);
    assert_eq!(found.pause_reason.as_deref(), Some("Complaints"));
    // The owner's resumption does nothing, whether the owner paused the batch too or not.
    for action in [BatchChange::Resume, BatchChange::Pause, BatchChange::Resume] {
        assert_eq!(change(&sending, id, action).await.status, BatchStatus::Paused);
    }
    follow(&sending).await;
    sending.assert_nothing_due("acme").await;
    // The owner's pause outlasts that of staff.
    change(&sending, id, BatchChange::Pause).await;
    support.resume_batch(&staff, reference, id).await.unwrap();
    let again = support.resume_batch(&staff, reference, id).await.unwrap_err();
    assert!(before(again.refusal()), "{again:?}");
    let found = record(&sending, id).await;
    assert_eq!((found.status, found.pause_reason), (BatchStatus::Paused, None));
    follow(&sending).await;
    sending.assert_nothing_due("acme").await;
    change(&sending, id, BatchChange::Resume).await;
    follow(&sending).await;
    deliver_all(&sending).await;
    assert_eq!(record(&sending, id).await.status, BatchStatus::Done);
    let done = [("batch.resume", None), ("batch.pause", Some("Complaints"))];
    let done = done.map(|(action, why)| (action.to_owned(), why.map(str::to_owned)));
    assert_eq!(audited(&sending, id).await, done);
    sending.assert_sound().await;
}

async fn staff_give_a_reason_and_pause_only_what_is_open(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (support, staff) = (sending.world.service.support(), Actor::CommandLine);
    let id = uploaded(&sending, 1, at(&sending.world, HOUR_MS)).await;
    let reference = sending.customer.reference;
    let other = sending.world.active("other@example.org", "1").await.reference;
    for (of, reason, refusal) in [
        (reference, " ", service::Refusal::ReasonMissing),
        (other, "Complaints", service::Refusal::NoSuchBatch),
    ] {
        let refused = support.pause_batch(&staff, of, id, reason).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&refusal));
    }
    let refused = support.resume_batch(&staff, other, id).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&service::Refusal::NoSuchBatch));
    // A pause that staff don't make isn't theirs to end.
    change(&sending, id, BatchChange::Pause).await;
    let refused = support.resume_batch(&staff, reference, id).await.unwrap_err();
    let nothing = service::Refusal::NothingToDo { decided: None };
    assert_eq!(refused.refusal(), Some(&nothing));
    assert_eq!(record(&sending, id).await.status, BatchStatus::Paused);
    change(&sending, id, BatchChange::Resume).await;
    // The owner may cancel what staff have paused.
    support.pause_batch(&staff, reference, id, "Complaints").await.unwrap();
    cancel(&sending, CancelTarget::Batch(id)).await.unwrap();
    assert_eq!(record(&sending, id).await.pause_reason, None);
    let refused = support.pause_batch(&staff, reference, id, "Complaints").await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&service::Refusal::BatchEnded));
    sending.assert_balance("100").await;
    sending.assert_sound().await;
}

/// Returns the scheduled messages of the customer in the order of the portal, two on each page.
async fn listed(sending: &Sending, key: Option<KeyKind>) -> Vec<Transid> {
    let (account, reference) = (sending.customer.account.id, Some(sending.customer.reference));
    let (mut ids, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let messages = sending.world.service.messages();
        let page = messages.account_scheduled(account, reference, key, (2, cursor.as_deref()));
        let page = page.await.unwrap();
        assert!(page.items.len() <= 2 && (page.next.is_none() || page.items.len() == 2));
        ids.extend(page.items.iter().map(|record| record.transid));
        cursor = page.next;
        if cursor.is_none() {
            return ids;
        }
    }
}

async fn scheduled_messages_are_listed_by_their_time(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    assert_eq!(listed(&sending, None).await, []);
    let ahead = |hours| at(&sending.world, hours * HOUR_MS);
    let far = send(&sending, ahead(40)).await.unwrap();
    // Two messages have the same time.
    let twin = send(&sending, ahead(3)).await.unwrap();
    let other_twin = send(&sending, ahead(3)).await.unwrap();
    let next = send(&sending, ahead(1)).await.unwrap();
    send(&sending, Schedule::default()).await.unwrap();
    uploaded(&sending, 2, ahead(1)).await;
    assert_eq!(listed(&sending, None).await, [next, twin, other_twin, far]);
    assert_eq!(listed(&sending, Some(KeyKind::Test)).await, []);
    cancel_one(&sending, twin).await.unwrap();
    assert_eq!(listed(&sending, Some(KeyKind::Live)).await, [next, other_twin, far]);
    let messages = sending.world.service.messages();
    let account = sending.customer.account.id;
    for cursor in ["", "-", "m_05arhf8he0000", "1-", "x-m_05arhf8he0000"] {
        let refused = messages.account_scheduled(account, None, None, (2, Some(cursor))).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.refusal(), Some(&service::Refusal::InvalidCursor), "{cursor}");
    }
}

async fn stored(sending: &Sending) -> i64 {
    let mut conn = sending.world.database.connect().await;
    conn.fetch_one("SELECT COUNT(*) FROM messages").await.unwrap().get(0)
}

async fn nothing_is_dropped_while_it_waits_for_its_time(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, key) = (&sending.world, &sending.customer.test);
    let schedule = at(world, 20 * DAY_MS);
    let later = SendRequest { schedule, ..request(key, "12345678", "hello") };
    world.service.messages().send(later).await.unwrap();
    let operations = world.service.operations();
    // Messages of test keys are kept for a week.
    for days in [10, 9] {
        world.pass(days * DAY_MS);
        world.service.delivery().expire().await.unwrap();
        operations.drop_tests().await.unwrap();
        operations.fold_days().await.unwrap();
        assert_eq!(stored(&sending).await, 1);
        sending.assert_sound().await;
    }
    world.pass(4 * DAY_MS);
    world.service.delivery().expire().await.unwrap();
    operations.drop_tests().await.unwrap();
    assert_eq!(stored(&sending).await, 0);
    sending.assert_sound().await;
}

/// Returns the number of rows with counts and figures of a day that aren't folded.
async fn unfolded(sending: &Sending, day: i64) -> i64 {
    let mut conn = sending.world.database.connect().await;
    let mut found = 0;
    for rows in [
        format!("message_days WHERE day = {day}"),
        format!("message_quarters WHERE quarter / 96 = {day}"),
    ] {
        let sql = format!("SELECT COUNT(*) FROM {rows} AND (node <> 0 OR writer <> 1)");
        found += conn.fetch_one(sqlx::AssertSqlSafe(sql)).await.unwrap().get::<i64, _>(0);
    }
    found
}

/// Does the upkeep of old messages twice. The second time there is nothing left to do.
async fn keep_up(sending: &Sending) {
    let (operations, messages) =
        (sending.world.service.operations(), sending.world.service.messages());
    for _ in 0..2 {
        sending.world.service.delivery().expire().await.unwrap();
        operations.drop_tests().await.unwrap();
        operations.fold_days().await.unwrap();
        messages.count_margins().await.unwrap();
        sending.assert_sound().await;
    }
}

async fn a_scheduled_message_holds_back_no_other(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, customer) = (&sending.world, &sending.customer);
    let day = world.now().day();
    let [sent, cancelled] = [(); 2].map(|()| send(&sending, at(world, 20 * DAY_MS)));
    let (sent, cancelled) = (sent.await.unwrap(), cancelled.await.unwrap());
    let schedule = at(world, 20 * DAY_MS);
    let test = SendRequest { schedule, ..request(&customer.test, "12345678", "hello") };
    world.service.messages().send(test).await.unwrap();
    for key in [&customer.live, &customer.test] {
        world.send(key, "12345678").await.unwrap();
    }
    let charged = async || {
        let report = world.service.messages().margins((day, day)).await.unwrap();
        (report.total.charged, report.final_until)
    };
    let counts = async || {
        let messages = world.service.messages();
        let days = messages.account_days(customer.account.id, None, None, (day, day));
        let counts = days.await.unwrap().remove(0).counts;
        [
            MessageStatus::Scheduled,
            MessageStatus::Delivered,
            MessageStatus::Expired,
            MessageStatus::Cancelled,
        ]
        .map(|status| counts.get(status))
    };

    world.pass(10 * DAY_MS);
    world.send(&customer.live, "12345678").await.unwrap();
    keep_up(&sending).await;
    assert_eq!((unfolded(&sending, day).await, stored(&sending).await), (0, 5));
    assert_eq!(charged().await, (money("0.1"), Some(day - 1)));
    assert_eq!(counts().await, [3, 0, 1, 0]);

    cancel_one(&sending, cancelled).await.unwrap();
    keep_up(&sending).await;
    assert_eq!(unfolded(&sending, day).await, 0);
    assert_eq!(charged().await, (money("0.05"), Some(day - 1)));
    assert_eq!(counts().await, [2, 0, 1, 1]);

    world.pass(10 * DAY_MS);
    let handed = sending.claim_one("acme").await;
    sending.answer(&handed, taken_as("one")).await;
    sending.receive(crate::sending::receipt("one", MessageStatus::Delivered)).await;
    sending.assert_status(sent, MessageStatus::Delivered).await;
    world.pass(3 * DAY_MS);
    keep_up(&sending).await;
    assert_eq!((unfolded(&sending, day).await, stored(&sending).await), (0, 4));
    // The later day isn't settled before a message of another day follows.
    assert_eq!(charged().await, (money("0.05"), Some(day)));
    assert_eq!(counts().await, [0, 1, 1, 1]);
}
