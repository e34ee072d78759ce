//! Sessions and signed-in devices.

use domain::KeyKind;
use service::{ClientInfo, Refusal, Service, SessionRow};

use crate::database::Backend;
use crate::world::{HOUR_MS, PASSWORD, World, password};

on_each_backend![
    a_session_ends_after_thirty_idle_minutes,
    a_session_ends_after_twelve_hours_however_busy,
    devices_are_listed_and_signed_out_one_by_one_or_all_others,
    changing_the_password_or_a_key_signs_out_the_other_devices,
    a_token_is_nowhere_in_the_database,
];

const MINUTE_MS: i64 = 60_000;

async fn sign_in(service: &Service, token: &str, account_id: i64) {
    let account = service.account(account_id).await.unwrap().unwrap();
    let row = SessionRow {
        account_id: None,
        data: "{}".to_owned(),
        expires_at: service.clock().now(),
    };
    assert!(service.session_create(token, &row).await.unwrap());
    let client = ClientInfo {
        user_agent: format!("browser {token}"),
        address: "::1".to_owned(),
    };
    service
        .device_sign_in(token, &account, &client)
        .await
        .unwrap();
}

async fn signed_in(service: &Service, token: &str) -> bool {
    service.session_account(token).await.unwrap().is_some()
}

async fn a_session_ends_after_thirty_idle_minutes(backend: Backend) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    sign_in(&world.service, "a", account.id).await;
    for _ in 0..4 {
        world.pass(29 * MINUTE_MS);
        assert!(signed_in(&world.service, "a").await);
    }
    world.pass(30 * MINUTE_MS);
    assert!(!signed_in(&world.service, "a").await);
    assert!(world.service.session_load("a").await.unwrap().is_none());
    assert_eq!(world.service.session_sweep().await.unwrap(), 1);
}

async fn a_session_ends_after_twelve_hours_however_busy(backend: Backend) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    sign_in(&world.service, "a", account.id).await;
    for _ in 0..47 {
        world.pass(15 * MINUTE_MS);
        assert!(signed_in(&world.service, "a").await);
    }
    world.pass(15 * MINUTE_MS);
    assert!(!signed_in(&world.service, "a").await);
}

async fn devices_are_listed_and_signed_out_one_by_one_or_all_others(backend: Backend) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    let other = world.account("two@example.org").await;
    for token in ["a", "b", "c"] {
        sign_in(&world.service, token, account.id).await;
    }
    sign_in(&world.service, "d", other.id).await;
    let devices = world.service.devices(account.id, "b").await.unwrap();
    let current: Vec<_> = devices.iter().filter(|device| device.current).collect();
    assert_eq!((devices.len(), current.len()), (3, 1));
    assert_eq!(current[0].user_agent, "browser b");

    let refused = world
        .service
        .sign_out_device(other.id, current[0].id)
        .await
        .unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::NoSuchDevice));
    world
        .service
        .sign_out_device(account.id, current[0].id)
        .await
        .unwrap();
    assert!(!signed_in(&world.service, "b").await);
    world
        .service
        .sign_out_others(account.id, "a")
        .await
        .unwrap();
    assert!(signed_in(&world.service, "a").await);
    assert!(!signed_in(&world.service, "c").await);
    assert!(signed_in(&world.service, "d").await);
}

async fn changing_the_password_or_a_key_signs_out_the_other_devices(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let (account, service) = (customer.account.id, &world.service);
    for token in ["a", "b"] {
        sign_in(service, token, account).await;
    }
    let new = password("another password");
    let wrong = service.change_password(account, "wrong password", &new, "a");
    assert_eq!(
        wrong.await.unwrap_err().refusal(),
        Some(&Refusal::WrongPassword)
    );
    assert!(signed_in(service, "b").await);
    service
        .change_password(account, PASSWORD, &password("another password"), "a")
        .await
        .unwrap();
    assert!(signed_in(service, "a").await && !signed_in(service, "b").await);

    sign_in(service, "c", account).await;
    service
        .replace_key(
            account,
            customer.reference,
            KeyKind::Test,
            "another password",
            "a",
        )
        .await
        .unwrap();
    assert!(signed_in(service, "a").await && !signed_in(service, "c").await);
}

async fn a_token_is_nowhere_in_the_database(backend: Backend) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    sign_in(&world.service, "token-that-must-not-be-found", account.id).await;
    world.pass(HOUR_MS / 4);
    let bytes = world.database.contents(&world.service).await;
    let found = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    assert!(
        found(b"browser token-that"),
        "the copy holds what it should"
    );
    assert!(!found(PASSWORD.as_bytes()));
    let hits = bytes
        .windows(28)
        .filter(|window| *window == b"token-that-must-not-be-found")
        .count();
    assert_eq!(hits, 1, "only the user agent names it");
}
