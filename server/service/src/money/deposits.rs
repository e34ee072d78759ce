//! Deposits: bank payments for applications. The payer names the application's reference.

use std::collections::BTreeMap;

use domain::decision::{DepositList, parse_reason};
use domain::ids::Shard;
use domain::ledger::{LedgerAccount, TransferKind};
use domain::printable::is_control;
use domain::records::{DepositCase, DepositRecord, Paged};
use domain::{ApplicationId, Money, Reference, Timestamp};

use crate::application_events::Cause;
use crate::mail::{self, texts};
use crate::transactions::work;
use crate::{Service, Verb};
use store::Tx;
use store::applications::{self, ApplicationRow};
use store::audit::{self, Actor, Change};
use store::deposits;
use store::error::{Error, Refusal, Result};
use store::installation;
use store::query::Conn;
use store::row::touched;
use store::transfers::{self, Transfer};

/// The maximum number of characters of a bank ID.
const BANK_ID_CHARS_MAX: usize = 255;
/// The maximum number of deposits on a page.
const LISTED_MAX: i64 = 100;
/// Suggestions use only this many of the references in a payer's text.
const MEANT_MAX: usize = 2;
/// The maximum number of applications that are suggested for a deposit.
const SUGGESTIONS_MAX: i64 = 3;

/// A payment as the bank reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepositRequest {
    /// The bank's ID of the payment.
    pub bank_id: String,
    /// The reference as the payer wrote it. There may be no such application.
    pub reference: String,
    pub amount: Money,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepositStatus {
    Credited,
    /// No application was credited. The money waits until staff assign or return it.
    Unmatched,
    /// Staff returned the money to the bank.
    Returned,
}

impl DepositStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credited => "credited",
            Self::Unmatched => "unmatched",
            Self::Returned => "returned",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepositOutcome {
    pub status: DepositStatus,
    /// Whether a deposit with this bank ID and the same data was stored before. If so, no money
    /// moved.
    pub already: bool,
    /// The current balance of the application. `None` unless the deposit is credited, and once the
    /// account is closed.
    pub balance: Option<Money>,
}

impl crate::Money<'_> {
    /// Credits a payment once. A repetition with the same bank ID, reference and amount credits
    /// nothing.
    ///
    /// # Errors
    /// `InvalidAmount` if the amount isn't above 0. `InvalidBankId` if the bank ID is empty, too
    /// long or contains a control character. `BankIdConflict` if a deposit with this bank ID has
    /// another reference or amount. `BalanceTooLarge` if the new balance would be too large.
    pub async fn add_deposit(
        &self,
        actor: &Actor,
        deposit: &DepositRequest,
    ) -> Result<DepositOutcome> {
        let (service, actor, deposit) = (self.0.clone(), *actor, deposit.clone());
        self.in_transaction(work!(
            |tx, now| credit(&service, tx, (&actor, None), &deposit, now).await
        ))
        .await
    }

    /// Returns a page of deposits for staff. Unmatched deposits come with the applications that
    /// their payers may have meant.
    ///
    /// # Errors
    /// `InvalidCursor` if the cursor can't be parsed.
    pub async fn deposit_list(
        &self,
        list: DepositList,
        cursor: Option<&str>,
        limit: i64,
    ) -> Result<Paged<DepositCase>> {
        let after = match (cursor, list) {
            (Some(cursor), _) => place(cursor)?,
            (None, DepositList::Unmatched) => (i64::MIN, ""),
            (None, DepositList::All) => (i64::MAX, ""),
        };
        let limit = limit.clamp(1, LISTED_MAX);
        let mut conn = self.store().read().await?;
        let found = deposits::page(&mut conn, list, after, limit + 1).await?;
        let page = Paged::of(found, limit, |deposit| {
            format!("{}-{}", deposit.received_at.unix_ms(), deposit.bank_id)
        });
        let mut items = Vec::new();
        for deposit in page.items {
            let (suggestions, account_closed) = if deposit.is_unmatched() {
                let purpose = deposit.purpose.as_deref();
                of_unmatched(&mut conn, &deposit.reference, purpose).await?
            } else {
                (Vec::new(), false)
            };
            items.push(DepositCase { deposit, suggestions, account_closed });
        }
        Ok(Paged { items, next: page.next })
    }

    pub async fn deposit(&self, bank_id: &str) -> Result<Option<DepositRecord>> {
        if !is_bank_id(bank_id) {
            return Ok(None);
        }
        deposits::by_bank_id(&mut self.store().read().await?, bank_id).await
    }

    /// Returns the applications that the payer of a deposit may have meant.
    pub async fn deposit_suggestions(&self, deposit: &DepositRecord) -> Result<Vec<Reference>> {
        let mut conn = self.store().read().await?;
        suggestions(&mut conn, &deposit.reference, deposit.purpose.as_deref()).await
    }

    /// Returns the unmatched deposits, oldest first.
    pub async fn unmatched_deposits(&self) -> Result<Vec<DepositRecord>> {
        deposits::unmatched(&mut self.store().read().await?).await
    }

    /// Assigns an unmatched deposit to an application.
    ///
    /// # Errors
    /// `NoSuchDeposit` if no deposit has this bank ID, `DepositAssigned` if it is already assigned,
    /// and `DepositReturned` if it was returned to the bank. `NoSuchApplication` if no application
    /// has this reference. `AccountClosed` if the application's account is closed. `OwnApplication`
    /// if the application belongs to the member of staff. `BalanceTooLarge` if the new balance
    /// would be too large.
    pub async fn assign_deposit(
        &self,
        actor: &Actor,
        bank_id: &str,
        reference: Reference,
    ) -> Result<DepositRecord> {
        let verb = self.assigning_deposit(*actor, bank_id, reference).await?;
        self.in_transaction(verb).await
    }

    /// Returns the verb that marks an unmatched deposit as returned to the bank. In the ledger, the
    /// money goes back to the account `BANK`, where it came from.
    ///
    /// # Errors
    /// `ReasonMissing` or `ReasonInvalid` for the note. The verb is refused with `NoSuchDeposit`,
    /// and with `DepositAssigned` or `DepositReturned` if the deposit isn't unmatched any more.
    pub(crate) fn returning_deposit(
        &self,
        actor: Actor,
        bank_id: &str,
        note: &str,
    ) -> Result<Verb<()>> {
        if !is_bank_id(bank_id) {
            return Err(Refusal::NoSuchDeposit.into());
        }
        let note = parse_reason(note).map_err(Refusal::from)?;
        let (service, bank_id) = (self.0.clone(), bank_id.to_owned());
        Ok(Box::new(work!(|tx, now| {
            let deposit =
                deposits::by_bank_id(tx, &bank_id).await?.ok_or(Refusal::NoSuchDeposit)?;
            if !deposits::mark_returned(tx, &bank_id, &note, now).await? {
                return Err(not_unmatched(&deposit));
            }
            let back = Transfer {
                id: service.next_id(now),
                debit: LedgerAccount::UNMATCHED,
                credit: LedgerAccount::BANK,
                amount: deposit.amount,
                kind: TransferKind::Return,
                application: None,
                bank_id: Some(&bank_id),
                batch_id: None,
            };
            tx.at(Shard::FIRST);
            transfers::insert(tx, &back, now).await?;
            let detail = format!("{}: {note}", deposit.amount);
            audit::insert(tx, now, &actor, "deposit.return", &bank_id, Some(&detail)).await
        })))
    }

    /// Returns the verb that assigns a deposit.
    pub(crate) async fn assigning_deposit(
        &self,
        actor: Actor,
        bank_id: &str,
        reference: Reference,
    ) -> Result<Verb<DepositRecord>> {
        if !is_bank_id(bank_id) {
            return Err(Refusal::NoSuchDeposit.into());
        }
        let (service, bank_id) = (self.0.clone(), bank_id.to_owned());
        let shard = self.find_shard(reference).await?;
        Ok(Box::new(work!(|tx, now| {
            let deposit =
                deposits::by_bank_id(tx, &bank_id).await?.ok_or(Refusal::NoSuchDeposit)?;
            tx.at(shard.ok_or(Refusal::NoSuchApplication)?);
            let application = applications::by_reference(tx, reference)
                .await?
                .ok_or(Refusal::NoSuchApplication)?;
            if application.record.account_closed {
                return Err(Refusal::AccountClosed.into());
            }
            service.applications().refuse_own(&actor, &application)?;
            if !deposits::assign(tx, &bank_id, application.id, now).await? {
                return Err(not_unmatched(&deposit));
            }
            let balance = transfer(
                tx,
                LedgerAccount::UNMATCHED,
                application.id,
                &bank_id,
                deposit.amount,
                now,
            )
            .await?;
            notify(tx, &application, deposit.amount, balance, now).await?;
            let DepositRecord { amount, .. } = deposit;
            let detail = format!("{amount} to {reference}; the payer wrote {}", deposit.reference);
            let audited = Audited {
                action: "deposit.assign",
                bank_id: &bank_id,
                credited: Some((reference, balance)),
                detail: &detail,
            };
            audited.insert(tx, &actor, amount, now).await?;
            Ok(DepositRecord { assigned_to: Some(reference), ..deposit })
        })))
    }
}

/// Returns why a deposit can't be assigned or returned.
fn not_unmatched(deposit: &DepositRecord) -> Error {
    let refusal = if deposit.returned.is_some() {
        Refusal::DepositReturned
    } else {
        Refusal::DepositAssigned
    };
    refusal.into()
}

/// Parses the cursor of a page into the time and bank ID that the page comes after.
fn place(cursor: &str) -> Result<(i64, &str)> {
    let parts = cursor.split_once('-').filter(|_| !cursor.contains('\0'));
    let place = parts.and_then(|(at, bank_id)| Some((at.parse().ok()?, bank_id)));
    Ok(place.ok_or(Refusal::InvalidCursor)?)
}

/// Returns the applications that the payer of a deposit may have meant: the reference or purpose
/// that the payer wrote contains their reference or a similar one.
async fn suggestions(
    conn: Conn<'_>,
    reference: &str,
    purpose: Option<&str>,
) -> Result<Vec<Reference>> {
    let mut meant = Reference::all_in(reference);
    meant.extend(purpose.map(Reference::all_in).unwrap_or_default());
    meant.truncate(MEANT_MAX);
    let similar: Vec<_> = meant.iter().flat_map(|meant| meant.similar()).collect();
    meant.extend(similar);
    if meant.is_empty() {
        return Ok(Vec::new());
    }
    deposits::known_references(conn, &meant, SUGGESTIONS_MAX).await
}

/// Returns the facts that help staff with an unmatched payment: the applications that its payer may
/// have meant, and whether the payer's reference is that of a closed account.
pub(super) async fn of_unmatched(
    conn: Conn<'_>,
    reference: &str,
    purpose: Option<&str>,
) -> Result<(Vec<Reference>, bool)> {
    let account_closed = match Reference::parse(reference) {
        Ok(reference) => deposits::is_of_closed_account(conn, reference).await?,
        Err(_) => false,
    };
    Ok((suggestions(conn, reference, purpose).await?, account_closed))
}

/// Locks the applications of all payments before the first payment is credited. In each shard,
/// locks them in the order of their IDs, as commit groups do. Only PostgreSQL has such locks.
pub(super) async fn lock_receivers(
    service: &Service,
    tx: &mut Tx<'_>,
    requests: &[DepositRequest],
) -> Result<()> {
    let mut references: BTreeMap<Shard, Vec<Reference>> = BTreeMap::new();
    for request in requests {
        if let Ok(reference) = Reference::parse(&request.reference)
            && let Some(shard) = service.find_shard(reference).await?
        {
            references.entry(shard).or_default().push(reference);
        }
    }
    for (shard, references) in references {
        tx.at(shard);
        applications::keys_by_references(tx, &references).await?;
    }
    Ok(())
}

fn valid(request: &DepositRequest) -> Result<()> {
    if request.amount <= Money::ZERO {
        return Err(Refusal::InvalidAmount.into());
    }
    if !is_bank_id(&request.bank_id) {
        return Err(Refusal::InvalidBankId.into());
    }
    Ok(())
}

/// Returns whether a text can be a bank ID. An ID with control characters could be mistaken for
/// another ID, and PostgreSQL's text type has no NUL.
pub(super) fn is_bank_id(text: &str) -> bool {
    let chars = text.chars().count();
    (1..=BANK_ID_CHARS_MAX).contains(&chars) && !text.contains(is_control)
}

/// Returns a reference in the form in which it is stored. A payer may write anything, even a NUL
/// character, which PostgreSQL's text type can't store.
pub(super) fn written(reference: &str) -> String {
    reference.replace('\0', "")
}

/// Credits a payment. `asked_by` is the member of staff who requested the credit, if another member
/// of staff approved it.
pub(super) async fn credit(
    service: &Service,
    tx: &mut Tx<'_>,
    (actor, asked_by): (&Actor, Option<Actor>),
    request: &DepositRequest,
    now: Timestamp,
) -> Result<DepositOutcome> {
    valid(request)?;
    let reference = written(&request.reference);
    if let Some(known) = deposits::by_bank_id(tx, &request.bank_id).await? {
        return same_again(service, tx, &reference, request.amount, known).await;
    }
    let application = match Reference::parse(&request.reference) {
        // If the application belongs to the member of staff who imports the payment, the payment
        // stays unmatched until another member of staff assigns it.
        Ok(reference) => {
            let is_own = |row: &_| {
                service.applications().is_own(actor, row)
                    || asked_by.is_some_and(|by| service.applications().is_own(&by, row))
            };
            (find(service, tx, reference).await?).filter(|row| !is_own(row))
        }
        Err(_) => None,
    };
    // Checked before anything is written, so that an import can continue with its other lines.
    if let Some(row) = &application {
        let after = row.record.balance.checked_add(request.amount);
        after.ok_or(Refusal::BalanceTooLarge)?;
    }
    let id = application.as_ref().map(|row| row.id);
    let fresh = deposits::insert(tx, &request.bank_id, &reference, request.amount, id, now).await?;
    touched("deposits", 1, u64::from(fresh))?;
    let (status, credited) = if let Some(row) = application {
        let balance =
            transfer(tx, LedgerAccount::BANK, row.id, &request.bank_id, request.amount, now)
                .await?;
        notify(tx, &row, request.amount, balance, now).await?;
        (DepositStatus::Credited, Some((row.record.reference, balance)))
    } else {
        let waiting = Transfer {
            id: service.next_id(now),
            debit: LedgerAccount::BANK,
            credit: LedgerAccount::UNMATCHED,
            amount: request.amount,
            kind: TransferKind::Unmatched,
            application: None,
            bank_id: Some(&request.bank_id),
            batch_id: None,
        };
        tx.at(Shard::FIRST);
        transfers::insert(tx, &waiting, now).await?;
        (DepositStatus::Unmatched, None)
    };
    let (amount, bank_id) = (request.amount, request.bank_id.as_str());
    let detail = format!("{amount} {}; the payer wrote {reference}", status.as_str());
    let audited = Audited { action: "deposit.add", bank_id, credited, detail: &detail };
    audited.insert(tx, actor, amount, now).await?;
    let balance = credited.map(|(_, balance)| balance);
    Ok(DepositOutcome { status, already: false, balance })
}

/// Queues a mail to the customer about a deposit, and adds the event.
async fn notify(
    tx: &mut Tx<'_>,
    application: &ApplicationRow,
    amount: Money,
    balance: Money,
    now: Timestamp,
) -> Result<()> {
    let currency = installation::currency(tx).await?;
    let mail = texts::deposit(application.record.reference, amount, balance, &currency);
    mail::put(tx, application, &mail, now).await?;
    let cause = Cause::Deposit { amount, balance, currency: &currency };
    cause.put(tx, application.id, now);
    Ok(())
}

/// An audit entry about a deposit. Its subject is the bank ID, so that a filter finds all entries
/// about a deposit.
struct Audited<'a> {
    action: &'static str,
    bank_id: &'a str,
    /// The application that was credited, and its balance after that.
    credited: Option<(Reference, Money)>,
    detail: &'a str,
}

impl Audited<'_> {
    /// Writes the entry. If an application was credited, the entry has the application's balance
    /// before and after.
    async fn insert(
        &self,
        conn: Conn<'_>,
        actor: &Actor,
        amount: Money,
        now: Timestamp,
    ) -> Result<()> {
        let (reference, balance) = self.credited.unzip();
        let before = balance.and_then(|after| after.checked_sub(amount));
        let [before, after] = [before, balance].map(|it| it.map(|balance| balance.to_string()));
        let change = Change {
            before: before.as_deref(),
            after: after.as_deref(),
            detail: Some(self.detail),
        };
        let subject = (reference, self.bank_id);
        audit::insert_change_of(conn, now, actor, self.action, subject, change).await
    }
}

/// Returns the application with this reference, unless its account is closed. The transaction
/// continues in the application's shard.
async fn find(
    service: &Service,
    tx: &mut Tx<'_>,
    reference: Reference,
) -> Result<Option<ApplicationRow>> {
    let Some(shard) = service.find_shard(reference).await? else {
        return Ok(None);
    };
    tx.at(shard);
    let found = applications::by_reference(tx, reference).await?;
    Ok(found.filter(|row| !row.record.account_closed))
}

/// Answers a payment whose bank ID is already stored. If reference and amount are the same, returns
/// whether the deposit is credited, unmatched or returned now. Otherwise refuses the payment.
async fn same_again(
    service: &Service,
    tx: &mut Tx<'_>,
    reference: &str,
    amount: Money,
    known: DepositRecord,
) -> Result<DepositOutcome> {
    if known.reference != reference || known.amount != amount {
        let bank_id = known.bank_id;
        return Err(Refusal::BankIdConflict { bank_id }.into());
    }
    let (status, balance) = if let Some(assigned) = known.assigned_to {
        let found = find(service, tx, assigned).await?;
        (DepositStatus::Credited, found.map(|row| row.record.balance))
    } else if known.returned.is_some() {
        (DepositStatus::Returned, None)
    } else {
        (DepositStatus::Unmatched, None)
    };
    Ok(DepositOutcome { status, already: true, balance })
}

/// Moves a deposit to an application. Returns the new balance.
async fn transfer(
    conn: Conn<'_>,
    from: LedgerAccount,
    application_id: ApplicationId,
    bank_id: &str,
    amount: Money,
    now: Timestamp,
) -> Result<Money> {
    let before = applications::balances(conn, application_id).await?;
    let before = before.ok_or(Refusal::NoSuchApplication)?;
    before.balance.checked_add(amount).ok_or(Error::Refused(Refusal::BalanceTooLarge))?;
    let (balance, id) = applications::add_balance(conn, application_id, amount, now).await?;
    let deposit = Transfer {
        id,
        debit: from,
        credit: application_id.into(),
        amount,
        kind: TransferKind::Deposit,
        application: Some((application_id, balance)),
        bank_id: Some(bank_id),
        batch_id: None,
    };
    transfers::insert(conn, &deposit, now).await?;
    Ok(balance)
}
