//! Imports of bank statements.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;

use domain::bulk::ForeignFile;
use domain::decision::Work;
use domain::records::{BankStatementLine, LineOutcome};
use domain::{Money, Refusal};
use service::{Actor, BadStatement, BankColumns, CreditedLines, StatementFile};
use sqlx::{AnyConnection, AssertSqlSafe, Executor as _};

use crate::database::Backend;
use crate::world::{HOUR_MS, PASSWORD, World, money, order};

on_each_backend![
    a_statement_is_shown_and_then_credited,
    a_stop_between_transactions_loses_nothing,
    a_payment_in_another_currency_is_pending_work_once,
    a_line_for_a_closed_account_is_shown_as_unmatched,
    columns_are_chosen_once_and_can_be_chosen_again,
    the_day_of_a_payment_is_kept,
    bad_files_are_refused_whole,
    lines_are_counted_however_they_end,
    what_is_no_csv_file_does_no_harm,
    chosen_columns_count_for_our_own_header_too,
    lines_of_a_file_that_was_never_stored_whole_are_deleted,
];

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

async fn import(world: &World, bytes: &[u8]) -> StatementFile {
    let money = world.service.money();
    let imported = money.import_statement(file(bytes), false);
    imported.await.unwrap()
}

pub async fn stored(world: &World, text: &str) -> i64 {
    match import(world, text.as_bytes()).await {
        StatementFile::Stored(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn lines(world: &World, id: i64) -> Vec<BankStatementLine> {
    let found = world.service.money().statement_lines(id, None, None, 100).await.unwrap();
    found.items.into_iter().map(|case| case.line).collect()
}

async fn counts(world: &World, id: i64) -> Vec<(LineOutcome, i64)> {
    let report = world.service.money().statement_report(id).await.unwrap().unwrap();
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
         bank-6;{reference};6,00;EUR\r\n\
         bank-3;{reference};1003,50;USD\r\n"
    );
    // One of two payments with the same ID can't be right, so nothing is imported.
    let twice = format!("{text}bank-3;{reference};5,00;USD\r\n");
    let refused = import(&world, twice.as_bytes()).await;
    let StatementFile::Bad(BadStatement::Lines { first, total: 1 }) = &refused else {
        panic!("{refused:?}")
    };
    let what = "it has the bank ID of line 4, but another reference or amount";
    assert_eq!((first[0].0, first[0].1.as_ref()), (9, what));
    let expected = [
        (LineOutcome::Credited, 1),
        (LineOutcome::Unmatched, 1),
        (LineOutcome::Known, 2),
        (LineOutcome::Conflict, 1),
        (LineOutcome::Debit, 1),
        (LineOutcome::OtherCurrency, 1),
    ];
    let id = stored(&world, &text).await;
    assert_eq!(counts(&world, id).await, expected);
    world.service.money().credit_statements().await.unwrap();
    assert_eq!(world.balance(&customer.live).await, money("3"));

    let ledger = world.service.money();
    let confirm = || ledger.confirm_statement(Actor::Account(staff), id);
    let (first, second) = tokio::join!(confirm(), confirm());
    let refused = [first, second].into_iter().filter_map(Result::err);
    let refused: Vec<_> = refused.collect();
    assert_eq!(refused.len(), 1, "one of them confirms");
    assert_eq!(refused[0].refusal(), Some(&Refusal::StatementConfirmed), "{refused:?}");
    world.service.money().credit_statements().await.unwrap();
    assert_eq!(counts(&world, id).await, expected);
    assert_eq!(world.balance(&customer.live).await, money("1006.5"));
    conflict_waits_for_staff(&world, Actor::Account(staff), id).await;

    // The lines that couldn't be credited aren't pending work a second time.
    let again = stored(&world, &text).await;
    let expected = [(LineOutcome::Known, 6), (LineOutcome::Debit, 1)];
    assert_eq!(counts(&world, again).await, expected);
    world.service.money().confirm_statement(Actor::Account(staff), again).await.unwrap();
    world.service.money().credit_statements().await.unwrap();
    assert_eq!(counts(&world, again).await, expected);
    assert_eq!(world.service.money().open_bank_lines().await.unwrap(), []);
    assert_eq!(world.balance(&customer.live).await, money("1006.5"));
    world.assert_sound().await;
}

/// The statement has a conflict in line 3.
async fn conflict_waits_for_staff(world: &World, staff: Actor, id: i64) {
    let ledger = world.service.money();
    let waiting = async || {
        let found = world.service.applications().pending_counts().await.unwrap();
        found.into_iter().find(|(work, _)| *work == Work::BankLines).unwrap().1
    };
    let open = ledger.open_bank_lines().await.unwrap();
    assert_eq!((open.len(), waiting().await), (2, 2));
    // A payment in another currency came in, and isn't credited to anybody.
    let foreign = (open[1].line.line, open[1].line.outcome);
    assert_eq!(foreign, (7, LineOutcome::OtherCurrency));
    ledger.handle_bank_line(&staff, id, 7).await.unwrap();
    assert_eq!((open[0].statement_id, open[0].line.line), (id, 3));
    assert_eq!(open[0].stored.as_ref().map(|(_, amount)| *amount), Some(money("2")));
    // The line before it isn't open, so there is nothing to mark.
    ledger.handle_bank_line(&staff, id, 2).await.unwrap();
    assert_eq!(waiting().await, 1);
    ledger.handle_bank_line(&staff, id, 3).await.unwrap();
    assert_eq!((ledger.open_bank_lines().await.unwrap(), waiting().await), (Vec::new(), 0));
}

async fn a_payment_in_another_currency_is_pending_work_once(backend: Backend) {
    let world = World::new(backend).await;
    let ledger = world.service.money();
    let head = "id;reference;amount;currency\n";
    // The second line repeats the first. The others have no bank ID to compare.
    let text = format!("{head}bank-1;x;6,00;EUR\nbank-1;x;6,00;EUR\n;x;6,00;EUR\n;x;6,00;EUR\n");
    // Both statements are stored before the first one is confirmed.
    let [first, second] = [stored(&world, &text).await, stored(&world, &text).await];
    for id in [second, first] {
        ledger.confirm_statement(Actor::CommandLine, id).await.unwrap();
        assert_eq!(lines(&world, id).await[1].outcome, LineOutcome::Known);
        ledger.credit_statements().await.unwrap();
    }
    let open = ledger.open_bank_lines().await.unwrap();
    let of_bank_1: Vec<_> = open.iter().filter(|open| open.line.bank_id == "bank-1").collect();
    assert_eq!((of_bank_1.len(), of_bank_1[0].statement_id), (1, second));
    assert_eq!(open.len(), 5);
    ledger.handle_bank_line(&Actor::CommandLine, second, 2).await.unwrap();
    // Another amount is another payment.
    let third = stored(&world, &format!("{head}bank-1;x;6,00;EUR\nbank-1;x;7,00;EUR\n")).await;
    ledger.confirm_statement(Actor::CommandLine, third).await.unwrap();
    ledger.credit_statements().await.unwrap();
    let expected = [LineOutcome::Known, LineOutcome::OtherCurrency];
    let found: Vec<_> = lines(&world, third).await.iter().map(|line| line.outcome).collect();
    assert_eq!(found, expected);
    world.assert_sound().await;
}

async fn a_line_for_a_closed_account_is_shown_as_unmatched(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let (account, reference) = (&customer.account, customer.reference.to_string());
    let accounts = world.service.accounts();
    accounts.close_account(account, PASSWORD, &reference).await.unwrap();
    let id = stored(&world, &format!("id;reference;amount\nbank-1;{reference};1\n")).await;
    let expected = [(LineOutcome::Unmatched, 1)];
    assert_eq!(counts(&world, id).await, expected);
    let cases = world.service.money().statement_lines(id, None, None, 9).await.unwrap().items;
    assert!(cases[0].account_closed);
    let staff = Actor::Account(world.account("staff@example.org").await.id);
    world.service.money().confirm_statement(staff, id).await.unwrap();
    world.service.money().credit_statements().await.unwrap();
    assert_eq!(counts(&world, id).await, expected);
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
    world.service.money().confirm_statement(Actor::Account(staff), id).await.unwrap();
    let credited = world.service.money().credit_statement_lines().await.unwrap();
    assert_ne!(credited, CreditedLines::None);
    let first = world.balance(&customer.live).await;
    assert!(first > money("0") && first <= money("200"), "{first}");
    // Staff add this deposit by hand meanwhile.
    world.deposit("bank-300", customer.reference, "1").await;
    let world = world.reopen().await;
    world.service.money().credit_statements().await.unwrap();
    assert_eq!(world.balance(&customer.live).await, money("450"));
    let expected = [(LineOutcome::Credited, LINES - 1), (LineOutcome::Known, 1)];
    assert_eq!(counts(&world, id).await, expected);
    let listed = world.service.money().bank_statements().await.unwrap();
    assert!(listed[0].done_at.is_some());
    world.assert_sound().await;
}

/// Imports a file whose columns have to be chosen. Returns the ID under which it is kept.
async fn kept(world: &World, bytes: &[u8]) -> i64 {
    let ledger = world.service.money();
    let asked = ledger.import_statement(file(bytes), true).await.unwrap();
    assert!(matches!(asked, StatementFile::Columns { .. }), "{asked:?}");
    ledger.keep_bank_file(file(bytes)).await.unwrap()
}

async fn columns_are_chosen_once_and_can_be_chosen_again(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    // "Grüße" in Windows-1252. The column "Spalte" has no known name.
    let mut bytes = b"Nummer,Spalte,Betrag,Name,Verwendungszweck\n".to_vec();
    bytes.extend(b"bank-1,Gr\xfc\xdfe,\"1,50\",Ann M\xfcller,Rent ");
    bytes.extend(customer.reference.to_string().bytes());
    bytes.extend(b"\nbank-2,x,\"-2,00\",Bo,Fee\n");
    let asked = import(&world, &bytes).await;
    assert!(matches!(asked, StatementFile::Columns { .. }), "{asked:?}");
    let id = kept(&world, &bytes).await;
    let ledger = world.service.money();
    let shown = ledger.kept_bank_file(id).await.unwrap().unwrap();
    assert_eq!(shown.names[0], "Nummer");
    assert_eq!(shown.rows[0][1], "Grüße");
    assert_eq!((shown.suggested.amount, shown.suggested.payer), (Some(2), Some(3)));
    let columns = BankColumns {
        bank_id: 0,
        reference: 1,
        amount: 2,
        debit: None,
        currency: None,
        payer: Some(3),
        purpose: Some(4),
        paid_on: None,
    };
    let staff = world.account("staff@example.org").await.id;
    let actor = Actor::Account(staff);
    let choose = |columns| ledger.choose_columns(&actor, id, columns);
    let refused = choose(BankColumns { currency: Some(2), ..columns }).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::ColumnRepeated));
    // The file stays while a choice doesn't fit it.
    let bad = choose(BankColumns { amount: 1, reference: 2, ..columns }).await.unwrap();
    assert!(matches!(bad, StatementFile::Bad(BadStatement::Lines { total: 2, .. })), "{bad:?}");
    let StatementFile::Stored(stored) = choose(columns).await.unwrap() else {
        panic!("the columns fit")
    };
    let refused = choose(columns).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::BankFileGone));
    let found = lines(&world, stored).await;
    assert_eq!((found[0].reference.as_str(), found[0].amount), ("Grüße", money("1.5")));
    let debit = (LineOutcome::Debit, Money::from_micros(-2_000_000));
    assert_eq!((found[1].outcome, found[1].amount), debit);
    // The same lines with a column for each direction, which is chosen for the next file too.
    let two = "Nummer;Wofür;Weg;Da\nbank-8;Grüße;;1,50\nbank-9;x;2,00;\n".as_bytes();
    let id_of_two = kept(&world, two).await;
    let (amount, debit_at) = (3, Some(2));
    let of_two = BankColumns { amount, debit: debit_at, payer: None, purpose: None, ..columns };
    let chosen = ledger.choose_columns(&actor, id_of_two, of_two).await.unwrap();
    let StatementFile::Stored(first) = chosen else { panic!("{chosen:?}") };
    let StatementFile::Stored(again) = import(&world, two).await else { panic!("the choice") };
    for id in [first, again] {
        let found = lines(&world, id).await;
        assert_eq!((found[0].outcome, found[0].amount), (LineOutcome::Unmatched, money("1.5")));
        assert_eq!((found[1].outcome, found[1].amount), debit);
    }
    // The purpose names the application.
    let cases = ledger.statement_lines(stored, None, None, 1).await.unwrap();
    assert_eq!(cases.items[0].suggestions, [customer.reference]);
    let next = cases.next.unwrap();
    let rest = ledger.statement_lines(stored, None, Some(&next), 10).await.unwrap();
    assert_eq!(rest.items[0].line.line, 3);
    // The choice applies to the next file with this header.
    assert!(matches!(import(&world, &bytes).await, StatementFile::Stored(_)));

    ledger.confirm_statement(actor, stored).await.unwrap();
    ledger.credit_statements().await.unwrap();
    for text in ["müller", "RENT", "bank-1", "grüß"] {
        let found = world.service.support().desk_search(text).await.unwrap().deposits;
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].payer.as_deref(), Some("Ann Müller"));
    }
}

async fn the_day_of_a_payment_is_kept(backend: Backend) {
    let world = World::new(backend).await;
    let ledger = world.service.money();
    for (file, [first, second]) in [
        ("Buchungstag;Id;Referenz;Betrag\n05.11.26;a1;x;1\n;a2;x;1\n", ["2026-11-05", ""]),
        (
            "id,reference,amount,date\nb1,x,1,11/05/2026\nb2,x,1,11/27/2026\n",
            ["2026-11-05", "2026-11-27"],
        ),
        (
            "id,reference,amount,date\nc1,x,1,05/11/2026\nc2,x,1,27/11/2026\n",
            ["2026-11-05", "2026-11-27"],
        ),
    ] {
        let id = stored(&world, file).await;
        ledger.confirm_statement(Actor::CommandLine, id).await.unwrap();
        ledger.credit_statements().await.unwrap();
        for (line, day) in lines(&world, id).await.into_iter().zip([first, second]) {
            let deposit = ledger.deposit(&line.bank_id).await.unwrap().unwrap();
            for kept in [line.paid_on, deposit.paid_on] {
                assert_eq!(kept.unwrap_or_default(), day, "{file}");
            }
        }
    }
    // A column without a known name is suggested, and staff can choose another one.
    let bytes = b"When;Id;Referenz;Betrag;Wertstellung\n26.11.2026;d1;x;1;27.11.2026\n";
    let id = kept(&world, bytes).await;
    let suggested = ledger.kept_bank_file(id).await.unwrap().unwrap().suggested;
    assert_eq!(suggested.paid_on, Some(4));
    let columns = BankColumns {
        bank_id: 1,
        reference: 2,
        amount: 3,
        debit: None,
        currency: None,
        payer: None,
        purpose: None,
        paid_on: Some(0),
    };
    ledger.choose_columns(&Actor::CommandLine, id, columns).await.unwrap();
    let again = stored(&world, std::str::from_utf8(bytes).unwrap()).await;
    assert_eq!(lines(&world, again).await[0].paid_on.as_deref(), Some("2026-11-26"));
}

async fn chosen_columns_count_for_our_own_header_too(backend: Backend) {
    let world = World::new(backend).await;
    let bytes = b"bank_id,reference,amount\nrent,bank-1,1\n";
    let id = kept(&world, bytes).await;
    let columns = BankColumns {
        bank_id: 1,
        reference: 0,
        amount: 2,
        debit: None,
        currency: None,
        payer: None,
        purpose: None,
        paid_on: None,
    };
    let ledger = world.service.money();
    let chosen = ledger.choose_columns(&Actor::CommandLine, id, columns).await.unwrap();
    let StatementFile::Stored(id) = chosen else { panic!("{chosen:?}") };
    assert_eq!(lines(&world, id).await[0].reference, "rent");
    // A file whose columns nobody chooses is deleted.
    let id = kept(&world, bytes).await;
    world.pass(2 * HOUR_MS);
    ledger.forget_abandoned_statements().await.unwrap();
    assert_eq!(ledger.kept_bank_file(id).await.unwrap(), None);
    let refused = ledger.choose_columns(&Actor::CommandLine, id, columns).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::BankFileGone));
}

async fn lines_of_a_file_that_was_never_stored_whole_are_deleted(backend: Backend) {
    let world = World::new(backend).await;
    let kept = stored(&world, "id,reference,amount\nbank-1,x,1\n").await;
    let mut text = "id,reference,amount\n".to_owned();
    for line in 0..2500 {
        writeln!(text, "line-{line},x,1").unwrap();
    }
    let abandoned = stored(&world, &text).await;
    let mut db = world.database.connect().await;
    // Simulates a process that ended before it had stored all lines.
    let unfinished = format!("UPDATE bank_statements SET loaded_at = NULL WHERE id = {abandoned}");
    db.execute(AssertSqlSafe(unfinished)).await.unwrap();
    let lines = async |db: &mut AnyConnection| -> i64 {
        let lines = sqlx::query_scalar("SELECT COUNT(*) FROM bank_statement_lines");
        lines.fetch_one(db).await.unwrap()
    };
    let ledger = world.service.money();
    let forget = || ledger.forget_abandoned_statements();
    forget().await.unwrap();
    assert_eq!(lines(&mut db).await, 2501, "it may still be under way");
    world.pass(2 * HOUR_MS);
    forget().await.unwrap();
    assert_eq!(lines(&mut db).await, 1);
    let listed = world.service.money().bank_statements().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, kept);
}

async fn bad_files_are_refused_whole(backend: Backend) {
    let world = World::new(backend).await;
    for empty in ["", "\n \n", "id,reference,amount\n", "word", "word\n\n"] {
        let refused = import(&world, empty.as_bytes()).await;
        assert_eq!(refused, StatementFile::Bad(BadStatement::Empty), "{empty:?}");
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
    assert_eq!(first[0].1, "the amount =1+1 can't be read");
    let ambiguous = import(&world, b"id,reference,amount\nbank-0,x,12.345\n").await;
    let StatementFile::Bad(bad) = ambiguous else { panic!("{ambiguous:?}") };
    let sentence = bad.to_string();
    assert!(sentence.contains("line 2: the amount 12.345 is ambiguous"), "{sentence}");
    let StatementFile::Bad(bad) = import(&world, b"id,reference,debit,credit\na,x,,\n").await
    else {
        panic!("it has no amount")
    };
    assert!(bad.to_string().contains("line 2: it has no amount."), "{bad}");
    let missing = import(&world, b"id,reference,amount\n,x,1\nbank-1,x\nb\x0bc,x,1\n").await;
    assert!(
        matches!(missing, StatementFile::Bad(BadStatement::Lines { total: 3, .. })),
        "{missing:?}"
    );
    assert!(world.service.money().bank_statements().await.unwrap().is_empty());
    let unmatched = order("bank-0", "x", "1");
    let money = world.service.money();
    let added = money.add_deposit(&Actor::CommandLine, &unmatched);
    assert!(!added.await.unwrap().already, "nothing was stored");
    world.assert_sound().await;
}

async fn lines_are_counted_however_they_end(backend: Backend) {
    let world = World::new(backend).await;
    let ends: [[&str; 3]; 3] = [["\n"; 3], ["\r\n"; 3], ["\n", "\r\n", "\n"]];
    for [first, second, third] in ends {
        let text = format!("id,reference,amount{first}bank-1,x,1{second}bank-2,x,one{third}");
        let refused = import(&world, text.as_bytes()).await;
        let StatementFile::Bad(BadStatement::Lines { first, total }) = &refused else {
            panic!("{refused:?}")
        };
        assert_eq!((first[0].0, *total), (3, 1), "{text:?}");
        let good = text.replace("one", "1");
        let id = stored(&world, &good).await;
        let lines: Vec<_> = lines(&world, id).await.iter().map(|line| line.line).collect();
        assert_eq!(lines, [2, 3], "{good:?}");
    }
    // The payment after a single carriage return mustn't be lost.
    let joined = "id,reference,amount\r\nbank-5,x,1\rbank-6,x,1\r\n";
    let refused = import(&world, joined.as_bytes()).await;
    assert!(
        matches!(refused, StatementFile::Bad(BadStatement::Lines { total: 1, .. })),
        "{refused:?}"
    );
}

async fn what_is_no_csv_file_does_no_harm(backend: Backend) {
    let world = World::new(backend).await;
    // The beginning of a spreadsheet file, and a CSV file in UTF-16.
    let utf16 = "id,reference,amount\nbank-1,x,1\n".encode_utf16();
    let utf16: Vec<u8> = utf16.flat_map(u16::to_le_bytes).collect();
    for (bytes, expected) in [
        (b"PK\x03\x04\x14\0\x06\0\nmore\0\n".as_slice(), ForeignFile::Zip),
        (&utf16, ForeignFile::Utf16),
    ] {
        let refused = import(&world, bytes).await;
        assert_eq!(refused, StatementFile::Bad(BadStatement::Foreign(expected)));
    }
    let noise: Vec<u8> =
        (1..3_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for bytes in [b"id,reference\0\n".as_slice(), &noise] {
        let refused = import(&world, bytes).await;
        assert_eq!(refused, StatementFile::Bad(BadStatement::NotText));
    }
    let wide = ",".repeat(70_000);
    let refused = import(&world, wide.as_bytes()).await;
    assert_eq!(refused, StatementFile::Bad(BadStatement::HeaderTooLong));
}
