//! The hash chains of the audit log: each entry has the hash of the entry before it, so that nobody
//! changes, removes or adds one in the middle without changing all that come after it.
//!
//! Each account that does something has a chain of its own, so that nodes don't wait for each other;
//! one more has what the operator and the service itself do.

use domain::support::AuditRecord;
use sha2::{Digest as _, Sha256};

use super::query::{Connection, query};
use super::row::touched;
use super::sql::{Sql, statements};
use crate::error::Result;

/// The chain of what no account did.
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

/// A place at the end of a chain.
pub(crate) struct Place {
    pub(crate) chain: i64,
    pub(crate) number: i64,
    /// The hash of the entry before it.
    previous: String,
}

/// The place of a chain's next entry. Others who write to the chain wait until the transaction ends.
pub(crate) async fn next(conn: &mut dyn Connection, chain: i64) -> Result<Place> {
    loop {
        let found = query(NEXT, chain)
            .fetch_optional(&mut *conn, |row| Ok((row.get("number")?, row.get("hash")?)))
            .await?;
        if let Some((number, previous)) = found {
            return Ok(Place {
                chain,
                number,
                previous,
            });
        }
        query(BEGIN, chain).execute(&mut *conn).await?;
    }
}

/// Ends a chain with an entry, and returns the entry's hash.
pub(crate) async fn end(
    conn: &mut dyn Connection,
    place: &Place,
    entry: &AuditRecord,
) -> Result<String> {
    let hash = hash_of(&place.previous, place.chain, place.number, entry);
    let ended = query(END, (place.chain, hash.as_str()))
        .execute(conn)
        .await?;
    touched("audit_chains", 1, ended)?;
    Ok(hash)
}

/// The hash of an entry, after that of the one before it. Its id isn't known before it is stored; its number says its order.
pub(crate) fn hash_of(previous: &str, chain: i64, number: i64, entry: &AuditRecord) -> String {
    let mut hasher = Sha256::new();
    // Each value with its length, so that no two entries are hashed as the same bytes.
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
