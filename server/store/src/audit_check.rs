//! The check of the audit log: recomputes every hash of its chains.

use domain::support::AuditRecord;

use super::audit;
use super::audit_chain::{OF_NO_ACCOUNT, hash_of};
use super::query::{Conn, Row, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::Result;

/// The number of entries that are read at a time.
const READ_AT_ONCE: i64 = 1000;
/// The maximum number of breaks that are reported.
const BREAKS_MAX: usize = 20;

statements! {
    const ENTRIES: Sql = Sql::same(r"
        SELECT chain, number, hash, id, at, actor, address, action, subject, before, after, detail
        FROM audit WHERE (chain, number) > ($1, $2) ORDER BY chain, number LIMIT $3");
    /// Chains whose last entry doesn't match the end in `audit_chains`.
    const WITHOUT_THEIR_END: Sql = Sql::same(r"
        SELECT c.chain AS chain FROM audit_chains c
        LEFT JOIN audit a ON a.chain = c.chain AND a.number = c.number AND a.hash = c.hash
        WHERE a.id IS NULL
        UNION
        SELECT a.chain AS chain FROM audit a LEFT JOIN audit_chains c ON c.chain = a.chain
        WHERE c.chain IS NULL OR a.number > c.number ORDER BY chain LIMIT 20");
}

struct Linked {
    chain: i64,
    number: i64,
    hash: String,
    entry: AuditRecord,
}

fn linked(row: &Row<'_>) -> Result<Linked> {
    from_row!(row => Linked { chain, number, hash, entry: audit::record(row)? })
}

/// Describes the breaks in the chains, at most [`BREAKS_MAX`] of them.
pub async fn breaks(conn: Conn<'_>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let (mut chain, mut number, mut hash) = (i64::MIN, 0, String::new());
    loop {
        let page: Vec<Linked> =
            query(ENTRIES, (chain, number, READ_AT_ONCE)).fetch_all(&mut *conn, linked).await?;
        for linked in &page {
            if linked.chain != chain {
                (chain, number, hash) = (linked.chain, 0, String::new());
            }
            if linked.number != number + 1 {
                found.push(format!(
                    "{}: entries before {} are missing",
                    named(chain),
                    linked.number
                ));
            } else if linked.hash != hash_of(&hash, chain, linked.number, &linked.entry) {
                found.push(format!("{}: entry {} was changed", named(chain), linked.number));
            }
            (number, hash) = (linked.number, linked.hash.clone());
        }
        if page.is_empty() || found.len() >= BREAKS_MAX {
            break;
        }
    }
    let ends: Vec<i64> =
        query(WITHOUT_THEIR_END, ()).fetch_all(conn, |row| row.get("chain")).await?;
    found.extend(ends.into_iter().map(|chain| {
        format!("{}: its last entries don't match the end of the chain", named(chain))
    }));
    found.truncate(BREAKS_MAX);
    Ok(found)
}

fn named(chain: i64) -> String {
    if chain == OF_NO_ACCOUNT {
        "audit log of operator and service".to_owned()
    } else {
        format!("audit log of account {chain}")
    }
}
