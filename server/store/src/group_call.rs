//! A commit group on PostgreSQL: one call of the function `run_commit_group`, which is one
//! transaction. `run_commit_group.sql` documents the parameters and the answer.

#[cfg(test)]
mod tests;

use std::time::Duration;

use domain::ids::{Shard, compose_id};
use domain::verify::COOL_DOWN_MS;
use domain::{ApplicationId, Money, Timestamp};
use serde::Deserialize;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::query::Query;
use sqlx::{Connection as _, Executor as _, Postgres, Row as _};

use super::claims::{DueRow, StartedMessage};
use super::commit_groups;
use super::database::Store;
use super::postgres::{GROUP_SESSION, SESSION};
use super::prices::ChangeFields;
use super::query::{Conn, query};
use super::recipients;
use super::row;
use super::segments::Segment;
use super::sql::{Sql, statements};
use super::verifications::CodeRow;
use crate::error::{Result, Uncertain, is_cut, timed_out};
use crate::idempotency::KeptKey;

/// The timeout of a call, after which its connection counts as lost. It is longer than the server's
/// statement timeout.
const CALL_TIMEOUT: Duration = Duration::from_secs(40);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The statement that runs a commit group. It isn't in `statements!`, because its parameters are
/// arrays.
pub(crate) const RUN: &str = r"
        SELECT run_commit_group($1, $2, $3, $4, $5,
            ROW($6, $7, $8, $9)::submitted_rows,
            ROW($10, $11, $12, $13, $14, $15)::segment_rows,
            ROW($16, $17, $18)::receipt_rows,
            ROW($19, $20, $21, $22, $23)::identified_receipt_rows,
            $24, $25, $26, $27, $28,
            ROW($29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41)::application_rows,
            ROW($42, $43, $44, $45, $46, $47)::key_rows,
            ROW($48, $49, $50)::recipient_rows,
            ROW($51, $52, $53, $54, $55, $56)::limited_rows,
            ROW($57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73,
                $74, $75, $76, $77, $78)::send_rows,
            ROW($79, $80, $81, $82, $83)::claim_rows, $84, $85, $86, $87, $88, $89,
            ROW($90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101,
                $102)::code_rows, $103) AS answer";

statements! {
    const RELEASE_CLAIMS: Sql = Sql::postgres(r"
        UPDATE queue SET lease_token = 0, due_at = $3
        WHERE shard = $1 AND lease_token = $2
          AND NOT message_id = ANY (
              ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($4::text::jsonb)))");
}

type Bound<'q> = Query<'q, Postgres, PgArguments>;

/// Declares rows as columns: each field is a list with a value per row.
macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Default)]
        pub struct $name {
            $(pub $field: Vec<$type>,)*
        }

        impl $name {
            fn bind<'q>(&'q self, query: Bound<'q>) -> Bound<'q> {
                query$(.bind(&self.$field))*
            }
        })*
    };
}

columns! {
    /// Messages that a carrier accepted as a whole at their first submit.
    SubmittedRows {
        ids: i64,
        tokens: i64,
        carriers: String,
        segment_counts: Option<i64>,
    }

    /// The segments of the messages in [`SubmittedRows`], except those to the sandbox carrier.
    SegmentRows {
        ids: i64,
        numbers: i64,
        segment_counts: i64,
        applications: i64,
        carriers: String,
        message_ids: Option<String>,
    }

    /// Receipts that identify a message by its transid.
    ReceiptRows {
        ids: i64,
        statuses: i64,
        errors: Option<String>,
    }

    /// Receipts that identify a segment by its carrier message ID.
    IdentifiedReceiptRows {
        receipts: i64,
        carriers: String,
        message_ids: String,
        statuses: i64,
        errors: Option<String>,
    }

    /// The applications of the sends, as this process has cached them.
    ApplicationRows {
        ids: i64,
        statuses: Option<String>,
        live_hashes: Option<String>,
        test_hashes: Option<String>,
        sender_states: Option<String>,
        sender_names: Option<String>,
        totals: i64,
        test_totals: i64,
        transfers: i64,
        tests: i64,
        limits: Option<String>,
        spend_days: i64,
        spend_maxes: Option<i64>,
    }

    /// The idempotency keys of the sends, with the answers to store.
    KeyRows {
        applications: i64,
        tests: i64,
        keys: String,
        digests: String,
        answers: Option<String>,
        spent: Option<i64>,
    }

    /// The recipients of sends, as carriers get their numbers.
    RecipientRows {
        applications: i64,
        tests: i64,
        numbers: String,
    }

    /// The recipients of sends whose application limits the messages to a recipient.
    LimitedRows {
        applications: i64,
        tests: i64,
        numbers: String,
        local_numbers: Option<String>,
        hour_maxes: i64,
        day_maxes: i64,
    }

    /// Accepted sends.
    SendRows {
        ids: i64,
        applications: i64,
        tests: i64,
        numbers: String,
        kinds: String,
        senders: Option<String>,
        bodies: String,
        verifications: Option<i64>,
        requestids: Option<String>,
        pages: i64,
        segment_counts: i64,
        unit_prices: i64,
        costs: i64,
        spent: i64,
        transfers: i64,
        created_ats: i64,
        sending_ats: Option<i64>,
        send_ats: Option<i64>,
        carriers: String,
        due_ats: i64,
        tokens: i64,
        expires_ats: Option<i64>,
    }

    /// The verifications whose codes the sends contain.
    CodeRows {
        ids: i64,
        applications: i64,
        tests: i64,
        numbers: String,
        kinds: String,
        countries: String,
        nonces: i64,
        digits: i64,
        locales: String,
        names: String,
        created_ats: i64,
        expires_ats: i64,
        resends: Option<i64>,
    }

    /// The carriers to claim messages for.
    ClaimRows {
        carriers: String,
        all_max: i64,
        singles_max: i64,
        singles_from: i64,
        batches_from: i64,
    }
}

/// Everything that a commit group stores in one shard.
pub struct CommitGroup {
    pub shard: Shard,
    pub id: i64,
    pub now: Timestamp,
    /// The slot of this process.
    pub node: i64,
    /// The least ID of a message to claim. Older messages have expired.
    pub least_id: i64,
    pub submitted: SubmittedRows,
    pub segments: SegmentRows,
    pub receipts: ReceiptRows,
    pub identified_receipts: IdentifiedReceiptRows,
    /// The ID of the newest price change that the process had cached when it decided the sends, or
    /// 0.
    pub price: i64,
    pub drained: Vec<String>,
    pub test_money_max: Money,
    pub kept_since: Timestamp,
    /// The maximum number of messages per day for a test key whose account never had a deposit.
    pub test_max: i64,
    pub applications: ApplicationRows,
    pub keys: KeyRows,
    pub recipients: RecipientRows,
    pub limited: LimitedRows,
    pub sends: SendRows,
    pub codes: CodeRows,
    pub claims: ClaimRows,
    pub lease_token: i64,
    pub lease_until: Timestamp,
    /// In opt-outs, it precedes local numbers.
    pub country_code: String,
}

/// The rows that a commit group stored, and the rows that it read.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct GroupAnswer {
    pub missing: Option<Vec<i64>>,
    pub done: Option<Vec<i64>>,
    pub done_receipts: Option<Vec<i64>>,
    /// All price changes. Set if the process hadn't cached the newest one.
    pub prices: Option<Vec<ChangeFields>>,
    /// Set if the prices or the drained carriers have changed. The group then stored no sends and
    /// claimed nothing.
    pub drained: Option<Vec<String>>,
    pub applications: Option<Vec<FoundApplication>>,
    pub kept: Option<Vec<KeptFields>>,
    /// The recipients that have opted out: application, whether it is of the test key (0 or 1),
    /// number.
    pub opted_out: Option<Vec<(ApplicationId, i64, String)>>,
    /// The recipients that got more messages than the sends allow.
    pub flooded: Option<Vec<FloodedFields>>,
    /// The verifications whose codes must not be sent.
    pub stale_codes: Option<Vec<i64>>,
    pub charged: Option<Vec<ApplicationId>>,
    pub claims: Option<Vec<ClaimAnswer>>,
}

impl GroupAnswer {
    /// Whether the call stored the sends of an application.
    pub fn has_charged(&self, application: ApplicationId) -> bool {
        let charged = self.charged.as_ref();
        charged.is_some_and(|ids| ids.contains(&application))
    }
}

/// An application before its sends were charged. The fields are in the order of
/// `commit_group_sends`.
#[derive(Deserialize)]
pub struct FoundApplication {
    pub id: ApplicationId,
    /// Whether the cached application is up to date, apart from its balances.
    pub same: bool,
    pub balance: Money,
    pub test_balance: Money,
    pub test_day: i64,
    pub test_sent: i64,
    pub paid: bool,
    pub spent_day: i64,
    pub spent_today: Money,
    pub row: Option<ApplicationFields>,
}

/// The fields of an application that weren't cached: category, status, live hash, test hash, sender
/// state, sender name, limits.
pub type ApplicationFields =
    (String, String, String, String, String, Option<String>, Option<String>);

/// A recipient that got messages: application, whether it is of the test key (0 or 1), number,
/// messages within an hour and within a day.
pub type FloodedFields = (ApplicationId, i64, String, i64, i64);

/// A stored answer: application, whether it is of the test key (0 or 1), key, digest, answer.
pub type KeptFields = (ApplicationId, i64, String, String, String);

/// The messages that were claimed for a carrier.
#[derive(Deserialize)]
pub struct ClaimAnswer {
    pub found: Option<Vec<DueRow>>,
    pub started: Option<Vec<StartedMessage>>,
    pub started_scheduled: Option<Vec<StartedMessage>>,
    pub started_before: Option<Vec<StartedMessage>>,
    /// The messages that weren't claimed because their recipients have opted out.
    pub opted_out: Option<Vec<i64>>,
    pub submitted_segments: Option<Vec<Segment>>,
    /// Unix milliseconds.
    pub next_due: Option<i64>,
}

/// Whether the database answered a call.
pub enum Called {
    Answered(Box<GroupAnswer>),
    /// It isn't known whether the group is stored. [`UnansweredCall::settle`] finds out.
    Unanswered(sqlx::Error),
}

/// The connection for the commit groups of a shard.
#[derive(Default)]
pub struct GroupConnection(Option<PgConnection>);

impl GroupConnection {
    /// Runs a commit group.
    ///
    /// # Errors
    /// `Failed` if nothing was stored. `Uncertain` if the group is stored and its answer can't be
    /// read.
    pub async fn run(&mut self, store: &Store, call: &CommitGroup) -> Result<Called> {
        let mut conn = match self.0.take() {
            Some(conn) => conn,
            None => connect(store).await?,
        };
        let calling = call.bind(sqlx::query(RUN)).fetch_one(&mut conn);
        let called = tokio::time::timeout(CALL_TIMEOUT, calling).await;
        match called.unwrap_or_else(|_| Err(timed_out("a commit group"))) {
            Ok(row) => {
                self.0 = Some(conn);
                let answer: String = row.try_get("answer")?;
                Ok(Called::Answered(Box::new(read(&answer)?)))
            }
            // The server rejected the call, and didn't just end the connection.
            Err(error @ sqlx::Error::Database(_))
                if !(is_cut(&error) || store.is_distributed() && may_be_of_coordinator(&error)) =>
            {
                self.0 = Some(conn);
                Err(error.into())
            }
            Err(error) => Ok(Called::Unanswered(error)),
        }
    }
}

/// Returns whether an error may come from the coordinator although the worker that ran the group
/// has committed. Such an error is a lost connection to a worker, a canceled statement, or any
/// other fault that isn't about the group's rows. A worker that refused the connection never got
/// the call.
fn may_be_of_coordinator(error: &sqlx::Error) -> bool {
    // SQLSTATE prefixes of errors that the group itself causes: data, constraints, serialization,
    // names, object states, and exceptions that the function raises.
    const OF_GROUP: [&str; 6] = ["22", "23", "40001", "42", "55", "P0"];
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let of_group = |code: &str| OF_GROUP.iter().any(|start| code.starts_with(start));
    !error.code().is_some_and(|code| of_group(&code))
        && !error.message().contains("Connection refused")
}

/// Parses the answer of a group that is stored.
///
/// # Errors
/// `Uncertain` if the answer can't be parsed.
fn read(answer: &str) -> Result<GroupAnswer> {
    let read = serde_json::from_str(answer);
    let unreadable =
        |error| Uncertain::Task(format!("a commit group's answer can't be read: {error}"));
    Ok(read.map_err(unreadable)?)
}

async fn connect(store: &Store) -> Result<PgConnection> {
    let connecting = async {
        let mut conn = PgConnection::connect(store.url()).await?;
        conn.execute(SESSION).await?;
        conn.execute(GROUP_SESSION).await?;
        Ok(conn)
    };
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
    let connected: std::result::Result<_, sqlx::Error> =
        connected.unwrap_or_else(|_| Err(timed_out("connecting")));
    Ok(connected?)
}

impl CommitGroup {
    fn bind<'q>(&'q self, query: Bound<'q>) -> Bound<'q> {
        let query = query
            .bind(self.shard.0)
            .bind(self.id)
            .bind(self.now.unix_ms())
            .bind(self.node)
            .bind(self.least_id);
        let query = self.submitted.bind(query);
        let query = self.segments.bind(query);
        let query = self.receipts.bind(query);
        let query = self.identified_receipts.bind(query);
        let query = query
            .bind(self.price)
            .bind(&self.drained)
            .bind(self.test_money_max.micros())
            .bind(self.kept_since.unix_ms())
            .bind(self.test_max);
        let query = self.applications.bind(query);
        let query = self.keys.bind(query);
        let query = self.recipients.bind(query);
        let query = self.limited.bind(query);
        let query = self.sends.bind(query);
        let query = self.claims.bind(query);
        let first_event = compose_id(self.now.unix_ms(), 0);
        let (hour_from, day_from) = recipients::windows(self.now);
        let query = query
            .bind(self.lease_token)
            .bind(self.lease_until.unix_ms())
            .bind(first_event)
            .bind(&self.country_code)
            .bind(hour_from)
            .bind(day_from);
        self.codes.bind(query).bind(self.now.plus_ms(-COOL_DOWN_MS).unix_ms())
    }
}

impl CodeRows {
    pub fn push(&mut self, code: &CodeRow) {
        self.ids.push(code.id.0);
        self.applications.push(code.application_id.0);
        self.tests.push(i64::from(code.test));
        self.numbers.push(code.number.clone());
        self.kinds.push(code.kind.as_str().to_owned());
        self.countries.push(code.country.clone());
        self.nonces.push(code.nonce);
        self.digits.push(code.digits.cast_signed() as i64);
        self.locales.push(code.locale.as_str().to_owned());
        self.names.push(code.name.clone());
        self.created_ats.push(code.created_at.unix_ms());
        self.expires_ats.push(code.expires_at.unix_ms());
        self.resends.push(code.resends);
    }
}

impl KeyRows {
    /// Adds a key to look up.
    pub fn push(&mut self, key: &KeptKey) {
        self.push_row(key, "", None, None);
    }

    /// Adds a key to store with its answer. `spent` is the cost of the application's sends up to
    /// and including this one.
    pub fn push_answer(&mut self, key: &KeptKey, digest: &str, answer: String, spent: Money) {
        self.push_row(key, digest, Some(answer), Some(spent.micros()));
    }

    fn push_row(
        &mut self,
        key: &KeptKey,
        digest: &str,
        answer: Option<String>,
        spent: Option<i64>,
    ) {
        self.applications.push(key.application_id.0);
        self.tests.push(i64::from(key.test));
        self.keys.push(key.key.clone());
        self.digests.push(digest.to_owned());
        self.answers.push(answer);
        self.spent.push(spent);
    }
}

/// A commit group whose call got no answer.
#[derive(Clone)]
pub struct UnansweredCall {
    shard: Shard,
    id: i64,
    lease_token: i64,
    /// The IDs of its sends.
    sends: Vec<i64>,
}

impl UnansweredCall {
    pub fn of(call: &CommitGroup) -> Self {
        Self {
            shard: call.shard,
            id: call.id,
            lease_token: call.lease_token,
            sends: call.sends.ids.clone(),
        }
    }

    /// Makes sure that the group is stored or never will be. If it is stored, returns its answer
    /// without the claims.
    ///
    /// Releases the claims of queued messages, because the caller doesn't know which messages the
    /// group claimed. Sends that the group stored as claimed stay claimed, because the caller knows
    /// them.
    ///
    /// # Errors
    /// If the database can't be reached, or the group is still in flight.
    pub async fn settle(&self, conn: Conn<'_>, now: Timestamp) -> Result<Option<GroupAnswer>> {
        let answer = commit_groups::answer_or_prevent(&mut *conn, self.shard, self.id).await?;
        let Some(answer) = answer else {
            return Ok(None);
        };
        let known = row::json(&self.sends)?;
        query(RELEASE_CLAIMS, (self.shard.0, self.lease_token, now, known)).execute(conn).await?;
        read(&answer).map(Some)
    }
}
