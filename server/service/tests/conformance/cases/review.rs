//! Pending work for staff, and the lists by which they decide.

use domain::decision::{ApplicationList, StaffList, Work};
use domain::support_hours::{SupportHours, UsualTime};
use domain::{ApplicationStatus, Reference, SenderStatus};
use service::{Actor, Refusal, Service};

use crate::database::Backend;
use crate::world::{World, name};

on_each_backend![
    applications_that_wait_are_listed_oldest_first_and_page_by_page,
    applications_are_listed_by_status,
    a_sender_name_is_shown_with_what_speaks_against_it,
    usual_times_are_those_of_the_last_month,
    a_list_that_staff_keep_is_replaced_whole,
    a_reason_must_be_readable,
];

const STAFF: Actor = Actor::CommandLine;
const MINUTE_MS: i64 = 60_000;

async fn listed(service: &Service, list: ApplicationList) -> Vec<Reference> {
    let page = service.applications().application_list(list, None, 100).await.unwrap();
    assert_eq!(page.next, None);
    page.items.into_iter().map(|item| item.reference).collect()
}

async fn applications_that_wait_are_listed_oldest_first_and_page_by_page(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let mut asked = Vec::new();
    for email in ["c@example.org", "a@example.org", "b@example.org"] {
        let customer = world.pending(email).await;
        asked.push((customer.account.id, customer.reference));
    }
    world.pending("not.asked@example.org").await;
    for (account, reference) in [asked[1], asked[0], asked[2]] {
        world.pass(MINUTE_MS);
        let requested = service.applications().request_activation(account, reference).await;
        requested.unwrap();
    }
    let mut cursor = None;
    let mut found = Vec::new();
    loop {
        let applications = service.applications();
        let list = applications.application_list(ApplicationList::Waiting, cursor.as_deref(), 2);
        let page = list.await.unwrap();
        assert!(page.items.len() <= 2);
        found.extend(page.items.into_iter().map(|item| item.reference));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, [asked[1].1, asked[0].1, asked[2].1]);

    service.applications().approve(&STAFF, asked[0].1).await.unwrap();
    let waiting = listed(service, ApplicationList::Waiting).await;
    assert_eq!(waiting, [asked[1].1, asked[2].1]);
    let applications = service.applications();
    let bad = applications.application_list(ApplicationList::Waiting, Some("x"), 2);
    assert_eq!(bad.await.unwrap_err().refusal(), Some(&Refusal::InvalidCursor));
}

async fn applications_are_listed_by_status(backend: Backend) {
    let world = World::new(backend).await;
    let pending = world.pending("pending@example.org").await.reference;
    let active = world.active("active@example.org", "1").await.reference;
    let suspended = world.active("suspended@example.org", "1").await.reference;
    let applications = world.service.applications();
    let suspending = applications.suspend(&STAFF, suspended, "disputed");
    assert_eq!(suspending.await.unwrap().status, ApplicationStatus::Suspended);
    for (list, expected) in [
        (ApplicationList::Pending, vec![pending]),
        (ApplicationList::Active, vec![active]),
        (ApplicationList::Suspended, vec![suspended]),
        (ApplicationList::All, vec![pending, active, suspended]),
    ] {
        assert_eq!(listed(&world.service, list).await, expected, "{list}");
    }
}

async fn a_sender_name_is_shown_with_what_speaks_against_it(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let ask = async |email: &str, names: &[&str]| {
        let customer = world.pending(email).await;
        let (account, reference) = (customer.account.id, customer.reference);
        for text in names {
            let name = name(text);
            let applications = service.applications();
            let asked = applications.request_sender_name(account, reference, &name);
            asked.await.unwrap();
        }
        service.applications().sender_requests(true).await.unwrap().pop().unwrap()
    };
    let accepted = ask("first@example.org", &["Modern1"]).await;
    service.applications().accept_sender(&STAFF, accepted.id).await.unwrap();
    let rejected = ask("second@example.org", &["Shop"]).await;
    let applications = service.applications();
    let rejecting = applications.reject_sender(&STAFF, rejected.id, "too general");
    rejecting.await.unwrap();
    let second = service.accounts().find_account("second@example.org").await.unwrap();
    let (account, looks_alike) = (second.unwrap().id, name("M0DEMl"));
    let applications = service.applications();
    let asked = applications.request_sender_name(account, rejected.reference, &looks_alike);
    asked.await.unwrap();
    ask("third@example.org", &["MyB4nk"]).await;

    let page = service.applications().sender_cases(None, 1).await.unwrap();
    let [case] = &page.items[..] else { panic!("{page:?}") };
    assert_eq!((case.request.name.as_str(), case.email.as_str()), ("M0DEMl", "second@example.org"));
    let similar: Vec<_> = case.similar.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(similar, ["modern1"]);
    assert_eq!(case.similar[0].email, "first@example.org");
    assert_eq!(case.reserved, Vec::<String>::new());
    let earlier: Vec<_> =
        (case.earlier.iter()).map(|request| (request.name.as_str(), request.status)).collect();
    assert_eq!(earlier, [("Shop", SenderStatus::Rejected)]);

    let page = service.applications().sender_cases(page.next.as_deref(), 1).await.unwrap();
    let [case] = &page.items[..] else { panic!("{page:?}") };
    assert_eq!(case.request.name, "MyB4nk");
    assert_eq!(case.reserved, ["bank"], "it looks like it");
    assert!(case.similar.is_empty() && case.earlier.is_empty());
    assert_eq!(page.next, None);
}

async fn usual_times_are_those_of_the_last_month(backend: Backend) {
    let mut world = World::new(backend).await;
    let service = &world.service;
    assert_eq!(usual(&world, Work::Activations).await, None);
    for minutes in 1..=20 {
        // Fewer decisions say little.
        assert_eq!(usual(&world, Work::Activations).await, None);
        let customer = world.pending(&format!("customer-{minutes}@example.org")).await;
        let (account, reference) = (customer.account.id, customer.reference);
        service.applications().request_activation(account, reference).await.unwrap();
        let acme = name("Acme");
        let applications = service.applications();
        let asked = applications.request_sender_name(account, reference, &acme);
        asked.await.unwrap();
        let work = service.applications().waiting_work().await.unwrap();
        for kind in [Work::Activations, Work::SenderNames] {
            let waits = work.iter().find(|waiting| waiting.work == kind).unwrap();
            assert_eq!((waits.count, waits.oldest), (1, Some(world.now())));
        }
        let counts = service.applications().pending_counts().await.unwrap();
        assert!(counts.contains(&(Work::SenderNames, 1)) && counts.contains(&(Work::Mails, 0)));
        world.pass(minutes * MINUTE_MS);
        service.applications().approve(&STAFF, reference).await.unwrap();
        let request = service.applications().sender_requests(true).await.unwrap().pop().unwrap();
        let applications = service.applications();
        let rejecting = applications.reject_sender(&STAFF, request.id, "no");
        rejecting.await.unwrap();
    }
    let all_hours = UsualTime { ms: 11 * MINUTE_MS, working_day_ms: None };
    assert_eq!(usual(&world, Work::Activations).await, Some(all_hours));
    assert_eq!(usual(&world, Work::SenderNames).await, Some(all_hours));
    assert_eq!(usual(&world, Work::Deposits).await, None);
    // Only support hours count: all of them were outside the first ones, and in the second ones.
    let tomorrow = world.now().plus_ms(24 * 60 * MINUTE_MS).day();
    let day = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let tomorrow = day[usize::try_from(tomorrow.rem_euclid(7)).unwrap()];
    for (hours, ms) in [(tomorrow, 0), ("Mon-Sun", 11 * MINUTE_MS)] {
        world.mail.support_hours = SupportHours::parse(&format!("{hours} 00:00-23:59 UTC"));
        world = world.reopen().await;
        let expected = UsualTime { ms, working_day_ms: Some((24 * 60 - 1) * MINUTE_MS) };
        for work in [Work::Activations, Work::SenderNames] {
            assert_eq!(usual(&world, work).await, Some(expected), "{hours}");
        }
    }
    world.pass(31 * 24 * 60 * MINUTE_MS);
    assert_eq!(usual(&world, Work::Activations).await, None);
    assert_eq!(usual(&world, Work::SenderNames).await, None);
}

async fn usual(world: &World, work: Work) -> Option<UsualTime> {
    world.service.applications().usual_answer(work).await.unwrap()
}

async fn a_list_that_staff_keep_is_replaced_whole(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let list = StaffList::RejectReasons;
    assert_eq!(service.applications().staff_list(list).await.unwrap().len(), 3);
    let applications = service.applications();
    let set = applications.set_staff_list(&STAFF, list, " First \r\n\r\nSecond\n");
    set.await.unwrap();
    assert_eq!(service.applications().staff_list(list).await.unwrap(), ["First", "Second"]);
    service.applications().set_staff_list(&STAFF, list, "").await.unwrap();
    assert_eq!(service.applications().staff_list(list).await.unwrap(), Vec::<String>::new());
    for text in ["a\n".repeat(101), "a".repeat(501), "a\u{1b}b".to_owned()] {
        let refused = service.applications().set_staff_list(&STAFF, list, &text).await;
        assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::ListInvalid));
    }
    assert_eq!(service.applications().staff_list(list).await.unwrap(), Vec::<String>::new());
}

async fn a_reason_must_be_readable(backend: Backend) {
    let world = World::new(backend).await;
    let reference = world.active("one@example.org", "1").await.reference;
    for reason in ["a".repeat(10_000), "a\u{202e}b\u{7}".to_owned()] {
        let refused = world.service.applications().suspend(&STAFF, reference, &reason).await;
        assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::ReasonInvalid));
    }
    let applications = world.service.applications();
    let shown = applications.suspend(&STAFF, reference, " Line 1\r\nline 2 ");
    let reason = shown.await.unwrap().suspend_reason;
    assert_eq!(reason.as_deref(), Some("Line 1\nline 2"));
}
