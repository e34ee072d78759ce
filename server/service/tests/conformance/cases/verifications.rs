//! One-time codes: what starts and checks store, cost and answer.

use domain::verify::{CheckFailure, Locale, MASK, TypedCode};
use domain::{ApiKey, LimitField, MessageStatus, Number, Reason, VerifyId};
use futures_util::future::join_all;
use service::{
    Checked, ClockChange, IdempotencyKey, OptOutAuthor, OptOutChange, Origin, Refusal, SendError,
    Sent, SentCode, Service, StartError, StartOf, StartRequest, SubmitOutcome,
};

use super::limits::limit;
use crate::database::Backend;
use crate::network::taken_as;
use crate::processes::peer;
use crate::sending::Sending;
use crate::world::{World, money, name};

on_each_backend![
    a_code_is_sent_and_stored_masked,
    a_code_is_accepted_once_and_never_after_its_end,
    wrong_codes_use_up_five_attempts,
    attempts_of_many_clients_are_five_in_all,
    a_code_is_sent_again_after_growing_pauses_and_three_times_at_most,
    resends_that_arrive_together_are_one,
    a_number_gets_one_start_within_the_cool_down,
    what_is_refused_is_free_and_stores_nothing,
    limits_refuse_starts,
    repeated_requests_get_the_same_answer,
    the_code_of_a_test_key_is_known,
    a_code_that_nobody_submitted_in_time_expires_and_is_released,
    settings_choose_language_and_website,
    figures_count_by_country,
];

const NUMBER: &str = "57000001";
/// The starts of an attacker who wants one number to get many messages.
const STARTS: usize = 10_000;

pub fn of_number(number: &str) -> StartOf {
    let number = Number::parse(number).unwrap();
    StartOf::New { number, locale: None, digits: 6, ttl_s: 600, name: None }
}

pub async fn start_with(
    service: &Service,
    key: &ApiKey,
    of: StartOf,
    idempotency: Option<&str>,
) -> Result<Sent, StartError> {
    let idempotency = idempotency.map(|key| IdempotencyKey::parse(key).unwrap());
    let messages = service.messages();
    let (access, defaults) =
        messages.authorize_start(Some(key.expose()), idempotency.as_ref()).await?;
    let request = StartRequest { key: key.clone(), of, idempotency, origin: Origin::default() };
    messages.start_verification(&access.access, &defaults, request).await
}

async fn start(sending: &Sending, of: StartOf) -> Result<Sent, StartError> {
    start_with(&sending.world.service, &sending.customer.live, of, None).await
}

async fn started(sending: &Sending, number: &str) -> SentCode {
    start(sending, of_number(number)).await.unwrap().code.unwrap()
}

/// Claims the only message, and returns the code in its text.
async fn read_code(sending: &Sending) -> String {
    let handed = sending.claim_one("acme").await;
    let code = handed.message.message.as_str().split(' ').next().unwrap().to_owned();
    sending.answer(&handed, taken_as("x")).await;
    code
}

async fn check_with(service: &Service, key: &ApiKey, id: &str, otp: &str) -> Checked {
    let access = service.messages().authorize(Some(key.expose())).await.unwrap();
    let typed = TypedCode::parse(otp).unwrap();
    service.messages().check_code(&access, id, typed, None).await.unwrap()
}

async fn check(sending: &Sending, id: VerifyId, otp: &str) -> Checked {
    let (service, key) = (&sending.world.service, &sending.customer.live);
    check_with(service, key, &id.to_string(), otp).await
}

/// Returns a code that isn't this one.
fn other_than(code: &str) -> String {
    let last = if code.ends_with('0') { "1" } else { "0" };
    format!("{}{last}", &code[..code.len() - 1])
}

fn early(outcome: Result<Sent, StartError>) -> i64 {
    match outcome {
        Err(StartError::TooEarly(at)) => at.unix_ms(),
        other => panic!("{other:?}"),
    }
}

fn refused(outcome: Result<Sent, StartError>) -> Reason {
    match outcome {
        Err(StartError::Send(SendError::Refused(reason))) => reason,
        other => panic!("{other:?}"),
    }
}

async fn a_code_is_sent_and_stored_masked(backend: Backend) {
    let sending = Sending::by_acme_or_beta(backend).await;
    let sent = start(&sending, of_number(NUMBER)).await.unwrap();
    let (id, code) = (sent.transid.unwrap(), sent.code.unwrap());
    assert_eq!((sent.cost, sent.balance), (money("0.05"), money("99.95")));
    assert_eq!(code.expires_at, sending.world.now().plus_ms(600_000));
    let handed = sending.claim_one("acme").await;
    let text = handed.message.message.as_str().to_owned();
    let digits = text.split(' ').next().unwrap();
    assert!(digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
    assert_eq!(handed.message.expires_at, code.expires_at);
    // Another carrier gets the same text.
    let refused = SubmitOutcome::Refused { error: "throttled".to_owned() };
    sending.answer(&handed, refused).await;
    let again = sending.claim_one("beta").await;
    assert_eq!(again.message.message.as_str(), text);
    sending.answer(&again, taken_as("x")).await;
    let stored = sending.detail(id).await.record.message;
    assert_eq!(stored, text.replace(digits, MASK));
    assert_eq!(check(&sending, code.id, digits).await.failure, None);
    sending.assert_sound().await;
}

async fn a_code_is_accepted_once_and_never_after_its_end(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let code = started(&sending, NUMBER).await;
    let digits = read_code(&sending).await;
    let spaced = format!(" {} {}", &digits[..3], &digits[3..]);
    let checked = check(&sending, code.id, &spaced).await;
    assert_eq!((checked.failure, checked.tries_left), (None, 4));
    assert_eq!(checked.expires_at, Some(code.expires_at));
    let again = check(&sending, code.id, &digits).await;
    assert_eq!(again.failure, Some(CheckFailure::AlreadyVerified));
    sending.world.pass(30_000);
    let code = started(&sending, NUMBER).await;
    let digits = read_code(&sending).await;
    sending.world.pass(600_000);
    assert_eq!(check(&sending, code.id, &digits).await.failure, Some(CheckFailure::Expired));
    // Nobody else's key checks it, and the application's own test key doesn't either.
    let other = sending.world.active("two@example.org", "1").await;
    let service = &sending.world.service;
    let strange = ["", "v_", "v_zzzzzzzzzzzzz", "m_0000000000000", &VerifyId(5).to_string()];
    for (key, id) in
        [(&other.live, &*code.id.to_string()), (&sending.customer.test, &*code.id.to_string())]
            .into_iter()
            .chain(strange.map(|id| (&sending.customer.live, id)))
    {
        let checked = check_with(service, key, id, &digits).await;
        let unknown = (Some(CheckFailure::Unknown), 0, None);
        assert_eq!((checked.failure, checked.tries_left, checked.expires_at), unknown, "{id}");
    }
    sending.assert_sound().await;
}

async fn wrong_codes_use_up_five_attempts(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let code = started(&sending, NUMBER).await;
    let digits = read_code(&sending).await;
    let access = sending.world.access(&sending.customer.live).await;
    let messages = sending.world.service.messages();
    let id = code.id.to_string();
    let long = TypedCode::parse("1234567").unwrap();
    let error = messages.check_code(&access, &id, long, None).await.unwrap_err();
    assert_eq!(error.refusal(), Some(&Refusal::WrongCodeLength(6)));
    for left in (0..5).rev() {
        let checked = check(&sending, code.id, &other_than(&digits)).await;
        assert_eq!((checked.failure, checked.tries_left), (Some(CheckFailure::WrongCode), left));
    }
    let checked = check(&sending, code.id, &digits).await;
    assert_eq!(checked.failure, Some(CheckFailure::NoTriesLeft));
    let again = start(&sending, StartOf::Again(code.id)).await;
    assert_eq!(refused(again), Reason::VerifyEnded);
    sending.assert_sound().await;
}

async fn attempts_of_many_clients_are_five_in_all(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let code = started(&sending, NUMBER).await;
    let digits = read_code(&sending).await;
    let mut services = vec![sending.world.service.clone()];
    if backend == Backend::SHARED {
        services.push(peer(&sending.world, 1).await);
    }
    let (key, id, wrong) = (&sending.customer.live, code.id.to_string(), other_than(&digits));
    let attempts = (0..64).map(|n| check_with(&services[n % services.len()], key, &id, &wrong));
    let failures: Vec<_> = join_all(attempts).await.iter().map(|it| it.failure).collect();
    let count = |failure| failures.iter().filter(|it| **it == Some(failure)).count();
    assert_eq!((count(CheckFailure::WrongCode), count(CheckFailure::NoTriesLeft)), (5, 59));

    // The right code is accepted once, however many clients give it.
    sending.world.pass(30_000);
    let code = started(&sending, NUMBER).await;
    let (digits, id) = (read_code(&sending).await, code.id.to_string());
    let attempts = (0..64).map(|n| check_with(&services[n % services.len()], key, &id, &digits));
    let failures: Vec<_> = join_all(attempts).await.iter().map(|it| it.failure).collect();
    assert_eq!(failures.iter().filter(|it| it.is_none()).count(), 1);
    sending.assert_sound().await;
}

async fn a_code_is_sent_again_after_growing_pauses_and_three_times_at_most(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let code = started(&sending, &format!("+266{NUMBER}")).await;
    sending.assert_balance("99.75").await;
    let digits = read_code(&sending).await;
    for (pause, balance) in [(30_000, "99.5"), (60_000, "99.25"), (120_000, "99")] {
        sending.world.pass(pause - 1);
        let again = start(&sending, StartOf::Again(code.id)).await;
        assert_eq!(early(again), sending.world.now().unix_ms() + 1);
        sending.world.pass(1);
        let sent = start(&sending, StartOf::Again(code.id)).await.unwrap();
        assert_eq!(sent.code, Some(code));
        // The price is that of the first message.
        sending.assert_balance(balance).await;
        assert_eq!(read_code(&sending).await, digits);
    }
    sending.world.pass(300_000);
    let again = start(&sending, StartOf::Again(code.id)).await;
    assert_eq!(refused(again), Reason::VerifyEnded);
    assert_eq!(check(&sending, code.id, &digits).await.failure, None);
    let unknown = start(&sending, StartOf::Again(VerifyId(7))).await;
    assert_eq!(refused(unknown), Reason::NotFound);
    sending.assert_sound().await;
}

async fn resends_that_arrive_together_are_one(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let code = started(&sending, NUMBER).await;
    sending.world.pass(30_000);
    let again = (0..8).map(|_| start(&sending, StartOf::Again(code.id)));
    let again = join_all(again).await;
    assert_eq!(again.iter().filter(|sent| sent.is_ok()).count(), 1);
    for refused in again.into_iter().filter(Result::is_err) {
        assert_eq!(early(refused), sending.world.now().unix_ms() + 60_000);
    }
    sending.assert_balance("99.9").await;
    sending.assert_sound().await;
}

async fn a_number_gets_one_start_within_the_cool_down(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let forms = [NUMBER, "+26657000001", "26657000001"];
    let mut accepted = 0;
    for _ in 0..100 {
        let starts = (0..STARTS / 100).map(|n| start(&sending, of_number(forms[n % 3])));
        let outcomes = join_all(starts).await;
        accepted += outcomes.iter().filter(|sent| sent.is_ok()).count();
        for refused in outcomes.into_iter().filter(Result::is_err) {
            assert_eq!(early(refused), sending.world.now().unix_ms() + 30_000);
        }
    }
    assert_eq!(accepted, 1);
    // Other numbers, the test key and other applications have their own.
    started(&sending, "57000002").await;
    let (service, test) = (&sending.world.service, &sending.customer.test);
    start_with(service, test, of_number(NUMBER), None).await.unwrap();
    let other = sending.world.active("two@example.org", "1").await;
    start_with(service, &other.live, of_number(NUMBER), None).await.unwrap();
    sending.world.pass(29_999);
    assert_eq!(early(start(&sending, of_number(NUMBER)).await), sending.world.now().unix_ms() + 1);
    sending.world.pass(1);
    started(&sending, NUMBER).await;
    sending.assert_sound().await;
}

async fn what_is_refused_is_free_and_stores_nothing(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "0.05").await;
    let access = world.access(&customer.live).await;
    let add = OptOutChange::Add(Number::parse("57000009").unwrap());
    let applications = world.service.applications();
    applications.change_opt_outs(&access, add, OptOutAuthor::Program, None).await.unwrap();
    let start = |number| start_with(&world.service, &customer.live, of_number(number), None);
    assert_eq!(refused(start("57000009").await), Reason::OptedOut);
    assert_eq!(refused(start("+4915112345678").await), Reason::InsufficientFunds);
    start(NUMBER).await.unwrap();
    assert_eq!(refused(start("57000002").await), Reason::InsufficientFunds);
    assert_eq!(world.balance(&customer.live).await, money("0"));
    let figures = world.service.messages().verify_figures(&access, 0).await.unwrap();
    assert_eq!(figures.iter().map(|row| row.starts).collect::<Vec<_>>(), [1]);
    world.assert_sound().await;
}

async fn limits_refuse_starts(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let access = sending.world.access(&sending.customer.live).await;
    let starts = async || {
        let messages = sending.world.service.messages();
        let figures = messages.verify_figures(&access, 0).await.unwrap();
        figures.iter().map(|row| row.starts).sum::<i64>()
    };
    for (stored, (limits, allowed, number, reason)) in (1..).zip([
        (&[(LimitField::PerRecipientHour, "1")][..], NUMBER, NUMBER, Reason::RecipientFlooded),
        (
            &[(LimitField::PerRecipientHour, ""), (LimitField::International, "off")][..],
            "57100001",
            "+4915112345678",
            Reason::InternationalDisabled,
        ),
        (
            &[(LimitField::TrafficPumping, "block"), (LimitField::TrafficPumpingMessages, "1")][..],
            "57200001",
            "57200002",
            Reason::TrafficPumping,
        ),
    ]) {
        limit(&sending.world, &sending.customer, limits).await;
        started(&sending, allowed).await;
        // The pause between two starts isn't the reason.
        sending.world.pass(30_000);
        assert_eq!(refused(start(&sending, of_number(number)).await), reason);
        assert_eq!(starts().await, stored, "{reason}");
        sending.assert_sound().await;
    }
    sending.assert_balance("99.85").await;
}

async fn repeated_requests_get_the_same_answer(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (service, key) = (&sending.world.service, &sending.customer.live);
    let first = start_with(service, key, of_number(NUMBER), Some("k")).await.unwrap();
    let again = start_with(service, key, of_number(NUMBER), Some("k")).await.unwrap();
    assert_eq!(again, Sent { replayed: true, ..first });
    let other = start_with(service, key, of_number("57000002"), Some("k")).await;
    assert_eq!(refused(other), Reason::IdempotencyMismatch);
    let id = first.code.unwrap().id;
    sending.world.pass(30_000);
    let resent = start_with(service, key, StartOf::Again(id), Some("r")).await.unwrap();
    let again = start_with(service, key, StartOf::Again(id), Some("r")).await.unwrap();
    assert_eq!(again, Sent { replayed: true, ..resent });
    sending.assert_balance("99.9").await;
    let handed = sending.claim("acme").await;
    let text = handed[0].message.message.as_str();
    let digits = text.split(' ').next().unwrap();
    let access = sending.world.access(key).await;
    let once = IdempotencyKey::parse("c").unwrap();
    let check = |otp: String| {
        let (typed, once, id) = (TypedCode::parse(&otp).unwrap(), once.clone(), id.to_string());
        let (messages, access) = (service.messages(), &access);
        async move { messages.check_code(access, &id, typed, Some(&once)).await }
    };
    let wrong = check(other_than(digits)).await.unwrap();
    assert_eq!((wrong.tries_left, wrong.replayed), (4, false));
    let again = check(other_than(digits)).await.unwrap();
    assert_eq!(again, Checked { replayed: true, ..wrong });
    let error = check(digits.to_owned()).await.unwrap_err();
    assert_eq!(error.refusal(), Some(&Refusal::IdempotencyMismatch));
    sending.assert_sound().await;
}

async fn the_code_of_a_test_key_is_known(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let of = |digits| match of_number(NUMBER) {
        StartOf::New { number, .. } => {
            let locale = Some(Locale::Arabic);
            StartOf::New { number, locale, digits, ttl_s: 60, name: Some(name("Shop")) }
        }
        again @ StartOf::Again(_) => again,
    };
    for (digits, otp) in [(4, "9876"), (10, "٩٨٧٦٥٤٣٢١٠")] {
        let sent = start_with(&world.service, &customer.test, of(digits), None).await.unwrap();
        let id = sent.code.unwrap().id.to_string();
        let checked = check_with(&world.service, &customer.test, &id, otp).await;
        assert_eq!(checked.failure, None);
        world.pass(30_000);
    }
    // The answer has the time of the key's clock, and its replay the same, whatever the clock shows.
    let access = world.access(&customer.test).await;
    let messages = world.service.messages();
    let (start, key) = (|| of_number("57000002"), &customer.test);
    let advance = |seconds| messages.move_clock(&access, ClockChange::Advance(seconds), None);
    advance(3600).await.unwrap().unwrap();
    let first = start_with(&world.service, key, start(), Some("k")).await.unwrap();
    let ends_at = world.now().plus_ms((3600 + 600) * 1000);
    assert_eq!(first.code.unwrap().expires_at, ends_at);
    advance(60).await.unwrap().unwrap();
    let again = start_with(&world.service, key, start(), Some("k")).await.unwrap();
    assert_eq!(again, Sent { replayed: true, ..first });
    world.assert_sound().await;
}

async fn a_code_that_nobody_submitted_in_time_expires_and_is_released(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let sent = start(&sending, of_number(NUMBER)).await.unwrap();
    sending.world.pass(600_000);
    sending.assert_nothing_due("acme").await;
    sending.world.service.delivery().expire().await.unwrap();
    sending.assert_status(sent.transid.unwrap(), MessageStatus::Expired).await;
    sending.assert_balance("100").await;
    sending.assert_sound().await;
    // Old verifications are deleted.
    sending.world.pass(31 * 86_400_000);
    sending.world.service.operations().forget_answers().await.unwrap();
    let access = sending.world.access(&sending.customer.live).await;
    let figures = sending.world.service.messages().verify_figures(&access, 0).await.unwrap();
    assert!(figures.is_empty());
}

async fn settings_choose_language_and_website(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let applications = sending.world.service.applications();
    let (account, reference) = (sending.customer.account.id, sending.customer.live.reference());
    let set = |locale, domain| applications.set_code_settings(account, reference, locale, domain);
    let error = set(Locale::French, "https://example.com").await.unwrap_err();
    assert_eq!(error.refusal(), Some(&Refusal::WebOtpDomainInvalid));
    set(Locale::French, " Shop.example.com ").await.unwrap();
    let started = start(&sending, of_number(NUMBER)).await.unwrap();
    let handed = sending.claim_one("acme").await;
    let text = handed.message.message.as_str();
    let (code, rest) = text.split_once(' ').unwrap();
    let expected = "est votre code Heliograph. Ne le communiquez à personne.";
    assert_eq!(rest, format!("{expected}\n\n@shop.example.com #{code}"));
    let stored = sending.detail(started.transid.unwrap()).await.record.message;
    assert_eq!(stored, format!("{MASK} {expected}\n\n@shop.example.com #{MASK}"));
    sending.assert_sound().await;
}

async fn figures_count_by_country(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let code = started(&sending, NUMBER).await;
    let digits = read_code(&sending).await;
    check(&sending, code.id, &digits).await;
    started(&sending, "57000002").await;
    started(&sending, "+4915112345678").await;
    let access = sending.world.access(&sending.customer.live).await;
    let figures = sending.world.service.messages().verify_figures(&access, 0).await.unwrap();
    let row = |index: usize| {
        let row = &figures[index];
        (&*row.country, row.starts, row.messages, row.delivered, row.verified, row.cost)
    };
    assert_eq!(row(0), ("266", 2, 2, 0, 1, money("0.1")));
    assert_eq!(row(1), ("49", 1, 1, 0, 0, money("0.25")));
    assert_eq!(figures.len(), 2);
}
