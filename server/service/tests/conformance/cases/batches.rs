//! Uploads: accepted completely or not at all, reserved, expanded, and counted to the end.

use domain::ledger::TransferKind;
use domain::records::BatchStatus;
use domain::{ApiKey, BulkMode, BulkWriting, MessageStatus, MessageText, Money, Reason};
use service::{
    Actor, BatchFilter, BatchRequest, IdempotencyKey, Receipt, SANDBOX_CARRIER, SendError,
    SubmitOutcome,
};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::database::Backend;
use crate::network::answered;
use crate::uploads::{accepted, batch, plain, rows, upload};
use crate::world::{HOUR_MS, World, money, whole};

on_each_backend![
    an_upload_is_reserved_expanded_and_sent_to_its_end,
    rows_keep_their_order_their_text_and_their_price,
    one_text_to_many_costs_its_pages_times_the_rows,
    messages_have_the_pages_that_were_counted_at_the_acceptance,
    a_dry_run_answers_and_leaves_nothing,
    an_upload_under_an_idempotency_key_is_charged_once,
    uploads_under_way_are_limited_to_eight_an_application_and_one_an_idempotency_key,
    a_repeated_upload_is_answered_even_when_too_many_uploads_are_under_way,
    a_test_key_has_two_uploads_at_a_time,
    repetitions_take_no_places_and_store_nothing,
    a_repetition_that_comes_too_late_is_to_be_tried_again,
    the_first_reserved_number_of_an_upload_decides_its_answer,
    rows_that_cannot_be_read_are_rejected_and_given_back,
    an_upload_that_waited_too_long_expires_and_is_given_back,
    the_price_of_each_refused_row_is_given_back,
    a_test_upload_costs_play_money_and_is_seen_with_the_test_key_alone,
    an_upload_of_a_suspended_application_waits_until_it_is_reinstated,
    a_single_message_is_claimed_before_those_of_an_upload,
];

const STAFF: Actor = Actor::CommandLine;

fn to_all(text: &str) -> BatchRequest {
    BatchRequest { message: Some(MessageText::parse(text.to_owned(), 10).unwrap()), ..plain() }
}

/// Claims all due messages, and answers each with the same outcome.
async fn dispatch(world: &World, outcome: &SubmitOutcome) -> Vec<Receipt> {
    let mut receipts = Vec::new();
    loop {
        let (lease, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 500).await.unwrap();
        if claimed.is_empty() {
            return receipts;
        }
        receipts.extend(claimed.iter().map(|message| Receipt {
            id: message.id,
            application_id: message.application_id,
            status: MessageStatus::Delivered,
            error: None,
        }));
        let results =
            claimed.into_iter().map(|message| answered(&message, outcome.clone())).collect();
        world.record(SANDBOX_CARRIER, &lease, results).await;
    }
}

fn taken() -> SubmitOutcome {
    SubmitOutcome::Accepted { carrier_message_id: Some("c".to_owned()) }
}

async fn an_upload_is_reserved_expanded_and_sent_to_its_end(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "400").await;
    let file = format!("{}+4915112345678,a b\n", rows(5000));
    let accepted = upload(&world.service, &customer.live, None, &file, plain()).await.unwrap();
    assert_eq!((accepted.rows, accepted.pages), (5001, 5001));
    assert_eq!(accepted.cost, money("250.25"));
    let id = accepted.batchid.unwrap();
    // The price is deducted from the balance, but the rows aren't messages yet.
    assert_eq!(world.balance(&customer.live).await, money("149.75"));
    let record = batch(&world, &customer, id).await;
    assert_eq!(
        (record.status, record.counts.get(MessageStatus::Queued)),
        (BatchStatus::Expanding, 5001)
    );
    world.assert_sound().await;

    // Each step expands some thousand rows, and is atomic.
    world.service.messages().expand(id).await.unwrap();
    world.assert_sound().await;
    world.database.assert_spools(1).await;
    world.expand_all().await;
    world.database.assert_spools(0).await;
    assert_eq!(batch(&world, &customer, id).await.status, BatchStatus::Sending);
    world.assert_sound().await;

    let receipts = dispatch(&world, &taken()).await;
    let record = batch(&world, &customer, id).await;
    assert_eq!((record.counts.get(MessageStatus::Submitted), record.done_at), (5001, None));
    world.assert_sound().await;
    world.service.delivery().record_receipts(receipts).await.unwrap();
    let record = batch(&world, &customer, id).await;
    assert_eq!(
        (record.counts.get(MessageStatus::Delivered), record.status),
        (5001, BatchStatus::Done)
    );
    assert_eq!(record.paid(), record.cost);
    assert_eq!(record.done_at, Some(world.now()));
    world.assert_sound().await;
}

async fn rows_keep_their_order_their_text_and_their_price(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "200").await;
    let file = format!("12345678,\"a, \"\"b\"\"\n\tc\"\n+4915112345678,{}\n", "é".repeat(161));
    let id = accepted(&world, &customer, &file).await;
    world.expand_all().await;
    let access = world.access(&customer.live).await;
    let filter = service::MessageFilter {
        batchid: Some(id),
        limit: 10,
        ..service::MessageFilter::default()
    };
    let found = world.service.messages().list(&access, &filter).await.unwrap().items;
    let [second, first] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(first.message, "a, \"b\"\n\tc");
    assert_eq!((second.pages, second.segments), (2, 2));
    assert_eq!(second.cost, money("0.5"));
    assert_eq!(first.created_at, world.now());
    let detail = world.service.messages().message(&access, first.transid).await.unwrap();
    assert_eq!(detail.unwrap().charge.charged, first.cost);
}

async fn one_text_to_many_costs_its_pages_times_the_rows(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let order = to_all(&"x".repeat(170));
    let accepted = upload(
        &world.service,
        &customer.live,
        None,
        "12345678\r\n4915112345678\r\n26612345678\n",
        order,
    )
    .await;
    assert_eq!(accepted, Err(SendError::Refused(Reason::InsufficientFunds)));
    world.database.assert_spools(0).await;
    let accepted = upload(
        &world.service,
        &customer.live,
        None,
        "12345678\n26612345678\n0123456\n26612345679",
        to_all("hi"),
    )
    .await
    .unwrap();
    assert_eq!(accepted.cost, money("0.8"));
    let warnings = accepted.warnings.present();
    let warnings: Vec<_> = warnings.map(|(one, count)| (one.as_str(), count)).collect();
    assert_eq!(warnings, [("looks_local", 2), ("leading_zero", 1), ("near_local", 1)]);
    world.expand_all().await;
    world.assert_sound().await;
}

/// The page rule may change before an upload is expanded. The test simulates this by changing the
/// text, so that its pages are counted differently.
async fn messages_have_the_pages_that_were_counted_at_the_acceptance(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let (file, order) = ("57000001\n57000002\n", to_all("hi"));
    let accepted = upload(&world.service, &customer.live, None, file, order).await;
    assert_eq!(accepted.unwrap().cost, money("0.1"));
    let longer = format!("UPDATE batches SET body = '{}'", "x".repeat(170));
    let mut conn = world.database.connect().await;
    conn.execute(AssertSqlSafe(longer)).await.unwrap();
    world.expand_all().await;
    assert_eq!(world.balance(&customer.live).await, money("0.9"));
    world.assert_sound().await;
}

async fn a_dry_run_answers_and_leaves_nothing(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let dry = BatchRequest { dry_run: true, ..plain() };
    for key in [None, Some("k")] {
        let answer = upload(&world.service, &customer.live, key, &rows(20), dry.clone()).await;
        assert_eq!(answer.unwrap().batchid, None);
    }
    let answer = upload(&world.service, &customer.live, None, &rows(21), dry).await;
    assert_eq!(answer, Err(SendError::Refused(Reason::InsufficientFunds)));
    world.database.assert_spools(0).await;
    assert_eq!(world.balance(&customer.live).await, Money::from_units(1).unwrap());
    assert_eq!(world.service.messages().next_unexpanded(None).await.unwrap(), None);
    world.assert_sound().await;
}

async fn an_upload_under_an_idempotency_key_is_charged_once(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "2").await;
    let send =
        async |file: &str| upload(&world.service, &customer.live, Some("k"), file, plain()).await;
    let first = send(&rows(20)).await.unwrap();
    world.service.applications().suspend(&STAFF, customer.reference, "why").await.unwrap();
    let again = send(&rows(20)).await.unwrap();
    assert!(again.replayed);
    assert_eq!((again.batchid, again.cost), (first.batchid, first.cost));
    let other = send(&rows(19)).await;
    assert_eq!(other, Err(SendError::Refused(Reason::IdempotencyMismatch)));
    // The files of the second and third upload are gone.
    world.database.assert_spools(1).await;
    // The answer is kept for exactly a day, even if no sweep has run since.
    world.pass(24 * HOUR_MS - 1);
    assert!(send(&rows(20)).await.unwrap().replayed);
    world.pass(1);
    let refused = send(&rows(20)).await;
    assert_eq!(refused, Err(SendError::Refused(Reason::ApiSuspended)));
    world.service.applications().reinstate(&STAFF, customer.reference).await.unwrap();
    assert!(!send(&rows(20)).await.unwrap().replayed);
    world.assert_sound().await;
}

async fn uploads_under_way_are_limited_to_eight_an_application_and_one_an_idempotency_key(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "2").await;
    let begin = async |idempotency: Option<&str>| {
        let key = idempotency.map(|key| service::IdempotencyKey::parse(key).unwrap());
        world.service.messages().begin_bulk(Some(customer.live.expose()), key).await
    };
    let keyed = begin(Some("k")).await.unwrap();
    assert_eq!(begin(Some("k")).await.err(), Some(Reason::IdempotencyInProgress));
    let mut tickets = Vec::new();
    for _ in 1..8 {
        tickets.push(begin(None).await.unwrap());
    }
    assert_eq!(begin(None).await.err(), Some(Reason::RateLimited));
    keyed.end().await;
    drop(keyed);
    let keyed = begin(Some("k")).await.unwrap();
    assert_eq!(begin(None).await.err(), Some(Reason::RateLimited));
    for ticket in tickets.iter().chain([&keyed]) {
        ticket.end().await;
    }
    drop((keyed, tickets));
    assert!(begin(None).await.is_ok());
}

async fn a_repeated_upload_is_answered_even_when_too_many_uploads_are_under_way(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "2").await;
    let send = async |key: &str| {
        upload(&world.service, &customer.live, Some(key), &rows(1), plain()).await
    };
    send("k").await.unwrap();
    // The test key takes two of the application's slots, which leaves fewer for the live key.
    let mut tickets = Vec::new();
    let live = [&customer.live].repeat(6);
    for key in [&customer.test, &customer.test].into_iter().chain(live) {
        tickets.push(world.service.messages().begin_bulk(Some(key.expose()), None).await.unwrap());
    }
    assert_eq!(send("new").await, Err(SendError::Refused(Reason::RateLimited)));
    assert!(send("k").await.unwrap().replayed);
    // The repeated upload has released its own slot and no other.
    assert_eq!(send("new").await, Err(SendError::Refused(Reason::RateLimited)));
    let last = tickets.pop().unwrap();
    last.end().await;
    drop(last);
    send("new").await.unwrap();
}

async fn a_test_key_has_two_uploads_at_a_time(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "2").await;
    let begin =
        async |key: &ApiKey| world.service.messages().begin_bulk(Some(key.expose()), None).await;
    let first = begin(&customer.test).await.unwrap();
    let _second = begin(&customer.test).await.unwrap();
    let refused = begin(&customer.test).await.err();
    assert_eq!(refused, Some(Reason::RateLimited));
    assert!(begin(&customer.live).await.is_ok());
    first.end().await;
    drop(first);
    assert!(begin(&customer.test).await.is_ok());
}

async fn repetitions_take_no_places_and_store_nothing(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "2").await;
    let send = async || {
        let file = rows(1);
        upload(&world.service, &customer.test, Some("k"), &file, plain()).await
    };
    send().await.unwrap();
    world.expand_all().await;
    // Far more than there are slots, all at the same time.
    let mut open = Vec::new();
    for _ in 0..40 {
        let key = IdempotencyKey::parse("k");
        let test = Some(customer.test.expose());
        let permit = world.service.messages().begin_bulk(test, key).await.unwrap();
        let begun = permit.upload(BulkMode::OneToOne, BulkWriting::Plain).await;
        let mut upload = begun.unwrap();
        upload.write(b"1").await.unwrap();
        open.push((permit, upload));
    }
    world.database.assert_spools(0).await;
    let others = upload(&world.service, &customer.live, None, &rows(1), plain()).await;
    assert!(!others.unwrap().replayed);
    assert!(send().await.unwrap().replayed);
    drop(open);
    world.expand_all().await;
    world.assert_sound().await;
}

async fn a_repetition_that_comes_too_late_is_to_be_tried_again(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "2").await;
    let (service, key) = (&world.service, &customer.live);
    upload(service, key, Some("k"), &rows(1), plain()).await.unwrap();
    let known = IdempotencyKey::parse("k");
    let permit = service.messages().begin_bulk(Some(key.expose()), known).await.unwrap();
    let begun = permit.upload(BulkMode::OneToOne, BulkWriting::Plain).await;
    let mut repeated = begun.unwrap();
    repeated.write(rows(1).as_bytes()).await.unwrap();
    let spooled = repeated.finish().await.unwrap();
    // The stored answer has expired when the file is complete.
    world.pass(24 * HOUR_MS + 1);
    let accepted = service.messages().accept_batch(&permit, spooled, plain()).await;
    assert_eq!(accepted, Err(SendError::Refused(Reason::Unavailable)));
    let again = upload(service, key, Some("k"), &rows(1), plain()).await.unwrap();
    assert!(!again.replayed);
    world.assert_sound().await;
}

async fn the_first_reserved_number_of_an_upload_decides_its_answer(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "2").await;
    let send = async |key, file: &str| upload(&world.service, key, None, file, plain()).await;
    for (number, reason) in [
        ("00000501", Reason::InsufficientFunds),
        ("00000502", Reason::ApiPending),
        ("00000503", Reason::ApiSuspended),
        ("00000504", Reason::ApiInvalid),
        ("00000505", Reason::ApiNotApplicable),
    ] {
        // The first reserved number decides.
        let file = format!("12345678,a\n{number},a\n00000501,a\n00000505,a\n");
        let refused = send(&customer.test, &file).await;
        assert_eq!(refused, Err(SendError::Refused(reason)));
        assert_eq!(
            send(&customer.test, &format!("{number},a")).await,
            Err(SendError::Refused(reason))
        );
        // With a + it is a different number, and for a live key it is an ordinary one.
        assert!(send(&customer.test, &format!("+{number},a")).await.is_ok());
        assert!(send(&customer.live, &format!("{number},a")).await.is_ok());
    }
    world.assert_sound().await;
    world.service.applications().suspend(&STAFF, customer.reference, "why").await.unwrap();
    let refused = send(&customer.test, "00000501,a").await;
    assert_eq!(refused, Err(SendError::Refused(Reason::ApiSuspended)));
}

async fn rows_that_cannot_be_read_are_rejected_and_given_back(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "400").await;
    let gone = accepted(&world, &customer, &rows(100)).await;
    world.database.lose_spool().await;
    let damaged = accepted(&world, &customer, &rows(4500)).await;
    world.service.messages().expand(damaged).await.unwrap();
    world.database.damage_spool().await;
    world.expand_all().await;
    let record = batch(&world, &customer, gone).await;
    assert_eq!(
        (record.counts.get(MessageStatus::Rejected), record.status),
        (100, BatchStatus::Done)
    );
    let record = batch(&world, &customer, damaged).await;
    assert_eq!(
        (record.counts.get(MessageStatus::Queued), record.counts.get(MessageStatus::Rejected)),
        (4250, 250)
    );
    assert_eq!((record.released, record.paid()), (money("12.5"), money("212.5")));
    world.database.assert_spools(0).await;
    assert_eq!(world.balance(&customer.live).await, money("187.5"));
    let lines = world
        .service
        .applications()
        .statement(customer.account.id, customer.reference, whole(None, 10))
        .await
        .unwrap()
        .items;
    assert_eq!(lines[0].kind, TransferKind::Release);
    assert_eq!(lines[0].subject, damaged.to_string());
    world.assert_sound().await;
}

async fn an_upload_that_waited_too_long_expires_and_is_given_back(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "400").await;
    let id = accepted(&world, &customer, &rows(4500)).await;
    world.service.messages().expand(id).await.unwrap();
    // The IDs of so many rows extend into the milliseconds after their acceptance.
    world.pass(48 * HOUR_MS + 10);
    world.service.delivery().expire().await.unwrap();
    world.expand_all().await;
    let record = batch(&world, &customer, id).await;
    assert_eq!(
        (record.counts.get(MessageStatus::Expired), record.status),
        (4500, BatchStatus::Done)
    );
    assert_eq!(world.balance(&customer.live).await, Money::from_units(400).unwrap());
    world.assert_sound().await;
}

async fn the_price_of_each_refused_row_is_given_back(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "2").await;
    let id = accepted(&world, &customer, &rows(3)).await;
    world.expand_all().await;
    let refused = SubmitOutcome::Refused { error: "refused".to_owned() };
    dispatch(&world, &refused).await;
    let record = batch(&world, &customer, id).await;
    assert_eq!((record.counts.get(MessageStatus::Rejected), record.status), (3, BatchStatus::Done));
    assert_eq!((record.cost, record.paid()), (money("0.15"), Money::ZERO));
    assert_eq!(world.balance(&customer.live).await, Money::from_units(2).unwrap());
    world.assert_sound().await;
}

async fn a_test_upload_costs_play_money_and_is_seen_with_the_test_key_alone(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let id = upload(&world.service, &customer.test, None, &rows(100), plain())
        .await
        .unwrap()
        .batchid
        .unwrap();
    world.expand_all().await;
    assert_eq!(world.balance(&customer.test).await, Money::from_units(995).unwrap());
    let filter = BatchFilter { limit: 10, ..BatchFilter::default() };
    let live = world.access(&customer.live).await;
    assert!(world.service.messages().batches(&live, &filter).await.unwrap().items.is_empty());
    let test = world.access(&customer.test).await;
    let seen = world.service.messages().batches(&test, &filter).await.unwrap().items;
    assert_eq!(seen.iter().map(|batch| batch.batchid).collect::<Vec<_>>(), [id]);
    world.assert_sound().await;
}

async fn an_upload_of_a_suspended_application_waits_until_it_is_reinstated(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "200").await;
    let id = accepted(&world, &customer, &rows(1100)).await;
    world.service.applications().suspend(&STAFF, customer.reference, "why").await.unwrap();
    world.expand_all().await;
    assert!(dispatch(&world, &taken()).await.is_empty());
    assert_eq!(batch(&world, &customer, id).await.counts.get(MessageStatus::Queued), 1100);
    world.service.applications().reinstate(&STAFF, customer.reference).await.unwrap();
    world.service.delivery().resume_deferred().await.unwrap();
    assert_eq!(dispatch(&world, &taken()).await.len(), 1100);
    world.assert_sound().await;
}

async fn a_single_message_is_claimed_before_those_of_an_upload(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "200").await;
    accepted(&world, &customer, &rows(100)).await;
    world.expand_all().await;
    world.pass(1);
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    let (_, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 8).await.unwrap();
    assert!(claimed.iter().any(|message| Some(message.id) == sent.transid));
    assert_eq!(claimed.len(), 8);
}
