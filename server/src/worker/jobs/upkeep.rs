//! Jobs that keep no state between two runs.

use domain::support::UnpaidUse;
use service::{Leases, Service};

use super::work::attempt;

/// No transaction of this program is open for this long. While a transaction is open, vacuum can't
/// remove rows that were deleted since it began.
const OLD_TRANSACTION_MS: i64 = 5 * 60 * 1000;

/// Ends expired leases. Matches receipts that arrived before the response to their submit was
/// stored.
pub(super) async fn end_leases(service: Service) {
    let ended = attempt("leases can't be ended", service.delivery().end_leases(Leases::Over)).await;
    if let Some(count @ 1..) = ended {
        tracing::warn!(count, "leases ended before the result of their submits");
    }
    let matched =
        attempt("unmatched receipts can't be matched", service.delivery().match_crossed()).await;
    if let Some(count @ 1..) = matched {
        tracing::info!(count, "unmatched receipts were matched");
    }
}

/// Requeues messages that were deferred while their application was suspended.
pub(super) async fn resume_reinstated(service: Service) {
    let delivery = service.delivery();
    let resumed = delivery.resume_deferred();
    attempt("messages that were deferred can't be queued", resumed).await;
}

/// Expires messages after 48 hours. Deletes old sessions, security events, mails, idempotency keys,
/// carrier message IDs and history. Creates the tables of the coming days. Adds up the counts of
/// past days.
pub(super) async fn expire_and_delete(service: Service) {
    let expired = attempt("messages can't be expired", service.delivery().expire()).await;
    if let Some(expired @ 1..) = expired {
        tracing::info!(expired, "messages expired");
    }
    let accounts = service.accounts();
    let sessions = accounts.session_sweep();
    attempt("old sessions can't be deleted", sessions).await;
    let operations = service.operations();
    let mails = operations.forget_mails();
    attempt("old mails can't be deleted", mails).await;
    let delivery = service.delivery();
    let segments = delivery.forget_segments();
    attempt("carrier message IDs of old messages can't be deleted", segments).await;
    let operations = service.operations();
    let keys = operations.forget_answers();
    attempt("old idempotency keys can't be deleted", keys).await;
    let operations = service.operations();
    let days = operations.make_days();
    attempt("the tables of the coming days can't be created", days).await;
    let operations = service.operations();
    let counts = operations.fold_days();
    attempt("the counts of past days can't be added up", counts).await;
    let operations = service.operations();
    let history = operations.drop_history();
    attempt("old messages can't be deleted", history).await;
    let operations = service.operations();
    let tests = operations.drop_tests();
    attempt("old messages of test keys can't be deleted", tests).await;
}

/// Measures the space of test messages of accounts without a deposit. Warns if they take too much.
pub(super) async fn measure_unpaid(service: Service) {
    let operations = service.operations();
    let measuring = operations.measure_unpaid();
    let measured = attempt("test messages can't be measured", measuring).await;
    if let Some(measured) = measured.filter(UnpaidUse::is_too_much) {
        let UnpaidUse { messages, bytes, bytes_max } = measured;
        tracing::warn!(
            messages,
            bytes,
            bytes_max,
            "test messages of accounts without a deposit take more than unpaid_bytes_max"
        );
    }
}

/// Counts the margins of past days.
pub(super) async fn count_margins(service: Service) {
    let messages = service.messages();
    let counted = messages.count_margins();
    attempt("the margins of past days can't be counted", counted).await;
}

/// Credits the lines of bank statements that staff confirmed.
pub(super) async fn credit_statements(service: Service) {
    let money = service.money();
    let credited = money.credit_statements();
    attempt("bank statements can't be credited", credited).await;
}

/// Deletes the stored lines of bank statements that were never stored completely.
pub(super) async fn forget_abandoned_statements(service: Service) {
    let money = service.money();
    let forgotten = money.forget_abandoned_statements();
    attempt("lines of bank statements can't be deleted", forgotten).await;
}

/// Writes the mails about low balances and finished batches.
pub(super) async fn mail_notices(service: Service) {
    let operations = service.operations();
    let notices = operations.mail_notices();
    attempt("mails about balances and batches can't be written", notices).await;
}

/// Applies email changes that have waited for a day.
pub(super) async fn apply_email_changes(service: Service) {
    let accounts = service.accounts();
    let applied = accounts.apply_email_changes();
    attempt("new emails can't take effect", applied).await;
}

/// Mails staff about cases that have waited for an hour. Without a mail server, staff check by
/// themselves.
pub(super) async fn remind_staff(service: Service) {
    if service.operations().sends_mail() {
        let operations = service.operations();
        let reminders = operations.remind_staff();
        attempt("mails to staff can't be written", reminders).await;
    }
}

/// Stores the number of throttled attempts as a single sum.
pub(super) async fn store_throttled(service: Service) {
    let accounts = service.accounts();
    let stored = accounts.store_throttled();
    attempt("the sum of throttled attempts can't be stored", stored).await;
}

/// Stores the times when keys were used.
pub(super) async fn store_key_uses(service: Service) {
    attempt("uses of keys can't be stored", service.applications().store_key_uses()).await;
}

/// Stores the last calls of applications.
pub(super) async fn store_calls(service: Service) {
    attempt("calls of applications can't be stored", service.applications().store_calls()).await;
}

/// Warns about a transaction that keeps PostgreSQL's vacuum from removing rows.
pub(super) async fn look_for_old_transactions(service: Service) {
    let operations = service.operations();
    let oldest = operations.oldest_transaction_ms();
    let age_ms = attempt("open transactions can't be read", oldest).await;
    if let Some(Some(age_ms @ OLD_TRANSACTION_MS..)) = age_ms {
        tracing::error!(
            age_ms,
            "a database transaction has been open for too long. Vacuum can't remove rows that were \
             deleted since, so claims get slower. Look for the transaction in pg_stat_activity"
        );
    }
}
