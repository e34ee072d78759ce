//! The last calls of an application, which its owner can see.

use domain::{ApiKey, KeyKind, Reason};
use service::{ApiCall, Refusal};

use crate::database::Backend;
use crate::world::{HOUR_MS, PASSWORD, World};

on_each_backend![
    its_owner_sees_the_last_calls,
    a_key_that_was_replaced_within_a_day_is_its_owners,
    the_calls_go_with_the_account,
    old_calls_are_deleted,
];

fn call(reason: Option<Reason>, is_known: bool) -> ApiCall {
    ApiCall {
        method: "POST",
        route: "/sms/send/{key}",
        from: Some("192.0.2.7".parse().unwrap()),
        recipient: Some("•••••987".to_owned()),
        reason,
        detail: reason.map(|_| "What was wrong.".to_owned()),
        is_known,
    }
}

async fn its_owner_sees_the_last_calls(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.pending("calls@example.org").await;
    let (owner, reference) = (customer.account.id, customer.reference);
    let calls = async || service.applications().api_calls(owner, reference).await.unwrap();
    assert_eq!(calls().await, []);

    let first = world.now();
    service.applications().note_call(&customer.live, call(None, true));
    world.pass(1000);
    service.applications().note_call(&customer.test, call(Some(Reason::InvalidNumber), true));
    assert_eq!(calls().await, []);
    service.applications().store_calls().await.unwrap();
    // Storing again changes nothing.
    service.applications().store_calls().await.unwrap();
    let [refused, sent] = calls().await.try_into().unwrap();
    assert_eq!((sent.at, sent.kind), (first, KeyKind::Live));
    assert_eq!((sent.reason, sent.detail), (None, None));
    assert_eq!(sent.call, "POST /sms/send/{key}");
    assert_eq!(sent.from.as_deref(), Some("192.0.2.7"));
    assert_eq!(sent.recipient.as_deref(), Some("•••••987"));
    assert_eq!((refused.at, refused.kind), (world.now(), KeyKind::Test));
    assert_eq!(refused.reason, Some(Reason::InvalidNumber));
    assert_eq!(refused.detail.as_deref(), Some("What was wrong."));

    // Only the last calls stay, and they don't displace those of another application.
    let other = world.pending("other@example.org").await;
    service.applications().note_call(&other.live, call(None, true));
    for _ in 0..49 {
        world.pass(1);
        service.applications().note_call(&customer.live, call(None, true));
    }
    service.applications().store_calls().await.unwrap();
    let kept = calls().await;
    assert_eq!(kept.len(), 50);
    assert_eq!(kept[49].reason, Some(Reason::InvalidNumber));
    for _ in 0..10_000 {
        service.applications().note_call(&customer.live, call(Some(Reason::ApiPending), true));
    }
    service.applications().store_calls().await.unwrap();
    let kept = calls().await;
    assert_eq!(kept.len(), 50);
    let pending = |reason| reason == Some(Reason::ApiPending);
    assert!(kept.iter().all(|call| pending(call.reason)));
    let others = service.applications().api_calls(other.account.id, other.reference).await;
    assert_eq!(others.unwrap().len(), 1);

    let refused = service.applications().api_calls(other.account.id, reference).await;
    assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
}

async fn old_calls_are_deleted(backend: Backend) {
    let mut world = World::new(backend).await;
    world.limits.call_log_days = 10;
    let world = world.reopen().await;
    let customer = world.pending("calls@example.org").await;
    let (owner, reference) = (customer.account.id, customer.reference);
    let service = &world.service;
    let kept_after = async |days: i64| {
        world.pass(days * 24 * HOUR_MS);
        service.operations().forget_mails().await.unwrap();
        service.applications().api_calls(owner, reference).await.unwrap().len()
    };
    for _ in 0..2 {
        service.applications().note_call(&customer.live, call(None, true));
        service.applications().store_calls().await.unwrap();
        assert!(kept_after(6).await > 0);
    }
    assert_eq!(kept_after(0).await, 1);
    assert_eq!(kept_after(5).await, 0);
}

async fn a_key_that_was_replaced_within_a_day_is_its_owners(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.pending("calls@example.org").await;
    let other = world.pending("other@example.org").await;
    let (owner, reference) = (customer.account.id, customer.reference);
    let count = async || service.applications().api_calls(owner, reference).await.unwrap().len();
    let note = async |key, reason| {
        service.applications().note_call(key, call(Some(reason), false));
        service.applications().store_calls().await.unwrap();
    };
    // The key is valid, although the call was answered without checking it.
    note(&customer.live, Reason::Unavailable).await;
    assert_eq!(count().await, 1);
    // A key that never existed.
    let forged = ApiKey::from_entropy(reference, KeyKind::Live, [7; 32]);
    note(&forged, Reason::ApiInvalid).await;
    assert_eq!(count().await, 1);

    let replace = async || {
        let applications = service.applications();
        let replacing =
            applications.replace_key(owner, reference, KeyKind::Live, PASSWORD, "", None);
        replacing.await.unwrap()
    };
    let second = replace().await;
    world.pass(12 * 3_600_000);
    replace().await;
    for key in [&customer.live, &second] {
        note(key, Reason::ApiInvalid).await;
    }
    assert_eq!(count().await, 3);
    world.pass(12 * 3_600_000 + 1);
    note(&customer.live, Reason::ApiInvalid).await;
    assert_eq!(count().await, 3);
    note(&second, Reason::ApiInvalid).await;
    assert_eq!(count().await, 4);

    // Only some of many calls with invalid keys are looked up. Calls with valid keys have their own
    // limit.
    for _ in 0..10_000 {
        service.applications().note_call(&forged, call(Some(Reason::ApiInvalid), false));
    }
    service.applications().note_call(&other.live, call(None, true));
    note(&second, Reason::ApiInvalid).await;
    assert_eq!(count().await, 4);
    let others = service.applications().api_calls(other.account.id, other.reference).await;
    assert_eq!(others.unwrap().len(), 1);
}

async fn the_calls_go_with_the_account(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.pending("calls@example.org").await;
    let (owner, reference) = (customer.account.id, customer.reference);
    let applications = service.applications();
    let replacing = applications.replace_key(owner, reference, KeyKind::Test, PASSWORD, "", None);
    replacing.await.unwrap();
    service.applications().note_call(&customer.live, call(None, true));
    service.applications().store_calls().await.unwrap();
    // These calls are stored after the account is closed.
    service.applications().note_call(&customer.live, call(None, true));
    service.applications().note_call(&customer.test, call(Some(Reason::ApiInvalid), false));
    let accounts = service.accounts();
    let closing = accounts.close_account(&customer.account, PASSWORD, reference.as_str());
    closing.await.unwrap();
    service.applications().store_calls().await.unwrap();
    assert_eq!(service.applications().api_calls(owner, reference).await.unwrap(), []);
}
