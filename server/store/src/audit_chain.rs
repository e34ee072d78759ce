//! The hash chains of the audit log. The hash of each entry covers the hash of the previous entry.
//! Nobody can change, remove or insert an entry without changing all entries after it.
//!
//! Each account has a chain of its own for its actions, so that nodes don't wait for each other.
//! One more chain has the actions of the operator and the service itself.

use domain::support::AuditRecord;
use sha2::{Digest as _, Sha256};

use super::query::{Conn, query};
use super::row::touched;
use super::sql::{Sql, statements};
use crate::error::Result;

/// The chain for actions of the operator and of the service itself.
pub(crate) const OF_NO_ACCOUNT: i64 = 0;

statements! {
    /// Locks the chain until the transaction ends.
    const NEXT: Sql = Sql::same(r"
        UPDATE audit_chains SET number = number + 1 WHERE chain = $1 RETURNING number, hash");
    const BEGIN: Sql = Sql::same(r"
        INSERT INTO audit_chains (chain, number, hash) VALUES ($1, 0, '')
        ON CONFLICT (chain) DO NOTHING");
    const END: Sql = Sql::same("UPDATE audit_chains SET hash = $2 WHERE chain = $1");
}

/// The position of a new entry at the end of a chain.
pub struct ChainPosition {
    pub chain: i64,
    pub number: i64,
    /// The hash of the previous entry.
    previous: String,
}

/// Reserves the position of a chain's next entry. Other writers of the chain wait until the
/// transaction ends.
pub async fn next(conn: Conn<'_>, chain: i64) -> Result<ChainPosition> {
    loop {
        let found = query(NEXT, chain)
            .fetch_optional(&mut *conn, |row| Ok((row.get("number")?, row.get("hash")?)))
            .await?;
        if let Some((number, previous)) = found {
            return Ok(ChainPosition { chain, number, previous });
        }
        query(BEGIN, chain).execute(&mut *conn).await?;
    }
}

/// Makes an entry the last one of its chain, and returns its hash.
pub async fn end(conn: Conn<'_>, position: &ChainPosition, entry: &AuditRecord) -> Result<String> {
    let hash = hash_of(&position.previous, position.chain, position.number, entry);
    let ended = query(END, (position.chain, hash.as_str())).execute(conn).await?;
    touched("audit_chains", 1, ended)?;
    Ok(hash)
}

/// Returns the hash of an entry. `previous` is the hash of the previous entry. The entry's ID isn't
/// hashed, because it is assigned only when the entry is stored. `number` is the entry's position
/// in the chain.
pub fn hash_of(previous: &str, chain: i64, number: i64, entry: &AuditRecord) -> String {
    let mut hasher = Sha256::new();
    // Each value is hashed with its length, so that two different entries never give the same
    // bytes.
    let mut add = |value: Option<&str>| match value {
        Some(text) => {
            hasher.update((text.len() as u64).to_be_bytes());
            hasher.update(text);
        }
        None => hasher.update(u64::MAX.to_be_bytes()),
    };
    add(Some(previous));
    for number in [chain, number, entry.at.unix_ms()] {
        add(Some(&number.to_string()));
    }
    for text in [&entry.who, &entry.action, &entry.subject] {
        add(Some(text));
    }
    for text in [&entry.address, &entry.before, &entry.after, &entry.detail] {
        add(text.as_deref());
    }
    hex::encode(hasher.finalize())
}
