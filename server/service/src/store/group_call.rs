//! A group on PostgreSQL: one call of the function `run_commit_group`, which is one transaction.
//! What the parameters and the answer mean stands with the function, in `run_commit_group.sql`.

#[cfg(test)]
mod plans;

use std::time::Duration;

use domain::ids::Shard;
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
use super::query::{Connection, query};
use super::row;
use super::segments::Segment;
use super::sql::{Sql, statements};
use crate::error::{Result, Uncertain, is_cut, timed_out};

/// How long a call may take before its connection counts as lost: longer than the server lets a
/// statement take.
const CALL_TIMEOUT: Duration = Duration::from_secs(40);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The call. It stands outside the list of statements since its parameters are arrays.
pub(crate) const RUN: &str = r"
        SELECT run_commit_group($1, $2, $3, $4, $5,
            ROW($6, $7, $8, $9)::submitted_rows,
            ROW($10, $11, $12, $13, $14, $15)::segment_rows,
            ROW($16, $17, $18)::receipt_rows,
            ROW($19, $20, $21, $22, $23)::named_receipt_rows,
            $24, $25, $26, $27, $28,
            ROW($29, $30, $31, $32, $33, $34, $35, $36, $37, $38)::application_rows,
            ROW($39, $40, $41, $42, $43)::key_rows,
            ROW($44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59,
                $60, $61, $62)::send_rows,
            ROW($63, $64, $65, $66, $67)::claim_rows, $68, $69) AS answer";

statements! {
    const GIVE_BACK: Sql = Sql::postgres(r"
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
        pub(crate) struct $name {
            $(pub(crate) $field: Vec<$type>,)*
        }

        impl $name {
            fn bind<'q>(&'q self, query: Bound<'q>) -> Bound<'q> {
                query$(.bind(&self.$field))*
            }
        })*
    };
}

columns! {
    /// Messages that a carrier took as a whole at their first submit.
    SubmittedRows {
        ids: i64,
        tokens: i64,
        carriers: String,
        segment_counts: Option<i64>,
    }

    /// The segments of these messages, where the carrier names segments.
    SegmentRows {
        ids: i64,
        numbers: i64,
        segment_counts: i64,
        applications: i64,
        carriers: String,
        names: Option<String>,
    }

    /// Receipts that name the message.
    ReceiptRows {
        ids: i64,
        statuses: i64,
        errors: Option<String>,
    }

    /// Receipts that have the carrier's name of a segment.
    NamedReceiptRows {
        receipts: i64,
        carriers: String,
        names: String,
        statuses: i64,
        errors: Option<String>,
    }

    /// Applications of sends, as the group caches them.
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
    }

    /// Idempotency keys of sends, with the answers to keep.
    KeyRows {
        applications: i64,
        tests: i64,
        keys: String,
        digests: String,
        answers: Option<String>,
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
        requestids: Option<String>,
        pages: i64,
        segment_counts: i64,
        unit_prices: i64,
        costs: i64,
        spent: i64,
        transfers: i64,
        created_ats: i64,
        sending_ats: Option<i64>,
        carriers: String,
        due_ats: i64,
        tokens: i64,
    }

    /// Carriers that messages are claimed for.
    ClaimRows {
        carriers: String,
        all_max: i64,
        singles_max: i64,
        singles_from: i64,
        batches_from: i64,
    }
}

/// Everything that a group stores of one shard.
pub(crate) struct CommitGroup {
    pub(crate) shard: Shard,
    pub(crate) id: i64,
    pub(crate) now: Timestamp,
    /// The slot of this process.
    pub(crate) node: i64,
    /// The least id of a message that is claimed: older messages have no time left.
    pub(crate) least_id: i64,
    pub(crate) submitted: SubmittedRows,
    pub(crate) segments: SegmentRows,
    pub(crate) receipts: ReceiptRows,
    pub(crate) named_receipts: NamedReceiptRows,
    /// The newest change of prices that the sends were decided by; 0 where none is known.
    pub(crate) price: i64,
    pub(crate) drained: Vec<String>,
    pub(crate) play_money: Money,
    pub(crate) kept_since: Timestamp,
    /// The most messages a day of a test key whose account never had a deposit.
    pub(crate) test_max: i64,
    pub(crate) applications: ApplicationRows,
    pub(crate) keys: KeyRows,
    pub(crate) sends: SendRows,
    pub(crate) claims: ClaimRows,
    pub(crate) lease_token: i64,
    pub(crate) lease_until: Timestamp,
}

/// What a group stored, and the rows that it read.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct GroupAnswer {
    pub(crate) missing: Option<Vec<i64>>,
    pub(crate) done: Option<Vec<i64>>,
    pub(crate) done_receipts: Option<Vec<i64>>,
    /// All changes of prices, where the newest one wasn't known.
    pub(crate) prices: Option<Vec<ChangeFields>>,
    /// Set where the prices or the drained carriers have changed: then no send was stored, and
    /// nothing claimed.
    pub(crate) drained: Option<Vec<String>>,
    pub(crate) applications: Option<Vec<FoundApplication>>,
    pub(crate) kept: Option<Vec<KeptFields>>,
    pub(crate) charged: Option<Vec<ApplicationId>>,
    pub(crate) claims: Option<Vec<ClaimAnswer>>,
}

/// An application before its sends were charged. The fields are in the order of
/// `commit_group_sends`.
#[derive(Deserialize)]
pub(crate) struct FoundApplication {
    pub(crate) id: ApplicationId,
    /// Whether the application is as the group cached it, its balances aside.
    pub(crate) same: bool,
    pub(crate) balance: Money,
    pub(crate) test_balance: Money,
    pub(crate) test_day: i64,
    pub(crate) test_sent: i64,
    pub(crate) paid: bool,
    pub(crate) row: Option<ApplicationFields>,
}

/// What the group had not cached of an application: category, status, live hash, test hash, sender
/// state, sender name.
pub(crate) type ApplicationFields = (String, String, String, String, String, Option<String>);

/// A kept answer: application, whether it is of the test key (0|1), key, digest, answer.
pub(crate) type KeptFields = (ApplicationId, i64, String, String, String);

/// What was claimed for a carrier.
#[derive(Deserialize)]
pub(crate) struct ClaimAnswer {
    pub(crate) found: Option<Vec<DueRow>>,
    pub(crate) started: Option<Vec<StartedMessage>>,
    pub(crate) started_before: Option<Vec<StartedMessage>>,
    pub(crate) submitted_segments: Option<Vec<Segment>>,
    /// In unix milliseconds.
    pub(crate) next_due: Option<i64>,
}

/// Whether the database answered a call.
pub(crate) enum Called {
    Answered(GroupAnswer),
    /// It has to be asked whether the group is stored.
    Unanswered(sqlx::Error),
}

/// The connection that a shard's groups are called on.
#[derive(Default)]
pub(crate) struct GroupConnection(Option<PgConnection>);

impl GroupConnection {
    /// Runs a group.
    ///
    /// # Errors
    /// When nothing was stored.
    pub(crate) async fn run(&mut self, store: &Store, call: &CommitGroup) -> Result<Called> {
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
                Ok(Called::Answered(read(&answer)?))
            }
            // The server itself refused the work, and didn't only end the connection.
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

/// Whether an error may be the coordinator's own, while the worker that ran the group has
/// committed: a connection to a worker that was lost, a statement that was canceled, or any fault
/// that isn't about the group's rows. A worker that refused the connection was asked for nothing.
fn may_be_of_coordinator(error: &sqlx::Error) -> bool {
    // Data, constraints, serialization, names, conditions of the group: how their codes start.
    const OF_GROUP: [&str; 6] = ["22", "23", "40001", "42", "55", "P0"];
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let of_group = |code: &str| OF_GROUP.iter().any(|start| code.starts_with(start));
    !error.code().is_some_and(|code| of_group(&code))
        && !error.message().contains("Connection refused")
}

/// Reads the answer of a group, which is stored.
///
/// # Errors
/// `Uncertain` when the answer can't be read.
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
        let query = self.named_receipts.bind(query);
        let query = query
            .bind(self.price)
            .bind(&self.drained)
            .bind(self.play_money.micros())
            .bind(self.kept_since.unix_ms())
            .bind(self.test_max);
        let query = self.applications.bind(query);
        let query = self.keys.bind(query);
        let query = self.sends.bind(query);
        let query = self.claims.bind(query);
        query
            .bind(self.lease_token)
            .bind(self.lease_until.unix_ms())
    }
}

/// A group whose call wasn't answered.
#[derive(Clone)]
pub(crate) struct UnansweredCall {
    shard: Shard,
    id: i64,
    lease_token: i64,
    /// The ids of its sends.
    sends: Vec<i64>,
}

impl UnansweredCall {
    pub(crate) fn of(call: &CommitGroup) -> Self {
        Self {
            shard: call.shard,
            id: call.id,
            lease_token: call.lease_token,
            sends: call.sends.ids.clone(),
        }
    }

    /// Makes sure that the group is stored, or never will be: its answer if it is stored, without
    /// the claims. The messages that it claimed from the queue go back there, since nobody knows
    /// of them; the sends that it stored as claimed are known.
    ///
    /// # Errors
    /// When the database can't be asked, or the group is still under way.
    pub(crate) async fn settle(
        &self,
        conn: &mut dyn Connection,
        now: Timestamp,
    ) -> Result<Option<GroupAnswer>> {
        let answer = commit_groups::answer_or_prevent(&mut *conn, self.shard, self.id).await?;
        let Some(answer) = answer else {
            return Ok(None);
        };
        let known = row::json(&self.sends)?;
        query(GIVE_BACK, (self.shard.0, self.lease_token, now, known))
            .execute(conn)
            .await?;
        read(&answer).map(Some)
    }
}
