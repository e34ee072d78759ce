//! The names and addresses of customers on receipts and statements.

use domain::billing::BillingDetails;

use super::query::{Conn, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const OF: Sql = Sql::same(r"
        SELECT name, address, tax_number FROM billing_details WHERE account_id = $1");
    const SET: Sql = Sql::same(r"
        INSERT INTO billing_details (account_id, name, address, tax_number)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (account_id) DO UPDATE SET name = $2, address = $3, tax_number = $4");
}

/// Returns an account's details, which are empty until its owner has given them.
pub async fn of_account(conn: Conn<'_>, account_id: i64) -> Result<BillingDetails> {
    let found = query(OF, account_id)
        .fetch_optional(conn, |row| from_row!(row => BillingDetails { name, address, tax_number }));
    Ok(found.await?.unwrap_or_default())
}

pub async fn set(conn: Conn<'_>, account_id: i64, details: &BillingDetails) -> Result<()> {
    let BillingDetails { name, address, tax_number } = details;
    query(SET, (account_id, name, address, tax_number)).execute(conn).await.map(drop)
}
