//! Reports: pages, filters and charges.

use std::time::Duration;

use domain::records::{MessageRecord, Paged};
use domain::{Category, KeyKind, MessageStatus, Number, RequestId, Timestamp, Transid};
use service::{MessageFilter, Receipt, Refusal};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use crate::database::Backend;
use crate::network::{answered, refused, taken_as};
use crate::uploads::{plain, upload};
use crate::world::{Customer, HOUR_MS, World, request};

on_each_backend![
    pages_of_a_report_are_complete_and_in_order,
    filters_find_what_they_name_and_from_is_inclusive_and_to_exclusive,
    keys_see_their_own_messages_alone_and_the_portal_sees_the_accounts,
    the_portal_tells_messages_of_live_and_test_keys_apart,
    a_message_is_reported_with_its_charge_and_what_was_given_back,
    a_search_by_status_finds_a_message_behind_60000_others_on_its_first_page,
    a_search_that_ran_out_of_time_continues_at_its_cursor_and_misses_nothing,
    every_combination_of_filters_finds_exactly_the_messages_that_match,
];

fn filter() -> MessageFilter {
    MessageFilter { limit: 100, ..MessageFilter::default() }
}

async fn pages_of_a_report_are_complete_and_in_order(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let mut sent = Vec::new();
    for n in 0..25 {
        sent.push(world.send(&customer.live, "12345678").await.unwrap().transid.unwrap());
        world.pass(n % 3);
    }
    sent.reverse();
    let access = world.access(&customer.live).await;
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let filter = MessageFilter { limit: 7, cursor, ..MessageFilter::default() };
        let page = world.service.messages().list(&access, &filter).await.unwrap();
        found.extend(page.items.into_iter().map(|record| record.transid));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, sent);
    let bad = MessageFilter { cursor: Some("x".to_owned()), ..filter() };
    let refused = world.service.messages().list(&access, &bad).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::InvalidCursor));
}

async fn filters_find_what_they_name_and_from_is_inclusive_and_to_exclusive(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let mut named = request(&customer.live, "87654321", "x");
    named.requestid = RequestId::parse("order-7").ok();
    let first = world.service.messages().send(named).await.unwrap().transid.unwrap();
    world.pass(1000);
    let middle = world.now();
    let second = world.send(&customer.live, "12345678").await.unwrap().transid.unwrap();
    world.pass(1000);
    let third = world.send(&customer.live, "+12345678").await.unwrap().transid.unwrap();
    let access = world.access(&customer.live).await;
    let find = |filter: MessageFilter| {
        let service = world.service.clone();
        async move {
            let page = service.messages().list(&access, &filter).await.unwrap();
            page.items.into_iter().map(|record| record.transid).collect::<Vec<_>>()
        }
    };
    assert_eq!(find(MessageFilter { transid: Some(second), ..filter() }).await, [second]);
    let by_request = MessageFilter { requestid: Some("order-7".to_owned()), ..filter() };
    assert_eq!(find(by_request).await, [first]);
    let by_number = MessageFilter { number: Number::parse("12345678").ok(), ..filter() };
    assert_eq!(find(by_number).await, [third, second]);
    assert_eq!(find(MessageFilter { from: Some(middle), ..filter() }).await, [third, second]);
    assert_eq!(find(MessageFilter { to: Some(middle), ..filter() }).await, [first]);
    let (early, late) =
        (Timestamp::from_unix_ms(i64::MIN / 2), Timestamp::from_unix_ms(i64::MAX / 2));
    assert_eq!(
        find(MessageFilter { from: Some(early), to: Some(late), ..filter() }).await.len(),
        3
    );
    assert!(find(MessageFilter { from: Some(late), ..filter() }).await.is_empty());
    assert!(find(MessageFilter { to: Some(early), ..filter() }).await.is_empty());
}

async fn keys_see_their_own_messages_alone_and_the_portal_sees_the_accounts(backend: Backend) {
    let world = World::new(backend).await;
    let one = world.active("one@example.org", "1").await;
    let two = world.active("two@example.org", "1").await;
    let live = world.send(&one.live, "12345678").await.unwrap().transid.unwrap();
    let test = world.send(&one.test, "12345678").await.unwrap().transid.unwrap();
    let foreign = world.send(&two.live, "12345678").await.unwrap().transid.unwrap();
    for (key, own) in [(&one.live, live), (&one.test, test), (&two.live, foreign)] {
        let access = world.access(key).await;
        let page = world.service.messages().list(&access, &filter()).await.unwrap();
        assert_eq!(page.items.iter().map(|record| record.transid).collect::<Vec<_>>(), [own]);
        for other in [live, test, foreign] {
            let found = world.service.messages().message(&access, other).await.unwrap();
            assert_eq!(found.is_some(), other == own);
        }
    }
    let account = one.account.id;
    let page = world.service.messages().account_messages(account, None, &filter()).await.unwrap();
    let shown: Vec<_> = page.items.iter().map(|record| (record.transid, record.test)).collect();
    assert_eq!(shown, [(test, true), (live, false)]);
    assert!(world.service.messages().account_message(account, foreign).await.unwrap().is_none());
    assert!(
        world
            .service
            .messages()
            .account_message(account, test)
            .await
            .unwrap()
            .is_some_and(|(reference, _)| reference == one.reference)
    );
    let refused =
        world.service.messages().account_messages(account, Some(two.reference), &filter()).await;
    assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
    let sender = crate::world::name("Power");
    let second = world
        .service
        .applications()
        .create_application(account, Category::Electricity, Some(&sender))
        .await
        .unwrap();
    let none =
        world.service.messages().account_messages(account, Some(second.reference), &filter()).await;
    assert!(none.unwrap().items.is_empty());
}

async fn the_portal_tells_messages_of_live_and_test_keys_apart(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let (account, service) = (customer.account.id, &world.service);
    let of_days = (0, i64::MAX);
    for (kind, key) in [(KeyKind::Live, &customer.live), (KeyKind::Test, &customer.test)] {
        let transid = world.send(key, "12345678").await.unwrap().transid.unwrap();
        let of_key = MessageFilter { key: Some(kind), ..filter() };
        let found = service.messages().account_messages(account, None, &of_key).await;
        let found = found.unwrap().items;
        let ids: Vec<_> = found.iter().map(|record| record.transid).collect();
        assert_eq!(ids, [transid]);
        let messages = service.messages();
        let totals = messages.account_totals(account, None, Some(kind), of_days);
        assert_eq!(totals.await.unwrap().total(), 1);
        let messages = service.messages();
        let days = messages.account_days(account, None, Some(kind), of_days);
        let days = days.await.unwrap();
        assert_eq!((days.len(), days[0].counts.get(MessageStatus::Queued)), (1, 1));
    }
    let reference = Some(customer.reference);
    let messages = service.messages();
    let totals = messages.account_totals(account, reference, None, of_days);
    assert_eq!(totals.await.unwrap().get(MessageStatus::Queued), 2);
}

async fn a_message_is_reported_with_its_charge_and_what_was_given_back(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let access = world.access(&customer.live).await;
    let cases = [
        ("12345678", "local_8_digits"),
        ("+12345678", "international_plus_sign"),
        ("26612345678", "international_not_8_digits"),
    ];
    for (number, rule) in cases {
        let sent = world.send(&customer.live, number).await.unwrap();
        let detail = world
            .service
            .messages()
            .message(&access, sent.transid.unwrap())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(detail.charge.rule, rule);
        assert_eq!(detail.charge.charged, sent.cost);
        assert!(detail.charge.why.starts_with("1 page to "), "{}", detail.charge.why);
    }
}

/// Stores this many copies of a message, one in each following millisecond, and adds them to the
/// counts of messages.
async fn store_copies(world: &World, of: Transid, copies: i64) {
    let numbers = world.database.numbers(copies);
    let [column, value] = world.database.first_shard();
    let messages = format!(
        "INSERT INTO messages (id{column}, application_id, test, number, kind, body, requestid, \
             batch_id, status, pages, segments, unit_price, cost, released, carrier, created_at, \
             submitted_at, final_at) \
         SELECT id + i * 2097152 + 5{value}, application_id, test, number, kind, body, requestid, \
             batch_id, status, pages, segments, unit_price, cost, released, carrier, \
             created_at + i, submitted_at, final_at \
         FROM messages CROSS JOIN {numbers} WHERE id = {}",
        of.0
    );
    let days = format!(
        "INSERT INTO message_days (node{column}, application_id, test, day, status, writer, n) \
         SELECT 400{value}, application_id, test, (created_at + i) / 86400000, status, 1, COUNT(*) \
         FROM messages CROSS JOIN {numbers} WHERE id = {} \
         GROUP BY application_id, test, (created_at + i) / 86400000, status",
        of.0
    );
    let mut conn = world.database.connect().await;
    let mut statements = vec![days, messages];
    if world.database.has_unusual_messages() {
        // The service writes this row with each such message.
        statements.push(
            "INSERT INTO unusual_messages (shard, application_id, test, status, message_id) \
             SELECT shard, application_id, test, status, id FROM messages \
             WHERE status > 5 OR status = 3 ON CONFLICT DO NOTHING"
                .to_owned(),
        );
    }
    for statement in statements {
        conn.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    conn.close().await.unwrap();
}

/// Ends three waiting messages. The first is refused, the second is accepted and has no receipt
/// yet, and the third is delivered.
async fn end_three(world: &World) -> Vec<Transid> {
    let carrier = service::SANDBOX_CARRIER;
    let (lease, claimed) = world.service.delivery().claim(carrier, 3).await.unwrap();
    let outcomes = [refused(), taken_as("a"), taken_as("b")];
    let results = claimed.iter().zip(outcomes);
    let results = results.map(|(message, outcome)| answered(message, outcome));
    world.record(carrier, &lease, results.collect()).await;
    let receipts = claimed.iter().skip(2).map(|message| Receipt {
        id: message.id,
        application_id: message.application_id,
        status: MessageStatus::Delivered,
        error: None,
    });
    world.service.delivery().record_receipts(receipts.collect()).await.unwrap();
    claimed.iter().map(|message| message.id).collect()
}

async fn a_search_by_status_finds_a_message_behind_60000_others_on_its_first_page(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let mut sent = Vec::new();
    for _ in 0..4 {
        sent.push(world.send(&customer.live, "12345678").await.unwrap());
        world.pass(1);
    }
    let [rejected, submitted, delivered] = end_three(&world).await.try_into().unwrap();
    let queued = sent[3].transid.unwrap();
    world.pass(10);
    let newest = world.send(&customer.test, "12345678").await.unwrap();
    store_copies(&world, delivered, 60_000).await;
    world.pass(60_000);
    let access = world.access(&customer.live).await;
    for (status, expected) in [
        (MessageStatus::Rejected, vec![rejected]),
        (MessageStatus::Submitted, vec![submitted]),
        (MessageStatus::Queued, vec![queued]),
        (MessageStatus::Sending, vec![]),
        (MessageStatus::Unknown, vec![]),
        (MessageStatus::Failed, vec![]),
    ] {
        let filter = MessageFilter { status: Some(status), limit: 50, ..MessageFilter::default() };
        let page = world.service.messages().list(&access, &filter).await.unwrap();
        assert_eq!((transids(&page), page.next), (expected.clone(), None));
        let account = customer.account.id;
        let page = world.service.messages().account_messages(account, None, &filter).await;
        let page = page.unwrap();
        let of_test = newest.transid.filter(|_| status == MessageStatus::Queued);
        let both: Vec<_> = of_test.into_iter().chain(expected).collect();
        assert_eq!((transids(&page), page.next), (both, None));
    }
}

async fn a_search_that_ran_out_of_time_continues_at_its_cursor_and_misses_nothing(
    backend: Backend,
) {
    let mut world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
        world.pass(1);
    }
    let [_, submitted, delivered] = end_three(&world).await.try_into().unwrap();
    store_copies(&world, delivered, 5000).await;
    world.limits.report_time = Duration::ZERO;
    let world = world.reopen().await;
    // By number and status, because no index has both.
    let mut filter = MessageFilter {
        number: Number::parse("12345678").ok(),
        status: Some(MessageStatus::Submitted),
        ..filter()
    };
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let account = customer.account.id;
        let page = world.service.messages().account_messages(account, None, &filter).await;
        let page = page.unwrap();
        found.extend(transids(&page));
        pages += 1;
        assert!(pages < 10, "the cursor doesn't move: {:?}", page.next);
        let Some(next) = page.next else { break };
        filter.cursor = Some(next);
    }
    assert_eq!(found, [submitted]);
    assert!(pages > 1);
}

/// Compares every combination of filters and page sizes with a filter over all messages.
async fn every_combination_of_filters_finds_exactly_the_messages_that_match(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "100").await;
    let mut batchid = None;
    for n in 0..60 {
        let key = if n % 5 == 4 { &customer.test } else { &customer.live };
        if n % 20 == 10 {
            let file = "12345678,a\n22345678,b\n12345678,c\n";
            let order = plain();
            let batch = upload(&world.service, key, None, file, order).await;
            batchid = batch.unwrap().batchid;
            world.expand_all().await;
        }
        let number = ["12345678", "22345678", "26612345678"][n % 3];
        let mut request = request(key, number, "x");
        request.requestid = (n % 2 == 0).then(|| RequestId::parse("r").unwrap());
        world.service.messages().send(request).await.unwrap();
        if n % 4 == 0 {
            end_three(&world).await;
        }
        world.pass(if n % 15 == 14 { 9 * HOUR_MS } else { 1 });
    }
    let all = pages(&world, &customer, filter()).await;
    assert!(all.len() > 60, "{}", all.len());
    let statuses = MessageStatus::ALL.map(Some).into_iter().chain([None]);
    for status in statuses {
        for chosen in 0..16_usize {
            let middle = all[all.len() / 2].created_at;
            let wanted = MessageFilter {
                status,
                number: Number::parse("+26612345678").ok().filter(|_| chosen & 1 > 0),
                requestid: (chosen & 2 > 0).then(|| "r".to_owned()),
                batchid: batchid.filter(|_| chosen & 4 > 0),
                from: Some(middle).filter(|_| chosen & 8 > 0),
                to: Some(middle).filter(|_| chosen == 9),
                limit: 1 + i64::try_from(chosen).unwrap(),
                ..MessageFilter::default()
            };
            let fits = |record: &&MessageRecord| {
                wanted.status.is_none_or(|status| record.status == status)
                    && (wanted.number.is_none() || record.number.ends_with("12345678"))
                    && (wanted.requestid.is_none() || record.requestid == wanted.requestid)
                    && (wanted.batchid.is_none() || record.batchid == wanted.batchid)
                    && wanted.from.is_none_or(|from| record.created_at >= from)
                    && wanted.to.is_none_or(|to| record.created_at < to)
            };
            let expected: Vec<_> = all.iter().filter(fits).cloned().collect();
            let found = pages(&world, &customer, wanted.clone()).await;
            assert_eq!(found, expected, "{wanted:?}");
        }
    }
}

/// Reads all pages of an account's list. Each page except the last must be full.
async fn pages(
    world: &World,
    customer: &Customer,
    mut filter: MessageFilter,
) -> Vec<MessageRecord> {
    let mut found = Vec::new();
    loop {
        let account = customer.account.id;
        let page = world.service.messages().account_messages(account, None, &filter).await;
        let page = page.unwrap();
        let count = i64::try_from(page.items.len()).unwrap();
        assert!(page.next.is_none() || count == filter.limit, "{filter:?}");
        found.extend(page.items);
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            return found;
        }
    }
}

fn transids(page: &Paged<MessageRecord>) -> Vec<Transid> {
    page.items.iter().map(|record| record.transid).collect()
}
