//! Commands about carriers that running processes carry out, and the processes' answers.

use domain::Timestamp;

use super::query::{Conn, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO carrier_commands (command, asked_at) VALUES ($1, $2) RETURNING id");
    const NEWEST: Sql = Sql::same(r"
        SELECT COALESCE(MAX(id), 0) AS id FROM carrier_commands");
    const AFTER: Sql = Sql::same(r"
        SELECT id, command FROM carrier_commands WHERE id > $1 ORDER BY id");
    const TAKE: Sql = Sql::same(r"
        UPDATE carrier_commands SET taken_by = $2 WHERE id = $1 AND taken_by IS NULL");
    const FORGET: Sql = Sql::same("DELETE FROM carrier_commands WHERE asked_at < $1");
    const FORGET_ONE: Sql = Sql::same("UPDATE carrier_commands SET command = '' WHERE id = $1");
    const ANSWER: Sql = Sql::same(r"
        INSERT INTO carrier_command_answers (command_id, node, number, answered_at, state, text)
        SELECT id, CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS BIGINT), CAST($5 AS TEXT),
               CAST($6 AS TEXT)
        FROM carrier_commands WHERE id = $1 AND command <> ''
        ON CONFLICT (command_id, node, number) DO NOTHING");
    const ANSWERS: Sql = Sql::same(r"
        SELECT node, number, answered_at, state, text FROM carrier_command_answers
        WHERE command_id = $1 ORDER BY answered_at, node, number");
    const FORGET_ANSWERS: Sql = Sql::same(r"
        DELETE FROM carrier_command_answers
        WHERE command_id NOT IN (SELECT id FROM carrier_commands)");
    const FORGET_ANSWERS_TO: Sql = Sql::same(r"
        DELETE FROM carrier_command_answers WHERE command_id = $1");
}

/// How far a process is with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerState {
    /// More answers follow.
    Going,
    Done,
    /// The process did nothing, or failed.
    Refused,
}

impl AnswerState {
    const ALL: [Self; 3] = [Self::Going, Self::Done, Self::Refused];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Going => "going",
            Self::Done => "done",
            Self::Refused => "refused",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// An answer of one process to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandAnswer {
    pub node: i64,
    /// Among the node's answers to the command, from 1.
    pub number: i64,
    pub at: Timestamp,
    pub state: AnswerState,
    pub text: String,
}

/// Deletes commands from before this time, and the answers to them.
pub async fn forget_old(conn: Conn<'_>, before: Timestamp) -> Result<()> {
    if query(FORGET, before).execute(&mut *conn).await? > 0 {
        query(FORGET_ANSWERS, ()).execute(conn).await?;
    }
    Ok(())
}

/// Stores a command and returns its ID. Only one verb runs at a time over all processes, so
/// commands commit in the order of their IDs. A process that reads only newer commands therefore
/// misses none.
pub async fn insert(conn: Conn<'_>, command: &str, now: Timestamp) -> Result<i64> {
    query(INSERT, (command, now)).fetch_one(conn, |row| row.get("id")).await
}

/// Deletes the text of a command, and its answers.
pub async fn forget(conn: Conn<'_>, command: i64) -> Result<()> {
    query(FORGET_ANSWERS_TO, command).execute(&mut *conn).await?;
    query(FORGET_ONE, command).execute(conn).await.map(drop)
}

/// Returns the ID of the newest command, or 0.
pub async fn newest(conn: Conn<'_>) -> Result<i64> {
    query(NEWEST, ()).fetch_one(conn, |row| row.get("id")).await
}

/// Returns the commands with a greater ID, oldest first.
pub async fn after(conn: Conn<'_>, id: i64) -> Result<Vec<(i64, String)>> {
    query(AFTER, id).fetch_all(conn, |row| Ok((row.get("id")?, row.get("command")?))).await
}

/// Takes a command that only one process may carry out. Returns false if another process has taken
/// it.
pub async fn take(conn: Conn<'_>, command: i64, node: i64) -> Result<bool> {
    Ok(query(TAKE, (command, node)).execute(conn).await? == 1)
}

/// Stores an answer. Returns false if the command was deleted, or if the answer is already stored.
pub async fn answer(conn: Conn<'_>, command: i64, answer: &CommandAnswer) -> Result<bool> {
    let CommandAnswer { node, number, at, state, text } = answer;
    let values = (command, *node, *number, *at, state.as_str(), text);
    Ok(query(ANSWER, values).execute(conn).await? == 1)
}

/// Returns the answers to a command so far, in their order.
pub async fn answers(conn: Conn<'_>, command: i64) -> Result<Vec<CommandAnswer>> {
    query(ANSWERS, command)
        .fetch_all(conn, |row| {
            from_row!(row => CommandAnswer {
                node, number, at: row.get("answered_at")?,
                state: row::word(row, "carrier_command_answers", "state", AnswerState::parse)?,
                text,
            })
        })
        .await
}
