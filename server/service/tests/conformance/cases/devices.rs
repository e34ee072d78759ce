//! Sessions and signed-in devices.

use domain::KeyKind;
use domain::security_event::SecurityEventKind::{
    KeyReplaced, PasswordChanged, PasswordReset, PasswordWrong, ResetAsked, SignInFailed, SignedIn,
    SignedOutOthers,
};
use service::{Actor, ClientInfo, Refusal, Service, SessionRow};

use crate::database::Backend;
use crate::world::{HOUR_MS, PASSWORD, World, password};

on_each_backend![
    a_session_ends_after_thirty_idle_minutes,
    a_session_ends_after_twelve_hours_however_busy,
    the_end_of_a_session_is_told_without_putting_it_off,
    devices_are_listed_and_signed_out_one_by_one_or_all_others,
    a_device_keeps_its_name_at_the_next_sign_in,
    changing_the_password_or_a_key_signs_out_the_other_devices,
    a_token_is_nowhere_in_the_database,
    a_session_keeps_what_is_stored_of_it_under_a_new_token,
    what_happens_to_an_account_is_recorded_with_who_asked,
    denied_access_is_recorded_up_to_a_limit_and_throttled_attempts_as_one_sum,
    strangers_do_not_keep_the_owner_out_of_a_known_device,
    strangers_do_not_keep_the_owner_out_of_a_network_of_theirs,
];

const MINUTE_MS: i64 = 60_000;

async fn sign_in(service: &Service, token: &str, account_id: i64) {
    let account = service.accounts().account(account_id).await.unwrap().unwrap();
    let row =
        SessionRow { account_id: None, data: "{}".to_owned(), expires_at: service.clock().now() };
    assert!(service.accounts().session_create(token, &row).await.unwrap());
    let client = ClientInfo { user_agent: format!("browser {token}"), address: "::1".to_owned() };
    service.accounts().device_sign_in(token, &account, &client).await.unwrap();
}

async fn signed_in(service: &Service, token: &str) -> bool {
    service.accounts().session_account(token).await.unwrap().is_some()
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
    assert!(world.service.accounts().session_load("a").await.unwrap().is_none());
    assert_eq!(world.service.accounts().session_sweep().await.unwrap(), 1);
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

async fn the_end_of_a_session_is_told_without_putting_it_off(backend: Backend) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    let service = &world.service;
    sign_in(service, "a", account.id).await;
    for left in [25, 5] {
        world.pass((if left == 25 { 5 } else { 20 }) * MINUTE_MS);
        let end = service.accounts().session_end("a").await.unwrap().unwrap();
        assert_eq!((end.in_ms, end.idle), (left * MINUTE_MS, true));
    }
    world.pass(5 * MINUTE_MS);
    assert_eq!(service.accounts().session_end("a").await.unwrap(), None);

    // A session ends 12 hours after the sign-in, even if it is in use.
    sign_in(service, "b", account.id).await;
    for _ in 0..47 {
        world.pass(15 * MINUTE_MS);
        assert!(signed_in(service, "b").await);
    }
    let end = service.accounts().session_end("b").await.unwrap().unwrap();
    assert_eq!((end.in_ms, end.idle), (15 * MINUTE_MS, false));
    // A session that waits for a code isn't signed in.
    let row =
        SessionRow { account_id: None, data: "{}".to_owned(), expires_at: service.clock().now() };
    assert!(service.accounts().session_create("c", &row).await.unwrap());
    assert_eq!(service.accounts().session_end("c").await.unwrap(), None);
}

async fn devices_are_listed_and_signed_out_one_by_one_or_all_others(backend: Backend) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    let other = world.account("two@example.org").await;
    for token in ["a", "b", "c"] {
        sign_in(&world.service, token, account.id).await;
    }
    sign_in(&world.service, "d", other.id).await;
    let devices = world.service.accounts().devices(account.id, "b").await.unwrap();
    let current: Vec<_> = devices.iter().filter(|device| device.current).collect();
    assert_eq!((devices.len(), current.len()), (3, 1));
    assert_eq!(current[0].user_agent, "browser b");

    let refused =
        world.service.accounts().sign_out_device(other.id, current[0].id).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::NoSuchDevice));
    world.service.accounts().sign_out_device(account.id, current[0].id).await.unwrap();
    assert!(!signed_in(&world.service, "b").await);
    let accounts = world.service.accounts();
    let wrong = accounts.sign_out_others(account.id, "not the password", "a");
    let refused = wrong.await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::WrongPassword));
    assert!(signed_in(&world.service, "c").await);
    world.service.accounts().sign_out_others(account.id, PASSWORD, "a").await.unwrap();
    assert!(signed_in(&world.service, "a").await);
    assert!(!signed_in(&world.service, "c").await);
    assert!(signed_in(&world.service, "d").await);
}

async fn a_device_keeps_its_name_at_the_next_sign_in(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let account = world.account("one@example.org").await;
    let other = world.account("two@example.org").await;
    sign_in(service, "a", account.id).await;
    sign_in(service, "b", account.id).await;
    let id_of = async |token: &str| {
        let devices = service.accounts().devices(account.id, token).await.unwrap();
        devices.iter().find(|device| device.current).unwrap().id
    };
    let names = async || {
        let devices = service.accounts().devices(account.id, "").await.unwrap();
        let named = devices.into_iter().map(|device| (device.user_agent, device.name));
        named.collect::<std::collections::BTreeMap<_, _>>()
    };
    let a = id_of("a").await;
    service.accounts().name_device(account.id, a, " The office ").await.unwrap();
    assert_eq!(names().await["browser a"].as_deref(), Some("The office"));
    assert_eq!(names().await["browser b"], None);
    service.accounts().sign_out_device(account.id, a).await.unwrap();
    sign_in(service, "a", account.id).await;
    assert_eq!(names().await["browser a"].as_deref(), Some("The office"));

    let a = id_of("a").await;
    for (owner, name, refusal) in [
        (account.id, "x".repeat(61), Refusal::DeviceNameInvalid),
        (account.id, "two\nlines".to_owned(), Refusal::DeviceNameInvalid),
        (other.id, "mine".to_owned(), Refusal::NoSuchDevice),
    ] {
        let refused = service.accounts().name_device(owner, a, &name).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&refusal));
    }
    service.accounts().name_device(account.id, a, "").await.unwrap();
    assert_eq!(names().await["browser a"], None);
}

async fn changing_the_password_or_a_key_signs_out_the_other_devices(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let (account, service) = (customer.account.id, &world.service);
    for token in ["a", "b"] {
        sign_in(service, token, account).await;
    }
    let new = password("another password");
    let accounts = service.accounts();
    let wrong = accounts.change_password(&customer.account, "wrong password", &new, "a");
    assert_eq!(wrong.await.unwrap_err().refusal(), Some(&Refusal::WrongPassword));
    assert!(signed_in(service, "b").await);
    service
        .accounts()
        .change_password(&customer.account, PASSWORD, &password("another password"), "a")
        .await
        .unwrap();
    assert!(signed_in(service, "a").await && !signed_in(service, "b").await);

    sign_in(service, "c", account).await;
    service
        .applications()
        .replace_key(account, customer.reference, KeyKind::Test, "another password", "a", None)
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
    assert!(found(b"browser token-that"), "the copy holds what it should");
    assert!(!found(PASSWORD.as_bytes()));
    let hits =
        bytes.windows(28).filter(|window| *window == b"token-that-must-not-be-found").count();
    assert_eq!(hits, 2, "only the user agents name it, of session and event");
}

async fn a_session_keeps_what_is_stored_of_it_under_a_new_token(backend: Backend) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    sign_in(&world.service, "a", account.id).await;
    sign_in(&world.service, "b", account.id).await;
    world.service.accounts().session_rename("a", "b").await.unwrap();
    assert!(!signed_in(&world.service, "a").await);
    assert!(signed_in(&world.service, "b").await);
    let devices = world.service.accounts().devices(account.id, "b").await.unwrap();
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0].user_agent, "browser a");
}

async fn what_happens_to_an_account_is_recorded_with_who_asked(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let (account, email) = (customer.account.clone(), "one@example.org");
    let client = ClientInfo { user_agent: "x".repeat(1000), address: "2001:db8::1".to_owned() };
    let service = world.service.asked_by(client.clone(), None);
    service.accounts().sign_in(email, "not the password", &client.address).await.unwrap_err();
    service.accounts().request_reset(email, &client.address).await.unwrap();
    service.accounts().sign_in(email, PASSWORD, &client.address).await.unwrap();
    sign_in(&service, "a", account.id).await;
    let (reference, kind) = (customer.reference, KeyKind::Live);
    let applications = service.applications();
    let replaced = applications.replace_key(account.id, reference, kind, PASSWORD, "a", None);
    replaced.await.unwrap();
    sign_in(&service, "b", account.id).await;
    let accounts = service.accounts();
    let wrong = accounts.sign_out_others(account.id, "not the password", "a");
    wrong.await.unwrap_err();
    let accounts = service.accounts();
    let done = accounts.sign_out_others(account.id, PASSWORD, "a");
    done.await.unwrap();
    let new = password("another good password");
    let accounts = service.accounts();
    let changed = accounts.change_password(&account, PASSWORD, &new, "a");
    changed.await.unwrap();
    let token = service.accounts().issue_reset(&Actor::System, email).await.unwrap();
    service.accounts().reset_password(&token, &password(PASSWORD)).await.unwrap();

    let events = service.accounts().security_events(account.id).await.unwrap();
    let kinds: Vec<_> = events.iter().rev().map(|event| event.kind).collect();
    assert_eq!(
        kinds,
        [
            SignInFailed,
            ResetAsked,
            SignedIn,
            KeyReplaced,
            SignedIn,
            PasswordWrong,
            SignedOutOthers,
            PasswordChanged,
            PasswordReset
        ]
    );
    for event in events.iter().filter(|event| event.kind != SignedIn) {
        assert_eq!(event.address, client.address);
        assert_eq!(event.user_agent.len(), 255);
    }
    let by = events.iter().find(|event| event.kind == SignedIn).unwrap();
    assert_eq!(by.detail.as_deref(), Some("By password"));
    let of_key = events.iter().find(|event| event.kind == KeyReplaced).unwrap();
    assert_eq!(of_key.detail, Some(reference.to_string()));
    let other = world.account("two@example.org").await;
    assert!(service.accounts().security_events(other.id).await.unwrap().is_empty());
    world.pass(181 * 24 * HOUR_MS);
    service.accounts().session_sweep().await.unwrap();
    assert!(service.accounts().security_events(account.id).await.unwrap().is_empty());
}

async fn denied_access_is_recorded_up_to_a_limit_and_throttled_attempts_as_one_sum(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    for _ in 0..30 {
        world.service.accounts().record_denied(account.id, "/support").await.unwrap();
    }
    let events = world.service.accounts().security_events(account.id).await.unwrap();
    assert_eq!(events.len(), 20);
    assert_eq!(events[0].detail.as_deref(), Some("/support"));
    world.service.accounts().store_throttled().await.unwrap();
    let contents = world.database.contents(&world.service).await;
    let has = |text: &str| contents.windows(text.len()).any(|it| it == text.as_bytes());
    assert!(has("denied access: 10"));
}

async fn strangers_do_not_keep_the_owner_out_of_a_network_of_theirs(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let account = world.account("one@example.org").await;
    sign_in(service, "a", account.id).await;
    for n in 0..100 {
        let stranger = format!("192.0.2.{}", n / 5);
        let accounts = service.accounts();
        let wrong = accounts.sign_in("one@example.org", "not the password", &stranger);
        wrong.await.unwrap_err();
    }
    let accounts = service.accounts();
    let elsewhere = accounts.sign_in("one@example.org", PASSWORD, "198.51.100.1");
    let refused = elsewhere.await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::Throttled { .. })));
    let at_home =
        async |secret: &str| service.accounts().sign_in("one@example.org", secret, "::1").await;
    for _ in 0..10 {
        let wrong = at_home("not the password").await.unwrap_err();
        assert_eq!(wrong.refusal(), Some(&Refusal::WrongCredentials));
    }
    // Only failures from its own network lock it out.
    let refused = at_home(PASSWORD).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::Throttled { .. })));
    world.pass(HOUR_MS / 4 + 1);
    at_home(PASSWORD).await.unwrap();
}

async fn strangers_do_not_keep_the_owner_out_of_a_known_device(backend: Backend) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    let service = &world.service;
    let cookie = service.accounts().make_device_cookie(account.id).await.unwrap();
    let other = world.account("two@example.org").await;
    let of_other = service.accounts().make_device_cookie(other.id).await.unwrap();
    // Twenty networks use up the limit of one account.
    for n in 0..100 {
        let stranger = format!("192.0.2.{}", n / 5);
        let accounts = service.accounts();
        let wrong = accounts.sign_in("one@example.org", "not the password", &stranger);
        let refused = wrong.await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&Refusal::WrongCredentials), "{n}");
    }
    let owner = |cookie: Option<String>| service.asked_by(ClientInfo::default(), cookie);
    let tried = async |cookie: Option<String>, secret: &str| {
        let service = owner(cookie);
        service.accounts().sign_in("one@example.org", secret, "198.51.100.1").await
    };
    for unknown in [None, of_other, Some("00".repeat(48)), Some("x".to_owned())] {
        let refused = tried(unknown, PASSWORD).await.unwrap_err();
        assert!(matches!(refused.refusal(), Some(Refusal::Throttled { .. })));
    }
    for _ in 0..10 {
        tried(cookie.clone(), "not the password").await.unwrap_err();
    }
    let refused = tried(cookie.clone(), PASSWORD).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::Throttled { .. })));
    world.pass(HOUR_MS / 4 + 1);
    tried(cookie, PASSWORD).await.unwrap();
}
