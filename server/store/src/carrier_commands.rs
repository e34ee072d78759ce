//! Commands about carriers that every running process carries out, and the processes' answers.

use domain::Timestamp;

use super::query::{Connection, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO carrier_commands (carrier, asked_at) VALUES ($1, $2) RETURNING id");
    const NEWEST: Sql = Sql::same(r"
        SELECT COALESCE(MAX(id), 0) AS id FROM carrier_commands");
    const AFTER: Sql = Sql::same(r"
        SELECT id, carrier FROM carrier_commands WHERE id > $1 ORDER BY id");
    const FORGET: Sql = Sql::same("DELETE FROM carrier_commands WHERE asked_at < $1");
    const ANSWER: Sql = Sql::same(r"
        INSERT INTO carrier_command_answers (command_id, node, refused, text)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (command_id, node) DO NOTHING");
    const ANSWERS: Sql = Sql::same(r"
        SELECT node, refused, text FROM carrier_command_answers
        WHERE command_id = $1 ORDER BY node");
    const FORGET_ANSWERS: Sql = Sql::same(r"
        DELETE FROM carrier_command_answers
        WHERE command_id NOT IN (SELECT id FROM carrier_commands)");
}

/// The answer of one process to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandAnswer {
    /// The slot of the node.
    pub node: i64,
    pub refused: bool,
    pub text: String,
}

/// Stores a command and returns its ID. `carrier` is the carrier to rebind; `None` stands for a
/// reload of the settings. Deletes commands from before `old`.
pub async fn insert(
    conn: &mut dyn Connection,
    carrier: Option<&str>,
    now: Timestamp,
    old: Timestamp,
) -> Result<i64> {
    query(FORGET, old).execute(&mut *conn).await?;
    query(FORGET_ANSWERS, ()).execute(&mut *conn).await?;
    query(INSERT, (carrier, now)).fetch_one(conn, |row| row.get("id")).await
}

/// Returns the ID of the newest command, or 0.
pub async fn newest(conn: &mut dyn Connection) -> Result<i64> {
    query(NEWEST, ()).fetch_one(conn, |row| row.get("id")).await
}

/// Returns the commands with a greater ID, oldest first, each with its carrier.
pub async fn after(conn: &mut dyn Connection, id: i64) -> Result<Vec<(i64, Option<String>)>> {
    query(AFTER, id).fetch_all(conn, |row| Ok((row.get("id")?, row.get("carrier")?))).await
}

pub async fn answer(conn: &mut dyn Connection, command: i64, answer: &CommandAnswer) -> Result<()> {
    let CommandAnswer { node, refused, text } = answer;
    query(ANSWER, (command, *node, *refused, text)).execute(conn).await.map(drop)
}

pub async fn answers(conn: &mut dyn Connection, command: i64) -> Result<Vec<CommandAnswer>> {
    query(ANSWERS, command)
        .fetch_all(conn, |row| {
            let (node, refused) = (row.get("node")?, row.get("refused")?);
            Ok(CommandAnswer { node, refused, text: row.get("text")? })
        })
        .await
}
