//! The limits that owners of applications set.

use std::net::IpAddr;

use domain::bulk::PartReport;
use domain::history::HistoryAction;
use domain::limits::LimitsChange;
use domain::readiness::{Blocker, SpendCap};
use domain::records::{AlarmRecord, BatchStatus};
use domain::{
    AlarmKind, ApiKey, BulkMode, BulkWriting, EventType, Leak, LimitField, MailKind, MessageStatus,
    MessageText, Reason, Refusal, Schedule, Validity,
};
use futures_util::future::join_all;
use service::{
    BatchRequest, CancelTarget, EventData, EventFilter, IdempotencyKey, LimitsAuthor,
    MessageFilter, Origin, Presented, SANDBOX_CARRIER, SendError, SendRequest, StopAuthor,
};

use super::verifications::{of_number, start_with};
use crate::database::Backend;
use crate::network::taken_as;
use crate::sending::{Sending, receipt};
use crate::uploads::{batch, plain, upload};
use crate::world::{Customer, HOUR_MS, World, money, request};

on_each_backend![
    numbers_that_the_limits_refuse_are_free,
    a_recipient_gets_exactly_as_many_messages_as_allowed,
    a_recipient_gets_exactly_as_many_messages_a_day_as_allowed,
    the_windows_of_a_recipient_slide,
    the_spend_of_a_day_is_exact,
    the_days_of_the_spend_are_those_of_the_account,
    rows_beyond_the_limits_are_rejected_and_released,
    a_file_beyond_the_spend_is_refused,
    keys_work_from_the_listed_addresses_only,
    a_key_that_leaked_is_blocked_if_the_owner_wants_it,
    limits_are_changed_by_api_only_if_the_owner_allows_it,
    messages_due_in_quiet_hours_wait_until_they_end,
    a_delayed_message_is_sent_in_quiet_hours,
    pumping_is_blocked_at_exactly_as_many_messages_as_allowed,
    ten_thousand_adjacent_numbers_get_50_messages,
    a_country_where_few_messages_are_delivered_is_blocked,
    the_first_international_message_in_a_month_causes_an_alarm,
    a_trial_counts_what_a_limit_would_have_refused,
    free_messages_have_a_number_of_the_day,
    an_alarm_is_mailed_once_an_hour_until_it_is_read,
    most_of_the_spend_of_a_day_causes_an_alarm_once,
    characters_are_replaced_if_the_owner_wants_it,
];

/// Sets limits as the owner does.
pub async fn limit(world: &World, customer: &Customer, limits: &[(LimitField, &str)]) {
    let mut change = LimitsChange::default();
    for (field, text) in limits {
        change.add(*field, text).unwrap();
    }
    let author = LimitsAuthor::Owner(customer.account.id);
    world.service.applications().change_limits(customer.reference, author, change).await.unwrap();
}

fn refused(reason: Reason) -> SendError {
    SendError::Refused(reason)
}

/// Stores the alarms that were noted. Returns those that the owner hasn't read, newest first.
async fn alarms(world: &World, customer: &Customer) -> Vec<AlarmRecord> {
    let applications = world.service.applications();
    applications.store_alarms().await.unwrap();
    applications.alarms(customer.account.id, customer.reference).await.unwrap()
}

async fn customer(world: &World) -> Customer {
    world.active("one@example.org", "100").await
}

/// Sends messages at once. Returns how many were accepted; the others must have this reason.
async fn accepted_of(world: &World, key: &ApiKey, numbers: &[&str], reason: Reason) -> usize {
    let sends = join_all(numbers.iter().map(|number| world.send(key, number))).await;
    for sent in &sends {
        assert!(sent.is_ok() || *sent == Err(refused(reason)), "{sent:?}");
    }
    sends.iter().filter(|sent| sent.is_ok()).count()
}

async fn numbers_that_the_limits_refuse_are_free(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    let disabled = Err(refused(Reason::InternationalDisabled));
    // The application is cached before the limits.
    world.send(&customer.live, "4915112345678").await.unwrap();
    limit(&world, &customer, &[(LimitField::International, "off")]).await;
    for dry_run in [false, true] {
        let send = SendRequest { dry_run, ..request(&customer.live, "4915112345678", "hello") };
        assert_eq!(world.service.messages().send(send).await, disabled);
    }
    assert_eq!(world.send(&customer.test, "4915112345678").await, disabled);
    world.send(&customer.live, "57000001").await.unwrap();
    limit(
        &world,
        &customer,
        &[
            (LimitField::International, "allowed"),
            (LimitField::Prefixes, "+49 , 27"),
            (LimitField::RefuseDoubtful, "1"),
        ],
    )
    .await;
    assert_eq!(world.send(&customer.live, "33612345678").await, disabled);
    world.send(&customer.live, "27821234567").await.unwrap();
    let doubtful = Err(refused(Reason::DoubtfulNumber));
    assert_eq!(world.send(&customer.live, "271234567").await, doubtful);
    limit(&world, &customer, &[(LimitField::Prefixes, "")]).await;
    assert_eq!(world.send(&customer.live, "26657000001").await, doubtful);
    assert_eq!(world.balance(&customer.live).await, money("99.45"));
    world.assert_sound().await;
}

async fn a_recipient_gets_exactly_as_many_messages_as_allowed(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    world.send(&customer.live, "57000001").await.unwrap();
    limit(&world, &customer, &[(LimitField::PerRecipientHour, "5")]).await;
    // The first message counts, and so do both forms of the number. Its namesake with a plus sign
    // is another number.
    let forms = ["57000001", "26657000001", "57000002", "+57000001", "57000001", "57000002"];
    let numbers = forms.repeat(6);
    let flooded = Reason::RecipientFlooded;
    let accepted = accepted_of(&world, &customer.live, &numbers, flooded).await;
    assert_eq!(accepted, 4 + 5 + 5);
    // A further group finds the stored messages.
    assert_eq!(accepted_of(&world, &customer.live, &numbers, flooded).await, 0);
    let dry = SendRequest { dry_run: true, ..request(&customer.live, "57000001", "hello") };
    assert_eq!(world.service.messages().send(dry).await, Err(refused(flooded)));
    world.send(&customer.live, "57000003").await.unwrap();
    // The test key has its own numbers.
    let tests = ["57000001"; 8];
    assert_eq!(accepted_of(&world, &customer.test, &tests, flooded).await, 5);
    // A limit may be lower than what was sent, and raised again.
    for (limited, accepted) in [("2", 0), ("6", 1)] {
        limit(&world, &customer, &[(LimitField::PerRecipientHour, limited)]).await;
        let again = ["57000002"; 4];
        assert_eq!(accepted_of(&world, &customer.live, &again, flooded).await, accepted);
    }
    world.assert_sound().await;
}

async fn a_recipient_gets_exactly_as_many_messages_a_day_as_allowed(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    limit(&world, &customer, &[(LimitField::PerRecipientDay, "5")]).await;
    let numbers = ["57000001", "26657000001"].repeat(18);
    let flooded = Reason::RecipientFlooded;
    assert_eq!(accepted_of(&world, &customer.live, &numbers, flooded).await, 5);
    world.pass(24 * HOUR_MS);
    assert_eq!(accepted_of(&world, &customer.live, &numbers, flooded).await, 0);
    world.pass(1);
    assert_eq!(accepted_of(&world, &customer.live, &numbers, flooded).await, 5);
    world.assert_sound().await;
}

async fn the_windows_of_a_recipient_slide(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    limit(
        &world,
        &customer,
        &[(LimitField::PerRecipientHour, "1"), (LimitField::PerRecipientDay, "3")],
    )
    .await;
    let flooded = Err(refused(Reason::RecipientFlooded));
    for _ in 0..3 {
        world.send(&customer.live, "57000001").await.unwrap();
        assert_eq!(world.send(&customer.live, "57000001").await, flooded);
        world.pass(HOUR_MS + 1);
    }
    assert_eq!(world.send(&customer.live, "57000001").await, flooded);
    world.pass(21 * HOUR_MS);
    world.send(&customer.live, "57000001").await.unwrap();
    assert_eq!(world.send(&customer.live, "57000001").await, flooded);
}

async fn the_spend_of_a_day_is_exact(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    world.send(&customer.live, "57000001").await.unwrap();
    limit(&world, &customer, &[(LimitField::SpendPerDay, "0.5")]).await;
    let numbers = ["57000002"; 30];
    let reached = Reason::SpendCapReached;
    // What was spent before the limit counts.
    assert_eq!(accepted_of(&world, &customer.live, &numbers, reached).await, 9);
    assert_eq!(accepted_of(&world, &customer.live, &numbers, reached).await, 0);
    let dry = SendRequest { dry_run: true, ..request(&customer.live, "57000001", "hello") };
    assert_eq!(world.service.messages().send(dry).await, Err(refused(reached)));
    assert_eq!(world.balance(&customer.live).await, money("99.5"));
    assert_eq!(accepted_of(&world, &customer.test, &numbers, reached).await, 10);
    // The limit may be lower than what was spent, and raised by less than a message costs.
    for (limited, accepted) in [("0.2", 0), ("0.549999", 0), ("0.55", 1), ("0.5", 0)] {
        limit(&world, &customer, &[(LimitField::SpendPerDay, limited)]).await;
        assert_eq!(accepted_of(&world, &customer.live, &numbers, reached).await, accepted);
    }
    world.pass(24 * HOUR_MS);
    assert_eq!(accepted_of(&world, &customer.live, &numbers, reached).await, 10);
    limit(&world, &customer, &[(LimitField::SpendPerDay, "")]).await;
    assert_eq!(accepted_of(&world, &customer.live, &numbers, reached).await, 30);
    world.assert_sound().await;
}

async fn the_days_of_the_spend_are_those_of_the_account(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    limit(&world, &customer, &[(LimitField::SpendPerDay, "0.05")]).await;
    let accounts = world.service.accounts();
    // The clock begins at midnight in UTC, which is 02:00 in Johannesburg.
    accounts.set_time_zone(customer.account.id, Some("Africa/Johannesburg")).await.unwrap();
    let reached = Err(refused(Reason::SpendCapReached));
    world.send(&customer.live, "57000001").await.unwrap();
    world.pass(22 * HOUR_MS - 1);
    assert_eq!(world.send(&customer.live, "57000001").await, reached);
    let messages = world.service.messages();
    let ends = messages.limit_ends_in_s(&customer.live, Reason::SpendCapReached).await;
    assert_eq!(ends.unwrap(), 1);
    world.pass(1);
    assert_eq!(spend_cap(&world, &customer).await, None);
    world.send(&customer.live, "57000001").await.unwrap();
    assert_eq!(world.send(&customer.live, "57000001").await, reached);
    // The pages say so, and until when.
    let cap = SpendCap { max: money("0.05"), until: world.now().plus_ms(24 * HOUR_MS) };
    assert_eq!(spend_cap(&world, &customer).await, Some(cap));
}

/// Returns the limit on the day's spend, if it keeps the application from sending now.
async fn spend_cap(world: &World, customer: &Customer) -> Option<SpendCap> {
    let applications = world.service.applications();
    let found = applications.find_application(customer.reference).await.unwrap().unwrap();
    let blockers = world.service.applications().blockers(&found).await.unwrap();
    blockers.into_iter().find_map(|blocker| match blocker {
        Blocker::SpendCap(cap) => Some(cap),
        _ => None,
    })
}

async fn rows_beyond_the_limits_are_rejected_and_released(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    world.send(&customer.live, "57000001").await.unwrap();
    limit(
        &world,
        &customer,
        &[
            (LimitField::PerRecipientDay, "3"),
            (LimitField::Prefixes, "49"),
            (LimitField::RefuseDoubtful, "true"),
        ],
    )
    .await;
    let file = "57000001,a\n57000001,b\n26657000001,c\n57000002,d\n57000001,e\n4915112345678,f\n\
                33612345678,g\n491234567,h\n";
    let answer = upload(&world.service, &customer.live, None, file, plain()).await.unwrap();
    let limited: Vec<_> = answer.limited.present().collect();
    assert_eq!(limited, [(Reason::InternationalDisabled, 2), (Reason::DoubtfulNumber, 1)]);
    world.expand_all().await;
    let found = batch(&world, &customer, answer.batchid.unwrap()).await;
    // Two of the rows to the first number are left, the one to the second, and the first to +49.
    assert_eq!(found.counts.get(MessageStatus::Queued), 4);
    assert_eq!(found.counts.get(MessageStatus::Rejected), 4);
    assert_eq!(found.released, money("0.8"));
    let flooded = world.send(&customer.live, "57000001").await;
    assert_eq!(flooded, Err(refused(Reason::RecipientFlooded)));
    world.send(&customer.live, "57000002").await.unwrap();
    let (_, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 100).await.unwrap();
    assert_eq!(claimed.len(), 6);
    world.assert_sound().await;
}

async fn a_file_beyond_the_spend_is_refused(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    limit(&world, &customer, &[(LimitField::SpendPerDay, "0.15")]).await;
    let reached = Err(refused(Reason::SpendCapReached));
    let send = async |file| upload(&world.service, &customer.live, None, file, plain()).await;
    let four = "57000001,a\n57000002,b\n57000003,c\n57000004,d\n";
    assert_eq!(send(four).await.map(|answer| answer.rows), reached);
    send("57000001,a\n57000002,b\n").await.unwrap();
    world.send(&customer.live, "57000003").await.unwrap();
    assert_eq!(send("57000001,a\n").await.map(|answer| answer.rows), reached);
    assert_eq!(
        world.send(&customer.live, "57000003").await.map(|sent| sent.pages),
        Err(refused(Reason::SpendCapReached,))
    );
    assert_eq!(world.balance(&customer.live).await, money("99.85"));
    world.pass(24 * HOUR_MS);
    assert_eq!(send("57000001,a\n57000002,b\n57000003,c\n").await.unwrap().rows, 3);
    assert_eq!(world.send(&customer.live, "57000003").await.map(|sent| sent.pages), {
        Err(refused(Reason::SpendCapReached))
    });
}

async fn keys_work_from_the_listed_addresses_only(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    limit(&world, &customer, &[(LimitField::Addresses, "192.0.2.7, 2001:db8::/32")]).await;
    for (address, inside) in [
        (Some("192.0.2.7"), true),
        (Some("::ffff:192.0.2.7"), true),
        (Some("2001:db8::1"), true),
        (Some("192.0.2.8"), false),
        (None, false),
    ] {
        let address = address.map(|text| text.parse::<IpAddr>().unwrap());
        let origin = Origin { address, ..Origin::default() };
        for key in [&customer.live, &customer.test] {
            let send = SendRequest { origin, ..request(key, "57000001", "hello") };
            let pages = world.service.messages().send(send).await.map(|sent| sent.pages);
            let not_allowed = Reason::AddressNotAllowed;
            assert_eq!(
                pages,
                if inside { Ok(1) } else { Err(refused(not_allowed)) },
                "{address:?}"
            );
            let presented = Presented { key: Some(key.expose()), origin };
            let read = world.service.messages().authorize(presented).await.map(|_| ());
            assert_eq!(read, if inside { Ok(()) } else { Err(not_allowed) }, "{address:?}");
        }
    }
}

async fn a_key_that_leaked_is_blocked_if_the_owner_wants_it(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    let leaked = Err(refused(Reason::LeakedKey));
    for (mode, live) in [("alarm", Ok(1)), ("block", leaked), ("off", Ok(1))] {
        limit(&world, &customer, &[(LimitField::LeakedKey, mode)]).await;
        for (key, leak, expected) in [
            (&customer.live, Some(Leak::Browser), &live),
            (&customer.live, Some(Leak::LinkPreview), &live),
            (&customer.live, Some(Leak::PlainHttp), &live),
            (&customer.live, None, &Ok(1)),
            (&customer.test, Some(Leak::Browser), &Ok(1)),
        ] {
            let origin = Origin { leak, ..Origin::default() };
            let send = SendRequest { origin, ..request(key, "57000001", "hello") };
            let pages = world.service.messages().send(send).await.map(|sent| sent.pages);
            assert_eq!(pages, *expected, "{mode} {leak:?}");
        }
    }
    assert_eq!(world.balance(&customer.live).await, money("99.55"));
}

async fn limits_are_changed_by_api_only_if_the_owner_allows_it(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    let access = world.access(&customer.live).await;
    let key = || IdempotencyKey::parse("once").unwrap();
    let applications = world.service.applications();
    let by_api = async |text: &str| {
        let mut change = LimitsChange::default();
        change.add(LimitField::PerRecipientHour, text).unwrap();
        let author = LimitsAuthor::Program(access, Some(key()));
        applications.change_limits(customer.reference, author, change).await
    };
    let refusal = by_api("2").await.unwrap_err();
    assert_eq!(refusal.refusal(), Some(&Refusal::LimitsLocked));
    let allowed = LimitsChange::by_api(true);
    let other = world.account("two@example.org").await;
    let stranger = LimitsAuthor::Owner(other.id);
    let changed = applications.change_limits(customer.reference, stranger, allowed.clone()).await;
    assert_eq!(changed.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
    let owner = LimitsAuthor::Owner(customer.account.id);
    applications.change_limits(customer.reference, owner, allowed).await.unwrap();
    let changed = by_api("2").await.unwrap();
    assert_eq!((changed.limits.per_recipient_hour, changed.replayed), (Some(2), false));
    assert!(by_api("2").await.unwrap().replayed);
    let mismatch = by_api("3").await.unwrap_err();
    assert_eq!(mismatch.refusal(), Some(&Refusal::IdempotencyMismatch));
    let history = applications.application_history(customer.account.id, customer.reference);
    let history = history.await.unwrap();
    let noted = history.iter().filter(|entry| entry.action == HistoryAction::LimitsChanged);
    let noted = noted.map(|entry| (entry.before.as_deref(), entry.after.as_deref()));
    assert_eq!(
        noted.collect::<Vec<_>>(),
        [
            (Some("per_recipient_hour none"), Some("per_recipient_hour 2")),
            (Some("changes by API locked"), Some("changes by API allowed")),
        ]
    );
}

async fn messages_due_in_quiet_hours_wait_until_they_end(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    let messages = world.service.messages();
    // The application is cached before the limits.
    world.send(&customer.live, "57000001").await.unwrap();
    // The clock begins at midnight in UTC, which is 02:00 in Johannesburg.
    limit(&world, &customer, &[(LimitField::QuietHours, "21:00-08:00")]).await;
    let accounts = world.service.accounts();
    accounts.set_time_zone(customer.account.id, Some("Africa/Johannesburg")).await.unwrap();
    let end = world.now().plus_ms(6 * HOUR_MS);
    let send = async |key: &ApiKey, schedule: Schedule, dry_run: bool| {
        let send = SendRequest { schedule, dry_run, ..request(key, "57000001", "hello") };
        messages.send(send).await.unwrap()
    };
    let at = |after_ms| Schedule { send_at: Some(world.now().plus_ms(after_ms)), validity: None };
    let at_once = Schedule::default();
    for key in [&customer.live, &customer.test] {
        for schedule in [at_once, at(-60_000), at(HOUR_MS)] {
            for dry_run in [true, false] {
                assert_eq!(send(key, schedule, dry_run).await.send_at, Some(end));
            }
        }
    }
    assert_eq!(send(&customer.live, at(7 * HOUR_MS), false).await.send_at, at(7 * HOUR_MS).send_at);
    // The next evening.
    let night = at(20 * HOUR_MS);
    let next_end = Some(end.plus_ms(24 * HOUR_MS));
    assert_eq!(send(&customer.live, night, false).await.send_at, next_end);
    let last = Schedule { validity: Validity::parse("10"), ..at_once };
    let last = send(&customer.live, last, false).await.transid.unwrap();
    let uploads = async |schedule| {
        let request = BatchRequest { schedule, ..plain() };
        let rows = "57000002,a\n57000003,b\n";
        upload(&world.service, &customer.live, None, rows, request).await.unwrap()
    };
    // People wait for codes.
    let code = start_with(&world.service, &customer.live, of_number("57000009"), None).await;
    assert_eq!(code.unwrap().send_at, None);
    let waiting = uploads(at_once).await;
    assert_eq!(waiting.send_at, Some(end));
    assert_eq!(uploads(night).await.send_at, next_end);
    world.expand_all().await;
    let found = batch(&world, &customer, waiting.batchid.unwrap()).await;
    assert_eq!((found.status, found.send_at), (BatchStatus::Scheduled, Some(end)));
    let claimed = async || {
        let (_, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 100).await.unwrap();
        claimed.len()
    };
    // Only the message from before the limit, and the code.
    assert_eq!(claimed().await, 2);
    world.pass(6 * HOUR_MS - 1);
    world.expand_all().await;
    assert_eq!(claimed().await, 0);
    world.pass(1);
    world.expand_all().await;
    // Three of each key, the one with a validity, and the rows.
    assert_eq!(claimed().await, 3 + 3 + 1 + 2);
    assert_eq!(world.status(&customer, last).await, MessageStatus::Sending);
    assert_eq!(send(&customer.live, at_once, false).await.send_at, None);
    world.pass(13 * HOUR_MS - 1);
    assert_eq!(send(&customer.live, at_once, false).await.send_at, None);
    world.pass(1);
    assert_eq!(send(&customer.live, at_once, false).await.send_at, next_end);
    limit(&world, &customer, &[(LimitField::QuietHours, "")]).await;
    assert_eq!(send(&customer.live, at_once, false).await.send_at, None);
    world.assert_sound().await;
}

async fn a_delayed_message_is_sent_in_quiet_hours(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    limit(&world, &customer, &[(LimitField::QuietHours, "01:00-08:00")]).await;
    let sent = world.send(&customer.live, "57000001").await.unwrap();
    assert_eq!(sent.send_at, None);
    let answer = upload(&world.service, &customer.live, None, "57000002,a\n", plain()).await;
    assert_eq!(answer.unwrap().send_at, None);
    world.pass(2 * HOUR_MS);
    world.expand_all().await;
    let (_, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 100).await.unwrap();
    assert_eq!(claimed.len(), 2);
}

/// Returns numbers that share all but the last three digits.
fn adjacent(first: usize, count: usize) -> Vec<String> {
    (first..first + count).map(|n| format!("{n:08}")).collect()
}

async fn pumping_is_blocked_at_exactly_as_many_messages_as_allowed(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    limit(
        &world,
        &customer,
        &[(LimitField::TrafficPumping, "block"), (LimitField::TrafficPumpingMessages, "20")],
    )
    .await;
    let pumping = Reason::TrafficPumping;
    let numbers = adjacent(57_000_000, 100);
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    assert_eq!(accepted_of(&world, &customer.live, &numbers, pumping).await, 20);
    assert_eq!(accepted_of(&world, &customer.live, &numbers, pumping).await, 0);
    // Other numbers aren't similar.
    world.send(&customer.live, "57010000").await.unwrap();
    world.pass(12 * 60_000);
    let file = adjacent(57_000_000, 30).join(",x\n") + ",x\n";
    let answer = upload(&world.service, &customer.live, None, &file, plain()).await.unwrap();
    world.expand_all().await;
    let found = batch(&world, &customer, answer.batchid.unwrap()).await;
    assert_eq!(found.counts.get(MessageStatus::Queued), 20);
    assert_eq!(found.released, money("0.5"));
    world.assert_sound().await;
    // A refused message causes the alarm, because the messages that are allowed cause none.
    let address = Some("192.0.2.7".parse().unwrap());
    let origin = Origin { address, ..Origin::default() };
    let send = SendRequest { origin, ..request(&customer.live, "57000099", "hello") };
    let pages = world.service.messages().send(send).await.map(|sent| sent.pages);
    assert_eq!(pages, Err(refused(pumping)));
    let found = alarms(&world, &customer).await;
    let [alarm] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(alarm.kind, AlarmKind::TrafficPumping);
    let seen = "More than 20 messages within 10 minutes went to numbers in Lesotho (+266) that \
                differ only in their last three digits. The last request came from 192.0.2.7.";
    assert_eq!(alarm.detail.as_deref(), Some(seen));
    let example = alarm.example.as_deref().unwrap();
    assert!(example.starts_with("•••••0"), "{example}");
    let refusals = async || {
        let applications = world.service.applications();
        applications.limit_refusals(customer.account.id, customer.reference).await.unwrap()
    };
    assert_eq!(refusals().await, [("traffic_pumping".to_owned(), 10)]);
    world.pass(8 * 24 * HOUR_MS);
    assert_eq!(refusals().await, []);
}

/// An attacker doesn't stop at the end of a thousand numbers.
async fn ten_thousand_adjacent_numbers_get_50_messages(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    limit(&world, &customer, &[(LimitField::TrafficPumping, "block")]).await;
    let numbers = adjacent(57_000_000, 10_000);
    let mut accepted = 0;
    for some in numbers.chunks(100) {
        let some: Vec<&str> = some.iter().map(String::as_str).collect();
        let pumping = Reason::TrafficPumping;
        accepted += accepted_of(&world, &customer.live, &some, pumping).await;
    }
    assert_eq!(accepted, 50);
    world.pass(10 * 60_000);
    world.send(&customer.live, "57001000").await.unwrap();
    world.assert_sound().await;
}

/// Sends messages to different numbers in Somalia, of which this many are delivered.
async fn send_abroad(sending: &Sending, count: usize, delivered: usize) {
    let Sending { world, customer } = sending;
    for index in 0..count {
        let number = format!("25261{index:03}0000");
        let address = Some("192.0.2.7".parse().unwrap());
        let origin = Origin { address, ..Origin::default() };
        let send = SendRequest { origin, ..request(&customer.live, &number, "hello") };
        world.service.messages().send(send).await.unwrap();
        let handed = sending.claim_one("acme").await;
        let name = format!("{}-{index}", handed.id());
        sending.answer(&handed, taken_as(&name)).await;
        let status =
            if index < delivered { MessageStatus::Delivered } else { MessageStatus::Failed };
        sending.receive(receipt(&name, status)).await;
    }
}

async fn a_country_where_few_messages_are_delivered_is_blocked(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let Sending { world, customer } = &sending;
    limit(
        world,
        customer,
        &[(LimitField::TrafficPumping, "block"), (LimitField::TrafficPumpingMessages, "20")],
    )
    .await;
    let applications = world.service.applications();
    let alarms = async || {
        applications.store_alarms().await.unwrap();
        let found = applications.alarms(customer.account.id, customer.reference).await.unwrap();
        found.into_iter().find(|alarm| alarm.kind == AlarmKind::TrafficPumping)
    };
    // A fifth of the messages is delivered.
    send_abroad(&sending, 25, 5).await;
    assert_eq!(alarms().await, None);
    world.send(&customer.live, "252620000001").await.unwrap();
    sending.claim_one("acme").await;
    world.pass(2 * HOUR_MS);
    // As many messages as allowed.
    send_abroad(&sending, 20, 3).await;
    assert_eq!(alarms().await, None);
    world.pass(30_000);
    world.send(&customer.live, "252620000002").await.unwrap();
    let alarm = alarms().await.unwrap();
    let seen = "More than 20 messages within 10 minutes went to Somalia (+252), where only 3 of \
                the 20 messages that ended within the last hour were delivered. The last request \
                came from 192.0.2.7.";
    assert_eq!((alarm.detail.as_deref(), alarm.count), (Some(seen), 21));
    // Not the number that got a message two hours before.
    assert_eq!(alarm.example.as_deref(), Some("•••••••••000, •••••••••002"));
    let pumping = Err(refused(Reason::TrafficPumping));
    assert_eq!(world.send(&customer.live, "252620000003").await, pumping);
    // The test key and other countries have their own counts.
    world.send(&customer.test, "252620000003").await.unwrap();
    world.send(&customer.live, "254700000001").await.unwrap();
    world.send(&customer.live, "57000001").await.unwrap();
    let file = "252620000004,x\n57000002,x\n";
    let answer = upload(&world.service, &customer.live, None, file, plain()).await.unwrap();
    world.expand_all().await;
    let found = batch(world, customer, answer.batchid.unwrap()).await;
    assert_eq!(found.counts.get(MessageStatus::Rejected), 1);
    // After 10 minutes, as many messages as allowed may be sent again.
    world.pass(13 * 60_000);
    alarms().await;
    world.send(&customer.live, "252620000005").await.unwrap();
    world.assert_sound().await;
}

async fn the_first_international_message_in_a_month_causes_an_alarm(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    let day = 24 * HOUR_MS;
    let applications = world.service.applications();
    let alarms = async || {
        applications.store_alarms().await.unwrap();
        applications.alarms(customer.account.id, customer.reference).await.unwrap()
    };
    let send = async |number: &str| {
        let address = Some("192.0.2.7".parse().unwrap());
        let origin = Origin { address, ..Origin::default() };
        let send = SendRequest { origin, ..request(&customer.live, number, "hello") };
        world.service.messages().send(send).await.unwrap();
    };
    // The application is new.
    send("252620000001").await;
    assert_eq!(alarms().await, []);
    world.pass(29 * day);
    send("57000001").await;
    world.send(&customer.test, "252620000001").await.unwrap();
    assert_eq!(alarms().await, []);
    send("252620000001").await;
    assert_eq!(alarms().await, []);
    world.pass(30 * day);
    send("252620000001").await;
    send("254700000001").await;
    let found = alarms().await;
    let [alarm] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((alarm.kind, alarm.count), (AlarmKind::FirstInternational, 1));
    assert_eq!(alarm.example.as_deref(), Some("•••••••••001"));
    let detail = alarm.detail.as_deref().unwrap();
    assert!(
        detail.contains("to Somalia (+252). The last request came from 192.0.2.7."),
        "{detail}"
    );
    let mails = world.service.operations().mails(None, 100).await.unwrap();
    let mails = mails.items.iter().filter(|mail| mail.kind == MailKind::LimitAlarm);
    assert_eq!(mails.count(), 1);
    // An upload counts too.
    world.pass(31 * day);
    let file = "57000002,x\n252620000004,x\n";
    upload(&world.service, &customer.live, None, file, plain()).await.unwrap();
    assert_eq!(alarms().await.len(), 2);
}

async fn a_trial_counts_what_a_limit_would_have_refused(backend: Backend) {
    use LimitField as F;
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    let applications = world.service.applications();
    // Tries a limit. Returns the number of refused messages, and of all.
    let tried = async |field: F, text: &str| {
        let mut change = LimitsChange::default();
        change.add(field, text).unwrap();
        let limits = applications.send_limits(customer.reference).await.unwrap();
        let limits = change.applied_to(&limits);
        let (account, reference) = (customer.account.id, customer.reference);
        let trial = applications.try_limits(account, reference, &limits, &[field]).await.unwrap();
        assert!(!trial.is_cut);
        let [(of, refused)] = trial.refused.as_slice() else { panic!("{trial:?}") };
        assert_eq!(*of, field);
        (*refused, trial.messages)
    };
    assert_eq!(tried(F::PerRecipientHour, "1").await, (0, 0));
    world.send(&customer.live, "57000001").await.unwrap();
    world.pass(2 * 24 * HOUR_MS);
    for _ in 0..3 {
        world.send(&customer.live, "57000001").await.unwrap();
        world.send(&customer.live, "26657000001").await.unwrap();
        world.send(&customer.test, "57000001").await.unwrap();
        world.pass(HOUR_MS + 1);
    }
    world.send(&customer.live, "4915112345678").await.unwrap();
    for (field, text, refused) in [
        // Both forms of the number in each hour.
        (F::PerRecipientHour, "1", 3),
        (F::PerRecipientHour, "2", 0),
        (F::PerRecipientDay, "2", 4),
        (F::PerRecipientDay, "6", 0),
        (F::International, "off", 4),
        (F::Prefixes, "49", 3),
        (F::Prefixes, "266,49", 0),
        (F::RefuseDoubtful, "1", 3),
        // Local messages cost 0.05, the others 0.25.
        (F::SpendPerDay, "0.3", 5),
        (F::SpendPerDay, "100", 0),
        // The highest spend of a day.
        (F::SpendPerDay, "", 0),
        // The clock began at midnight.
        (F::QuietHours, "23:00-01:00", 3),
        (F::QuietHours, "12:00-13:00", 0),
        (F::TrafficPumpingMessages, "1", 3),
        (F::TrafficPumpingMessages, "2", 0),
    ] {
        assert_eq!(tried(field, text).await, (refused, 8), "{field} {text}");
    }
    // Seven days after the first message, only the others are tried.
    world.pass(5 * 24 * HOUR_MS - 3 * HOUR_MS);
    assert_eq!(tried(F::International, "off").await, (4, 7));
    let stranger = world.account("two@example.org").await;
    let trial = applications.try_limits(
        stranger.id,
        customer.reference,
        &domain::limits::DEFAULT_LIMITS,
        &[F::International],
    );
    assert_eq!(trial.await.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
}

async fn free_messages_have_a_number_of_the_day(backend: Backend) {
    let mut world = World::new(backend).await;
    world.limits.withdrawn_messages_max = 6;
    let world = world.reopen().await;
    let customer = customer(&world).await;
    let (live, test) = (world.access(&customer.live).await, world.access(&customer.test).await);
    let messages = world.service.messages();
    let later = Schedule { send_at: Some(world.now().plus_ms(48 * HOUR_MS)), validity: None };
    let scheduled = async |key: &ApiKey| {
        let send = SendRequest { schedule: later, ..request(key, "57000001", "hello") };
        messages.send(send).await.unwrap().transid.unwrap()
    };
    let cancel = async |access, target| {
        let cancelled = messages.cancel(access, target, StopAuthor::Program, None).await;
        cancelled.map(|cancelled| cancelled.messages).map_err(|e| e.refusal().unwrap().clone())
    };
    // Two messages, a row for a limit, and two rows of a batch.
    for _ in 0..2 {
        let id = scheduled(&customer.live).await;
        assert_eq!(cancel(&live, CancelTarget::Message(id)).await, Ok(1));
    }
    limit(&world, &customer, &[(LimitField::International, "off")]).await;
    let file = "57000001,a\n4915112345678,b\n";
    upload(&world.service, &customer.live, None, file, plain()).await.unwrap();
    world.expand_all().await;
    let rows = async || {
        let request = BatchRequest { schedule: later, ..plain() };
        let file = "57000001,a\n57000002,b\n";
        let answer = upload(&world.service, &customer.live, None, file, request).await;
        answer.map(|answer| answer.batchid.unwrap())
    };
    let batch = rows().await.unwrap();
    assert_eq!(cancel(&live, CancelTarget::Batch(batch)).await, Ok(2));
    // Five so far. The last request may exceed the number.
    let (one, batch) = (scheduled(&customer.live).await, rows().await.unwrap());
    assert!(messages.has_withdrawals_left(&customer.live).await.unwrap());
    assert_eq!(cancel(&live, CancelTarget::Batch(batch)).await, Ok(2));
    assert!(!messages.has_withdrawals_left(&customer.live).await.unwrap());
    let too_many = Err(Refusal::TooManyWithdrawn);
    assert_eq!(cancel(&live, CancelTarget::Message(one)).await, too_many);
    assert_eq!(rows().await, Err(refused(Reason::RateLimited)));
    // Sends cost money, and the test key has its own number.
    world.send(&customer.live, "57000001").await.unwrap();
    let of_test = scheduled(&customer.test).await;
    assert_eq!(cancel(&test, CancelTarget::Message(of_test)).await, Ok(1));
    world.pass(24 * HOUR_MS);
    assert_eq!(cancel(&live, CancelTarget::Message(one)).await, Ok(1));
    rows().await.unwrap();
    world.assert_sound().await;
}

async fn an_alarm_is_mailed_once_an_hour_until_it_is_read(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    limit(&world, &customer, &[(LimitField::TrafficPumpingMessages, "2")]).await;
    let applications = world.service.applications();
    let alarms = async || {
        applications.store_alarms().await.unwrap();
        applications.alarms(customer.account.id, customer.reference).await.unwrap()
    };
    for _ in 0..2 {
        world.send(&customer.live, "57000123").await.unwrap();
    }
    assert_eq!(alarms().await, []);
    world.send(&customer.live, "57000123").await.unwrap();
    world.send(&customer.live, "57000124").await.unwrap();
    let found = alarms().await;
    let [alarm] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((alarm.kind, alarm.count), (AlarmKind::TrafficPumping, 2));
    assert_eq!(alarm.example.as_deref(), Some("•••••123, •••••124"));
    world.send(&customer.live, "57000125").await.unwrap();
    let found = alarms().await;
    assert_eq!(found.iter().map(|alarm| alarm.count).collect::<Vec<_>>(), [3]);
    let mails = async || {
        let mails = world.service.operations().mails(None, 100).await.unwrap();
        mails.items.into_iter().filter(|mail| mail.kind == MailKind::LimitAlarm).count()
    };
    assert_eq!(mails().await, 1);
    let read = applications.read_alarms(customer.account.id, customer.reference, found[0].id);
    read.await.unwrap();
    assert_eq!(alarms().await, []);
    world.pass(HOUR_MS + 1);
    for _ in 0..3 {
        world.send(&customer.live, "57000123").await.unwrap();
    }
    assert_eq!(alarms().await.len(), 1);
    assert_eq!(mails().await, 2);
    limit(&world, &customer, &[(LimitField::TrafficPumping, "off")]).await;
    world.pass(HOUR_MS + 1);
    for _ in 0..3 {
        world.send(&customer.live, "57000123").await.unwrap();
    }
    assert_eq!(alarms().await.len(), 1);
    world.pass(89 * 24 * HOUR_MS);
    applications.forget_alarms().await.unwrap();
    assert_eq!(alarms().await.len(), 1);
    world.pass(2 * 24 * HOUR_MS);
    applications.forget_alarms().await.unwrap();
    assert_eq!(alarms().await, []);
}

async fn most_of_the_spend_of_a_day_causes_an_alarm_once(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    limit(&world, &customer, &[(LimitField::SpendPerDay, "0.5")]).await;
    let address = Some("192.0.2.7".parse().unwrap());
    let origin = Origin { address, ..Origin::default() };
    let send = async || {
        let send = SendRequest { origin, ..request(&customer.live, "57000001", "hello") };
        world.service.messages().send(send).await.unwrap();
    };
    let page = async || {
        let filter = EventFilter { limit: 100, ..EventFilter::default() };
        super::events::page(&world, &customer, filter).await.events
    };
    page().await;
    for (sent, expected) in [(7, 0), (1, 1), (2, 1)] {
        for _ in 0..sent {
            send().await;
        }
        assert_eq!(alarms(&world, &customer).await.len(), expected);
        world.pass(2 * HOUR_MS);
    }
    let alarm = alarms(&world, &customer).await.remove(0);
    assert_eq!((alarm.kind, alarm.example.as_deref()), (AlarmKind::SpendPerDay, Some("•••••001")));
    let seen = "A message to Lesotho (+266) reached 80 % of the 0.50 that may be spent on a day. \
                The last request came from 192.0.2.7.";
    assert_eq!(alarm.detail.as_deref(), Some(seen));
    // The mail and the event say the same.
    let mails = world.service.operations().mails(None, 100).await.unwrap().items;
    let mail = mails.iter().find(|mail| mail.kind == MailKind::LimitAlarm).unwrap();
    let body = format!("{seen} For example: •••••001. Noticed at {} UTC.", alarm.at.to_table());
    assert!(mail.text.starts_with(&body), "{}", mail.text);
    let events = page().await;
    let event = events.iter().find(|event| event.kind == EventType::LimitAlarm).unwrap();
    let EventData::Other(data) = &event.data else { panic!("{:?}", event.data) };
    for part in [seen, "•••••001", "spend_per_day", &alarm.at.to_string()] {
        assert!(data.contains(part), "{part}: {data}");
    }
    world.pass(24 * HOUR_MS);
    for _ in 0..8 {
        send().await;
    }
    assert_eq!(alarms(&world, &customer).await.len(), 2);
}

/// The text has its accents as characters of their own. Without them it has a page less.
async fn characters_are_replaced_if_the_owner_wants_it(backend: Backend) {
    let world = World::new(backend).await;
    let customer = customer(&world).await;
    let text = format!("“Cœur” – {}", "e\u{301}".repeat(80));
    let replaced = format!("\"Coeur\" - {}", "é".repeat(80));
    let sent = async |text: &str| {
        let order = request(&customer.live, "57000001", text);
        let dry = SendRequest { dry_run: true, ..order.clone() };
        let dry = world.service.messages().send(dry).await.unwrap();
        let sent = world.service.messages().send(order).await.unwrap();
        assert_eq!((dry.pages, dry.cost), (sent.pages, sent.cost));
        let record = world.message(&customer, sent.transid.unwrap()).await.record;
        (record.message, record.pages, record.segments, record.cost)
    };
    assert_eq!(sent(&text).await, (text.clone(), 2, 3, money("0.1")));
    let change = LimitsChange::of_characters(true);
    let author = LimitsAuthor::Owner(customer.account.id);
    world.service.applications().change_limits(customer.reference, author, change).await.unwrap();
    let shortened = (replaced.clone(), 1, 1, money("0.05"));
    assert_eq!(sent(&text).await, shortened.clone());
    assert_eq!(sent("“Да”").await, ("“Да”".to_owned(), 1, 1, money("0.05")));

    // Files, and the page that checks them.
    let shared = MessageText::parse(text.clone(), 10).unwrap();
    let access = world.access(&customer.live).await;
    for (mode, key, file) in [
        (BulkMode::OneToOne, "one", format!("57000002,{text}\n")),
        (BulkMode::OneToMany, "many", "57000002\n".to_owned()),
    ] {
        let message = (mode == BulkMode::OneToMany).then(|| shared.clone());
        let messages = world.service.messages();
        let checking = messages.check_file(access, mode, BulkWriting::Plain);
        let mut check = checking.await.unwrap().unwrap();
        check.write(file.as_bytes()).unwrap();
        let report = check.finish().unwrap().report(message.as_ref()).unwrap();
        assert_eq!(report.local, PartReport { rows: 1, pages: 1, cost: money("0.05") });
        let order = BatchRequest { message, ..plain() };
        let uploaded = || upload(&world.service, &customer.live, Some(key), &file, order.clone());
        let accepted = uploaded().await.unwrap();
        assert_eq!((accepted.pages, accepted.cost), (1, money("0.05")));
        // A repeated request is recognised by the text that it has.
        assert!(uploaded().await.unwrap().replayed);
        world.expand_all().await;
        let filter =
            MessageFilter { limit: 9, batchid: accepted.batchid, ..MessageFilter::default() };
        let stored = messages.list(&access, &filter).await.unwrap().items.remove(0);
        assert_eq!((stored.message, stored.pages, stored.segments, stored.cost), shortened.clone());
    }
    world.assert_sound().await;
}
