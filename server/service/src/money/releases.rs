//! Releases: returning the price of messages that no carrier accepted.

use std::collections::BTreeMap;

use domain::ledger::{LedgerAccount, TransferKind};
use domain::{ApplicationId, Money, Timestamp};

use crate::money::test_money::test_money_max;
use store::balances::{self, SettledApplication};
use store::error::{Error, Fault, Result};
use store::messages::Ended;
use store::query::Conn;
use store::transfers::{self, MessageTransfer, Subject};

/// Moves the released prices of ended messages back to their applications. Writes a transfer for
/// each price that was paid from the live balance, but none for prices that were paid from the test
/// balance.
pub(crate) async fn settle(conn: Conn<'_>, ended: &[Ended], now: Timestamp) -> Result<()> {
    let released: Vec<_> = ended.iter().filter(|ended| ended.released > Money::ZERO).collect();
    if released.is_empty() {
        return Ok(());
    }
    let ids: Vec<ApplicationId> = released.iter().map(|ended| ended.application_id).collect();
    let mut balances: BTreeMap<ApplicationId, SettledApplication> = balances::of(conn, &ids)
        .await?
        .into_iter()
        .map(|found| {
            let settled = SettledApplication {
                id: found.application_id,
                before: found.balance,
                balance: found.balance,
                test_money: Money::ZERO,
            };
            (settled.id, settled)
        })
        .collect();
    let mut transfers = Vec::with_capacity(released.len());
    for ended in released {
        let balances = balances
            .get_mut(&ended.application_id)
            .ok_or(Error::Failed(Fault::Missing("applications")))?;
        let money = if ended.test { &mut balances.test_money } else { &mut balances.balance };
        *money = money.checked_add(ended.released).ok_or(Error::Failed(Fault::MoneyOverflow))?;
        if !ended.test {
            transfers.push(MessageTransfer {
                debit: LedgerAccount::REVENUE,
                credit: ended.application_id.into(),
                amount: ended.released,
                kind: TransferKind::Release,
                subject: Subject::Message(ended.id),
                application: Some((ended.application_id, balances.balance)),
            });
        }
    }
    let settled: Vec<_> = balances.into_values().collect();
    balances::settle(conn, &settled, test_money_max()).await?;
    transfers::insert_of_messages(conn, &transfers, now).await
}
