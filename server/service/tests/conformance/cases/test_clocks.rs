//! The clocks that test keys move.

use domain::records::{BatchRecord, MessageRecord};
use domain::{ApiKey, BatchId, LimitField, MessageStatus, Reason, Schedule, Transid, Validity};
use service::{
    BatchRequest, Claimed, ClockChange, IdempotencyKey, Lease, MovedClock, SendError, SendRequest,
    SubmitOutcome,
};

use super::limits::limit;
use crate::database::Backend;
use crate::network::answered;
use crate::uploads::{plain, rows, upload};
use crate::world::{Customer, HOUR_MS, World, request};

const SANDBOX: &str = "sandbox";
const MINUTE_MS: i64 = 60_000;
const DAY_S: i64 = 86_400;
const DAY_MS: i64 = DAY_S * 1000;

on_each_backend![
    a_clock_is_moved_up_to_35_days_and_once_for_each_idempotency_key,
    scheduled_messages_follow_the_clock_and_others_do_not,
    a_long_move_sends_what_it_passes,
    a_time_is_judged_by_the_clock,
    a_validity_ends_by_the_clock,
    quiet_hours_are_those_of_the_clock,
    an_unanswered_message_expires_after_48_hours_of_the_clock,
    a_message_that_waits_for_another_attempt_follows_the_clock,
    a_scheduled_batch_follows_the_clock,
    more_rows_follow_than_one_transaction_moves,
];

struct Side {
    world: World,
    customer: Customer,
}

impl Side {
    async fn new(backend: Backend) -> Self {
        let world = World::new(backend).await;
        let customer = world.active("one@example.org", "100").await;
        Self { world, customer }
    }

    async fn change(&self, change: ClockChange) -> Result<MovedClock, Reason> {
        let access = self.world.access(&self.customer.test).await;
        // Nothing else happens in the millisecond of a move.
        self.world.pass(1);
        let moved = self.world.service.messages().move_clock(&access, change, None).await.unwrap();
        self.world.pass(1);
        moved
    }

    async fn advance(&self, seconds: i64) {
        self.change(ClockChange::Advance(seconds)).await.unwrap();
    }

    async fn send(&self, key: &ApiKey, schedule: Schedule) -> Result<Transid, Reason> {
        let request = SendRequest { schedule, ..request(key, "57000001", "hello") };
        match self.world.service.messages().send(request).await {
            Ok(sent) => Ok(sent.transid.unwrap()),
            Err(SendError::Refused(reason)) => Err(reason),
            Err(SendError::Lost) => panic!("no answer"),
        }
    }

    async fn sent(&self, key: &ApiKey, schedule: Schedule) -> Transid {
        self.send(key, schedule).await.unwrap()
    }

    async fn claim(&self) -> (Lease, Vec<Claimed>) {
        self.world.service.delivery().claim(SANDBOX, 100).await.unwrap()
    }

    /// Claims everything that is due, and returns its IDs.
    async fn due(&self) -> Vec<Transid> {
        let mut ids = Vec::new();
        // A claim is of one shard.
        loop {
            let (_, messages) = self.claim().await;
            if messages.is_empty() {
                ids.sort_unstable();
                return ids;
            }
            ids.extend(messages.iter().map(|message| message.id));
        }
    }

    /// Claims everything that is due and records one outcome for it.
    async fn submit(&self, outcome: SubmitOutcome) {
        let (lease, messages) = self.claim().await;
        assert!(!messages.is_empty());
        let results = messages.iter().map(|message| answered(message, outcome.clone())).collect();
        self.world.record(SANDBOX, &lease, results).await;
    }

    async fn report(&self, key: &ApiKey, id: Transid) -> MessageRecord {
        let access = self.world.access(key).await;
        self.world.service.messages().message(&access, id).await.unwrap().unwrap().record
    }

    async fn status(&self, id: Transid) -> MessageStatus {
        self.report(&self.customer.test, id).await.status
    }

    async fn batch(&self, id: BatchId) -> BatchRecord {
        let access = self.world.access(&self.customer.test).await;
        self.world.service.messages().batch(&access, id).await.unwrap().unwrap()
    }

    fn at(&self, after_ms: i64) -> Schedule {
        Schedule { send_at: Some(self.world.now().plus_ms(after_ms)), validity: None }
    }
}

fn taken() -> SubmitOutcome {
    SubmitOutcome::Accepted { carrier_message_id: None }
}

async fn a_clock_is_moved_up_to_35_days_and_once_for_each_idempotency_key(backend: Backend) {
    let side = Side::new(backend).await;
    let now = side.world.now();
    let live = side.world.access(&side.customer.live).await;
    let messages = side.world.service.messages();
    let refused = messages.move_clock(&live, ClockChange::Advance(1), None).await.unwrap();
    assert_eq!(refused, Err(Reason::TestKeyRequired));
    let access = side.world.access(&side.customer.test).await;
    let key = IdempotencyKey::parse("k").unwrap();
    for replayed in [false, true] {
        let moved = messages.move_clock(&access, ClockChange::Advance(DAY_S), Some(&key)).await;
        let expected = MovedClock { now: now.plus_ms(DAY_MS), offset_s: DAY_S, replayed };
        assert_eq!(moved.unwrap(), Ok(expected));
    }
    let other = messages.move_clock(&access, ClockChange::Reset, Some(&key)).await.unwrap_err();
    assert_eq!(other.refusal(), Some(&service::Refusal::IdempotencyMismatch));
    for beyond in [34 * DAY_S + 1, i64::MAX] {
        let refused = side.change(ClockChange::Advance(beyond)).await;
        assert_eq!(refused, Err(Reason::InvalidParameter));
    }
    assert_eq!(side.change(ClockChange::Advance(34 * DAY_S)).await.unwrap().offset_s, 35 * DAY_S);
    let back = side.change(ClockChange::Reset).await.unwrap();
    assert_eq!((back.now.plus_ms(1), back.offset_s), (side.world.now(), 0));
    side.world.assert_sound().await;
}

async fn scheduled_messages_follow_the_clock_and_others_do_not(backend: Backend) {
    let side = Side::new(backend).await;
    let other = side.world.active("two@example.org", "100").await;
    let schedule = side.at(2 * DAY_MS);
    let test = side.sent(&side.customer.test, schedule).await;
    let later = side.sent(&side.customer.test, side.at(5 * DAY_MS)).await;
    let live = side.sent(&side.customer.live, schedule).await;
    let of_other = side.sent(&other.test, schedule).await;
    side.advance(2 * DAY_S - 1).await;
    assert_eq!(side.due().await, []);
    side.advance(1).await;
    let accepted = side.report(&side.customer.test, test).await;
    assert_eq!(accepted.send_at, schedule.send_at);
    assert_eq!(side.due().await, [test]);
    // Real time makes up for the difference.
    side.world.pass(DAY_MS);
    assert_eq!(side.due().await, []);
    side.change(ClockChange::Reset).await.unwrap();
    side.world.pass(DAY_MS);
    assert_eq!(side.due().await, [live, of_other]);
    let record = side.report(&side.customer.test, later).await;
    side.world.pass(record.send_at.unwrap().ms_since(side.world.now()) - 1);
    assert_eq!(side.due().await, []);
    side.world.pass(1);
    assert_eq!(side.due().await, [later]);
    side.world.assert_sound().await;
}

/// A long move passes the time of a message and its 48 hours. The message is sent first.
async fn a_long_move_sends_what_it_passes(backend: Backend) {
    let side = Side::new(backend).await;
    let id = side.sent(&side.customer.test, side.at(DAY_MS)).await;
    side.advance(20 * DAY_S).await;
    let delivery = side.world.service.delivery();
    assert_eq!(delivery.expire().await.unwrap(), 0);
    side.submit(taken()).await;
    assert_eq!(delivery.expire().await.unwrap(), 0);
    assert_eq!(side.status(id).await, MessageStatus::Submitted);
    side.advance(2 * DAY_S).await;
    assert_eq!(delivery.expire().await.unwrap(), 1);
    side.world.assert_sound().await;
}

async fn a_time_is_judged_by_the_clock(backend: Backend) {
    let side = Side::new(backend).await;
    side.advance(2 * DAY_S).await;
    let (live, test) = (&side.customer.live, &side.customer.test);
    assert_eq!(side.send(test, side.at(DAY_MS)).await, Err(Reason::InvalidParameter));
    assert_eq!(side.send(test, side.at(37 * DAY_MS + 1)).await, Err(Reason::InvalidParameter));
    assert!(side.send(live, side.at(37 * DAY_MS)).await.is_err());
    let schedule = side.at(37 * DAY_MS);
    let far = side.sent(test, schedule).await;
    let past = side.sent(test, side.at(2 * DAY_MS - MINUTE_MS)).await;
    assert_eq!(side.due().await, [past]);
    assert_eq!(side.report(test, past).await.send_at, None);
    assert_eq!(side.report(test, far).await.send_at, schedule.send_at);
    side.world.pass(35 * DAY_MS - 1);
    assert_eq!(side.due().await, []);
    side.world.pass(1);
    assert_eq!(side.due().await, [far]);
    side.world.assert_sound().await;
}

async fn a_validity_ends_by_the_clock(backend: Backend) {
    let side = Side::new(backend).await;
    let hour = Schedule { send_at: None, validity: Validity::parse("60") };
    let test = side.sent(&side.customer.test, hour).await;
    let live = side.sent(&side.customer.live, hour).await;
    let scheduled = side.sent(&side.customer.test, side.at(DAY_MS)).await;
    side.advance(3600).await;
    side.world.service.delivery().expire().await.unwrap();
    let record = side.report(&side.customer.test, test).await;
    let ended = (record.status, record.error.as_deref());
    assert_eq!(ended, (MessageStatus::Expired, Some("validity")));
    assert_eq!(side.due().await, [live]);
    // 48 hours after its time.
    side.advance(DAY_S).await;
    side.advance(2 * DAY_S - 1).await;
    side.world.service.delivery().expire().await.unwrap();
    assert_eq!(side.status(scheduled).await, MessageStatus::Scheduled);
    side.advance(1).await;
    side.world.service.delivery().expire().await.unwrap();
    let record = side.report(&side.customer.test, scheduled).await;
    let ended = (record.status, record.error.as_deref());
    assert_eq!(ended, (MessageStatus::Expired, Some("expired_in_queue")));
    side.world.assert_sound().await;
}

async fn quiet_hours_are_those_of_the_clock(backend: Backend) {
    let side = Side::new(backend).await;
    // Real time begins at midnight.
    limit(&side.world, &side.customer, &[(LimitField::QuietHours, "02:00-03:00")]).await;
    side.advance(2 * 3_600).await;
    let waiting = side.sent(&side.customer.test, Schedule::default()).await;
    let live = side.sent(&side.customer.live, Schedule::default()).await;
    assert_eq!(side.due().await, [live]);
    side.advance(3_500).await;
    assert_eq!(side.due().await, []);
    side.advance(100).await;
    assert_eq!(side.due().await, [waiting]);
    side.world.assert_sound().await;
}

async fn an_unanswered_message_expires_after_48_hours_of_the_clock(backend: Backend) {
    let side = Side::new(backend).await;
    let test = side.sent(&side.customer.test, Schedule::default()).await;
    let live = side.sent(&side.customer.live, Schedule::default()).await;
    let scheduled = side.sent(&side.customer.test, side.at(HOUR_MS)).await;
    side.submit(taken()).await;
    side.advance(3600).await;
    side.submit(taken()).await;
    side.advance(46 * 3600).await;
    let second = side.sent(&side.customer.test, Schedule::default()).await;
    side.submit(taken()).await;
    let delivery = side.world.service.delivery();
    assert_eq!(delivery.expire().await.unwrap(), 0);
    // Real time passes too.
    side.world.pass(HOUR_MS);
    assert_eq!(delivery.expire().await.unwrap(), 1);
    let record = side.report(&side.customer.test, test).await;
    let ended = (record.status, record.error.as_deref());
    assert_eq!(ended, (MessageStatus::Expired, Some("no_receipt")));
    side.advance(3600).await;
    assert_eq!(delivery.expire_tests().await.unwrap(), 1);
    assert_eq!(side.status(scheduled).await, MessageStatus::Expired);
    side.advance(46 * 3600 - 1).await;
    assert_eq!(delivery.expire_tests().await.unwrap(), 0);
    side.advance(1).await;
    assert_eq!(delivery.expire_tests().await.unwrap(), 1);
    assert_eq!(side.status(second).await, MessageStatus::Expired);
    let of_live = side.report(&side.customer.live, live).await;
    assert_eq!(of_live.status, MessageStatus::Submitted);
    side.world.assert_sound().await;
}

async fn a_message_that_waits_for_another_attempt_follows_the_clock(backend: Backend) {
    let side = Side::new(backend).await;
    let id = side.sent(&side.customer.test, Schedule::default()).await;
    side.submit(SubmitOutcome::Temporary { error: "busy".to_owned() }).await;
    assert_eq!(side.due().await, []);
    side.advance(3600).await;
    assert_eq!(side.due().await, [id]);
    side.world.assert_sound().await;
}

async fn a_scheduled_batch_follows_the_clock(backend: Backend) {
    let side = Side::new(backend).await;
    let service = &side.world.service;
    let of = async |after_ms: i64| {
        let request = BatchRequest { schedule: side.at(after_ms), ..plain() };
        let accepted = upload(service, &side.customer.test, None, &rows(3), request).await;
        accepted.unwrap().batchid.unwrap()
    };
    let time = side.at(2 * DAY_MS).send_at;
    let first = of(2 * DAY_MS).await;
    let second = of(4 * DAY_MS).await;
    side.advance(2 * DAY_S).await;
    let third = of(3 * DAY_MS).await;
    side.world.expand_all().await;
    assert_eq!(side.due().await.len(), 3);
    assert_eq!(side.batch(first).await.send_at, time);
    side.change(ClockChange::Reset).await.unwrap();
    for batch in [second, third] {
        assert_eq!(side.batch(batch).await.counts.get(MessageStatus::Scheduled), 3);
    }
    side.world.pass(3 * DAY_MS);
    side.world.expand_all().await;
    assert_eq!(side.batch(third).await.counts.get(MessageStatus::Scheduled), 0);
    assert_eq!(side.batch(second).await.counts.get(MessageStatus::Scheduled), 3);
    side.world.assert_sound().await;
}

async fn more_rows_follow_than_one_transaction_moves(backend: Backend) {
    let side = Side::new(backend).await;
    let validity = Validity::parse("60");
    let request = BatchRequest { schedule: Schedule { send_at: None, validity }, ..plain() };
    let service = &side.world.service;
    let file =
        (57_000_000..57_002_500).fold(String::new(), |file, n| file + &format!("{n},hello\n"));
    let accepted = upload(service, &side.customer.test, None, &file, request).await;
    let batch = accepted.unwrap().batchid.unwrap();
    side.world.expand_all().await;
    // The IDs of the rows reach some milliseconds ahead.
    side.world.pass(100);
    side.advance(1800).await;
    side.advance(1799).await;
    service.delivery().expire().await.unwrap();
    assert_eq!(side.batch(batch).await.counts.get(MessageStatus::Queued), 2500);
    side.advance(1).await;
    service.delivery().expire().await.unwrap();
    assert_eq!(side.batch(batch).await.counts.get(MessageStatus::Expired), 2500);
    side.world.assert_sound().await;
}
