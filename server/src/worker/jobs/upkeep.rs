//! Jobs that keep no state between two runs.

use domain::support::UnpaidUse;
use service::{Leases, Result, Service};

use super::work::attempt;

/// No transaction of this program is open for this long. While a transaction is open, vacuum can't
/// remove rows that were deleted since it began.
const OLD_TRANSACTION_MS: i64 = 5 * 60 * 1000;

/// Ends expired leases. Matches receipts that arrived before the response to their submit was
/// stored.
pub(super) async fn end_leases(service: Service) -> Result<()> {
    let ended = attempt("leases can't be ended", service.delivery().end_leases(Leases::Over)).await;
    if let Some(count @ 1..) = ended {
        tracing::warn!(count, "leases ended before the result of their submits");
    }
    let matched =
        attempt("unmatched receipts can't be matched", service.delivery().match_crossed()).await;
    if let Some(count @ 1..) = matched {
        tracing::info!(count, "unmatched receipts were matched");
    }
    Ok(())
}

/// Matches receipts again that matched no message when they came.
pub(super) async fn match_waiting(service: Service) -> Result<()> {
    let count = service.delivery().match_waiting().await?;
    if count > 0 {
        tracing::info!(count, "unmatched receipts were matched");
    }
    Ok(())
}

/// Expires messages after 48 hours. Deletes old sessions, security events, mails, API calls,
/// idempotency keys, carrier message IDs and history. Masks old numbers and erases old texts.
/// Creates the tables of the coming days. Adds up the counts of past days.
pub(super) async fn expire_and_delete(service: Service) -> Result<()> {
    let expired = attempt("messages can't be expired", service.delivery().expire()).await;
    if let Some(expired @ 1..) = expired {
        tracing::info!(expired, "messages expired");
    }
    let (accounts, delivery) = (service.accounts(), service.delivery());
    let operations = service.operations();
    attempt("old sessions can't be deleted", accounts.session_sweep()).await;
    attempt("old mails can't be deleted", operations.forget_mails()).await;
    let segments = delivery.forget_segments();
    attempt("carrier message IDs of old messages can't be deleted", segments).await;
    attempt("old idempotency keys can't be deleted", operations.forget_answers()).await;
    attempt("the tables of the coming days can't be created", operations.make_days()).await;
    attempt("the counts of past days can't be added up", operations.fold_days()).await;
    attempt("old messages can't be deleted", operations.drop_history()).await;
    attempt("old numbers can't be masked", operations.mask_numbers()).await;
    attempt("old texts can't be erased", operations.erase_texts()).await;
    attempt("old messages of test keys can't be deleted", operations.drop_tests()).await;
    Ok(())
}

/// Measures the space of test messages of accounts without a deposit. Warns if they take too much.
pub(super) async fn measure_unpaid(service: Service) -> Result<()> {
    let measured = service.operations().measure_unpaid().await?;
    if measured.is_too_much() {
        let UnpaidUse { messages, bytes, bytes_max } = measured;
        tracing::warn!(
            messages,
            bytes,
            bytes_max,
            "test messages of accounts without a deposit take more than unpaid_bytes_max"
        );
    }
    Ok(())
}

/// Mails staff about cases that have waited for an hour. Without a mail server, staff check by
/// themselves.
pub(super) async fn remind_staff(service: Service) -> Result<()> {
    if service.operations().sends_mail() {
        service.operations().remind_staff().await?;
    }
    Ok(())
}

/// Mails staff about carriers that are down, degraded or back.
pub(super) async fn mail_carrier_states(service: Service) -> Result<()> {
    if service.operations().sends_mail() {
        service.operations().mail_carrier_states().await?;
    }
    Ok(())
}

/// Warns about a transaction that keeps PostgreSQL's vacuum from removing rows.
pub(super) async fn look_for_old_transactions(service: Service) -> Result<()> {
    let oldest = service.operations().oldest_transaction_ms().await?;
    if let Some(age_ms @ OLD_TRANSACTION_MS..) = oldest {
        tracing::error!(
            age_ms,
            "a database transaction has been open for too long. Vacuum can't remove rows that were \
             deleted since, so claims get slower. Look for the transaction in pg_stat_activity"
        );
    }
    Ok(())
}
