//! Sender names. Customers request them, and staff decide.

use domain::decision::{self, Decided};
use domain::ids::Shard;
use domain::records::SenderRequestRecord;
use domain::timestamp::DAY_MS;
use domain::{Reference, SENDER_REQUESTS_PER_DAY, SenderName, SenderState, SenderStatus};

use crate::Applications;
use crate::application_events::Cause;
use crate::applications::{owned, refuse_taken};
use crate::mail::{self, texts};
use crate::transactions::work;
use store::applications::{self, ApplicationRow};
use store::audit::{self, Actor, Change};
use store::error::{Error, Fault, Refusal, Result};
use store::query::Conn;
use store::row::touched;
use store::senders;

/// The audit actions that decide a request.
const ACCEPT: &str = "sender.accept";
const REJECT: &str = "sender.reject";

/// The maximum number of requests that an application's owner is shown.
const REQUESTS_OF_APPLICATION: i64 = 100;

impl Applications<'_> {
    /// Requests a sender name. Until the decision, messages are sent as before. A pending request
    /// is replaced, unless it is for the same name.
    ///
    /// # Errors
    /// `NoSuchApplication`, `SenderNameTaken`, `SenderNameUnchanged`, `TooManySenderRequests`.
    pub async fn request_sender_name(
        &self,
        account_id: i64,
        reference: Reference,
        name: &SenderName,
    ) -> Result<()> {
        let name = name.clone();
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = owned(tx, account_id, reference).await?;
                if row.record.sender_name.as_deref() == Some(name.as_str()) {
                    return Err(Refusal::SenderNameUnchanged.into());
                }
                refuse_taken(tx, &name, account_id).await?;
                let last = senders::of_application(tx, row.id, SENDER_REQUESTS_PER_DAY).await?;
                if last.first().is_some_and(|last| waits_for(last, &name)) {
                    return Ok(());
                }
                let since = now.plus_ms(-DAY_MS);
                let of_today = last.iter().filter(|last| last.requested_at > since);
                if i64::try_from(of_today.count()) == Ok(SENDER_REQUESTS_PER_DAY) {
                    return Err(Refusal::TooManySenderRequests.into());
                }
                senders::insert(tx, row.id, name.as_str(), now).await?;
                set_state(tx, &row, row.record.sender_state.after_request()).await?;
                let (actor, subject) = (Actor::Account(account_id), reference.to_string());
                let change = Change {
                    before: row.record.sender_name.as_deref(),
                    after: Some(name.as_str()),
                    detail: None,
                };
                audit::insert_change(tx, now, &actor, "sender.request", &subject, change).await
            }),
        )
        .await
    }

    /// Withdraws the pending request. If staff rejected the name that the application was created
    /// with, withdraws that request, and the application sends without a sender name. Does nothing
    /// if there is nothing to withdraw.
    ///
    /// # Errors
    /// `NoSuchApplication`. `SenderlessTaken` if the application would have no sender name and the
    /// account already has an application without one.
    pub async fn withdraw_sender_name(&self, account_id: i64, reference: Reference) -> Result<()> {
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = owned(tx, account_id, reference).await?;
                let state = row.record.sender_state;
                let newest = senders::of_application(tx, row.id, 1).await?.pop();
                let Some(request) = newest.filter(|newest| may_withdraw(newest.status, state))
                else {
                    return Ok(());
                };
                let after = state.after_withdrawal();
                if after == SenderState::None
                    && applications::has_senderless(tx, account_id).await?
                {
                    return Err(Refusal::SenderlessTaken.into());
                }
                senders::withdraw(tx, request.id, now).await?;
                set_state(tx, &row, after).await?;
                let (actor, subject) = (Actor::Account(account_id), reference.to_string());
                let change = Change { before: Some(&request.name), after: None, detail: None };
                audit::insert_change(tx, now, &actor, "sender.withdraw", &subject, change).await
            }),
        )
        .await
    }

    /// Returns the last 100 requests of one of an account's applications, newest first.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn sender_names_asked_for(
        &self,
        account_id: i64,
        reference: Reference,
    ) -> Result<Vec<SenderRequestRecord>> {
        let mut conn = self.read_of(reference).await?;
        let row = owned(&mut conn, account_id, reference).await?;
        senders::of_application(&mut conn, row.id, REQUESTS_OF_APPLICATION).await
    }

    /// Returns requests for sender names, oldest first.
    pub async fn sender_requests(&self, only_pending: bool) -> Result<Vec<SenderRequestRecord>> {
        let all = self.in_each_shard(|shard| async move {
            senders::list(&mut self.store().read_at(shard).await?, only_pending).await
        });
        let mut requests: Vec<_> = all.await?.into_iter().flatten().collect();
        requests.sort_by_key(|request| request.id);
        Ok(requests)
    }

    /// Returns a request, for staff.
    ///
    /// # Errors
    /// `NoSuchSenderRequest`.
    pub async fn sender_request(&self, id: i64) -> Result<SenderRequestRecord> {
        Ok(self.find_request(id).await?.1)
    }

    /// Returns a request with the shard of its application.
    async fn find_request(&self, id: i64) -> Result<(Shard, SenderRequestRecord)> {
        let found = self.in_each_shard(|shard| async move {
            let request = senders::by_id(&mut self.store().read_at(shard).await?, id).await?;
            Ok(request.map(|request| (shard, request)))
        });
        let found = found.await?.into_iter().flatten().next();
        Ok(found.ok_or(Refusal::NoSuchSenderRequest)?)
    }

    /// Accepts a request. From this commit on, the name is in use and belongs to the account.
    ///
    /// # Errors
    /// `NoSuchSenderRequest`, `SenderDecided`, `OwnApplication`, `SenderNameTaken`.
    pub async fn accept_sender(&self, actor: &Actor, id: i64) -> Result<SenderRequestRecord> {
        let (service, actor) = (self.0.clone(), *actor);
        let (shard, _) = self.find_request(id).await?;
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            let (request, application) = pending(tx, id).await?;
            service.applications().refuse_own(&actor, &application)?;
            let name = &request.name;
            let corrupt = || Fault::Corrupt {
                table: "sender_requests",
                column: "name".into(),
                value: name.clone(),
            };
            let parsed = SenderName::parse(name).map_err(|_| Error::Failed(corrupt()))?;
            let owner = senders::own(tx, &parsed, application.account_id).await?;
            if owner != application.account_id {
                return Err(Refusal::SenderNameTaken.into());
            }
            senders::replace_accepted(tx, application.id).await?;
            decide(tx, &request, SenderStatus::Accepted, None, now).await?;
            applications::set_sender(tx, application.id, SenderState::Accepted, Some(name)).await?;
            let subject = request.reference.to_string();
            let change = Change {
                before: application.record.sender_name.as_deref(),
                after: Some(name),
                detail: None,
            };
            audit::insert_change(tx, now, &actor, ACCEPT, &subject, change).await?;
            let mail = texts::sender_accepted(request.reference, name);
            mail::put(tx, &application, &mail, now).await?;
            Cause::Sender(SenderStatus::Accepted, name, None).put(tx, application.id, now);
            reload(tx, id).await
        }))
        .await
    }

    /// Rejects a request. The customer sees the reason. A name that was accepted earlier stays in
    /// use.
    ///
    /// # Errors
    /// `NoSuchSenderRequest`, `SenderDecided`, `ReasonMissing`, `ReasonInvalid`.
    pub async fn reject_sender(
        &self,
        actor: &Actor,
        id: i64,
        reason: &str,
    ) -> Result<SenderRequestRecord> {
        let (actor, reason) = (*actor, decision::parse_reason(reason).map_err(Refusal::from)?);
        let (shard, _) = self.find_request(id).await?;
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            let (request, application) = pending(tx, id).await?;
            decide(tx, &request, SenderStatus::Rejected, Some(&reason), now).await?;
            let others = applications::has_senderless(tx, application.account_id).await?;
            let state = application.record.sender_state.after_rejection(!others);
            set_state(tx, &application, state).await?;
            let subject = request.reference.to_string();
            let detail = format!("{}: {reason}", request.name);
            audit::insert(tx, now, &actor, REJECT, &subject, Some(&detail)).await?;
            let mail = texts::sender_rejected(request.reference, &request.name, &reason);
            mail::put(tx, &application, &mail, now).await?;
            let cause = Cause::Sender(SenderStatus::Rejected, &request.name, Some(&reason));
            cause.put(tx, application.id, now);
            reload(tx, id).await
        }))
        .await
    }
}

/// Withdraws the open requests of an application whose account is being closed: for its activation
/// and for a sender name.
pub(crate) async fn withdraw_requests(
    conn: Conn<'_>,
    reference: Reference,
    now: domain::Timestamp,
) -> Result<()> {
    let row = applications::by_reference(conn, reference).await?;
    let row = row.ok_or(Refusal::NoSuchApplication)?;
    // This changes only a Pending application. The requests of all others are decided.
    applications::set_activation(conn, row.id, None).await?;
    let newest = senders::of_application(conn, row.id, 1).await?.pop();
    if let Some(request) = newest.filter(|newest| newest.status == SenderStatus::Pending) {
        senders::withdraw(conn, request.id, now).await?;
        // The application must not become one without a sender name, because an account can have
        // only one of these.
        set_state(conn, &row, row.record.sender_state.after_rejection(false)).await?;
    }
    Ok(())
}

/// Whether the newest request can be withdrawn while its application is in this state.
fn may_withdraw(request: SenderStatus, state: SenderState) -> bool {
    match request {
        SenderStatus::Pending => true,
        SenderStatus::Rejected => state == SenderState::Rejected,
        SenderStatus::Accepted | SenderStatus::Replaced | SenderStatus::Withdrawn => false,
    }
}

/// Stores a state other than `Accepted`, unless the application already has it.
async fn set_state(conn: Conn<'_>, row: &ApplicationRow, state: SenderState) -> Result<()> {
    if state == row.record.sender_state {
        return Ok(());
    }
    applications::set_sender(conn, row.id, state, None).await
}

async fn pending(conn: Conn<'_>, id: i64) -> Result<(SenderRequestRecord, ApplicationRow)> {
    let request = senders::by_id(conn, id).await?.ok_or(Refusal::NoSuchSenderRequest)?;
    if request.status != SenderStatus::Pending {
        return Err(Refusal::SenderDecided {
            status: request.status,
            decided: decision_about(conn, &request).await?,
        }
        .into());
    }
    let application = applications::by_reference(conn, request.reference)
        .await?
        .ok_or(Refusal::NoSuchApplication)?;
    Ok((request, application))
}

/// Whether a request is pending for exactly this name.
fn waits_for(request: &SenderRequestRecord, name: &SenderName) -> bool {
    request.status == SenderStatus::Pending && request.name == name.as_str()
}

/// Returns who decided a request, and when. Returns `None` if the request is pending, or if the
/// customer replaced or withdrew it.
async fn decision_about(conn: Conn<'_>, request: &SenderRequestRecord) -> Result<Option<Decided>> {
    let action = match request.status {
        SenderStatus::Accepted => ACCEPT,
        SenderStatus::Rejected => REJECT,
        SenderStatus::Pending | SenderStatus::Replaced | SenderStatus::Withdrawn => {
            return Ok(None);
        }
    };
    // An application may have several requests, so the audit entry must have the time of this
    // request's decision.
    let last = audit::last(conn, &request.reference.to_string(), [action; 3]).await?;
    Ok(last.filter(|decided| Some(decided.at) == request.decided_at))
}

async fn decide(
    conn: Conn<'_>,
    request: &SenderRequestRecord,
    status: SenderStatus,
    reason: Option<&str>,
    now: domain::Timestamp,
) -> Result<()> {
    let decided = senders::decide(conn, request.id, status, reason, now).await?;
    touched("sender_requests", 1, u64::from(decided))
}

async fn reload(conn: Conn<'_>, id: i64) -> Result<SenderRequestRecord> {
    senders::by_id(conn, id).await?.ok_or(Error::Refused(Refusal::NoSuchSenderRequest))
}
