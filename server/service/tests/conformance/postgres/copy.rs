//! The move from SQLite to PostgreSQL: everything is copied and continues, or nothing is copied.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::decision::StaffList;
use domain::support::ReceiptKind;
use domain::{BatchId, KeyKind, MessageStatus, MessageText, Money, Reason, Transid};
use serde_json::Value;
use service::{
    Actor, ApiCall, BatchRequest, Claimed, ClientInfo, Config, Copied, CopyError, Entropy, Lease,
    Leases, MessageTables, OpenError, RawReceipt, SendRequest, Service, SessionRow, SubmitOutcome,
    Submitted, TotpSecret,
};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _, Row as _};

use crate::database::{Backend, Database};
use crate::network::{answered, network, refused, taken_as};
use crate::sending::receipt;
use crate::uploads::{accepted, batch, plain, rows, upload};
use crate::world::{Customer, HOUR_MS, PASSWORD, World, keyed, money, name, order, request};

const STAFF: Actor = Actor::CommandLine;
const CARRIER: &str = "acme";
/// Quotes, line ends, characters of four bytes, and text that looks like JSON or SQL.
const HARD: &str = "\"Ünï\" \\u0041 \\ 'x'\r\n\t🙂 {\"a\":1}; DROP TABLE $1 \u{7f}\u{2028}";
/// The same text without the characters that a reason can't have.
const REASON: &str = "\"Ünï\" \\u0041 \\ 'x'\n🙂 {\"a\":1}; DROP TABLE $1 \u{2028}";

/// Opens a world whose service runs on a SQLite database. Also returns that database's URL.
async fn source() -> (World, String) {
    let mut world = World::with(Backend::Postgres, network(&[(CARRIER, 1, None)])).await;
    let url = format!("sqlite:{}", world.folder().join("source.db").display());
    world.service.close().await;
    open(&mut world, url.clone(), 2).await;
    (world, url)
}

/// Opens the service on another database.
async fn open(world: &mut World, database_url: String, seed: u64) {
    let config = Config { database_url, entropy: Entropy::seeded(seed), ..world.config() };
    world.service = Service::open(config).await.unwrap();
}

async fn copy(world: &World, from: &str, to: &Database) -> Result<Copied, CopyError> {
    Service::copy(
        from,
        &to.url(),
        &world.config().data_dir,
        MessageTables::Week,
        &world.config().clock,
    )
    .await
}

/// Returns the file of the only waiting upload.
fn spool(world: &World) -> PathBuf {
    let folder = world.config().data_dir.join("spool");
    let mut files = std::fs::read_dir(folder).unwrap();
    files.next().unwrap().unwrap().path()
}

async fn sqlite(url: &str) -> AnyConnection {
    AnyConnection::connect(url).await.unwrap()
}

async fn texts(conn: &mut AnyConnection, sql: String) -> Vec<String> {
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(conn).await;
    rows.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Returns the number of messages from uploads. A step's number of rows depends on the machine.
async fn rows_expanded(url: &str) -> i64 {
    let sql = "SELECT CAST(COUNT(*) AS TEXT) FROM messages WHERE batch_id IS NOT NULL";
    let counts = texts(&mut sqlite(url).await, sql.to_owned()).await;
    counts[0].parse().unwrap()
}

/// Returns the tables of a SQLite database, without the state of processes.
async fn tables(conn: &mut AnyConnection) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
               AND name NOT IN ('_sqlx_migrations', 'nodes', 'connections', 'case_viewers', \
               'carrier_commands', 'carrier_command_answers', 'refused_reloads')";
    texts(conn, sql.to_owned()).await
}

/// Normalizes JSON rows, and sorts them so that both databases have the same order.
fn sorted(rows: Vec<String>) -> Vec<String> {
    let parse = |row: String| serde_json::from_str::<BTreeMap<String, Value>>(&row).unwrap();
    let mut rows: Vec<String> =
        rows.into_iter().map(|row| serde_json::to_string(&parse(row)).unwrap()).collect();
    rows.sort_unstable();
    rows
}

async fn of_sqlite(conn: &mut AnyConnection, table: &str) -> Vec<String> {
    // SQLite keeps the key in a file, and is at another place.
    let columns = format!(
        "SELECT '''' || name || ''', \"' || name || '\"' FROM pragma_table_xinfo('{table}') \
         WHERE name NOT IN ('sealing_key', 'place')"
    );
    let columns = texts(conn, columns).await.join(", ");
    sorted(texts(conn, format!("SELECT json_object({columns}) FROM {table}")).await)
}

/// Leaves out the columns that only PostgreSQL has.
async fn of_postgres(conn: &mut AnyConnection, table: &str) -> Vec<String> {
    let own = "'{shard, shards, distribution, last_transfer_id, sealing_key, place}'";
    sorted(texts(conn, format!("SELECT (to_jsonb(t) - {own}::text[])::text FROM {table} t")).await)
}

async fn assert_empty(database: &Database) {
    let mut conn = database.connect().await;
    let tables = "SELECT table_name::text FROM information_schema.tables \
                  WHERE table_schema = 'public' AND table_name <> '_sqlx_migrations'";
    for table in texts(&mut conn, tables.to_owned()).await {
        let rows = texts(&mut conn, format!("SELECT 'a row' FROM {table}")).await;
        assert_eq!(rows, Vec::<String>::new(), "{table}");
    }
}

fn hard() -> BatchRequest {
    BatchRequest { message: Some(MessageText::parse(HARD.to_owned(), 10).unwrap()), ..plain() }
}

fn with_key(customer: &Customer) -> SendRequest {
    keyed("once", request(&customer.live, "12345678", HARD))
}

async fn sign_in(world: &World, token: &str, customer: &Customer) {
    let row = SessionRow { account_id: None, data: HARD.to_owned(), expires_at: world.now() };
    assert!(world.service.accounts().session_create(token, &row).await.unwrap());
    let client = ClientInfo { user_agent: HARD.to_owned(), address: "::1".to_owned() };
    let service = &world.service;
    service.accounts().device_sign_in(token, &customer.account, &client).await.unwrap();
}

async fn report(world: &World, name: &str) {
    let receipts = vec![receipt(name, MessageStatus::Delivered)];
    let delivery = world.service.delivery();
    let reported = delivery.record_carrier_receipts(CARRIER, receipts);
    reported.await.unwrap();
}

async fn claim(world: &World, limit: i64) -> (Lease, Vec<Claimed>) {
    world.service.delivery().claim(CARRIER, limit).await.unwrap()
}

async fn answer(world: &World, lease: &Lease, message: &Claimed, outcome: SubmitOutcome) {
    let result = answered(message, outcome);
    world.record(CARRIER, lease, vec![result]).await;
}

/// Sends a message, and lets it grow so old that it is dropped.
async fn dropped(world: &World) {
    let customer = world.active("old@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    let (lease, found) = claim(world, 1).await;
    answer(world, &lease, &found[0], refused()).await;
    world.pass(401 * 24 * HOUR_MS);
    world.service.delivery().expire().await.unwrap();
    world.service.messages().count_margins().await.unwrap();
    world.service.operations().drop_history().await.unwrap();
}

/// Returns the secret of the only second factor.
fn secret() -> TotpSecret {
    TotpSecret::parse("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ").unwrap()
}

/// Stores the data of people: accounts, devices, names, money.
async fn people(world: &World) -> [Customer; 3] {
    let service = &world.service;
    let one = world.active("one@example.org", "1000").await;
    let two = world.active("two@example.org", "5.123456").await;
    let three = world.pending("three@example.org").await;
    for (customer, sender) in [(&one, "Acme"), (&two, "Beta"), (&three, "Gamma")] {
        service
            .applications()
            .request_sender_name(customer.account.id, customer.reference, &name(sender))
            .await
            .unwrap();
    }
    let waiting = service.applications().sender_requests(true).await.unwrap();
    service.applications().accept_sender(&STAFF, waiting[0].id).await.unwrap();
    service.applications().reject_sender(&STAFF, waiting[1].id, REASON).await.unwrap();
    service.applications().set_staff_list(&STAFF, StaffList::RejectReasons, REASON).await.unwrap();
    let delivery = service.delivery();
    let opening = delivery.open_incident(&STAFF, "\"Ünï\" 🙂", Some(CARRIER));
    opening.await.unwrap();
    service.applications().note_key_use(&one.live, Some("192.0.2.7".parse().unwrap()));
    service.applications().store_key_uses().await.unwrap();
    let call = ApiCall {
        method: "GET",
        route: "/sms/balance/{key}",
        from: None,
        recipient: None,
        reason: Some(Reason::RateLimited),
        detail: Some(HARD.to_owned()),
        is_known: true,
    };
    service.applications().note_call(&one.live, call);
    service.applications().store_calls().await.unwrap();
    let applications = service.applications();
    let replacing = applications.replace_key(
        three.account.id,
        three.reference,
        KeyKind::Test,
        PASSWORD,
        "",
        None,
    );
    replacing.await.unwrap();
    let support = service.support();
    let noting = support.add_note(&STAFF, "one@example.org", "Called\nat \"noon\" 🙂");
    noting.await.unwrap();
    let unknown = order("nobody's", "999999", "7.5");
    service.money().add_deposit(&STAFF, &unknown).await.unwrap();
    service.applications().suspend(&STAFF, two.reference, REASON).await.unwrap();
    sign_in(world, "first", &one).await;
    sign_in(world, "second", &two).await;
    service.accounts().session_delete("second").await.unwrap();
    service.accounts().give_factor(&STAFF, two.account.id, &secret()).await.unwrap();
    let accounts = service.accounts();
    let wrong = accounts.sign_in("one@example.org", "wrong password", "::1");
    wrong.await.unwrap_err();
    service.accounts().issue_reset(&STAFF, "one@example.org").await.unwrap();
    service.accounts().request_reset("two@example.org", "::1").await.unwrap();
    [one, two, three]
}

/// Messages in every lasting state, and some that are on their way.
struct Sent {
    /// Claimed under a lease, without a result.
    claimed: (Lease, Claimed),
    /// Submitted with the carrier message ID `known`, without a receipt.
    submitted: Transid,
    /// An upload of 4,500 rows of which some thousand are expanded.
    upload: BatchId,
}

async fn messages(world: &World, customer: &Customer) -> Sent {
    let service = &world.service;
    service.messages().send(with_key(customer)).await.unwrap();
    world.send(&customer.live, "12345679").await.unwrap();
    world.send(&customer.live, "+4915112345678").await.unwrap();
    world.send(&customer.test, "12345678").await.unwrap();
    let (lease, mut found) = claim(world, 100).await;
    assert_eq!(found.len(), 3);
    let claimed = found.remove(0);
    answer(world, &lease, &found[0], taken_as("known")).await;
    let later = SubmitOutcome::Temporary { error: HARD.to_owned() };
    answer(world, &lease, &found[1], later).await;
    report(world, "a stranger's").await;
    let raw = RawReceipt {
        kind: ReceiptKind::Final,
        text_id: Some("a stranger's".to_owned()),
        parameter_id: None,
        number: "26612345678".to_owned(),
        state: "DELIVRD".to_owned(),
        error: Some("failed_0x00000001".to_owned()),
        raw: HARD.to_owned(),
        message_id: None,
    };
    service.delivery().keep_raw_receipts(CARRIER, vec![raw]);
    service.delivery().store_raw_receipts().await.unwrap();
    service.delivery().drain_carrier(&STAFF, CARRIER, true).await.unwrap();
    service.delivery().resume_carrier(&STAFF, CARRIER).await.unwrap();
    let whole = upload(service, &customer.live, None, "12345678\n", hard()).await;
    assert_eq!(whole.unwrap().rows, 1);
    world.expand_all().await;
    let upload = accepted(world, customer, &rows(4500)).await;
    // On a busy machine, one step of the expansion has few rows.
    while service.delivery().queue_state().await.unwrap().waiting < 1100 {
        service.messages().expand(upload).await.unwrap();
    }
    let sent = Sent { claimed: (lease, claimed), submitted: found[0].id, upload };
    segments(world).await;
    sent
}

/// Stores more segments than one read fetches. The earlier segment and these pairs make a read end
/// in the middle of a pair.
async fn segments(world: &World) {
    let (lease, found) = claim(world, 1100).await;
    let results = found.iter().enumerate().map(|(place, message)| {
        let outcome = |n| (n, taken_as(&format!("c{place}-{n}")));
        Submitted {
            segments: 2,
            outcomes: [1, 2].map(outcome).to_vec(),
            ..answered(message, SubmitOutcome::NotSent)
        }
    });
    let taken = world.record(CARRIER, &lease, results.collect()).await;
    assert_eq!(taken.len(), 1100);
}

#[tokio::test]
async fn every_row_is_copied_and_work_continues_on_the_copy() {
    let (mut world, from) = source().await;
    dropped(&world).await;
    let customers = people(&world).await;
    let [one, two, three] = &customers;
    let sent = messages(&world, one).await;
    world.assert_sound().await;
    let mut balances = Vec::new();
    for customer in &customers {
        balances.push(world.balance(&customer.live).await);
    }
    world.service.close().await;
    // Rows that only exist with a mail server or a browser.
    let more = "INSERT INTO confirmations SELECT 'x', MAX(id), 1, 'new@example.org', 'change' \
                FROM accounts; \
                INSERT INTO reminders VALUES ('activations', 1); \
                INSERT INTO carrier_figures VALUES (60000, 1, 'acme', 'accepted', 2); \
                INSERT INTO approvals SELECT 1, '{}', MAX(id), 1 FROM accounts; \
                INSERT INTO bank_statements VALUES (3, 1, 2, 3, NULL, NULL, 1, 4); \
                INSERT INTO bank_statement_lines VALUES (3, 1, 'b', '=1+1', 5, 'waiting', 'Ann', \
                'Rent', '2026-11-27', 'EUR', 6); \
                INSERT INTO billing_details SELECT MAX(id), 'Acme', 'Main Street', '1' \
                FROM accounts; \
                INSERT INTO bank_files VALUES (7, 0, 'id;amount', 1); \
                INSERT INTO bank_columns VALUES ('id;amount', 0, 1, 2, 5, NULL, 3, 4, 6); \
                INSERT INTO webhooks SELECT 5, MIN(id), 0, 'https://example.com/', 'ab', 'cd', 1, \
                'batch.done', 1, 2, 'gone', 3, 4, 5, 6, 7, 8, 9 FROM applications; \
                INSERT INTO webhook_retries VALUES (5, 1, 2, 3); \
                INSERT INTO webhook_replays VALUES (6, 5, 1, 2); \
                INSERT INTO webhook_attempts VALUES (5, 7, 8, 1, 101, 0, 500, 1, 'x', 'y', 2); \
                INSERT INTO inbound_numbers SELECT '26650001', 'NEWS', MIN(id), 1 \
                FROM applications; \
                INSERT INTO inbound_seen VALUES (-5, 1); \
                INSERT INTO inbound_parts VALUES (6, 'acme', '1', '2', 3, 4, 1, 64, 0, 'gsm7', \
                '0500', 7); \
                INSERT INTO inbound_messages SELECT 8, MIN(id), 0, '1', '2', 'Hi', 1, 'NEWS', \
                'stop' FROM applications; \
                INSERT INTO unassigned_inbound VALUES (9, 'acme', '1', '2', 'Hi', 1); \
                INSERT INTO opt_outs SELECT MIN(id), 0, '26657000001', 'reply', 5 FROM \
                applications; \
                INSERT INTO test_clocks SELECT MIN(id), '[[1,2]]', NULL FROM applications; \
                INSERT INTO verifications SELECT 9, MIN(id), 0, '26657000001', 'local', '266', 5, \
                6, 'en', 'Acme', 1, 2, 3, 4, 1, 5 FROM applications; \
                INSERT INTO limit_alarms SELECT MIN(id), 1, 'leaked_key', 2, '1', 'x', 3 FROM \
                applications; \
                INSERT INTO limit_refusals SELECT MIN(id), 'leaked_key', 1, 2 FROM applications; \
                INSERT INTO passkeys SELECT 7, MAX(id), 'x', 'Phone', '{}', 5, 1, 2 FROM accounts";
    sqlite(&from).await.execute(more).await.unwrap();
    let target = Database::empty().await;
    let copied = copy(&world, &from, &target).await.unwrap();
    assert_eq!(copied.upload_rows, 4501 - rows_expanded(&from).await);
    same_rows(&copied, &from, &target).await;

    open(&mut world, target.url(), 3).await;
    world.assert_sound().await;
    for (customer, before) in customers.iter().zip(balances) {
        assert_eq!(world.balance(&customer.live).await, before);
    }
    goes_on(&world, one, sent).await;
    opens_elsewhere(&world, target.url(), two).await;
    new_rows_are_numbered_on(&world, &target, [one, two, three]).await;
    world.assert_sound().await;
}

async fn same_rows(copied: &Copied, from: &str, target: &Database) {
    let (mut from, mut to) = (sqlite(from).await, target.connect().await);
    let mut counted: BTreeMap<_, _> =
        copied.tables.iter().map(|table| (table.name, (table.from, table.to))).collect();
    for table in tables(&mut from).await {
        let rows = of_sqlite(&mut from, &table).await;
        assert!(!rows.is_empty(), "{table}");
        let count = i64::try_from(rows.len()).unwrap();
        assert_eq!(counted.remove(&*table), Some((count, count)), "{table}");
        assert!(rows == of_postgres(&mut to, &table).await, "{table}");
    }
    assert_eq!(counted, BTreeMap::new());
    let sum = |name| copied.sums.iter().find(|sum| sum.name == name).unwrap();
    assert_eq!(sum("deposit").to, money("1006.123456"));
    assert_eq!(sum("unmatched").to, money("7.5"));
    // The bank, unmatched deposits, revenue, reservations, and three customers.
    assert_eq!(copied.accounts, 7);
    // Each day's messages are in the table of its week.
    let others = "SELECT (SELECT COUNT(*) FROM messages_other) + (SELECT COUNT(*) FROM \
        message_timeline_other)";
    assert_eq!(target.number(others).await, 0);
}

/// A process with another data folder opens the sealed secret.
async fn opens_elsewhere(world: &World, database_url: String, customer: &Customer) {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { database_url, data_dir: folder.path().to_owned(), ..world.config() };
    let elsewhere = Service::open_beside(config).await.unwrap();
    let secret = secret();
    let accounts = elsewhere.accounts();
    let in_force = accounts.factor_in_force(customer.account.id, &secret);
    assert!(in_force.await.unwrap());
    elsewhere.close().await;
}

/// Pending work ends as it would have ended on the old database.
async fn goes_on(world: &World, customer: &Customer, sent: Sent) {
    let service = &world.service;
    let (lease, claimed) = sent.claimed;
    assert_eq!(service.delivery().end_leases(Leases::Over).await.unwrap(), 0);
    answer(world, &lease, &claimed, taken_as("late")).await;
    report(world, "late").await;
    report(world, "known").await;
    for id in [claimed.id, sent.submitted] {
        let status = world.status(customer, id).await;
        assert_eq!(status, MessageStatus::Delivered);
    }
    world.expand_all().await;
    let counts = batch(world, customer, sent.upload).await.counts;
    assert_eq!(counts.get(MessageStatus::Queued) + counts.get(MessageStatus::Submitted), 4500);
    let (_, found) = claim(world, 5000).await;
    assert_eq!(found.len(), 4501 - 1100);

    let before = world.balance(&customer.live).await;
    let again = service.messages().send(with_key(customer)).await.unwrap();
    assert_eq!((again.replayed, again.transid), (true, Some(claimed.id)));
    assert_eq!(world.balance(&customer.live).await, before);
}

/// Adds a row to every table whose IDs the database assigns.
async fn new_rows_are_numbered_on(
    world: &World,
    target: &Database,
    [one, two, three]: [&Customer; 3],
) {
    let service = &world.service;
    let four = world.active("four@example.org", "1").await;
    let last = [one, two, three].map(|customer| customer.account.id);
    assert!(last.iter().all(|id| *id < four.account.id));
    sign_in(world, "third", &four).await;
    // The number of the second session isn't reused, although that session is gone.
    let sessions = target.number("SELECT MAX(id) FROM sessions").await;
    assert_eq!(sessions, 3);
    service
        .applications()
        .request_sender_name(two.account.id, two.reference, &name("Delta"))
        .await
        .unwrap();
    service.accounts().request_reset("four@example.org", "::1").await.unwrap();
    report(world, "another stranger's").await;
    let sent = world.send(&four.live, "12345678").await.unwrap();
    let (lease, found) = claim(world, 10).await;
    assert_eq!(Some(found[0].id), sent.transid);
    let later = SubmitOutcome::Temporary { error: "later".to_owned() };
    answer(world, &lease, &found[0], later).await;
    // These numbers needn't be unique, but they follow the order of events.
    let (first, second) = (
        target.number("SELECT MIN(id) FROM message_timeline").await,
        target.number("SELECT MAX(id) FROM message_timeline").await,
    );
    assert!(first < second);
    service.money().assign_deposit(&STAFF, "nobody's", four.reference).await.unwrap();
    assert!(world.balance(&four.live).await > Money::ZERO);
}

#[tokio::test]
async fn a_copy_stops_and_leaves_nothing_when_rows_of_an_upload_cannot_be_read() {
    let (mut world, from) = source().await;
    let customer = world.active("one@example.org", "400").await;
    let id = accepted(&world, &customer, &rows(4500)).await;
    world.service.messages().expand(id).await.unwrap();
    world.service.close().await;
    let left = 4500 - rows_expanded(&from).await;
    let (file, away) = (spool(&world), world.folder().join("away"));
    let target = Database::empty().await;

    std::fs::rename(&file, &away).unwrap();
    let refused = copy(&world, &from, &target).await.unwrap_err();
    assert!(matches!(refused, CopyError::Spool { .. }), "{refused}");
    assert_empty(&target).await;

    let bytes = std::fs::read(&away).unwrap();
    let (last, mut damaged) = (bytes.len() - 3, bytes.clone());
    damaged[last] ^= 1;
    // The remaining rows are damaged, or some are missing at a chunk's end.
    for wrong in [&damaged[..], &bytes[..last]] {
        std::fs::write(&file, wrong).unwrap();
        let refused = copy(&world, &from, &target).await.unwrap_err();
        assert!(matches!(refused, CopyError::Spool { .. }), "{refused}");
        assert_empty(&target).await;
    }

    // Once the rows have expired, nobody needs the file.
    std::fs::remove_file(&file).unwrap();
    world.pass(49 * HOUR_MS);
    assert_eq!(copy(&world, &from, &target).await.unwrap().upload_rows, 0);
    open(&mut world, target.url(), 3).await;
    world.expand_all().await;
    assert_eq!(batch(&world, &customer, id).await.counts.get(MessageStatus::Expired), left);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_copy_that_differs_from_its_source_is_not_kept() {
    let (world, from) = source().await;
    let customer = world.active("one@example.org", "200").await;
    world.send(&customer.live, "12345678").await.unwrap();
    world.service.close().await;
    for (table, body, words) in [
        ("transfers", "NEW.amount := NEW.amount + 1; RETURN NEW", "sum of charge"),
        ("message_days", "NEW.n := NEW.n + 1; RETURN NEW", "count differs by"),
        ("queue", "RETURN NULL", "a write touched 0 rows of queue"),
    ] {
        let target = Database::empty().await;
        Service::migrate(&target.url()).await.unwrap();
        let mut conn = target.connect().await;
        let spoil = format!(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; END $$; \
             CREATE TRIGGER spoil BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION spoil()"
        );
        conn.execute(AssertSqlSafe(spoil)).await.unwrap();
        let refused = copy(&world, &from, &target).await.unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
        assert_empty(&target).await;
        let drop = format!("DROP TRIGGER spoil ON {table}");
        conn.execute(AssertSqlSafe(drop)).await.unwrap();
        copy(&world, &from, &target).await.unwrap();
    }
}

#[tokio::test]
async fn a_copy_into_a_database_that_is_not_empty_is_refused() {
    let (world, from) = source().await;
    world.service.close().await;
    // One database was served before, and the other has somebody else's table.
    let other = Database::empty().await;
    let mut conn = other.connect().await;
    conn.execute("CREATE TABLE other (id INT)").await.unwrap();
    for target in [&world.database, &other] {
        let before = target.contents(&world.service).await;
        let refused = copy(&world, &from, target).await.unwrap_err();
        assert!(matches!(refused, CopyError::NotEmpty), "{refused}");
        assert_eq!(target.contents(&world.service).await, before);
    }
}

#[tokio::test]
async fn a_copy_of_a_database_that_is_served_damaged_or_of_another_release_is_refused() {
    let (world, from) = source().await;
    let customer = world.active("one@example.org", "200").await;
    let target = Database::empty().await;
    let refused = copy(&world, &from, &target).await.unwrap_err();
    let served = matches!(refused, CopyError::Open(OpenError::Served(_)));
    assert!(served, "{refused}");
    world.service.close().await;

    let mut conn = sqlite(&from).await;
    conn.execute("UPDATE applications SET balance = balance + 1").await.unwrap();
    let refused = copy(&world, &from, &target).await.unwrap_err();
    let CopyError::Violations(broken) = refused else {
        panic!("{refused}");
    };
    assert_eq!(broken.len(), 1);
    assert!(broken[0].contains(customer.reference.as_str()));

    conn.execute("UPDATE _sqlx_migrations SET version = 0").await.unwrap();
    let refused = copy(&world, &from, &target).await.unwrap_err();
    assert!(matches!(refused, CopyError::Open(OpenError::Older)), "{refused}");
    assert_empty(&target).await;

    let clock = world.config().clock;
    for (from, to) in [(&from, &from), (&target.url(), &from)] {
        let refused = Service::copy(from, to, world.folder(), MessageTables::Day, &clock).await;
        assert!(matches!(refused, Err(CopyError::Direction)));
    }
}
