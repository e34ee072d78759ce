//! Tests the plans of all statements that a commit group on PostgreSQL runs, with the statistics of
//! ten million messages. In every other test, even a statement that reads a whole table or index is
//! fast.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use domain::ids::{Shard, id_of_day};
use domain::{Money, Timestamp};
use serde_json::Value;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _, Row as _};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::super::Store;
use super::super::history::MessageTables;
use super::super::postgres::{GROUP_SESSION, SESSION};
use super::super::tests::stores;
use super::{
    ApplicationRows, ClaimRows, CodeRows, CommitGroup, GroupAnswer, IdentifiedReceiptRows, KeyRows,
    LimitedRows, RUN, ReceiptRows, RecipientRows, SegmentRows, SendRows, SubmittedRows, read,
};
use crate::names::with_names;

/// The days that have their own tables.
const DAYS: std::ops::Range<i64> = 20_000..20_010;
/// The number of messages per day.
const OF_A_DAY: i64 = 2_000;
/// The number of rows of each kind in a call.
const ROWS: i64 = 32;
/// The number of calls. PostgreSQL may switch to a generic plan at the sixth.
const CALLS: i64 = 8;

/// Inserts 1,000 applications, which keep events and have an endpoint each, and 1,000 uploads.
/// Messages of the last day wait for receipts, and an upload has 16 of them. Those of the day
/// before are being sent, and those of two days before are queued. 10,000 messages of both carriers
/// are scheduled for later. Application 41 is suspended.
const FILL: &str = with_names!(
    r"
    INSERT INTO accounts (id, email, password_hash, role, created_at, password_changed_at, shard)
    SELECT n, n, '', 'customer', 0, 0, 1 FROM generate_series(1, 1000) n;
    INSERT INTO applications (shard, id, account_id, category, reference, live_hash, test_hash,
        status, sender_state, balance, test_balance, test_day, created_at, last_transfer_id)
    SELECT 1, n, n, 'sms', 100000 + n, 'live' || n, 'test' || n,
        CASE n WHEN 41 THEN 'Suspended' ELSE 'Active' END, 'none', 1000000000, 0, 0, 0, 1000000
    FROM generate_series(1, 1000) n;
    INSERT INTO messages (shard, id, application_id, test, number, kind, body, batch_id, status,
        pages, segments, unit_price, cost, released, created_at)
    SELECT 1, pg_temp.id_of(day, i), 1 + i % 1000, 0, 57000000 + i, 'local', 'x',
        CASE WHEN day = 20009 THEN 1 + (i - 1) / 16 END,
        CASE day WHEN 20007 THEN CASE WHEN i % 16 = 0 THEN {sending} ELSE {queued} END
            WHEN 20008 THEN {sending} WHEN 20009 THEN {submitted} ELSE {delivered} END,
        1, 1, 50000, 50000, 0, day * 86400000 + i * 30000
    FROM generate_series(20000::bigint, 20009) day, generate_series(1::bigint, 2000) i;
    INSERT INTO queue (shard, message_id, application_id, carrier, deferred, bulk, due_at, lease_token,
        attempts, submission)
    SELECT 1, pg_temp.id_of(day, i), 1 + i % 1000, 'acme', 0, i % 2, i,
        CASE day WHEN 20007 THEN 0 ELSE 7 END, 0,
        CASE WHEN day = 20007 AND i % 16 = 0 THEN 1 ELSE 0 END
    FROM generate_series(20007::bigint, 20008) day, generate_series(1::bigint, 2000) i;
    INSERT INTO queue (shard, message_id, application_id, carrier, deferred, bulk, due_at, lease_token,
        attempts, submission)
    SELECT 1, pg_temp.id_of(20001, i), 1 + i % 1000, CASE WHEN i % 4 < 2 THEN 'acme' ELSE 'beta' END,
        0, i % 2, 20040 * 86400000::bigint + i, 0, 0, 0
    FROM generate_series(1::bigint, 10000) i;
    INSERT INTO segments (shard, message_id, segment, segments, application_id, carrier,
        carrier_message_id, status, submits, submitted_at)
    SELECT 1, id, 1, 1, application_id, 'acme', 'name ' || id, status, 1, created_at
    FROM messages WHERE status > {unknown};
    INSERT INTO transfers (shard, application_id, id, debit_account, credit_account, amount, kind,
        message_id, created_at)
    SELECT 1, application_id, row_number() OVER (), application_id, {REVENUE}, 50000, {charge}, id,
        created_at
    FROM messages;
    INSERT INTO idempotency (shard, application_id, test, key, digest, answer, created_at)
    SELECT 1, application_id, 0, 'old ' || id, '', '{}', created_at FROM messages;
    INSERT INTO message_days (shard, application_id, test, day, status, node, writer, n)
    SELECT 1, 1 + n % 1000, 0, 20000 + n / 1000 % 10, n / 10000, 1, 0, 1
    FROM generate_series(0, 39999) n;
    INSERT INTO batches (shard, id, application_id, test, body, rows, pages, cost, price_local,
        price_international, price_id, first_message_id, last_message_id, spool, spool_offset, expanded_rows,
        expanded_cost, open, released, created_at, expanded_at)
    SELECT 1, n, 1 + n % 1000, 0, 'x', 16, 16, 800000, 50000, 250000, 1, n, n, '', 0, 16, 800000,
        16, 0, 0, 0
    FROM generate_series(1, 1000) n;
    INSERT INTO batch_counts (shard, batch_id, status, n)
    SELECT 1, n, s.column1, CASE s.column1 WHEN {submitted} THEN 16 ELSE 0 END
    FROM generate_series(1, 1000) n, (VALUES {statuses}) AS s;
    INSERT INTO event_streams (shard, application_id, test, last_id, dropped_id, since)
    SELECT 1, n, 0, 0, 0, 0 FROM generate_series(1, 2000) n;
    INSERT INTO events (shard, application_id, test, id, type, subject)
    SELECT 1, 1 + n % 1000, 0, n, {delivered}, n FROM generate_series(1, 40000) n;
    INSERT INTO webhooks (shard, id, application_id, test, url, secret, created_at, position,
        failures, due_at, lease_token, lease_until)
    SELECT 1, n, 1 + n % 1000, 0, '', '', 0, 0, 0, 9223372036854775807, 0, 0
    FROM generate_series(1, 1000) n;
    INSERT INTO opt_outs (shard, application_id, test, number, source, id)
    SELECT 1, 1 + n % 1000, 0, '2667' || n, 'api', n FROM generate_series(1, 40000) n;
    INSERT INTO verifications (shard, id, application_id, test, number, kind, country, nonce,
        digits, locale, name, created_at, expires_at, attempts, resends, sent_at)
    SELECT 1, -n, 1 + n % 1000, 0, '2667' || n, 'local', '266', n, 6, 'en', 'x', 0, 0, 0, 0, 0
    FROM generate_series(1, 40000) n;
    INSERT INTO commit_groups (shard, id, created_at) SELECT 1, n, n FROM generate_series(1, 20000) n;
    INSERT INTO prices (id, local, international, in_force_at, set_at, set_by)
        VALUES (1, 50000, 250000, 0, 0, 'settings');
    ANALYZE;
    -- PostgreSQL takes the rows per page from here, and the number of pages from the table itself.
    UPDATE pg_class SET reltuples = reltuples * 500
    WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace AND reltuples > 1000"
);
const ID_OF: &str = r"
    CREATE FUNCTION pg_temp.id_of(day BIGINT, i BIGINT) RETURNS BIGINT LANGUAGE sql IMMUTABLE AS
        'SELECT (day * 86400000 + i * 30000 - 1704067200000) << 21'";

/// Reports every plan as a notice, with the rows that it read.
const EXPLAIN: &str = r"
    LOAD 'auto_explain';
    SET auto_explain.log_nested_statements = on;
    SET auto_explain.log_min_duration = 0;
    SET auto_explain.log_analyze = on;
    SET auto_explain.log_timing = off;
    SET auto_explain.log_format = json;
    SET auto_explain.log_level = notice;
    SET client_min_messages = notice";

/// Each index, and its first column.
const INDEXES: &str = r"
    SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid, 1, true) AS first
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relnamespace = 'public'::regnamespace";

/// Tables that stay small.
const SMALL: [&str; 2] = ["carriers", "prices"];

/// Returns the ID of a message.
fn id_of(day: i64, i: i64) -> i64 {
    id_of_day(day) + ((i * 30_000) << 21)
}

/// Returns the IDs of a day's messages that a call is about.
fn ids_of(day: i64, call: i64) -> Vec<i64> {
    (call * ROWS + 1..=(call + 1) * ROWS).map(|i| id_of(day, i)).collect()
}

fn each<T>(value: impl Fn(i64) -> T) -> Vec<T> {
    (0..ROWS).map(value).collect()
}

/// Returns a call with every kind of row that a group stores.
fn group(call: i64) -> CommitGroup {
    let taken = ids_of(20_008, call);
    let final_ids = ids_of(20_009, call);
    let identified = ids_of(20_009, call + CALLS);
    let (day, application) = (DAYS.end - 1, |n| 2 + n);
    let now = (day + 1) * 86_400_000 - 1;
    CommitGroup {
        shard: Shard::FIRST,
        id: 1_000_000 + call,
        now: Timestamp::from_unix_ms(now),
        node: 1,
        least_id: id_of_day(DAYS.start),
        submitted: SubmittedRows {
            tokens: each(|_| 7),
            carriers: each(|_| "acme".to_owned()),
            segment_counts: each(|_| Some(1)),
            ids: taken.clone(),
        },
        segments: SegmentRows {
            numbers: each(|_| 1),
            segment_counts: each(|_| 1),
            applications: each(application),
            carriers: each(|_| "acme".to_owned()),
            message_ids: taken.iter().map(|id| Some(format!("name {id}"))).collect(),
            ids: taken,
        },
        receipts: ReceiptRows {
            statuses: each(|n| 5 + n % 2),
            errors: each(|_| None),
            ids: final_ids,
        },
        identified_receipts: IdentifiedReceiptRows {
            receipts: each(|n| n),
            carriers: each(|_| "acme".to_owned()),
            message_ids: identified.iter().map(|id| format!("name {id}")).collect(),
            statuses: each(|n| 5 + n % 2),
            errors: each(|_| None),
        },
        price: 1,
        drained: Vec::new(),
        test_money_max: Money::ZERO,
        kept_since: Timestamp::from_unix_ms(0),
        test_max: 0,
        applications: ApplicationRows {
            ids: each(application),
            statuses: each(|_| Some("Active".to_owned())),
            live_hashes: each(|n| Some(format!("live{}", application(n)))),
            test_hashes: each(|n| Some(format!("test{}", application(n)))),
            sender_states: each(|_| Some("none".to_owned())),
            sender_names: each(|_| None),
            totals: each(|_| 50_000),
            test_totals: each(|_| 0),
            transfers: each(|_| 1),
            tests: each(|_| 0),
            limits: each(|_| None),
            spend_days: each(|_| day),
            spend_maxes: each(|_| Some(1_000_000)),
        },
        keys: KeyRows {
            applications: each(application),
            tests: each(|_| 0),
            keys: each(|n| format!("new {call} {n}")),
            digests: each(|_| String::new()),
            answers: each(|_| Some("{}".to_owned())),
            spent: each(|_| Some(50_000)),
        },
        recipients: RecipientRows {
            applications: each(|n| 2 + n),
            tests: each(|_| 0),
            numbers: each(|n| format!("2665700{n:04}")),
        },
        limited: LimitedRows {
            applications: each(|n| 2 + n),
            tests: each(|_| 0),
            numbers: each(|n| format!("2665700{n:04}")),
            local_numbers: each(|n| Some(format!("5700{n:04}"))),
            hour_maxes: each(|_| 1_000),
            day_maxes: each(|_| 1_000),
        },
        sends: sends(call, day, now),
        codes: codes(call),
        claims: ClaimRows {
            carriers: vec!["acme".to_owned(), "beta".to_owned()],
            all_max: vec![ROWS; 2],
            singles_max: vec![ROWS / 2; 2],
            singles_from: vec![0; 2],
            batches_from: vec![0; 2],
        },
        lease_token: 1_000 + call,
        lease_until: Timestamp::from_unix_ms(now + 60_000),
        country_code: "266".to_owned(),
    }
}

fn codes(call: i64) -> CodeRows {
    CodeRows {
        ids: each(|n| call * ROWS + n),
        applications: each(|n| 2 + n),
        tests: each(|_| 0),
        numbers: each(|_| format!("26657{call:06}")),
        kinds: each(|_| "local".to_owned()),
        countries: each(|_| "266".to_owned()),
        nonces: each(|n| n),
        digits: each(|_| 6),
        locales: each(|_| "en".to_owned()),
        names: each(|_| "x".to_owned()),
        created_ats: each(|_| 0),
        expires_ats: each(|_| 0),
        resends: each(|_| None),
    }
}

fn sends(call: i64, day: i64, now: i64) -> SendRows {
    SendRows {
        ids: each(|n| id_of(day, OF_A_DAY + 1 + call * ROWS + n)),
        applications: each(|n| 2 + n),
        tests: each(|_| 0),
        numbers: each(|_| "57000001".to_owned()),
        kinds: each(|_| "local".to_owned()),
        senders: each(|_| None),
        bodies: each(|_| "x".to_owned()),
        verifications: each(|n| Some(call * ROWS + n)),
        requestids: each(|_| None),
        pages: each(|_| 1),
        segment_counts: each(|_| 1),
        unit_prices: each(|_| 50_000),
        costs: each(|_| 50_000),
        spent: each(|_| 50_000),
        transfers: each(|_| 1),
        created_ats: each(|_| now),
        sending_ats: each(|_| None),
        send_ats: each(|_| None),
        carriers: each(|_| "acme".to_owned()),
        due_ats: each(|_| now),
        tokens: each(|_| 0),
        expires_ats: each(|_| None),
    }
}

/// Asserts that the group did all its work.
fn assert_done(answer: &GroupAnswer) {
    let count = usize::try_from(ROWS).unwrap();
    assert!(answer.missing.is_none());
    assert_eq!(answer.done.as_ref().unwrap().len(), 2 * count);
    assert_eq!(answer.done_receipts.as_ref().unwrap().len(), count);
    assert_eq!(answer.charged.as_ref().unwrap().len(), count);
    let claims = answer.claims.as_ref().unwrap();
    assert_eq!(claims[0].found.as_ref().unwrap().len(), count);
    assert!(!claims[0].started_before.as_ref().unwrap().is_empty());
    assert!(claims[1].found.is_none());
}

/// Collects the notices of a server.
#[derive(Clone, Default)]
struct Notices(Arc<Mutex<Vec<String>>>);

impl Subscriber for Notices {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::postgres::notice"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Notices {
    fn record_str(&mut self, _: &Field, value: &str) {
        self.0.lock().unwrap().push(value.to_owned());
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Notices {
    /// Returns the plans that were reported since the last call of this function.
    fn plans(&self) -> Vec<Value> {
        let notices = std::mem::take(&mut *self.0.lock().unwrap());
        let plans = notices.iter().filter_map(|notice| notice.split_once("plan:\n"));
        plans.map(|(_, plan)| serde_json::from_str(plan).unwrap()).collect()
    }
}

/// Fills a database with the statistics of ten million messages.
async fn fill(store: &Store) -> PgConnection {
    let mut conn = store.connect().await.unwrap();
    for day in DAYS {
        let mut tx = conn.begin().await.unwrap();
        assert!(store.dialect().make_day(&mut tx, day, MessageTables::Day).await.unwrap());
        tx.commit().await.unwrap();
    }
    let mut conn = PgConnection::connect(store.url()).await.unwrap();
    for statements in [ID_OF, FILL, SESSION, GROUP_SESSION, EXPLAIN] {
        conn.execute(sqlx::raw_sql(statements)).await.unwrap();
    }
    conn
}

/// Reads plans and collects their faults.
struct Reader {
    /// The first column of each index.
    first: BTreeMap<String, String>,
    tables: BTreeSet<String>,
    faults: Vec<String>,
}

impl Reader {
    fn read(&mut self, query: &str, node: &Value) {
        let text = |key: &str| node[key].as_str().unwrap_or_default().to_owned();
        let table = text("Relation Name");
        let scans = text("Node Type").contains("Scan");
        let of_table = !table.is_empty() || !text("Index Name").is_empty();
        if scans && of_table && !SMALL.contains(&table.as_str()) {
            self.tables.insert(table);
            let fault = self.fault(node);
            self.faults.extend(fault.map(|fault| format!("{fault}\n{query}\n{node:#}")));
        }
        for inner in node["Plans"].as_array().into_iter().flatten() {
            self.read(query, inner);
        }
    }

    /// Returns why a scan reads too many rows, or `None` if it doesn't.
    fn fault(&self, node: &Value) -> Option<String> {
        let number = |key: &str| node[key].as_i64().unwrap_or(0);
        let rows = number("Actual Rows")
            + number("Rows Removed by Filter")
            + number("Rows Removed by Index Recheck");
        let rows = rows * number("Actual Loops");
        if rows > 2 * ROWS {
            return Some(format!("{rows} rows are read"));
        }
        let Some(first) = node["Index Name"].as_str().map(|name| &self.first[name]) else {
            // The rows of a bitmap scan come from the index scan below it.
            let is_bitmap = node["Node Type"] == "Bitmap Heap Scan";
            return (!is_bitmap).then(|| "a table is read without an index".to_owned());
        };
        let condition = node["Index Cond"].as_str().unwrap_or_default();
        (!condition.contains(&format!("({first} "))).then(|| format!("{first} isn't looked up"))
    }
}

#[tokio::test]
async fn no_statement_of_a_group_reads_more_than_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let [_, store] = stores(folder.path()).await;
    let mut conn = fill(&store).await;
    let indexes = conn.fetch_all(INDEXES).await.unwrap();
    let first = indexes.iter().map(|row| (row.get(0), row.get(1)));
    let mut reader = Reader { first: first.collect(), tables: BTreeSet::new(), faults: Vec::new() };
    let notices = Notices::default();
    let _listening = tracing::subscriber::set_default(notices.clone());
    let mut count = 0;
    for call in 0..CALLS {
        let call = group(call);
        let running = call.bind(sqlx::query(RUN)).fetch_one(&mut conn);
        let answer: String = running.await.unwrap().get("answer");
        assert_done(&read(&answer).unwrap());
        for plan in notices.plans() {
            count += 1;
            reader.read(plan["Query Text"].as_str().unwrap(), &plan["Plan"]);
        }
    }
    assert_eq!(reader.faults, Vec::<String>::new());
    assert!(count > CALLS * 20, "{count} plans were reported");
    // Makes sure that the plans of all statements were read.
    for table in ["queue", "segments", "applications", "idempotency", "batches", "batch_counts"] {
        assert!(reader.tables.contains(table), "{table} was never read");
    }
    let of_days = reader.tables.iter().filter(|table| table.starts_with("messages_"));
    // Three days, and the table for days without their own, which the search for the messages to a
    // recipient includes.
    assert_eq!(of_days.count(), 4, "{:?}", reader.tables);
    store.close().await;
}
