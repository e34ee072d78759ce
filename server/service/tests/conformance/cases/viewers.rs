//! Two members of staff on one case: they see each other, and the first decision wins.

use domain::decision::{CaseKind, Decided, Viewer};
use domain::records::AccountRecord;
use domain::{ApplicationStatus, SenderStatus};
use service::{Actor, Refusal, Service};

use crate::database::Backend;
use crate::world::{World, name};

on_each_backend![
    staff_on_the_same_case_see_each_other_for_two_minutes,
    a_view_is_stored_again_after_a_minute,
    the_loser_of_two_decisions_about_a_name_is_told_who_won_and_when,
    the_loser_of_two_decisions_about_an_application_is_told_who_won_and_when,
];

const MINUTE_MS: i64 = 60_000;
const KIND: CaseKind = CaseKind::Sender;

/// Adds two members of staff.
async fn staff(world: &World) -> [AccountRecord; 2] {
    let first = world.account("ada@example.org").await;
    [first, world.account("ben@example.org").await]
}

/// Records a view of these cases. Returns the cases that others view, with the viewers' emails.
async fn view(
    service: &Service,
    account: &AccountRecord,
    kind: CaseKind,
    cases: &[&str],
) -> Vec<(String, String)> {
    let cases = cases.iter().map(|case| (*case).to_owned()).collect();
    let found = service.applications().view_cases(account.id, kind, cases).await;
    let mut found: Vec<_> =
        (found.unwrap().into_iter()).map(|Viewer { case, email }| (case, email)).collect();
    found.sort();
    found
}

fn seen(cases: &[&str], email: &str) -> Vec<(String, String)> {
    let of = |case: &&str| ((*case).to_owned(), email.to_owned());
    cases.iter().map(of).collect()
}

async fn staff_on_the_same_case_see_each_other_for_two_minutes(backend: Backend) {
    let world = World::new(backend).await;
    let [ada, ben] = staff(&world).await;
    let service = &world.service;
    assert_eq!(view(service, &ada, KIND, &["1", "2"]).await, []);
    assert_eq!(view(service, &ada, KIND, &["1", "2"]).await, [], "not oneself");
    let found = view(service, &ben, KIND, &["2", "3"]).await;
    assert_eq!(found, seen(&["2"], "ada@example.org"));
    let found = view(service, &ada, KIND, &["1", "2"]).await;
    assert_eq!(found, seen(&["2"], "ben@example.org"));
    // A case of another kind is a different case.
    let other = view(service, &ben, CaseKind::Application, &["1", "2"]).await;
    assert_eq!(other, []);
    world.pass(2 * MINUTE_MS);
    assert_eq!(view(service, &ben, KIND, &["1", "2", "3"]).await, []);
}

async fn a_view_is_stored_again_after_a_minute(backend: Backend) {
    let world = World::new(backend).await;
    let [ada, ben] = staff(&world).await;
    let service = &world.service;
    view(service, &ada, KIND, &["1"]).await;
    world.pass(MINUTE_MS);
    view(service, &ada, KIND, &["1"]).await;
    world.pass(MINUTE_MS);
    let found = view(service, &ben, KIND, &["1"]).await;
    assert_eq!(found, seen(&["1"], "ada@example.org"));
}

async fn the_loser_of_two_decisions_about_a_name_is_told_who_won_and_when(backend: Backend) {
    let world = World::new(backend).await;
    let [ada, ben] = staff(&world).await;
    let service = &world.service;
    let customer = world.pending("one@example.org").await;
    let (account, reference) = (customer.account.id, customer.reference);
    let ask = async |text: &str| {
        let name = name(text);
        let applications = service.applications();
        let asked = applications.request_sender_name(account, reference, &name);
        asked.await.unwrap();
        service.applications().sender_requests(true).await.unwrap().pop().unwrap().id
    };
    let first = ask("Acme").await;
    let by_ada = Actor::Account(ada.id);
    let applications = service.applications();
    let rejecting = applications.reject_sender(&by_ada, first, "too general");
    rejecting.await.unwrap();
    let told = async |status: SenderStatus, id: i64| {
        let late = service.applications().accept_sender(&Actor::Account(ben.id), id).await;
        let Some(Refusal::SenderDecided { status: found, decided }) =
            late.unwrap_err().refusal().cloned()
        else {
            panic!("it wasn't refused for an earlier decision")
        };
        assert_eq!(found, status);
        decided.map(|decided| {
            let what = decided.what.clone().unwrap_or_default();
            assert!(what.contains("ed a sender name"), "{what}");
            Decided { what: None, ..decided }
        })
    };
    let by = |email: &str| Some(Decided { by: email.to_owned(), at: world.now(), what: None });
    assert_eq!(told(SenderStatus::Rejected, first).await, by("ada@example.org"));
    world.pass(MINUTE_MS);
    let second = ask("Acme2").await;
    service.applications().accept_sender(&by_ada, second).await.unwrap();
    assert_eq!(told(SenderStatus::Accepted, second).await, by("ada@example.org"));
    let third = ask("Acme3").await;
    ask("Acme4").await;
    // The customer replaced the request. Nobody decided.
    assert_eq!(told(SenderStatus::Replaced, third).await, None);
}

async fn the_loser_of_two_decisions_about_an_application_is_told_who_won_and_when(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let [ada, ben] = staff(&world).await;
    let service = &world.service;
    let reference = world.pending("one@example.org").await.reference;
    let told = async |actor: &Actor| {
        let late = service.applications().approve(actor, reference).await.unwrap_err();
        let Some(Refusal::StatusConflict { status, decided, .. }) = late.refusal().cloned() else {
            panic!("it wasn't refused for its status")
        };
        assert_eq!(status, ApplicationStatus::Active);
        decided.unwrap()
    };
    let [by_ada, by_ben] = [&ada, &ben].map(|account| Actor::Account(account.id));
    service.applications().approve(&by_ada, reference).await.unwrap();
    let at = world.now();
    world.pass(MINUTE_MS);
    let decided = told(&by_ben).await;
    assert_eq!((decided.by.as_str(), decided.at), ("ada@example.org", at));
    service.applications().suspend(&Actor::CommandLine, reference, "disputed").await.unwrap();
    service.applications().reinstate(&Actor::CommandLine, reference).await.unwrap();
    let decided = told(&by_ben).await;
    assert!(decided.by.starts_with("command line ("), "{}", decided.by);
    assert_eq!(decided.at, world.now());
}
