use domain::{Category, RequestId, Timestamp};
use service::{MessageFilter, Refusal};

use crate::world::{World, answered, refused, request};

fn filter() -> MessageFilter {
    MessageFilter {
        limit: 100,
        ..MessageFilter::default()
    }
}

#[tokio::test]
async fn pages_of_a_report_are_complete_and_in_order() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "10").await;
    let mut sent = Vec::new();
    for n in 0..25 {
        sent.push(
            world
                .send(&customer.live, "12345678")
                .await
                .unwrap()
                .transid
                .unwrap(),
        );
        world.pass(n % 3);
    }
    sent.reverse();
    let access = world.access(&customer.live).await;
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let filter = MessageFilter {
            limit: 7,
            cursor,
            ..MessageFilter::default()
        };
        let page = world.service.messages(&access, &filter).await.unwrap();
        found.extend(page.items.into_iter().map(|record| record.transid));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, sent);
    let bad = MessageFilter {
        cursor: Some("x".to_owned()),
        ..filter()
    };
    let refused = world.service.messages(&access, &bad).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::InvalidCursor));
}

#[tokio::test]
async fn filters_find_what_they_name_and_from_is_inclusive_and_to_exclusive() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "10").await;
    let mut named = request(&customer.live, "87654321", "x");
    named.requestid = RequestId::parse("order-7").ok();
    let first = world.service.send(named).await.unwrap().transid.unwrap();
    world.pass(1000);
    let middle = world.now();
    let second = world
        .send(&customer.live, "12345678")
        .await
        .unwrap()
        .transid
        .unwrap();
    world.pass(1000);
    let third = world
        .send(&customer.live, "+12345678")
        .await
        .unwrap()
        .transid
        .unwrap();
    let access = world.access(&customer.live).await;
    let find = |filter: MessageFilter| {
        let service = world.service.clone();
        async move {
            let page = service.messages(&access, &filter).await.unwrap();
            page.items
                .into_iter()
                .map(|record| record.transid)
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(
        find(MessageFilter {
            transid: Some(second),
            ..filter()
        })
        .await,
        [second]
    );
    let by_request = MessageFilter {
        requestid: Some("order-7".to_owned()),
        ..filter()
    };
    assert_eq!(find(by_request).await, [first]);
    let by_number = MessageFilter {
        number: Some("12345678".to_owned()),
        ..filter()
    };
    assert_eq!(find(by_number).await, [third, second]);
    assert_eq!(
        find(MessageFilter {
            from: Some(middle),
            ..filter()
        })
        .await,
        [third, second]
    );
    assert_eq!(
        find(MessageFilter {
            to: Some(middle),
            ..filter()
        })
        .await,
        [first]
    );
    let (early, late) = (
        Timestamp::from_unix_ms(i64::MIN / 2),
        Timestamp::from_unix_ms(i64::MAX / 2),
    );
    assert_eq!(
        find(MessageFilter {
            from: Some(early),
            to: Some(late),
            ..filter()
        })
        .await
        .len(),
        3
    );
    assert!(
        find(MessageFilter {
            from: Some(late),
            ..filter()
        })
        .await
        .is_empty()
    );
    assert!(
        find(MessageFilter {
            to: Some(early),
            ..filter()
        })
        .await
        .is_empty()
    );
}

#[tokio::test]
async fn keys_see_their_own_messages_alone_and_the_portal_sees_the_accounts() {
    let world = World::new().await;
    let one = world.active("one@example.org", "1").await;
    let two = world.active("two@example.org", "1").await;
    let live = world
        .send(&one.live, "12345678")
        .await
        .unwrap()
        .transid
        .unwrap();
    let test = world
        .send(&one.test, "12345678")
        .await
        .unwrap()
        .transid
        .unwrap();
    let foreign = world
        .send(&two.live, "12345678")
        .await
        .unwrap()
        .transid
        .unwrap();
    for (key, own) in [(&one.live, live), (&one.test, test), (&two.live, foreign)] {
        let access = world.access(key).await;
        let page = world.service.messages(&access, &filter()).await.unwrap();
        assert_eq!(
            page.items
                .iter()
                .map(|record| record.transid)
                .collect::<Vec<_>>(),
            [own]
        );
        for other in [live, test, foreign] {
            let found = world.service.message(&access, other).await.unwrap();
            assert_eq!(found.is_some(), other == own);
        }
    }
    let account = one.account.id;
    let page = world
        .service
        .account_messages(account, None, &filter())
        .await
        .unwrap();
    let shown: Vec<_> = page
        .items
        .iter()
        .map(|record| (record.transid, record.test))
        .collect();
    assert_eq!(shown, [(test, true), (live, false)]);
    assert!(
        world
            .service
            .account_message(account, foreign)
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        world
            .service
            .account_message(account, test)
            .await
            .unwrap()
            .is_some()
    );
    let refused = world
        .service
        .account_messages(account, Some(two.reference), &filter())
        .await;
    assert_eq!(
        refused.unwrap_err().refusal(),
        Some(&Refusal::NoSuchApplication)
    );
    let sender = crate::world::name("Power");
    let second = world
        .service
        .create_application(account, Category::Electricity, Some(&sender))
        .await
        .unwrap();
    let none = world
        .service
        .account_messages(account, Some(second.reference), &filter())
        .await;
    assert!(none.unwrap().items.is_empty());
}

#[tokio::test]
async fn the_charge_of_a_message_is_explained() {
    let world = World::new().await;
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
            .message(&access, sent.transid.unwrap())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(detail.charge.rule, rule);
        assert_eq!(detail.charge.charged, sent.cost);
        assert!(
            detail.charge.why.starts_with("1 page to "),
            "{}",
            detail.charge.why
        );
    }
}

#[tokio::test]
async fn a_rare_status_is_looked_for_in_bounded_steps_that_lose_nothing() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "2000").await;
    let first = world
        .send(&customer.live, "12345678")
        .await
        .unwrap()
        .transid
        .unwrap();
    let (lease, claimed) = world
        .service
        .claim(service::SANDBOX_CARRIER, 1)
        .await
        .unwrap();
    assert_eq!(claimed[0].id, first);
    let result = answered(&claimed[0], refused());
    world
        .record(service::SANDBOX_CARRIER, &lease, vec![result])
        .await;
    let request = request(&customer.live, "12345678", "x");
    // In groups that fit the writer's queue.
    for _ in 0..21 {
        let tasks: Vec<_> = (0..1000)
            .map(|_| {
                let (service, request) = (world.service.clone(), request.clone());
                tokio::spawn(async move { service.send(request).await.unwrap() })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }
    let access = world.access(&customer.live).await;
    let mut filter = MessageFilter {
        status: Some(domain::MessageStatus::Rejected),
        ..filter()
    };
    let page = world.service.messages(&access, &filter).await.unwrap();
    assert!(page.items.is_empty() && page.next.is_some());
    filter.cursor = page.next;
    let page = world.service.messages(&access, &filter).await.unwrap();
    let found: Vec<_> = page.items.iter().map(|record| record.transid).collect();
    assert_eq!((found, page.next), (vec![first], None));
}
