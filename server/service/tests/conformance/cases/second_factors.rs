//! Second factors: their codes, the two steps of a sign-in, and step-up authentication before
//! important actions.

use domain::MailKind;
use domain::records::AccountRecord;
use domain::security_event::SecurityEventKind::SignedIn;
use service::{
    ClientInfo, FactorRule, RECOVERY_CODES, Refusal, SecondStep, Service, SessionRow, TotpSecret,
};

use crate::database::Backend;
use crate::world::{HOUR_MS, PASSWORD, World, password};

on_each_backend![
    each_code_works_once_and_no_earlier_one_after_it,
    of_many_who_bring_one_code_at_once_one_gets_in,
    a_recovery_code_works_once_for_its_account,
    wrong_codes_are_throttled,
    wrong_codes_are_mailed_and_wait_longer_but_not_in_the_owners_browser,
    a_session_between_the_steps_opens_nothing_and_ends_after_ten_minutes,
    no_sign_in_gets_around_the_second_factor,
    step_up_is_needed_again_after_ten_minutes,
    staff_cannot_be_without_a_second_factor,
    a_secret_is_nowhere_in_the_database_and_opens_after_a_restart,
];

pub const MINUTE_MS: i64 = 60_000;
const STEP_MS: i64 = 30_000;

/// Sets up a second factor, then lets enough time pass for a new code. Returns the secret and the
/// recovery codes.
pub async fn set_up(world: &World, account: &AccountRecord) -> (TotpSecret, Vec<String>) {
    let secret = world.service.accounts().new_totp_secret();
    let code = secret.code(world.now());
    let accounts = world.service.accounts();
    let set_up = accounts.set_up_factor(account.id, &secret, &code, "");
    let codes = set_up.await.unwrap();
    world.pass(2 * STEP_MS);
    (secret, codes)
}

pub async fn session(service: &Service, token: &str) {
    let row =
        SessionRow { account_id: None, data: "{}".to_owned(), expires_at: service.clock().now() };
    assert!(service.accounts().session_create(token, &row).await.unwrap());
}

/// Creates a session that waits for the second step of an account's sign-in.
pub async fn half_signed_in(world: &World, token: &str, account: &AccountRecord) {
    session(&world.service, token).await;
    world.service.accounts().await_code(token, account).await.unwrap();
}

fn code(secret: &TotpSecret, world: &World, steps: i64) -> SecondStep {
    SecondStep::Code(secret.code(world.now().plus_ms(steps * STEP_MS)))
}

pub async fn refusal<T>(done: impl Future<Output = service::Result<T>>) -> Refusal {
    match done.await {
        Ok(_) => panic!("it wasn't refused"),
        Err(error) => error.refusal().unwrap().clone(),
    }
}

pub async fn with_factor(world: &World, email: &str) -> (AccountRecord, TotpSecret, Vec<String>) {
    let account = world.account(email).await;
    let (secret, codes) = set_up(world, &account).await;
    let account = world.service.accounts().account(account.id).await.unwrap().unwrap();
    assert!(account.second_factor);
    (account, secret, codes)
}

async fn each_code_works_once_and_no_earlier_one_after_it(backend: Backend) {
    let world = World::new(backend).await;
    let (account, secret, _) = with_factor(&world, "one@example.org").await;
    half_signed_in(&world, "a", &account).await;
    let step = async |steps| {
        let code = code(&secret, &world, steps);
        world.service.accounts().sign_in_step("a", &code).await
    };
    assert_eq!(refusal(step(2)).await, Refusal::WrongCode);
    assert_eq!(refusal(step(-2)).await, Refusal::WrongCode);
    assert_eq!(step(-1).await.unwrap().id, account.id);
    assert_eq!(refusal(step(-1)).await, Refusal::WrongCode);
    step(1).await.unwrap();
    // The code before the last one.
    assert_eq!(refusal(step(0)).await, Refusal::WrongCode);
    world.pass(STEP_MS);
    assert_eq!(refusal(step(0)).await, Refusal::WrongCode);
    step(1).await.unwrap();
    // Setting up a factor uses up the code that confirms it.
    let new = world.service.accounts().new_totp_secret();
    let shown = new.code(world.now());
    world.service.accounts().set_up_factor(account.id, &new, &shown, "").await.unwrap();
    half_signed_in(&world, "b", &account).await;
    let again = SecondStep::Code(shown);
    let refused = refusal(world.service.accounts().sign_in_step("b", &again)).await;
    assert_eq!(refused, Refusal::WrongCode);
}

async fn of_many_who_bring_one_code_at_once_one_gets_in(backend: Backend) {
    let world = World::new(backend).await;
    let (account, secret, _) = with_factor(&world, "one@example.org").await;
    half_signed_in(&world, "a", &account).await;
    let code = code(&secret, &world, 0);
    let attempts = (0..6).map(|_| {
        let (service, code) = (world.service.clone(), code.clone());
        tokio::spawn(async move { service.accounts().sign_in_step("a", &code).await.is_ok() })
    });
    let mut in_ = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        in_ += usize::from(attempt.await.unwrap());
    }
    assert_eq!(in_, 1);
}

async fn a_recovery_code_works_once_for_its_account(backend: Backend) {
    let world = World::new(backend).await;
    let (account, _, codes) = with_factor(&world, "one@example.org").await;
    let (other, ..) = with_factor(&world, "two@example.org").await;
    assert_eq!(codes.len(), RECOVERY_CODES);
    half_signed_in(&world, "a", &account).await;
    half_signed_in(&world, "b", &other).await;
    let step = async |token: &str, code: &str| {
        let code = SecondStep::RecoveryCode(code.to_owned());
        world.service.accounts().sign_in_step(token, &code).await
    };
    let refused = refusal(step("b", &codes[0])).await;
    assert_eq!(refused, Refusal::WrongRecoveryCode);
    // Spaces, hyphens and case don't matter.
    let typed = format!(" {} ", codes[0].to_uppercase().replace('-', " "));
    step("a", &typed).await.unwrap();
    let refused = refusal(step("a", &codes[0])).await;
    assert_eq!(refused, Refusal::WrongRecoveryCode);
    let left = async || world.service.accounts().factor(account.id).await.unwrap().unwrap();
    assert_eq!(left().await.recovery_codes, 9);
    let renewed = world.service.accounts().renew_recovery_codes(account.id).await.unwrap();
    assert_eq!(left().await.recovery_codes, 10);
    let refused = refusal(step("a", &codes[1])).await;
    assert_eq!(refused, Refusal::WrongRecoveryCode);
    step("a", &renewed[1]).await.unwrap();
}

async fn wrong_codes_are_throttled(backend: Backend) {
    let world = World::new(backend).await;
    let (account, secret, codes) = with_factor(&world, "one@example.org").await;
    half_signed_in(&world, "a", &account).await;
    for n in 0..10 {
        let wrong = match n % 2 {
            0 => code(&secret, &world, 10),
            _ => SecondStep::RecoveryCode("aaaa-aaaa-aaaa-aaaa".to_owned()),
        };
        let refused = refusal(world.service.accounts().sign_in_step("a", &wrong)).await;
        assert!(!matches!(refused, Refusal::Throttled { .. }), "{refused:?}");
    }
    for right in [code(&secret, &world, 0), SecondStep::RecoveryCode(codes[0].clone())] {
        let refused = refusal(world.service.accounts().sign_in_step("a", &right)).await;
        assert!(matches!(refused, Refusal::Throttled { .. }), "{refused:?}");
    }
    world.pass(HOUR_MS);
    half_signed_in(&world, "b", &account).await;
    let right = code(&secret, &world, 0);
    world.service.accounts().sign_in_step("b", &right).await.unwrap();
}

async fn wrong_codes_are_mailed_and_wait_longer_but_not_in_the_owners_browser(backend: Backend) {
    let world = World::new(backend).await;
    let (account, secret, _) = with_factor(&world, "one@example.org").await;
    let service = &world.service;
    let cookie = service.accounts().make_device_cookie(account.id).await.unwrap();
    let owner = service.asked_by(ClientInfo::default(), cookie);
    half_signed_in(&world, "thief", &account).await;
    let guess = async || {
        let guessed = code(&secret, &world, 10);
        refusal(service.accounts().sign_in_step("thief", &guessed)).await
    };
    let mails = async || {
        let mails = service.operations().mails(None, 200).await.unwrap().items;
        let told = mails.iter().filter(|mail| mail.kind == MailKind::WrongCodes);
        told.count()
    };
    // Consecutive wrong codes count even if much time passes between them.
    for _ in 0..9 {
        assert_eq!(guess().await, Refusal::WrongCode);
        world.pass(STEP_MS);
    }
    assert_eq!(mails().await, 0);
    assert_eq!(guess().await, Refusal::WrongCode);
    assert_eq!(mails().await, 1);
    for retry_after_s in [60, 120] {
        assert_eq!(guess().await, Refusal::Throttled { retry_after_s });
        world.pass(retry_after_s * 1000);
        assert_eq!(guess().await, Refusal::WrongCode);
    }
    assert!(matches!(guess().await, Refusal::Throttled { .. }));
    half_signed_in(&world, "owner again", &account).await;
    let right = code(&secret, &world, 0);
    owner.accounts().sign_in_step("owner again", &right).await.unwrap();
    // After a correct code there are no more waits.
    half_signed_in(&world, "elsewhere", &account).await;
    let right = code(&secret, &world, 1);
    service.accounts().sign_in_step("elsewhere", &right).await.unwrap();
    assert_eq!(mails().await, 1);
}

async fn a_session_between_the_steps_opens_nothing_and_ends_after_ten_minutes(backend: Backend) {
    let world = World::new(backend).await;
    let (account, secret, _) = with_factor(&world, "one@example.org").await;
    let service = &world.service;
    for token in ["a", "b"] {
        half_signed_in(&world, token, &account).await;
        assert_eq!(service.accounts().session_account(token).await.unwrap(), None);
        assert_eq!(service.accounts().session_follower(token).await.unwrap(), None);
    }
    assert_eq!(service.accounts().devices(account.id, "a").await.unwrap(), []);
    world.pass(10 * MINUTE_MS);
    let refused = refusal(service.accounts().sign_in_step("a", &code(&secret, &world, 0))).await;
    assert_eq!(refused, Refusal::SignInOver);
    // Changing the password also ends it.
    half_signed_in(&world, "c", &account).await;
    let new = password("another password");
    service.accounts().change_password(&account, PASSWORD, &new, "").await.unwrap();
    let refused = refusal(service.accounts().sign_in_step("c", &code(&secret, &world, 0))).await;
    assert_eq!(refused, Refusal::SignInOver);
    session(service, "d").await;
    let refused = refusal(service.accounts().await_code("d", &account)).await;
    assert_eq!(refused, Refusal::WrongCredentials);
}

async fn no_sign_in_gets_around_the_second_factor(backend: Backend) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    let (service, client) = (&world.service, ClientInfo::default());
    session(service, "before").await;
    service.accounts().device_sign_in("before", &account, &client).await.unwrap();
    // The password was verified before the factor was set up.
    set_up(&world, &account).await;
    assert_eq!(service.accounts().session_account("before").await.unwrap(), None);
    session(service, "a").await;
    let refused = refusal(service.accounts().device_sign_in("a", &account, &client)).await;
    assert_eq!(refused, Refusal::WrongCredentials);
    service.accounts().device_sign_in_by_code("a", &account, &client).await.unwrap();
    let signed_in = service.accounts().session_account("a").await.unwrap().unwrap();
    assert!(signed_in.second_factor);
    let events = service.accounts().security_events(account.id).await.unwrap();
    let newest = events.iter().find(|event| event.kind == SignedIn).unwrap();
    assert_eq!(newest.detail.as_deref(), Some("By password and second factor"));
    // A password that was set through a reset link doesn't replace the factor either.
    let accounts = service.accounts();
    let issued = accounts.issue_reset(&service::Actor::System, "one@example.org");
    let new = password("another password");
    let token = issued.await.unwrap();
    service.accounts().reset_password(&token, &new).await.unwrap();
    let accounts = service.accounts();
    let account = accounts.sign_in("one@example.org", "another password", "x");
    let account = account.await.unwrap();
    assert!(account.second_factor);
    session(service, "b").await;
    let refused = refusal(service.accounts().device_sign_in("b", &account, &client)).await;
    assert_eq!(refused, Refusal::WrongCredentials);
}

async fn step_up_is_needed_again_after_ten_minutes(backend: Backend) {
    let world = World::new(backend).await;
    let (service, client) = (&world.service, ClientInfo::default());
    let account = world.account("one@example.org").await;
    session(service, "a").await;
    service.accounts().device_sign_in("a", &account, &client).await.unwrap();
    service.accounts().step_up("a", &account, "").await.unwrap();
    world.pass(10 * MINUTE_MS);
    for (credential, wanted) in
        [("", Refusal::PasswordNeeded), ("wrong password", Refusal::StepUpPasswordWrong)]
    {
        assert_eq!(refusal(service.accounts().step_up("a", &account, credential)).await, wanted);
    }
    service.accounts().step_up("a", &account, PASSWORD).await.unwrap();
    service.accounts().step_up("a", &account, "").await.unwrap();

    let (secret, recovery_codes) = set_up(&world, &account).await;
    let account = service.accounts().account(account.id).await.unwrap().unwrap();
    session(service, "b").await;
    service.accounts().device_sign_in_by_code("b", &account, &client).await.unwrap();
    world.pass(10 * MINUTE_MS);
    for (credential, wanted) in [
        ("", Refusal::CodeNeeded),
        ("123", Refusal::StepUpCodeWrong),
        // The password alone is no longer enough.
        (PASSWORD, Refusal::StepUpCodeWrong),
    ] {
        assert_eq!(refusal(service.accounts().step_up("b", &account, credential)).await, wanted);
    }
    let shown = secret.code(world.now());
    service.accounts().step_up("b", &account, &shown).await.unwrap();
    service.accounts().step_up("b", &account, "").await.unwrap();
    // A recovery code stands for a lost phone, once.
    world.pass(10 * MINUTE_MS);
    service.accounts().step_up("b", &account, &recovery_codes[0]).await.unwrap();
    world.pass(10 * MINUTE_MS);
    let again = refusal(service.accounts().step_up("b", &account, &recovery_codes[0])).await;
    assert_eq!(again, Refusal::StepUpCodeWrong);
    // The step-up of one session doesn't apply to another session, nor to one that isn't signed in.
    for token in ["c", "no session"] {
        let refused = refusal(service.accounts().step_up(token, &account, "")).await;
        assert_eq!(refused, Refusal::CodeNeeded);
    }
}

async fn staff_cannot_be_without_a_second_factor(backend: Backend) {
    let mut world = World::new(backend).await;
    let customer = world.account("one@example.org").await;
    let email = domain::Email::parse("staff@example.org").unwrap();
    let staff = world
        .service
        .accounts()
        .add_account(&service::Actor::System, &email, &password(PASSWORD), true)
        .await
        .unwrap();
    assert!(world.service.accounts().must_set_up_factor(&staff));
    assert!(!world.service.accounts().must_set_up_factor(&customer));
    for account in [&staff, &customer] {
        set_up(&world, account).await;
    }
    let refused = refusal(world.service.accounts().remove_factor(staff.id)).await;
    assert_eq!(refused, Refusal::SecondFactorRequired);
    world.service.accounts().remove_factor(customer.id).await.unwrap();
    let refused = refusal(world.service.accounts().remove_factor(customer.id)).await;
    assert_eq!(refused, Refusal::NoSecondFactor);
    let refused = refusal(world.service.accounts().renew_recovery_codes(customer.id)).await;
    assert_eq!(refused, Refusal::NoSecondFactor);
    // A stricter rule also applies to existing sessions.
    world.limits.require_second_factor = FactorRule::All;
    let world = world.reopen().await;
    let customer = world.service.accounts().account(customer.id).await.unwrap().unwrap();
    assert!(world.service.accounts().must_set_up_factor(&customer));
}

async fn a_secret_is_nowhere_in_the_database_and_opens_after_a_restart(backend: Backend) {
    let world = World::new(backend).await;
    let (account, secret, codes) = with_factor(&world, "one@example.org").await;
    let bytes = world.database.contents(&world.service).await;
    let found = |needle: &str| bytes.windows(needle.len()).any(|w| w == needle.as_bytes());
    assert!(found("one@example.org"), "the copy holds what it should");
    assert!(!found(&secret.base32()) && !found(&secret.base32().to_lowercase()));
    for code in &codes {
        assert!(!found(code) && !found(&code.replace('-', "")));
    }
    let world = world.reopen().await;
    let service = &world.service;
    assert!(service.accounts().factor_in_force(account.id, &secret).await.unwrap());
    let other = service.accounts().new_totp_secret();
    assert!(!service.accounts().factor_in_force(account.id, &other).await.unwrap());
    // Another process can open the secret, with its own data folder or the same one.
    let mut config = world.config();
    let folder = tempfile::tempdir().unwrap();
    if world.database.url().starts_with("postgres") {
        config.data_dir = folder.path().to_owned();
    }
    let beside = Service::open_beside(config).await.unwrap();
    assert!(beside.accounts().factor_in_force(account.id, &secret).await.unwrap());
    beside.close().await;
}
