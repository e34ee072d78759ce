//! Tests of the pages of staff.

use std::time::Instant;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{Request, StatusCode};
use domain::ids::Shard;
use domain::records::BankStatement;
use domain::{ApplicationId, MessageStatus, Timestamp, Transid};
use service::{
    Actor, AuditFilter, CarrierReceipt, Lease, SubmitOutcome, Submitted, WrittenReceipt,
};

use super::world::{STAFF_WITH_FACTOR, World, ask, html, post};

#[tokio::test]
async fn staff_import_a_bank_statement() {
    let world = World::new().await;
    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let file = format!("id;reference;amount\r\nbank-1;{};1,50", world.reference);
    let statement = import(&world, &cookie, &file).await;
    let lines = world.service.money().statement_lines(statement.id, None, None, 1).await.unwrap();
    assert_eq!(lines.items[0].line.amount.to_string(), "1.5");
    assert!(statement.confirmed_at.is_none());
}

/// Sends a file with a statement. Returns the stored statement.
async fn import(world: &World, cookie: &str, file: &str) -> BankStatement {
    let form = format!(
        "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"bank.csv\"\r\n\r\n\
         {file}\r\n\r\n--cut--\r\n"
    );
    let request = Request::post("/support/import/file")
        .header(CONTENT_TYPE, "multipart/form-data; boundary=cut");
    let answer = ask(&world.portal, request, Some(cookie.to_owned()), Body::from(form)).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let statement = world.service.money().bank_statements().await.unwrap().remove(0);
    let expected = format!("/support/import?statement={}", statement.id);
    assert_eq!(answer.headers()[LOCATION], expected.as_str());
    statement
}

#[tokio::test]
async fn a_bank_line_in_conflict_is_pending_work_until_it_is_done() {
    let world = World::new().await;
    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let mut statement = 0;
    for amount in ["1,50", "2,00"] {
        let file = format!("id;reference;amount\r\nbank-1;{};{amount}", world.reference);
        statement = credited(&world, &cookie, &file).await;
    }
    let page = async |path: &str| world.page(path, &cookie).await;
    let pending = "<a href=\"/support/import\">Bank lines that weren't credited</a>";
    let home = page("/support").await;
    let (_, row) = home.split_once(pending).unwrap();
    let (row, _) = row.split_once("</tr>").unwrap();
    assert!(row.contains(">1<"), "{home}");
    let counted = ">Import</a> <span title=\"1 waiting\" class=\"count\">";
    assert!(home.contains(counted), "{home}");
    let list = page("/support/import").await;
    let stored = format!("1.50 for {}", world.reference);
    for shown in [stored.as_str(), "bank-1", "Mark as done", "2.00"] {
        assert!(list.contains(shown), "{shown}: {list}");
    }
    // Staff come back to the statement that they had open.
    let open = page(&format!("/support/import?statement={statement}&outcome=conflict")).await;
    let back = format!("value=\"/support/import?statement={statement}&amp;outcome=conflict\"");
    assert!(open.contains(&back), "{open}");
    // They confirm it, and the second time changes nothing.
    let subject = format!("{statement}%202");
    let confirm = format!("/support/confirm?act=mark-line&subject={subject}&next=/support/import");
    let shown = page(&confirm).await;
    let heading = format!("Mark line 2 of statement {statement} as done</h1>");
    for part in [heading.as_str(), stored.as_str(), "bank-1", "2.00 USD", "You can't undo this."] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let form = format!("act=mark-line&subject={subject}&next=/support/import");
    for (seen, fault) in [("", Some("ChangedMeanwhile")), ("open", None), ("open", Some("Nothing"))]
    {
        let form = format!("{form}&seen={seen}");
        let answer = post(&world.portal, "/fn/act", &form, Some(cookie.clone())).await;
        let status = answer.status();
        let answer = html(answer).await;
        assert_eq!(status == StatusCode::OK, fault.is_none(), "{seen}: {status} {answer}");
        assert!(answer.contains(fault.unwrap_or_default()), "{answer}");
    }
    assert!(page(&confirm).await.contains("This is done already, so nothing was changed."));
    let name = format!("line%202%20of%20statement%20{statement}");
    let done = format!("/support/import?done=mark-line&subject={subject}&name={name}");
    let list = page(&done).await;
    let sentence = format!("Line 2 of statement {statement} is marked as done.");
    assert!(list.contains(&sentence), "{list}");
    assert!(!list.contains("Mark as done"), "{list}");
    assert!(!page("/support").await.contains(counted));
    let filter = AuditFilter {
        subject: Some(statement.to_string()),
        action: Some("statement.line".to_owned()),
        limit: 9,
        ..AuditFilter::default()
    };
    let entries = world.service.support().audit(&filter).await.unwrap().items;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].detail.as_deref(), Some("line 2"));
    world.service.close().await;
}

/// Imports a file and credits its lines. Returns the statement's ID.
async fn credited(world: &World, cookie: &str, file: &str) -> i64 {
    let statement = import(world, cookie, file).await.id;
    let money = world.service.money();
    money.confirm_statement(Actor::CommandLine, statement).await.unwrap();
    money.credit_statements().await.unwrap();
    statement
}

#[tokio::test]
async fn a_file_that_is_imported_again_has_nothing_new() {
    let world = World::new().await;
    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let head = "id;reference;amount;currency";
    let file = format!("{head}\r\nbank-1;{};1,50;USD\r\nbank-2;x;2;EUR", world.reference);
    let shown = async |id: i64| {
        let page = world.page(&format!("/support/import?statement={id}"), &cookie).await;
        (page.contains("name=\"statement\""), page)
    };
    let (is_offered, page) = shown(import(&world, &cookie, &file).await.id).await;
    assert!(is_offered, "{page}");
    for sentence in ["Import credits up to 1 line, 1.50 USD in total", "until you mark them"] {
        assert!(page.contains(sentence), "{sentence}: {page}");
    }
    credited(&world, &cookie, &file).await;
    let (is_offered, page) = shown(import(&world, &cookie, &file).await.id).await;
    assert!(!is_offered, "{page}");
    assert!(page.contains("This file has nothing new to import."), "{page}");
    world.service.close().await;
}

#[tokio::test]
async fn the_audit_log_says_when_its_days_are_swapped() {
    let world = World::new().await;
    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let days = "from=2026-11-02&to=2026-11-01";
    let page = world.page(&format!("/support/audit?{days}"), &cookie).await;
    assert!(page.contains("To is a day before From."), "{page}");
    let request = Request::get(format!("/support/audit.csv?{days}"));
    let answer = ask(&world.portal, request, Some(cookie), Body::empty()).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    world.service.close().await;
}

#[tokio::test]
async fn staff_can_mark_each_of_many_open_bank_lines() {
    const LINES: usize = 102;
    let world = World::new().await;
    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let mut statement = 0;
    for amount in ["1,50", "2,00"] {
        let lines = (0..LINES).map(|line| format!("\r\nbank-{line};nobody's;{amount}"));
        let file = format!("id;reference;amount{}", lines.collect::<String>());
        statement = credited(&world, &cookie, &file).await;
    }
    let subject = format!("{statement}%20{}", LINES + 1);
    let path = format!("/support/confirm?act=mark-line&subject={subject}");
    let shown = world.page(&path, &cookie).await;
    assert!(shown.contains(&format!("bank-{}", LINES - 1)), "{shown}");
    let form = format!("act=mark-line&subject={subject}&next=/support/import&seen=open");
    let answer = post(&world.portal, "/fn/act", &form, Some(cookie.clone())).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let shown = world.page(&path, &cookie).await;
    assert!(shown.contains("This is done already, so nothing was changed."), "{shown}");
    world.service.close().await;
}

#[tokio::test]
async fn pages_show_on_which_day_a_deposit_was_paid() {
    let world = World::new().await;
    let cookie = world.sign_in(STAFF_WITH_FACTOR).await;
    let reference = &world.reference;
    let file = format!("id;reference;amount;date\r\nbank-1;{reference};1,50;05.11.2026");
    let statement = credited(&world, &cookie, &file).await;
    let again = format!("id;reference;amount;date\r\nbank-1;{reference};2,00;06.11.2026");
    let open = credited(&world, &cookie, &again).await;
    let of_customer = world.sign_in("customer@example.org").await;
    for (path, cookie, day) in [
        (format!("/support/import?statement={statement}"), &cookie, "2026-11-05"),
        ("/support/deposits?list=all".to_owned(), &cookie, "2026-11-05"),
        ("/support/deposits/assign?bank_id=bank-1".to_owned(), &cookie, "2026-11-05"),
        (format!("/support/confirm?act=mark-line&subject={open}%202"), &cookie, "2026-11-06"),
        (format!("/applications/{reference}/deposits/bank-1"), &of_customer, "2026-11-05"),
    ] {
        let page = world.page(&path, cookie).await;
        for text in ["Paid on", day] {
            assert!(page.contains(text), "{path}: {text}: {page}");
        }
    }
    world.service.close().await;
}

#[tokio::test]
async fn staff_see_a_refused_reload_until_the_settings_are_reloaded() {
    let world = World::new().await;
    let delivery = world.service.delivery();
    let cookie = world.sign_in("staff@example.org").await;
    let error = "heliograph.toml: line 4: kind must be smpp";
    delivery.report_reload(Some(error.to_owned())).await.unwrap();
    for path in ["/support", "/support/carriers"] {
        let page = world.page(path, &cookie).await;
        for part in [error, "earlier settings", "heliograph carrier reload"] {
            assert!(page.contains(part), "{path}, {part}: {page}");
        }
    }
    delivery.report_reload(None).await.unwrap();
    for path in ["/support", "/support/carriers"] {
        let page = world.page(path, &cookie).await;
        assert!(!page.contains("earlier settings"), "{path}");
    }
    world.service.close().await;
}

#[tokio::test]
async fn staff_see_the_receipts_of_a_carrier_by_hour() {
    let world = World::new().await;
    let delivery = world.service.delivery();
    let stranger = CarrierReceipt {
        message_ids: vec!["1".to_owned()],
        status: MessageStatus::Delivered,
        error: None,
        user_reference: None,
        number: String::new(),
        sender: String::new(),
        submitted_at: None,
        received_at: None,
        written: WrittenReceipt::default(),
    };
    delivery.record_carrier_receipts("sandbox", vec![stranger]).await.unwrap();
    let answered = |id, outcome| Submitted {
        id: Transid(id),
        application_id: ApplicationId(1),
        lease: Lease {
            token: 1,
            shard: Shard::FIRST,
            until: Timestamp::from_unix_ms(0),
            not_after: Instant::now(),
        },
        segments: 1,
        outcomes: vec![(1, outcome)],
    };
    let refused = SubmitOutcome::Refused { error: "refused".to_owned() };
    let accepted = SubmitOutcome::Accepted { carrier_message_id: None };
    let answers = vec![answered(1, accepted), answered(2, refused)];
    delivery.record_submitted("sandbox", answers).await.unwrap();
    delivery.store_carrier_figures().await.unwrap();
    let cookie = world.sign_in("staff@example.org").await;
    let page = world.page("/support/carriers/sandbox/receipts", &cookie).await;
    let title = "2 submits, 1 of them not accepted; the table has the figures by hour";
    let unmatched = "1 receipt matched no message.";
    for part in [title, "There were no receipts.", unmatched, "fill-answers-bad"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    world.service.close().await;
}
