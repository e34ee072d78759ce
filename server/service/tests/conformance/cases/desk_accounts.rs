//! Accounts in the staff portal: the list, and notes.

use domain::note::NOTE_CHARS_MAX;
use domain::readiness::Blocker;
use service::{Actor, AuditFilter, Refusal};

use crate::database::Backend;
use crate::world::World;

on_each_backend![
    accounts_are_found_by_a_part_of_the_email_page_by_page,
    an_account_is_shown_with_all_that_belongs_to_it,
    a_note_is_kept_audited_and_never_changed,
];

const STAFF: Actor = Actor::CommandLine;

async fn accounts_are_found_by_a_part_of_the_email_page_by_page(backend: Backend) {
    let world = World::new(backend).await;
    for email in ["c@one.example", "a@one.example", "b@one.example", "d@two.example"] {
        world.account(email).await;
    }
    let mut cursor = None;
    let mut found = Vec::new();
    loop {
        let support = world.service.support();
        let page = support.account_list(" ONE.", cursor.as_deref(), 2);
        let page = page.await.unwrap();
        found.extend(page.items.into_iter().map(|line| line.account.email));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, ["a@one.example", "b@one.example", "c@one.example"]);
    let all = world.service.support().account_list("", None, 100).await.unwrap();
    assert_eq!(all.items.len(), 4);
    // Characters that are special in PostgreSQL's patterns match only themselves.
    for odd in ["%", "_", "nobody", "\0zz"] {
        let none = world.service.support().account_list(odd, None, 100).await.unwrap();
        assert!(none.items.is_empty(), "{odd}");
    }
}

async fn an_account_is_shown_with_all_that_belongs_to_it(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("customer@example.org").await;
    let service = &world.service;
    let accounts = service.accounts();
    let disabling = accounts.disable_account(&STAFF, "customer@example.org", "unpaid");
    disabling.await.unwrap();
    let file = service.support().account_file(customer.account.id).await.unwrap();
    assert_eq!(file.account.email, "customer@example.org");
    assert_eq!(file.disabled_reason.as_deref(), Some("unpaid"));
    assert_eq!(file.applications[0].reference, customer.reference);
    let blockers = service.applications().blockers(&file.applications[0]).await.unwrap();
    assert_eq!(blockers[0], Blocker::AccountDisabled);
    assert_eq!(file.audit[0].action, "account.disable");
    assert_eq!((file.devices, file.factor_since), (0, None));
    let unknown = service.support().account_file(999_999).await.unwrap_err();
    assert_eq!(unknown.refusal(), Some(&Refusal::NoSuchAccount));
    // Only the newest link works.
    let accounts = service.accounts();
    let first = accounts.issue_reset(&STAFF, "customer@example.org").await.unwrap();
    let second = accounts.issue_reset(&STAFF, "customer@example.org").await.unwrap();
    assert!(!accounts.is_reset_valid(&first).await.unwrap());
    assert!(accounts.is_reset_valid(&second).await.unwrap());
    let unknown = service.accounts().issue_reset(&STAFF, "nobody@example.org").await;
    assert_eq!(unknown.unwrap_err().refusal(), Some(&Refusal::NoSuchAccount));
}

async fn a_note_is_kept_audited_and_never_changed(backend: Backend) {
    let world = World::new(backend).await;
    let staff = world.account("staff@example.org").await;
    let customer = world.account("customer@example.org").await;
    let service = &world.service;
    let actor = Actor::Account(staff.id);
    let longest = "é".repeat(NOTE_CHARS_MAX);
    for text in ["Called.\r\nPays tomorrow.", &longest] {
        let support = service.support();
        let noted = support.add_note(&actor, "customer@example.org", text);
        noted.await.unwrap();
    }
    let notes = service.support().account_notes(customer.id).await.unwrap();
    let texts: Vec<_> = notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(texts, [longest.as_str(), "Called.\nPays tomorrow."]);
    assert_eq!(notes[0].author, "staff@example.org");
    let filter = AuditFilter {
        action: Some("account.note".to_owned()),
        limit: 10,
        ..AuditFilter::default()
    };
    assert_eq!(service.support().audit(&filter).await.unwrap().items.len(), 2);

    let too_long = "é".repeat(NOTE_CHARS_MAX + 1);
    for text in ["", " \n ", "a\0b", "\u{1b}[1m", &too_long] {
        let refused = service.support().add_note(&actor, "customer@example.org", text).await;
        assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::NoteInvalid));
    }
    let nobody = service.support().add_note(&actor, "nobody@example.org", "x").await;
    assert_eq!(nobody.unwrap_err().refusal(), Some(&Refusal::NoSuchAccount));
}
