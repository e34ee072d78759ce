//! Passkeys of accounts, and the passkey challenges of sessions.

use domain::Timestamp;
use domain::records::PasskeyRecord;

use super::query::{Conn, Row, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const OF: Sql = Sql::same(r"
        SELECT id, name, credential, created_at, used_at
        FROM passkeys WHERE account_id = $1 ORDER BY id");
    /// Inserts no row if the credential is already a passkey of any account.
    const ADD: Sql = Sql::same(r"
        INSERT INTO passkeys (account_id, credential_hash, name, credential, counter, created_at)
        VALUES ($1, $2, $3, $4, 0, $5)
        ON CONFLICT (credential_hash) DO NOTHING");
    /// Updates no row if the passkey was removed or its stored counter isn't below the new one. The
    /// counter of some passkeys is always 0.
    const USE: Sql = Sql::same(r"
        UPDATE passkeys SET credential = $3, counter = $4, used_at = $5
        WHERE account_id = $1 AND id = $2 AND (counter < $4 OR (counter = 0 AND $4 = 0))");
    const REMOVE: Sql = Sql::same("DELETE FROM passkeys WHERE account_id = $1 AND id = $2");
    const REMOVE_ALL: Sql = Sql::same("DELETE FROM passkeys WHERE account_id = $1");
    const SET_CHALLENGE: Sql = Sql::same("UPDATE sessions SET passkey_challenge = $2 WHERE token_hash = $1");
    const CHALLENGE: Sql = Sql::same("SELECT passkey_challenge FROM sessions WHERE token_hash = $1");
    /// Updates no row if the challenge was already answered or replaced.
    const TAKE_CHALLENGE: Sql = Sql::same(r"
        UPDATE sessions SET passkey_challenge = NULL
        WHERE token_hash = $1 AND passkey_challenge = $2");
}

pub struct Stored {
    pub record: PasskeyRecord,
    /// The public key and the counter, as JSON.
    pub credential: String,
}

/// Returns the passkeys of an account, in the order in which they were added.
pub async fn of(conn: Conn<'_>, account_id: i64) -> Result<Vec<Stored>> {
    let read = |row: &Row<'_>| {
        Ok(Stored {
            record: PasskeyRecord {
                id: row.get("id")?,
                name: row.get("name")?,
                created_at: row.get("created_at")?,
                used_at: row.get("used_at")?,
            },
            credential: row.get("credential")?,
        })
    };
    query(OF, account_id).fetch_all(conn, read).await
}

/// A passkey to add.
pub struct New {
    pub name: String,
    pub credential_hash: String,
    pub credential: String,
}

/// Adds a passkey. Returns false if its credential is already a passkey.
pub async fn add(conn: Conn<'_>, account_id: i64, new: &New, now: Timestamp) -> Result<bool> {
    let (hash, name) = (new.credential_hash.as_str(), new.name.as_str());
    let values = (account_id, hash, name, new.credential.as_str(), now);
    Ok(query(ADD, values).execute(conn).await? == 1)
}

/// Stores the use of a passkey. Returns false if the passkey was removed or its stored counter
/// isn't below the new one.
pub async fn set_used(
    conn: Conn<'_>,
    account_id: i64,
    id: i64,
    credential: &str,
    counter: i64,
    now: Timestamp,
) -> Result<bool> {
    let using = query(USE, (account_id, id, credential, counter, now));
    Ok(using.execute(conn).await? == 1)
}

/// Removes a passkey. Returns false if the account has no such passkey.
pub async fn remove(conn: Conn<'_>, account_id: i64, id: i64) -> Result<bool> {
    Ok(query(REMOVE, (account_id, id)).execute(conn).await? == 1)
}

pub(crate) async fn remove_all(conn: Conn<'_>, account_id: i64) -> Result<()> {
    query(REMOVE_ALL, account_id).execute(conn).await.map(drop)
}

/// Stores a session's passkey challenge in place of an earlier one. Returns false if there is no
/// such session.
pub async fn set_challenge(conn: Conn<'_>, token_hash: &str, challenge: &str) -> Result<bool> {
    Ok(query(SET_CHALLENGE, (token_hash, challenge)).execute(conn).await? == 1)
}

/// Returns the pending passkey challenge of a session.
pub async fn challenge(conn: Conn<'_>, token_hash: &str) -> Result<Option<String>> {
    let challenge: Option<Option<String>> = query(CHALLENGE, token_hash)
        .fetch_optional(conn, |row| row.get("passkey_challenge"))
        .await?;
    Ok(challenge.flatten())
}

/// Consumes a session's passkey challenge. Returns false if it was already consumed or replaced.
pub async fn take_challenge(conn: Conn<'_>, token_hash: &str, challenge: &str) -> Result<bool> {
    Ok(query(TAKE_CHALLENGE, (token_hash, challenge)).execute(conn).await? == 1)
}
