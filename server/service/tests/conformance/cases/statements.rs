//! Bank statements imported by file.

use std::fmt::Write as _;
use std::fs;

use domain::records::LineOutcome;
use service::{Actor, BadStatement, BankColumns, StatementFile};

use crate::database::Backend;
use crate::world::{World, money, order};

on_each_backend![
    a_statement_is_shown_and_then_credited,
    a_stop_between_transactions_loses_nothing,
    columns_are_chosen_once,
    bad_files_are_refused_whole,
];

async fn import(world: &World, bytes: &[u8]) -> StatementFile {
    let path = world.folder().join("statement.csv");
    fs::write(&path, bytes).unwrap();
    world.service.import_statement(&path).await.unwrap()
}

async fn stored(world: &World, text: &str) -> i64 {
    match import(world, text.as_bytes()).await {
        StatementFile::Stored(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn counts(world: &World, id: i64) -> Vec<(LineOutcome, i64)> {
    let report = world.service.statement_report(id).await.unwrap().unwrap();
    let mut counts = report.counts;
    counts.sort();
    counts
}

async fn a_statement_is_shown_and_then_credited(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let staff = world.account("staff@example.org").await.id;
    let reference = customer.reference;
    world.deposit("bank-1", reference, "1").await;
    world.deposit("bank-2", reference, "2").await;
    let text = format!(
        "\u{feff}ID;Reference;Amount;Currency\r\n\
         bank-1;{reference};1,00;USD\r\n\
         bank-2;{reference};9,00;USD\r\n\
         bank-3;{reference};1.003,50;USD\r\n\
         =bank-4;@SUM(A1);4,00;\r\n\
         bank-5;{reference};-5,00;USD\r\n\
         bank-6;{reference};6,00;EUR\r\n"
    );
    let expected = [
        (LineOutcome::Credited, 1),
        (LineOutcome::Unmatched, 1),
        (LineOutcome::Known, 1),
        (LineOutcome::Conflict, 1),
        (LineOutcome::Debit, 1),
        (LineOutcome::OtherCurrency, 1),
    ];
    let id = stored(&world, &text).await;
    assert_eq!(counts(&world, id).await, expected);
    world.service.credit_statements().await.unwrap();
    assert_eq!(world.balance(&customer.live).await, money("3"));

    let confirm = || world.service.confirm_statement(staff, id);
    let (first, second) = tokio::join!(confirm(), confirm());
    assert_ne!(first.unwrap(), second.unwrap(), "one of them confirms");
    world.service.credit_statements().await.unwrap();
    assert_eq!(counts(&world, id).await, expected);
    assert_eq!(world.balance(&customer.live).await, money("1006.5"));

    let again = stored(&world, &text).await;
    world.service.confirm_statement(staff, again).await.unwrap();
    world.service.credit_statements().await.unwrap();
    assert_eq!(counts(&world, again).await[0], (LineOutcome::Known, 3));
    assert_eq!(world.balance(&customer.live).await, money("1006.5"));
    world.assert_sound().await;
}

async fn a_stop_between_transactions_loses_nothing(backend: Backend) {
    const LINES: i64 = 450;
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let staff = world.account("staff@example.org").await.id;
    let mut text = "id\treference\tamount\n".to_owned();
    for line in 0..LINES {
        writeln!(text, "bank-{line}\t{}\t1", customer.reference).unwrap();
    }
    let id = stored(&world, &text).await;
    world.service.confirm_statement(staff, id).await.unwrap();
    assert!(world.service.credit_statement_lines().await.unwrap());
    assert_eq!(world.balance(&customer.live).await, money("200"));
    // Credited by hand meanwhile.
    world.deposit("bank-300", customer.reference, "1").await;
    let world = world.reopen().await;
    world.service.credit_statements().await.unwrap();
    assert_eq!(world.balance(&customer.live).await, money("450"));
    let expected = [(LineOutcome::Credited, LINES - 1), (LineOutcome::Known, 1)];
    assert_eq!(counts(&world, id).await, expected);
    let listed = world.service.bank_statements().await.unwrap();
    assert!(listed[0].done_at.is_some());
    world.assert_sound().await;
}

async fn columns_are_chosen_once(backend: Backend) {
    let world = World::new(backend).await;
    // "Grüße" in Windows-1252.
    let bytes = b"Nummer,Zweck,Betrag\nbank-1,Gr\xfc\xdfe,\"1,50\"\n";
    let StatementFile::Columns { header, names } = import(&world, bytes).await else {
        panic!("the columns can't be known")
    };
    assert_eq!(names, ["Nummer", "Zweck", "Betrag"]);
    let columns = BankColumns {
        bank_id: 0,
        reference: 1,
        amount: 2,
        currency: None,
    };
    let chosen = world
        .service
        .choose_columns(&Actor::CommandLine, &header, columns);
    chosen.await.unwrap();
    let StatementFile::Stored(id) = import(&world, bytes).await else {
        panic!("the columns are known now")
    };
    let report = world.service.statement_report(id).await.unwrap().unwrap();
    assert_eq!(report.first[0].reference, "Grüße");
    assert_eq!(report.first[0].amount, money("1.5"));
}

async fn bad_files_are_refused_whole(backend: Backend) {
    let world = World::new(backend).await;
    for empty in ["", "\n \n", "id,reference,amount\n"] {
        let refused = import(&world, empty.as_bytes()).await;
        assert_eq!(
            refused,
            StatementFile::Bad(BadStatement::Empty),
            "{empty:?}"
        );
    }
    let mut text = "id,reference,amount\nbank-0,x,1\n".to_owned();
    for line in 0..30 {
        writeln!(text, "bank-{line},x,=1+1").unwrap();
    }
    let StatementFile::Bad(BadStatement::Lines { first, total }) =
        import(&world, text.as_bytes()).await
    else {
        panic!("the amounts can't be read")
    };
    assert_eq!((first.len(), first[0].0, total), (20, 3, 30));
    let missing = import(&world, b"id,reference,amount\n,x,1\nbank-1,x\n").await;
    assert!(
        matches!(
            missing,
            StatementFile::Bad(BadStatement::Lines { total: 2, .. })
        ),
        "{missing:?}"
    );
    assert!(world.service.bank_statements().await.unwrap().is_empty());
    let unmatched = order("bank-0", "x", "1");
    let added = world.service.add_deposit(&Actor::CommandLine, &unmatched);
    assert!(!added.await.unwrap().already, "nothing was stored");
    world.assert_sound().await;
}
