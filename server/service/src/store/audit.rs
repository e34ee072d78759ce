//! The audit log.

use super::query::{Connection, query};
use domain::Timestamp;

use super::statements;
use crate::error::Result;
use crate::operations::audit::Actor;

statements! {
    INSERT = "INSERT INTO audit (at, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)";
}

/// Writes down what was done, in the transaction that does it.
pub(crate) async fn insert(
    conn: &mut dyn Connection,
    now: Timestamp,
    actor: &Actor,
    action: &'static str,
    subject: &str,
    detail: Option<&str>,
) -> Result<()> {
    query(INSERT)
        .bind(now.unix_ms())
        .bind(actor.to_string())
        .bind(action)
        .bind(subject)
        .bind(detail)
        .execute(conn)
        .await?;
    Ok(())
}
