//! Limits on the data that an account can make the database store for free.

use domain::records::MessageRecord;
use domain::{ApiKey, MailKind, MessageText, Reason, SENDER_REQUESTS_PER_DAY};
use futures_util::future::join_all;
use service::{
    Actor, AuditFilter, BatchRequest, MessageFilter, Refusal, SANDBOX_CARRIER, SendError,
    SubmitOutcome,
};
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use crate::database::Backend;
use crate::network::answered;
use crate::uploads::{plain, rows, upload};
use crate::world::{HOUR_MS, PASSWORD, World, name, request};

on_each_backend![
    a_text_that_all_rows_share_is_stored_once,
    messages_of_a_test_key_are_kept_for_a_week,
    an_account_without_a_deposit_sends_so_many_test_messages_a_day,
    what_changes_nothing_is_not_recorded,
    an_application_requests_so_many_sender_names_a_day,
];

const DAY_MS: i64 = 24 * HOUR_MS;

async fn count(world: &World, rows: &str) -> i64 {
    let mut conn = world.database.connect().await;
    let counting = AssertSqlSafe(format!("SELECT COUNT(*) FROM {rows}"));
    conn.fetch_one(counting).await.unwrap().get(0)
}

async fn messages(world: &World, key: &ApiKey) -> Vec<MessageRecord> {
    let access = world.access(key).await;
    let filter = MessageFilter { limit: 100, ..MessageFilter::default() };
    world.service.messages().list(&access, &filter).await.unwrap().items
}

fn to_all(text: &str) -> BatchRequest {
    BatchRequest { message: Some(MessageText::parse(text.to_owned(), 10).unwrap()), ..plain() }
}

/// Claims all waiting messages, which the carrier accepts. Returns their texts.
async fn submit_all(world: &World) -> Vec<String> {
    let (lease, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 100).await.unwrap();
    let taken = || SubmitOutcome::Accepted { carrier_message_id: None };
    let results = claimed.iter().map(|message| answered(message, taken()));
    let results = results.collect();
    world.record(SANDBOX_CARRIER, &lease, results).await;
    let texts = claimed.iter().map(|message| message.message.as_str());
    texts.map(str::to_owned).collect()
}

async fn a_text_that_all_rows_share_is_stored_once(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let numbers = "57000001\n57000002\n57000003\n";
    for key in [&customer.live, &customer.test] {
        let (service, text) = (&world.service, to_all("to all"));
        upload(service, key, None, numbers, text).await.unwrap();
        upload(service, key, None, "57000004,own\n", plain()).await.unwrap();
        world.expand_all().await;
        let mut handed = submit_all(&world).await;
        handed.sort();
        assert_eq!(handed, ["own", "to all", "to all", "to all"]);
        let shown = messages(&world, key).await;
        let shown: Vec<_> = shown.iter().map(|message| &*message.message).collect();
        assert_eq!(shown, ["own", "to all", "to all", "to all"]);
    }
    assert_eq!(count(&world, "messages WHERE body IS NULL").await, 6);
    assert_eq!(count(&world, "batches WHERE body = 'to all'").await, 2);
    world.assert_sound().await;

    // The text is erased once the messages are deleted, although the batch stays.
    world.pass(402 * DAY_MS);
    world.service.delivery().expire().await.unwrap();
    world.service.operations().drop_history().await.unwrap();
    assert_eq!(count(&world, "messages").await, 0);
    world.service.operations().erase_texts().await.unwrap();
    assert_eq!(count(&world, "batches WHERE body <> ''").await, 0);
    world.assert_sound().await;
}

async fn messages_of_a_test_key_are_kept_for_a_week(backend: Backend) {
    const KEPT: [&str; 6] = [
        "messages WHERE test = 1",
        "batches WHERE test = 1",
        "batch_counts WHERE batch_id NOT IN (SELECT id FROM batches)",
        "message_days WHERE test = 1",
        "message_quarters WHERE test = 1",
        "message_timeline WHERE message_id NOT IN (SELECT id FROM messages)",
    ];
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    for key in [&customer.live, &customer.test] {
        world.send(key, "57000001").await.unwrap();
        upload(&world.service, key, None, &rows(3), plain()).await.unwrap();
        upload(&world.service, key, None, "57000001\n", to_all("to all")).await.unwrap();
    }
    world.expand_all().await;
    submit_all(&world).await;
    // This upload never becomes messages.
    upload(&world.service, &customer.test, None, &rows(1), plain()).await.unwrap();
    world.pass(DAY_MS);
    world.send(&customer.test, "57000001").await.unwrap();

    world.pass(6 * DAY_MS);
    world.expand_all().await;
    world.service.delivery().expire().await.unwrap();
    world.service.operations().drop_tests().await.unwrap();
    assert_eq!(messages(&world, &customer.test).await.len(), 6);
    world.pass(DAY_MS);
    world.service.delivery().expire().await.unwrap();
    world.service.operations().drop_tests().await.unwrap();
    assert_eq!(messages(&world, &customer.test).await.len(), 1);
    assert_eq!(count(&world, "batches WHERE test = 1").await, 0);
    world.assert_sound().await;
    world.pass(DAY_MS);
    world.service.delivery().expire().await.unwrap();
    world.service.operations().drop_tests().await.unwrap();
    for rows in KEPT {
        assert_eq!(count(&world, rows).await, 0, "{rows}");
    }
    assert_eq!(messages(&world, &customer.live).await.len(), 5);
    world.assert_sound().await;
    world.send(&customer.test, "57000001").await.unwrap();
    world.assert_sound().await;
}

async fn an_account_without_a_deposit_sends_so_many_test_messages_a_day(backend: Backend) {
    let mut world = World::new(backend).await;
    world.limits.unpaid_test_messages = 10;
    let world = world.reopen().await;
    let customer = world.active("one@example.org", "0").await;
    let used_up = Err(SendError::Refused(Reason::RateLimited));
    let left = async || world.service.messages().test_messages_left(&customer.test).await.unwrap();
    let put = async |count| {
        let file = rows(count);
        upload(&world.service, &customer.test, None, &file, plain()).await
    };
    assert_eq!(put(11).await.err(), used_up.err());
    put(3).await.unwrap();
    assert_eq!(left().await, Some(7));
    // Of concurrent sends, some of them refused, exactly the allowed number is accepted.
    let sends = (0..20).map(|n| {
        let number = if n % 2 == 0 { "00000004" } else { "57000001" };
        world.send(&customer.test, number)
    });
    let answers = join_all(sends).await;
    assert_eq!(answers.iter().filter(|sent| sent.is_ok()).count(), 7);
    let refused = answers.iter().filter(|sent| **sent == used_up);
    assert_eq!(refused.count(), 13);
    let mut dry = request(&customer.test, "57000001", "hello");
    dry.dry_run = true;
    assert_eq!(world.service.messages().send(dry).await, used_up);
    assert_eq!(put(1).await.err(), used_up.err());
    assert_eq!(left().await, Some(0));

    // The next day has a new limit. An account that has paid has no limit.
    world.pass(DAY_MS);
    assert_eq!(left().await, Some(10));
    put(10).await.unwrap();
    assert_eq!(world.send(&customer.test, "57000001").await, used_up);
    world.deposit("b1", customer.reference, "1").await;
    assert_eq!(left().await, None);
    put(11).await.unwrap();
    world.send(&customer.test, "57000001").await.unwrap();
    world.expand_all().await;
    world.assert_sound().await;
}

async fn what_changes_nothing_is_not_recorded(backend: Backend) {
    let world = World::mailing(backend).await;
    let account = world.account("one@example.org").await;
    let mut conn = world.database.connect().await;
    conn.execute("UPDATE accounts SET confirmed_at = 1").await.unwrap();
    let customer = account.id;
    let new = (world.service)
        .applications()
        .create_application(customer, domain::Category::Sms, None)
        .await
        .unwrap();
    let (service, reference) = (&world.service, new.reference);
    let change_all = async || {
        service.accounts().cancel_email_change(customer).await.unwrap();
        let mails = [MailKind::Deposit];
        service.accounts().set_unwanted_mails(customer, &mails).await.unwrap();
        let low = Some(crate::world::money("5"));
        service.applications().set_notices(customer, reference, low, true).await.unwrap();
        let resend = domain::LostAnswer::Resend;
        service.applications().set_lost_answer(customer, reference, resend).await.unwrap();
        service.applications().request_activation(customer, reference).await.unwrap();
        let acme = name("Acme");
        service.applications().request_sender_name(customer, reference, &acme).await.unwrap();
        service.accounts().sign_out_others(customer, PASSWORD, "").await.unwrap();
        let list = domain::decision::StaffList::ReservedWords;
        service.applications().set_staff_list(&Actor::CommandLine, list, "bank").await.unwrap();
    };
    let recorded = async || {
        let filter = AuditFilter { limit: 100, ..AuditFilter::default() };
        let entries = service.support().audit(&filter).await.unwrap().items;
        let actions: Vec<_> = entries.iter().map(|entry| entry.action.clone()).collect();
        let mut rows = Vec::new();
        for table in ["security_events", "sender_requests", "outbox"] {
            rows.push(count(&world, table).await);
        }
        (actions, rows)
    };
    change_all().await;
    let once = recorded().await;
    for action in [
        "account.mails",
        "application.notices",
        "application.lost_answer",
        "application.request",
        "sender.request",
        "staff_list.set",
    ] {
        assert!(once.0.iter().any(|entry| entry == action), "{action}: {once:?}");
    }
    world.pass(1000);
    change_all().await;
    assert_eq!(recorded().await, once);
    world.assert_sound().await;
}

async fn an_application_requests_so_many_sender_names_a_day(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let ask = async |n: i64| {
        let name = name(&format!("Name{n}"));
        let applications = (world.service).applications();
        let asking =
            applications.request_sender_name(customer.account.id, customer.reference, &name);
        asking.await.map_err(|error| error.refusal().cloned())
    };
    for n in 0..SENDER_REQUESTS_PER_DAY {
        assert_eq!(ask(n).await, Ok(()), "{n}");
        world.pass(1);
    }
    let refused = Err(Some(Refusal::TooManySenderRequests));
    assert_eq!(ask(100).await, refused);
    // Repeating a name isn't a new request.
    assert_eq!(ask(SENDER_REQUESTS_PER_DAY - 1).await, Ok(()));
    assert_eq!(count(&world, "sender_requests").await, SENDER_REQUESTS_PER_DAY);
    world.pass(DAY_MS);
    assert_eq!(ask(100).await, Ok(()));
}
