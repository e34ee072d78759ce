//! Deposits: payments by bank, with the application's reference.

use std::collections::BTreeMap;

use domain::ids::Home;
use domain::{ApplicationId, Money, Reference, Timestamp};

use crate::Service;
use crate::error::{Error, Refusal, Result};
use crate::mail::{self, texts};
use crate::store::WriteTx;
use crate::store::applications::{self, ApplicationRow};
use crate::store::audit::{self, Actor};
use crate::store::deposits::{self, DepositRecord};
use crate::store::installation;
use crate::store::query::Connection;
use crate::store::row::touched;
use crate::store::transfers::{self, BANK, LedgerAccount, Transfer, UNMATCHED};
use domain::records::TransferKind;

/// The most characters of the id that a bank gives a payment.
const BANK_ID_CHARS_MAX: usize = 255;

/// A payment as the bank reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepositRequest {
    /// The bank's id of the payment.
    pub bank_id: String,
    /// The reference as the payer wrote it, which may be nobody's.
    pub reference: String,
    pub amount: Money,
}

/// What became of a deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepositStatus {
    Credited,
    /// The reference is nobody's: the money waits until staff assign it.
    Unmatched,
}

impl DepositStatus {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Credited => "credited",
            Self::Unmatched => "unmatched",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepositOutcome {
    pub status: DepositStatus,
    /// Whether a deposit with this bank id and the same data was stored before; then nothing moved.
    pub already: bool,
    /// The balance of the application now; `None` while the deposit is unmatched.
    pub balance: Option<Money>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOutcome {
    pub credited: usize,
    pub unmatched: usize,
    /// Deposits that were stored before.
    pub skipped: usize,
}

impl Service {
    /// Credits a payment once: the same bank id, reference and amount again credits nothing.
    ///
    /// # Errors
    /// `BankIdConflict`, `InvalidAmount`, `InvalidBankId`, `BalanceTooLarge`.
    pub async fn add_deposit(
        &self,
        actor: &Actor,
        deposit: &DepositRequest,
    ) -> Result<DepositOutcome> {
        let (service, actor, deposit) = (self.clone(), *actor, deposit.clone());
        self.in_transaction(move |tx, now| {
            Box::pin(async move { credit(&service, tx, &actor, &deposit, now).await })
        })
        .await
    }

    /// Credits many payments, all of them or none; payments that are stored already are skipped.
    ///
    /// # Errors
    /// `Order` around the refusal of [`Self::add_deposit`]; nothing is credited then.
    pub async fn import_deposits(
        &self,
        actor: &Actor,
        requests: &[DepositRequest],
    ) -> Result<ImportOutcome> {
        let (service, actor, requests) = (self.clone(), *actor, requests.to_vec());
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                // Locks all applications at once and in their order, since sends lock them too.
                let mut references: BTreeMap<Home, Vec<Reference>> = BTreeMap::new();
                for request in &requests {
                    if let Ok(reference) = Reference::parse(&request.reference)
                        && let Some(home) = service.find_home(reference).await?
                    {
                        references.entry(home).or_default().push(reference);
                    }
                }
                for (home, references) in references {
                    tx.at(home);
                    applications::keys_by_references(tx, &references).await?;
                }
                let mut counts = ImportOutcome::default();
                for (index, request) in requests.iter().enumerate() {
                    let credited = credit(&service, tx, &actor, request, now).await;
                    let outcome = credited.map_err(|error| error.of_request(index))?;
                    match (outcome.already, outcome.status) {
                        (true, _) => counts.skipped += 1,
                        (false, DepositStatus::Credited) => counts.credited += 1,
                        (false, DepositStatus::Unmatched) => counts.unmatched += 1,
                    }
                }
                Ok(counts)
            })
        })
        .await
    }

    /// Deposits whose reference is nobody's, oldest first.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn unmatched_deposits(&self) -> Result<Vec<DepositRecord>> {
        let mut conn = self.store().read().await?;
        deposits::unmatched(&mut conn).await
    }

    /// Assigns an unmatched deposit to an application.
    ///
    /// # Errors
    /// `NoSuchDeposit`, `DepositAssigned`, `NoSuchApplication`, `BalanceTooLarge`.
    pub async fn assign_deposit(
        &self,
        actor: &Actor,
        bank_id: &str,
        reference: Reference,
    ) -> Result<DepositRecord> {
        let (actor, bank_id) = (*actor, bank_id.to_owned());
        let home = self.find_home(reference).await?;
        self.in_transaction(move |tx, now| {
            Box::pin(async move {
                let deposit = deposits::by_bank_id(tx, &bank_id)
                    .await?
                    .ok_or(Refusal::NoSuchDeposit)?;
                tx.at(home.ok_or(Refusal::NoSuchApplication)?);
                let application = applications::by_reference(tx, reference)
                    .await?
                    .ok_or(Refusal::NoSuchApplication)?;
                if !deposits::assign(tx, &bank_id, application.id, now).await? {
                    return Err(Refusal::DepositAssigned.into());
                }
                let balance =
                    transfer(tx, UNMATCHED, application.id, &bank_id, deposit.amount, now).await?;
                tell(tx, &application, deposit.amount, balance, now).await?;
                let detail = format!("{} {}", deposit.amount, bank_id);
                let subject = reference.to_string();
                audit::insert(tx, now, &actor, "deposit.assign", &subject, Some(&detail)).await?;
                Ok(DepositRecord {
                    assigned_to: Some(reference),
                    ..deposit
                })
            })
        })
        .await
    }
}

async fn credit(
    service: &Service,
    tx: &mut WriteTx<'_>,
    actor: &Actor,
    request: &DepositRequest,
    now: Timestamp,
) -> Result<DepositOutcome> {
    if request.amount <= Money::ZERO {
        return Err(Refusal::InvalidAmount.into());
    }
    if request.bank_id.is_empty()
        || request.bank_id.chars().count() > BANK_ID_CHARS_MAX
        || request.bank_id.contains('\0')
    {
        return Err(Refusal::InvalidBankId.into());
    }
    // A payer may write anything, even a NUL character, which PostgreSQL's texts can't have.
    let reference = request.reference.replace('\0', "");
    if let Some(known) = deposits::by_bank_id(tx, &request.bank_id).await? {
        return same_again(service, tx, &reference, request.amount, known).await;
    }
    let application = match Reference::parse(&request.reference) {
        Ok(reference) => find(service, tx, reference).await?,
        Err(_) => None,
    };
    let id = application.as_ref().map(|row| row.id);
    let fresh = deposits::insert(tx, &request.bank_id, &reference, request.amount, id, now).await?;
    touched("deposits", 1, u64::from(fresh))?;
    let (status, balance) = if let Some(row) = application {
        let balance = transfer(tx, BANK, row.id, &request.bank_id, request.amount, now).await?;
        tell(tx, &row, request.amount, balance, now).await?;
        (DepositStatus::Credited, Some(balance))
    } else {
        let waiting = Transfer {
            id: service.next_id(now),
            debit: BANK,
            credit: UNMATCHED,
            amount: request.amount,
            kind: TransferKind::Unmatched,
            application: None,
            bank_id: Some(&request.bank_id),
            batch_id: None,
        };
        tx.at(Home::FIRST);
        transfers::insert(tx, &waiting, now).await?;
        (DepositStatus::Unmatched, None)
    };
    let detail = format!("{} {} {}", request.amount, request.bank_id, status.as_str());
    audit::insert(tx, now, actor, "deposit.add", &reference, Some(&detail)).await?;
    Ok(DepositOutcome {
        status,
        already: false,
        balance,
    })
}

/// Mails the customer about a deposit.
async fn tell(
    conn: &mut dyn Connection,
    application: &ApplicationRow,
    amount: Money,
    balance: Money,
    now: Timestamp,
) -> Result<()> {
    let currency = installation::currency(conn).await?;
    let mail = texts::deposit(application.record.reference, amount, balance, &currency);
    mail::put(conn, application, &mail, now).await
}

/// The application with this reference. The transaction goes on in its home.
async fn find(
    service: &Service,
    tx: &mut WriteTx<'_>,
    reference: Reference,
) -> Result<Option<ApplicationRow>> {
    let Some(home) = service.find_home(reference).await? else {
        return Ok(None);
    };
    tx.at(home);
    applications::by_reference(tx, reference).await
}

/// The answer for a bank id that is stored already: the same data is answered again, other data is
/// refused.
async fn same_again(
    service: &Service,
    tx: &mut WriteTx<'_>,
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
    } else {
        (DepositStatus::Unmatched, None)
    };
    Ok(DepositOutcome {
        status,
        already: true,
        balance,
    })
}

/// Moves a deposit to an application; returns the balance after it.
async fn transfer(
    conn: &mut dyn Connection,
    from: LedgerAccount,
    application_id: ApplicationId,
    bank_id: &str,
    amount: Money,
    now: Timestamp,
) -> Result<Money> {
    let before = applications::balances(conn, application_id).await?;
    let before = before.ok_or(Refusal::NoSuchApplication)?;
    before
        .balance
        .checked_add(amount)
        .ok_or(Error::Refused(Refusal::BalanceTooLarge))?;
    let (balance, id) = applications::add_balance(conn, application_id, amount).await?;
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
