//! Jobs that remember nothing between two runs.

use domain::support::UnpaidUse;
use service::{Leases, Service};

use super::work::attempt;

/// None of our transactions is open for so long. While one is, vacuum can't remove the rows that
/// were deleted since it began.
const OLD_TRANSACTION_MS: i64 = 5 * 60 * 1000;

/// Ends leases that are over, and matches receipts that arrived before the answer to their submit
/// was stored.
pub(super) async fn end_leases(service: Service) {
    let ended = attempt("leases can't be ended", service.end_leases(Leases::Over)).await;
    if let Some(count @ 1..) = ended {
        tracing::warn!(count, "leases ended before the result of their submits");
    }
    let matched = attempt(
        "unmatched receipts can't be matched",
        service.match_crossed(),
    )
    .await;
    if let Some(count @ 1..) = matched {
        tracing::info!(count, "unmatched receipts were matched");
    }
}

/// Puts messages back into the queue that were deferred while their application was suspended.
pub(super) async fn resume_reinstated(service: Service) {
    let resumed = service.resume_deferred();
    attempt("messages that were deferred can't be queued", resumed).await;
}

/// Ends what ends by its age: messages after 48 hours, sessions, security events, idempotency
/// keys, and the history.
pub(super) async fn expire_and_delete(service: Service) {
    let expired = attempt("messages can't be expired", service.expire()).await;
    if let Some(expired @ 1..) = expired {
        tracing::info!(expired, "messages expired");
    }
    let sessions = service.session_sweep();
    attempt("old sessions can't be deleted", sessions).await;
    let mails = service.forget_mails();
    attempt("old mails can't be deleted", mails).await;
    let segments = service.forget_segments();
    attempt("carriers' ids of old messages can't be deleted", segments).await;
    let keys = service.forget_answers();
    attempt("old idempotency keys can't be deleted", keys).await;
    let days = service.make_days();
    attempt("the tables of the coming days can't be created", days).await;
    let counts = service.fold_days();
    attempt("the counts of past days can't be added up", counts).await;
    let history = service.drop_history();
    attempt("old messages can't be deleted", history).await;
    let tests = service.drop_tests();
    attempt("old messages of test keys can't be deleted", tests).await;
}

/// Measures what test messages of accounts without a deposit take, and warns when it is too much.
pub(super) async fn measure_unpaid(service: Service) {
    let measuring = service.measure_unpaid();
    let measured = attempt("test messages can't be measured", measuring).await;
    if let Some(measured) = measured.filter(UnpaidUse::is_too_much) {
        let UnpaidUse {
            messages,
            bytes,
            bytes_max,
        } = measured;
        tracing::warn!(
            messages,
            bytes,
            bytes_max,
            "test messages of accounts without a deposit take more than unpaid_bytes_max"
        );
    }
}

/// Counts the margins of days that are over.
pub(super) async fn count_margins(service: Service) {
    let counted = service.count_margins();
    attempt("the margins of past days can't be counted", counted).await;
}

/// Credits the lines of bank statements that staff confirmed.
pub(super) async fn credit_statements(service: Service) {
    let credited = service.credit_statements();
    attempt("bank statements can't be credited", credited).await;
}

/// Deletes what is stored of bank statements that were never stored whole.
pub(super) async fn forget_abandoned_statements(service: Service) {
    let forgotten = service.forget_abandoned_statements();
    attempt("lines of bank statements can't be deleted", forgotten).await;
}

/// Writes the mails about low balances and batches that are done.
pub(super) async fn mail_notices(service: Service) {
    let notices = service.mail_notices();
    attempt("mails about balances and batches can't be written", notices).await;
}

/// Gives accounts the new emails that have waited for a day.
pub(super) async fn apply_email_changes(service: Service) {
    let applied = service.apply_email_changes();
    attempt("new emails can't take effect", applied).await;
}

/// Mails staff about what has waited for an hour. Where mails aren't sent, staff look by
/// themselves.
pub(super) async fn remind_staff(service: Service) {
    if service.sends_mail() {
        let reminders = service.remind_staff();
        attempt("mails to staff can't be written", reminders).await;
    }
}

/// Stores how many attempts were throttled, as one sum.
pub(super) async fn store_throttled(service: Service) {
    let stored = service.store_throttled();
    attempt("the sum of throttled attempts can't be stored", stored).await;
}

/// Stores when keys were used.
pub(super) async fn store_key_uses(service: Service) {
    attempt("uses of keys can't be stored", service.store_key_uses()).await;
}

/// Stores the last calls of applications.
pub(super) async fn store_calls(service: Service) {
    attempt(
        "calls of applications can't be stored",
        service.store_calls(),
    )
    .await;
}

/// Warns of a transaction that keeps PostgreSQL's vacuum from its work.
pub(super) async fn look_for_old_transactions(service: Service) {
    let oldest = service.oldest_transaction_ms();
    let age_ms = attempt("open transactions can't be read", oldest).await;
    if let Some(Some(age_ms @ OLD_TRANSACTION_MS..)) = age_ms {
        tracing::error!(
            age_ms,
            "a transaction has been open in the database for long: vacuum can't remove what was \
             deleted since, and claims get slower. Look for it in pg_stat_activity"
        );
    }
}
