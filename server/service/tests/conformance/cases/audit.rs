//! The audit log: who did what, from where, before and after.

use domain::Reference;
use domain::history::HistoryAction;
use domain::support::AuditRecord;
use service::{AccountChange, Actor, AuditFilter, ClientInfo, Refusal};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::database::Backend;
use crate::world::{HOUR_MS, World, name, order};

on_each_backend![
    a_deposit_is_found_by_its_bank_id_and_by_its_application,
    an_entry_says_who_from_where_and_what_changed,
    entries_are_filtered_and_read_page_by_page,
    a_visit_is_recorded_once_an_hour,
    a_changed_log_is_found,
    writers_of_a_chain_take_turns,
];

const STAFF: Actor = Actor::CommandLine;

async fn list(world: &World, filter: AuditFilter) -> Vec<AuditRecord> {
    let filter = AuditFilter { limit: 100, ..filter };
    world.service.support().audit(&filter).await.unwrap().items
}

fn about(subject: &str) -> AuditFilter {
    AuditFilter { subject: Some(subject.to_owned()), ..AuditFilter::default() }
}

async fn an_entry_says_who_from_where_and_what_changed(backend: Backend) {
    let world = World::new(backend).await;
    let staff = world.account("staff@example.org").await;
    let customer = world.pending("customer@example.org").await;
    let client = ClientInfo { user_agent: "Browser".to_owned(), address: "192.0.2.7".to_owned() };
    let asked = world.service.asked_by(client, None);
    let actor = Actor::Account(staff.id);
    asked.applications().approve(&actor, customer.reference).await.unwrap();
    let reference = customer.reference.to_string();
    let entries = list(&world, about(&reference)).await;
    let entry = &entries[0];
    assert_eq!(
        (entry.who.as_str(), entry.address.as_deref()),
        ("staff@example.org", Some("192.0.2.7"))
    );
    assert_eq!(
        (entry.before.as_deref(), entry.after.as_deref()),
        (Some("Pending"), Some("Active"))
    );
    assert_eq!(entry.action, "application.approve");

    let accounts = world.service.accounts();
    let promoting = accounts.change_account(&STAFF, "customer@example.org", AccountChange::Promote);
    promoting.await.unwrap();
    let entries = list(&world, about("customer@example.org")).await;
    let entry = &entries[0];
    assert!(entry.who.starts_with("command line ("), "{entry:?}");
    assert_eq!(entry.address, None);
    assert_eq!(entry.subject, "customer@example.org");
    assert_eq!(
        (entry.before.as_deref(), entry.after.as_deref()),
        (Some("customer"), Some("staff"))
    );
}

async fn a_deposit_is_found_by_its_bank_id_and_by_its_application(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("customer@example.org").await;
    let reference = customer.reference;
    let ledger = world.service.money();
    ledger.add_deposit(&STAFF, &order("bank-1", "rent", "7.5")).await.unwrap();
    ledger.assign_deposit(&STAFF, "bank-1", reference).await.unwrap();
    // A bank ID that looks like the reference of an application, but is for another one.
    let other = world.pending("other@example.org").await;
    world.deposit(reference.as_str(), other.reference, "2").await;
    let found = list(&world, about("bank-1")).await;
    let found: Vec<_> = found
        .iter()
        .map(|entry| (entry.action.as_str(), entry.after.as_deref(), entry.detail.as_deref()))
        .collect();
    let assigned = format!("7.5 to {reference}; the payer wrote rent");
    let expected = [
        ("deposit.assign", Some("7.5"), Some(assigned.as_str())),
        ("deposit.add", None, Some("7.5 unmatched; the payer wrote rent")),
    ];
    assert_eq!(found, expected);
    let of_application = list(&world, about(reference.as_str())).await;
    assert!(of_application.iter().any(|entry| entry.subject == "bank-1"), "{of_application:?}");
    // Owners read only about deposits of their own.
    for (customer, expected) in [
        (&customer, vec![HistoryAction::DepositAssigned]),
        (&other, vec![HistoryAction::DepositCredited]),
    ] {
        let applications = world.service.applications();
        let history = applications.application_history(customer.account.id, customer.reference);
        let actions = history.await.unwrap().into_iter().map(|entry| entry.action);
        let is_deposit = |action: &HistoryAction| action.as_str().starts_with("deposit.");
        assert_eq!(actions.filter(is_deposit).collect::<Vec<_>>(), expected);
    }
}

async fn entries_are_filtered_and_read_page_by_page(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("customer@example.org").await;
    let other = world.pending("other@example.org").await;
    let (service, account) = (&world.service, customer.account.id);
    world.pass(HOUR_MS);
    let begin = world.now();
    let applications = service.applications();
    let requested = applications.request_activation(account, customer.reference);
    requested.await.unwrap();
    world.pass(HOUR_MS);
    service.applications().approve(&STAFF, customer.reference).await.unwrap();
    service.applications().approve(&STAFF, other.reference).await.unwrap();

    let actions = async |filter: AuditFilter| -> Vec<String> {
        let entries = list(&world, filter).await;
        entries.into_iter().map(|entry| entry.action).collect()
    };
    let by_customer = AuditFilter {
        who: Some("customer@example.org".to_owned()),
        from: Some(begin),
        ..AuditFilter::default()
    };
    assert_eq!(actions(by_customer).await, ["application.request"]);
    let approvals = AuditFilter {
        who: Some("command line".to_owned()),
        action: Some("application.approve".to_owned()),
        ..AuditFilter::default()
    };
    assert_eq!(actions(approvals.clone()).await.len(), 2);
    let before = AuditFilter { to: Some(begin), ..approvals };
    assert_eq!(actions(before).await, [""; 0]);

    let all = list(&world, AuditFilter::default()).await;
    let mut read = Vec::new();
    let mut filter = AuditFilter { limit: 2, ..AuditFilter::default() };
    loop {
        let page = service.support().audit(&filter).await.unwrap();
        assert!(page.items.len() <= 2);
        read.extend(page.items);
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            break;
        }
    }
    assert_eq!(read, all);
    assert!(read.is_sorted_by_key(|entry| std::cmp::Reverse(entry.id)));
    filter.cursor = Some("x".to_owned());
    let error = service.support().audit(&filter).await.unwrap_err();
    assert_eq!(error.refusal(), Some(&Refusal::InvalidCursor));
}

async fn a_visit_is_recorded_once_an_hour(backend: Backend) {
    let world = World::new(backend).await;
    let staff = world.account("staff@example.org").await;
    let another = world.account("another@example.org").await;
    let customer = world.pending("customer@example.org").await;
    let reference = customer.reference;
    let visit = async |id: i64| {
        let actor = Actor::Account(id);
        let support = world.service.support();
        let visiting = support.visit_application(&actor, reference);
        visiting.await.map(|(owner, _)| owner.email)
    };
    let visits = async || {
        let filter = AuditFilter {
            action: Some("application.visit".to_owned()),
            ..about(&reference.to_string())
        };
        list(&world, filter).await.len()
    };
    assert_eq!(visit(staff.id).await.unwrap(), "customer@example.org");
    visit(staff.id).await.unwrap();
    assert_eq!(visits().await, 1);
    visit(another.id).await.unwrap();
    assert_eq!(visits().await, 2);
    world.pass(HOUR_MS);
    visit(staff.id).await.unwrap();
    assert_eq!(visits().await, 3);
    let nobody = Reference::parse(if reference.as_str() == "000000" { "000001" } else { "000000" });
    let actor = Actor::Account(staff.id);
    let wrong = world.service.support().visit_application(&actor, nobody.unwrap()).await;
    assert_eq!(wrong.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
    assert_eq!(visits().await, 3);
}

/// Statements that tamper with the log directly in the database, and words from the finding.
const TAMPERED: [(&str, &str); 6] = [
    ("UPDATE audit SET action = 'nothing.happened' WHERE action = 'deposit.add'", "was changed"),
    ("UPDATE audit SET at = at + 1 WHERE id = (SELECT MAX(id) FROM audit)", "was changed"),
    ("DELETE FROM audit WHERE id = (SELECT MIN(id) FROM audit WHERE chain = 0)", "are missing"),
    (
        "DELETE FROM audit WHERE number = (SELECT MAX(number) FROM audit WHERE chain = 0) \
         AND chain = 0",
        "last entries",
    ),
    (
        "UPDATE audit SET subject = CASE number WHEN 1 THEN 'b' ELSE 'a' END WHERE chain = 0",
        "was changed",
    ),
    ("DELETE FROM audit_chains WHERE chain = 0", "last entries"),
];

async fn a_changed_log_is_found(backend: Backend) {
    for (statement, words) in TAMPERED {
        let world = World::new(backend).await;
        let customer = world.active("customer@example.org", "10").await;
        let acme = name("Acme");
        let (account, reference) = (customer.account.id, customer.reference);
        let applications = world.service.applications();
        let asked = applications.request_sender_name(account, reference, &acme);
        asked.await.unwrap();
        world.assert_sound().await;
        let mut conn = world.database.connect().await;
        for unlock in world.database.audit_unlocked() {
            conn.execute(*unlock).await.unwrap();
        }
        conn.execute(AssertSqlSafe(statement)).await.unwrap();
        let found = world.service.operations().check().await.unwrap();
        assert!(found.iter().any(|what| what.contains(words)), "{statement}: {found:?}");
    }
}

async fn writers_of_a_chain_take_turns(backend: Backend) {
    let world = World::new(backend).await;
    let mut customers = Vec::new();
    for n in 0..4 {
        customers.push(world.active(&format!("c{n}@example.org"), "0").await);
    }
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let service = world.service.clone();
            let reference = customers[n % 4].reference;
            tokio::spawn(async move {
                let order = order(&format!("bank-{n}"), reference.as_str(), "1");
                service.money().add_deposit(&STAFF, &order).await.map(drop)
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    world.assert_sound().await;
}
