//! Paths through the messages of an application: by an index on `messages`, or by a smaller table
//! that refers to messages.

use std::fmt::Write as _;

use domain::{BatchId, MessageStatus};

use super::super::query::Argument;
use super::super::sql::{Dialect, Sql};
use crate::names::with_names;

/// The start of each list statement: all fields of a message that reports show, as one JSON value.
/// `FROM (…) m` follows. The batch is read only for a message that has no text of its own. `$shard`
/// is replaced by the parameter of the shard.
const LISTED: Sql = Sql {
    sqlite: r"
        SELECT json_group_array(
            json_array(
                id, application_id, test, number, kind, sender,
                COALESCE(body, (SELECT b.body FROM batches b WHERE b.id = batch_id)), requestid,
                batch_id, status, pages, segments, unit_price, cost, released, error, carrier,
                created_at, sending_at, submitted_at, final_at,
                COALESCE(send_at, (SELECT b.send_at FROM batches b WHERE b.id = batch_id))))
            AS found",
    postgres: r"
        SELECT COALESCE(
            json_agg(
                json_build_array(
                    id, application_id, test, number, kind, sender,
                    COALESCE(body, (
                        SELECT b.body FROM batches b WHERE b.shard = $shard AND b.id = batch_id)),
                    requestid, batch_id, status, pages, segments, unit_price, cost, released,
                    error, carrier, created_at, sending_at, submitted_at, final_at,
                    COALESCE(send_at, (
                        SELECT b.send_at
                        FROM batches b WHERE b.shard = $shard AND b.id = batch_id)))),
            '[]')::text AS found",
    ..Sql::ANYWHERE
};

/// The words that make SQLite use an index, before the name of the index. Without statistics,
/// SQLite considers any two indexes equally good. PostgreSQL chooses the index by its own
/// statistics.
const THROUGH_INDEX: Sql = Sql::sqlite("INDEXED BY ");

/// Finds messages by their status, if it is unknown, failed, expired or rejected.
const UNUSUAL: Sql = Sql {
    sqlite: "messages d INDEXED BY messages_unusual",
    postgres: "(SELECT message_id AS id, application_id, test, status, shard \
               FROM unusual_messages) d",
    ..Sql::ANYWHERE
};

/// Messages of all applications that no carrier has accepted yet.
const QUEUE: Sql = Sql {
    sqlite: "(SELECT message_id AS id, application_id FROM queue) d",
    postgres: "(SELECT message_id AS id, application_id, shard FROM queue) d",
    ..Sql::ANYWHERE
};

/// Joins the rows of [`UNUSUAL`] or of the queue with their messages, called `m`. Looks up each
/// message by its ID, within a range.
const THEIR_MESSAGES: Sql = Sql {
    sqlite: "CROSS JOIN messages m ON m.id = d.id",
    // Messages are read one by one in the order of the rows, until there are enough. If PostgreSQL
    // could choose the join, it might read all messages of the days. The inner query has its own
    // condition on the shard, because PostgreSQL must be able to tell the shard from this query
    // alone. `$shard` is replaced by the parameter.
    postgres: "CROSS JOIN LATERAL (\
               SELECT * FROM messages \
               WHERE shard = $shard AND id = d.id AND id >= $3 AND id < $4 OFFSET 0) m",
    ..Sql::ANYWHERE
};

/// A condition on messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Requestid(String),
    Batch(BatchId),
    Number(String),
    Status(MessageStatus),
}

impl Condition {
    const fn column(&self) -> &'static str {
        match self {
            Self::Requestid(_) => "requestid",
            Self::Batch(_) => "batch_id",
            Self::Number(_) => "number",
            Self::Status(_) => "status",
        }
    }

    /// Returns the value that the column must have.
    pub(super) fn value(&self) -> Argument<'_> {
        match self {
            Self::Requestid(text) | Self::Number(text) => text.into(),
            Self::Batch(id) => (*id).into(),
            Self::Status(status) => status.code().into(),
        }
    }

    /// Returns the path that contains only messages that meet the condition, or `None` if there is
    /// no such path.
    pub const fn path(&self) -> Option<Path> {
        match self {
            Self::Requestid(_) => Some(Path::Requestid),
            Self::Number(_) => Some(Path::Number),
            Self::Status(status) if status.is_rare() => Some(Path::Unusual),
            // Every message has, or had, one of the other statuses. An index on them would have to
            // be written for each send. The messages of an upload have consecutive IDs, so a search
            // is limited to these IDs.
            Self::Status(_) | Self::Batch(_) => None,
        }
    }
}

/// The path that a list takes, starting with the newest message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// All messages.
    Application,
    Requestid,
    Number,
    /// Messages that are unknown, failed, expired or rejected.
    Unusual,
    /// Messages of all applications that no carrier has accepted yet.
    Queue,
}

impl Path {
    #[cfg(test)]
    pub(super) const ALL: [Self; 5] =
        [Self::Application, Self::Requestid, Self::Number, Self::Unusual, Self::Queue];

    const fn index(self) -> Option<&'static str> {
        match self {
            Self::Application => Some("messages_by_application"),
            Self::Requestid => Some("messages_by_requestid"),
            Self::Number => Some("messages_by_number"),
            Self::Unusual | Self::Queue => None,
        }
    }

    /// Returns the table of the path, called `d`, and its index.
    fn source(self, dialect: Dialect) -> String {
        match (self, self.index()) {
            (Self::Queue, _) => QUEUE.of(dialect).to_owned(),
            (_, None) => UNUSUAL.of(dialect).to_owned(),
            (_, Some(index)) => match THROUGH_INDEX.of(dialect) {
                "" => "messages d".to_owned(),
                through => format!("messages d {through}{index}"),
            },
        }
    }

    /// Returns the condition that all rows of the path meet.
    const fn always(self) -> &'static str {
        match self {
            // A partial index is used only if the statement repeats the condition of the index.
            Self::Unusual => {
                with_names!(" AND d.test = $2 AND (d.status > {delivered} OR d.status = {unknown})")
            }
            Self::Queue => "",
            _ => " AND d.test = $2",
        }
    }

    /// Returns whether the rows of the path must be joined with their messages.
    const fn leads_elsewhere(self) -> bool {
        matches!(self, Self::Unusual | Self::Queue)
    }

    /// Builds the statement that lists messages. Its parameters are the application, whether
    /// messages are test messages, the least ID, the ID below which to look, the limit, a value for
    /// each condition, and on PostgreSQL the shard. The statement consists of constant parts only.
    pub(super) fn list(self, dialect: Dialect, conditions: &[Condition]) -> String {
        let source = self.source(dialect);
        let shard = shard_parameter(conditions.len());
        let (messages, join) = if self.leads_elsewhere() {
            ("m", THEIR_MESSAGES.of(dialect).replace("$shard", &shard))
        } else {
            ("d", String::new())
        };
        let mut sql = format!(
            "{} FROM (SELECT {messages}.* FROM {source} {join} \
             WHERE d.application_id = $1 AND d.id >= $3 AND d.id < $4{}{}",
            LISTED.of(dialect).replace("$shard", &shard),
            self.always(),
            in_shard(dialect, conditions.len()),
        );
        if self == Self::Queue {
            sql.push_str(" AND m.application_id = $1 AND m.test = $2");
        }
        for (place, condition) in conditions.iter().enumerate() {
            let (column, place) = (condition.column(), place + 6);
            // Writing to a String can't fail.
            let _ = write!(sql, " AND {messages}.{column} = ${place}");
            if self.leads_elsewhere() && condition.path() == Some(self) {
                let _ = write!(sql, " AND d.{column} = ${place}");
            }
        }
        sql.push_str(" ORDER BY d.id DESC LIMIT $5) m");
        sql
    }

    /// Builds the statement that counts the messages along the path, up to the limit, and finds
    /// their least ID. It reads only the index. Its parameters are those of a list, with one
    /// condition at most: the one that the path is for.
    pub(super) fn count(self, dialect: Dialect, leading: Option<&Condition>) -> String {
        let condition = leading
            .map_or_else(String::new, |condition| format!(" AND d.{} = $6", condition.column()));
        format!(
            "SELECT COUNT(*) AS n, MIN(id) AS id FROM (SELECT d.id FROM {} \
             WHERE d.application_id = $1 AND d.id >= $3 AND d.id < $4{}{condition}{} \
             ORDER BY d.id DESC LIMIT $5) m",
            self.source(dialect),
            self.always(),
            in_shard(dialect, usize::from(leading.is_some())),
        )
    }
}

/// Builds the statement that lists the messages with the IDs `$1`, a JSON array. On PostgreSQL, the
/// least and the greatest of the IDs and the shard follow.
pub(super) fn list_by_id(dialect: Dialect) -> String {
    let from = match dialect {
        Dialect::Sqlite => {
            "SELECT m.* FROM json_each($1) r CROSS JOIN messages m ON m.id = r.value"
        }
        Dialect::Postgres => {
            "SELECT * FROM messages WHERE id = ANY (ARRAY(\
             SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))) \
             AND id BETWEEN $2 AND $3 AND shard = $4"
        }
    };
    format!("{} FROM ({from}) m", LISTED.of(dialect).replace("$shard", "$4"))
}

/// Builds the statement that lists the scheduled messages of an application and one kind of key,
/// the next due first. Its parameters are the application, whether messages are test messages, the
/// time and the ID after which to look, the least ID that such a message can have, the limit, and
/// on PostgreSQL the shard.
pub(super) fn list_scheduled(dialect: Dialect) -> String {
    let messages = match THROUGH_INDEX.of(dialect) {
        "" => "messages d".to_owned(),
        through => format!("messages d {through}messages_scheduled"),
    };
    let shard = match dialect {
        Dialect::Sqlite => "",
        Dialect::Postgres => " AND d.shard = $7",
    };
    format!(
        "{} FROM (SELECT d.* FROM {messages} WHERE d.application_id = $1 AND d.test = $2 \
         AND d.send_at >= $3 AND (d.send_at > $3 OR d.id > $4) AND d.id >= $5{}{shard} \
         ORDER BY d.send_at, d.id LIMIT $6) m",
        LISTED.of(dialect).replace("$shard", "$7"),
        with_names!(" AND d.status = {scheduled}"),
    )
}

/// Returns the parameter of the shard. It is the last one, after those of the conditions.
fn shard_parameter(conditions: usize) -> String {
    format!("${}", conditions + 6)
}

/// Returns the condition on the shard. SQLite has no shards.
fn in_shard(dialect: Dialect, conditions: usize) -> String {
    match dialect {
        Dialect::Sqlite => String::new(),
        Dialect::Postgres => format!(" AND d.shard = {}", shard_parameter(conditions)),
    }
}
