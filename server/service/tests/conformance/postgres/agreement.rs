//! A decision of one process applies to all others at once, and processes share their limits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::{ApiKey, KeyKind, LimitField, Reason};
use futures_util::future::join_all;
use service::{
    Actor, ClientInfo, IdempotencyKey, Limits, SANDBOX_CARRIER, SendError, Service, SessionRow,
};
use sqlx::Executor as _;

use crate::cases::limits::limit;
use crate::database::Backend;
use crate::processes::{peer, peer_with};
use crate::uploads::{plain, rows, upload};
use crate::world::{Customer, HOUR_MS, PASSWORD, World, keyed, money, password, request};

const STAFF: Actor = Actor::CommandLine;

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_key_charges_nothing_through_another_process() {
    let world = World::new(Backend::SHARED).await;
    let b = peer(&world, 1).await;
    for round in 0..4 {
        let customer = world.active(&format!("{round}@example.org"), "1000").await;
        let replaced = Arc::new(AtomicBool::new(false));
        let sending: Vec<_> = (0..6)
            .map(|_| {
                let (b, key, replaced) = (b.clone(), customer.live.clone(), Arc::clone(&replaced));
                tokio::spawn(async move {
                    let mut accepted = 0;
                    loop {
                        let is_old = replaced.load(Ordering::SeqCst);
                        match b.messages().send(request(&key, "12345678", "hello")).await {
                            Ok(_) => {
                                assert!(!is_old, "charged by a key that was replaced");
                                accepted += 1;
                            }
                            Err(error) => {
                                assert_eq!(error, SendError::Refused(Reason::ApiInvalid));
                                return accepted;
                            }
                        }
                    }
                })
            })
            .collect();
        while world.balance(&customer.live).await == money("1000") {}
        let (account, reference) = (customer.account.id, customer.reference);
        let new = world
            .service
            .applications()
            .replace_key(account, reference, KeyKind::Live, PASSWORD, "token", None)
            .await
            .unwrap();
        replaced.store(true, Ordering::SeqCst);
        let mut accepted = 0;
        for task in sending {
            accepted += task.await.unwrap();
        }
        let charged = 1_000_000_000 - world.balance(&new).await.micros();
        assert_eq!(charged, accepted * 50_000);
        assert!(b.messages().send(request(&new, "12345678", "hello")).await.is_ok());
    }
    world.assert_sound().await;
}

async fn sign_in(service: &Service, customer: &Customer, token: &str) {
    let row =
        SessionRow { account_id: None, data: "{}".to_owned(), expires_at: service.clock().now() };
    assert!(service.accounts().session_create(token, &row).await.unwrap());
    let (account, client) = (&customer.account, ClientInfo::default());
    service.accounts().device_sign_in(token, account, &client).await.unwrap();
}

async fn holds(service: &Service, token: &str) -> bool {
    let account = service.accounts().session_follower(token).await;
    account.unwrap().is_some()
}

#[tokio::test]
async fn a_sign_out_and_a_new_password_hold_everywhere_at_once() {
    let world = World::new(Backend::SHARED).await;
    let (a, b) = (&world.service, peer(&world, 1).await);
    let customer = world.pending("one@example.org").await;
    for token in ["one", "two", "three"] {
        sign_in(a, &customer, token).await;
        assert!(holds(&b, token).await);
    }
    let account = customer.account.id;
    let devices = a.accounts().devices(account, "one").await.unwrap();
    let other = devices.iter().find(|device| !device.current).unwrap();
    a.accounts().sign_out_device(account, other.id).await.unwrap();
    let mut held = 0;
    for token in ["one", "two", "three"] {
        held += i32::from(holds(&b, token).await);
    }
    assert_eq!(held, 2);
    assert!(holds(&b, "one").await);
    let new = password("another good password");
    a.accounts().change_password(&customer.account, PASSWORD, &new, "one").await.unwrap();
    assert!(holds(&b, "one").await);
    assert!(!holds(&b, "two").await && !holds(&b, "three").await);
    assert!(b.accounts().sign_in("one@example.org", PASSWORD, "::1").await.is_err());
    let signed_in = b.accounts().sign_in("one@example.org", "another good password", "::1").await;
    assert!(signed_in.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_idempotency_key_through_several_processes_charges_once() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let (a, b, c) = (world.service.clone(), peer(&world, 1).await, peer(&world, 2).await);
    for n in 0..40 {
        let once = || keyed(&format!("key {n}"), request(&customer.live, "12345678", "hello"));
        let sends = [&a, &b, &c].map(|process| {
            let request = once();
            Box::pin(async move { process.messages().send(request).await })
        });
        let answers = join_all(sends).await;
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers.iter().filter(|sent| !sent.replayed).count(), 1);
        assert!(answers.iter().all(|sent| sent.transid == answers[0].transid));
        let other = keyed(&format!("key {n}"), request(&customer.live, "12345678", "no"));
        let refused = Err(SendError::Refused(Reason::IdempotencyMismatch));
        assert_eq!(b.messages().send(other).await, refused);
    }
    assert_eq!(world.balance(&customer.live).await, money("98"));
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_upload_under_one_key_through_several_processes_is_one_batch() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let (a, b) = (world.service.clone(), peer(&world, 1).await);
    for n in 0..15 {
        let key = format!("key {n}");
        let file = rows(10);
        let (one, two) = tokio::join!(
            upload(&a, &customer.live, Some(&key), &file, plain()),
            upload(&b, &customer.live, Some(&key), &file, plain()),
        );
        let busy = Err(SendError::Refused(Reason::IdempotencyInProgress));
        assert!(one.is_ok() || one == busy, "{one:?}");
        assert!(two.is_ok() || two == busy, "{two:?}");
        let batches: BTreeSet<_> =
            [one, two].into_iter().flatten().map(|batch| batch.batchid).collect();
        assert_eq!(batches.len(), 1);
        let again = upload(&b, &customer.live, Some(&key), &file, plain()).await.unwrap();
        assert!(batches.contains(&again.batchid));
    }
    assert_eq!(world.database.number("SELECT COUNT(*) FROM batches").await, 15);
    assert_eq!(world.balance(&customer.live).await, money("92.5"));
    world.expand_all().await;
    world.assert_sound().await;
}

#[tokio::test]
async fn an_upload_under_way_is_seen_by_the_others() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let (a, b) = (world.service.clone(), peer(&world, 1).await);
    let key = || IdempotencyKey::parse("key");
    let live = customer.live.expose();
    let ticket = a.messages().begin_bulk(Some(live), key()).await.unwrap();
    let refused = b.messages().begin_bulk(Some(live), key()).await.err();
    assert_eq!(refused, Some(Reason::IdempotencyInProgress));
    // Requests with the test key are separate.
    let test = b.messages().begin_bulk(Some(customer.test.expose()), key()).await.unwrap();
    ticket.end().await;
    let ticket_of_b = b.messages().begin_bulk(Some(live), key()).await.unwrap();
    for ticket in [ticket, ticket_of_b, test] {
        ticket.end().await;
    }
    let mut held = Vec::new();
    for n in 0..8 {
        let service = if n % 2 == 0 { &a } else { &b };
        held.push(service.messages().begin_bulk(Some(live), None).await.unwrap());
    }
    for service in [&a, &b] {
        let refused = service.messages().begin_bulk(Some(live), None).await.err();
        assert_eq!(refused, Some(Reason::RateLimited));
    }
    held[0].end().await;
    assert!(b.messages().begin_bulk(Some(live), None).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_count_requests_together() {
    let world = World::new(Backend::SHARED).await;
    let limits = Limits { requests_per_second: Some(20), ..Limits::default() };
    let customers = [
        world.active("one@example.org", "100").await,
        world.active("two@example.org", "100").await,
    ];
    let services = [peer_with(&world, 1, limits).await, peer_with(&world, 2, limits).await];
    for second in 0..4 {
        let sends = (0..160).map(|n| {
            let customer = &customers[(n / 2) % 2];
            let (service, key) = (services[n % 2].clone(), customer.live.clone());
            async move {
                (key.reference(), service.messages().send(request(&key, "12345678", "hello")).await)
            }
        });
        let answers = join_all(sends).await;
        for customer in &customers {
            let of_this = || answers.iter().filter(|(whose, _)| *whose == customer.reference);
            assert_eq!(of_this().filter(|(_, sent)| sent.is_ok()).count(), 20, "{second}");
            let limited = Err(SendError::Refused(Reason::RateLimited));
            assert_eq!(of_this().filter(|(_, sent)| *sent == limited).count(), 60);
        }
        // Other requests use the same bucket.
        let access = world.access(&customers[0].live).await;
        assert_eq!(services[0].messages().take_request(&access).await, Err(Reason::RateLimited));
        world.pass(1000);
    }
    world.assert_sound().await;
}

/// The commit group has a send with the live key, whose request is taken first, and one with the
/// test key.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_given_back_when_the_requests_of_other_keys_cannot_be_taken() {
    const REFUSE_TEST_KEYS: &str = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql \
        AS $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$; \
        CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON rate_buckets FOR EACH ROW \
        WHEN (NEW.test = 1) EXECUTE FUNCTION refuse()";
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let limits = Limits { requests_per_second: Some(3), ..Limits::default() };
    let service = peer_with(&world, 1, limits).await;
    let send = |key: &ApiKey| {
        let (service, order) = (service.clone(), request(key, "12345678", "hello"));
        tokio::spawn(async move { service.messages().send(order).await })
    };
    send(&customer.live).await.unwrap().unwrap();
    let mut conn = world.database.connect().await;
    conn.execute(REFUSE_TEST_KEYS).await.unwrap();
    // The two sends gather while an earlier commit group waits.
    conn.execute(world.database.hold()).await.unwrap();
    let before = send(&customer.live);
    while service.group_figures().inputs[0].1 < 2 {
        tokio::task::yield_now().await;
    }
    let together = [send(&customer.live), send(&customer.test)];
    while service.group_figures().inbox.sends < 2 {
        tokio::task::yield_now().await;
    }
    conn.execute("ROLLBACK").await.unwrap();
    before.await.unwrap().unwrap();
    for send in together {
        let refused = Err(SendError::Refused(Reason::Internal));
        assert_eq!(send.await.unwrap(), refused);
    }
    send(&customer.live).await.unwrap().unwrap();
    let limited = Err(SendError::Refused(Reason::RateLimited));
    assert_eq!(send(&customer.live).await.unwrap(), limited);
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_count_test_messages_together() {
    let world = World::new(Backend::SHARED).await;
    let limits = Limits { unpaid_test_messages: 30, ..Limits::default() };
    let customer = world.active("one@example.org", "0").await;
    let services = [peer_with(&world, 1, limits).await, peer_with(&world, 2, limits).await];
    for day in 0..2 {
        let sends = (0..80).map(|n| {
            let (service, key) = (services[n % 2].clone(), customer.test.clone());
            async move { service.messages().send(request(&key, "12345678", "hello")).await }
        });
        let answers = join_all(sends).await;
        let accepted = answers.iter().filter(|sent| sent.is_ok());
        assert_eq!(accepted.count(), 30, "{day}");
        let limited = Err(SendError::Refused(Reason::RateLimited));
        let refused = answers.iter().filter(|sent| **sent == limited);
        assert_eq!(refused.count(), 50, "{day}");
        world.pass(24 * HOUR_MS);
    }
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_never_overdraw_together() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "5").await;
    let services = [world.service.clone(), peer(&world, 1).await, peer(&world, 2).await];
    let sends = (0..300).map(|n| {
        let (service, key) = (services[n % 3].clone(), customer.live.clone());
        async move { service.messages().send(request(&key, "12345678", "hello")).await }
    });
    let answers = join_all(sends).await;
    assert_eq!(answers.iter().filter(|sent| sent.is_ok()).count(), 100);
    let refused = Err(SendError::Refused(Reason::InsufficientFunds));
    assert_eq!(answers.iter().filter(|sent| **sent == refused).count(), 200);
    assert_eq!(world.balance(&customer.live).await, money("0"));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_suspension_stops_the_claims_of_others() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "5").await;
    let b = peer(&world, 1).await;
    for _ in 0..5 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    world.service.applications().suspend(&STAFF, customer.reference, "a reason").await.unwrap();
    assert!(b.delivery().claim(SANDBOX_CARRIER, 10).await.unwrap().1.is_empty());
    let refused = b.messages().send(request(&customer.live, "12345678", "hello")).await;
    assert_eq!(refused, Err(SendError::Refused(Reason::ApiSuspended)));
    b.applications().reinstate(&STAFF, customer.reference).await.unwrap();
    world.service.delivery().resume_deferred().await.unwrap();
    assert_eq!(b.delivery().claim(SANDBOX_CARRIER, 10).await.unwrap().1.len(), 5);
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_exactly_over_several_processes() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let services = [world.service.clone(), peer(&world, 1).await, peer(&world, 2).await];
    let send_all = async |numbers: &[&str]| {
        let mut sends = Vec::new();
        for service in &services {
            for number in numbers {
                let send = request(&customer.live, number, "hello");
                sends.push(async move { service.messages().send(send).await });
            }
        }
        let answers = join_all(sends).await;
        let refused = answers.iter().filter_map(|answer| answer.err());
        let refused: Vec<SendError> = refused.collect();
        (answers.len() - refused.len(), refused)
    };
    limit(&world, &customer, &[(LimitField::PerRecipientHour, "7")]).await;
    let numbers = ["57000001", "26657000001", "57000002"].repeat(10);
    let (accepted, refused) = send_all(&numbers).await;
    assert_eq!(accepted, 14);
    assert!(refused.iter().all(|error| *error == SendError::Refused(Reason::RecipientFlooded)));
    // The change holds for the next group of every process.
    limit(
        &world,
        &customer,
        &[(LimitField::PerRecipientHour, ""), (LimitField::SpendPerDay, "10")],
    )
    .await;
    // 14 international or local messages were sent before.
    let spent = 100_000_000 - world.balance(&customer.live).await.micros();
    let (accepted, refused) = send_all(&["57000003"; 90]).await;
    let left = (10_000_000 - spent) / 50_000;
    assert_eq!(i64::try_from(accepted).unwrap(), left.max(0));
    assert!(refused.iter().all(|error| *error == SendError::Refused(Reason::SpendCapReached)));
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_count_messages_to_similar_numbers_together() {
    let world = World::new(Backend::SHARED).await;
    let services = [world.service.clone(), peer(&world, 1).await, peer(&world, 2).await];
    let customer = world.active("one@example.org", "100").await;
    limit(&world, &customer, &[(LimitField::TrafficPumping, "block")]).await;
    let mut accepted = 0;
    for (index, service) in services.iter().cycle().take(150).enumerate() {
        let number = format!("57000{index:03}");
        match service.messages().send(request(&customer.live, &number, "hello")).await {
            Ok(_) => accepted += 1,
            Err(error) => assert_eq!(error, SendError::Refused(Reason::TrafficPumping)),
        }
    }
    assert_eq!(accepted, 50);
    world.assert_sound().await;
}
