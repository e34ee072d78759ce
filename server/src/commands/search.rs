//! `heliograph search`.

use domain::MessageStatus;
use domain::Reference;
use domain::records::{ApplicationRecord, BatchRecord};
use domain::support::{AccountLine, Found, FoundDeposit, MaskedMessage, Owner};
use serde::Serialize;
use service::Service;

use super::output::{Column, or_dash, table};
use super::{CommandError, Output};
use crate::json::{Amount, DateTime};

/// The search results as the command line shows them.
#[derive(Serialize)]
struct Shown {
    accounts: Vec<Account>,
    applications: Vec<Application>,
    batches: Vec<Batch>,
    deposits: Vec<Deposit>,
    messages: Vec<Message>,
    /// True if the time was up before the messages of every application were searched.
    incomplete: bool,
}

#[derive(Serialize)]
struct Account {
    email: String,
    staff: bool,
    created_at: DateTime,
    disabled_at: Option<DateTime>,
}

#[derive(Serialize)]
struct Application {
    reference: Reference,
    account: String,
    category: &'static str,
    status: &'static str,
    balance: Amount,
}

#[derive(Serialize)]
struct Batch {
    batchid: String,
    reference: Reference,
    account: String,
    status: &'static str,
    rows: i64,
    delivered: i64,
    created_at: DateTime,
}

#[derive(Serialize)]
struct Deposit {
    bank_id: String,
    /// As the payer wrote it.
    reference: String,
    amount: Amount,
    received_at: DateTime,
    /// The reference of the application that it was credited to.
    credited_to: Option<Reference>,
}

/// A message without its text.
#[derive(Serialize)]
struct Message {
    transid: String,
    requestid: Option<String>,
    reference: Reference,
    account: String,
    number: String,
    status: &'static str,
    error: Option<String>,
    pages: i64,
    segments: i64,
    cost: Amount,
    characters: usize,
    test: bool,
    created_at: DateTime,
}

impl From<AccountLine> for Account {
    fn from(line: AccountLine) -> Self {
        Self {
            email: line.account.email,
            staff: line.account.staff,
            created_at: DateTime(line.created_at),
            disabled_at: line.disabled_at.map(DateTime),
        }
    }
}

impl From<(Owner, ApplicationRecord)> for Application {
    fn from((owner, record): (Owner, ApplicationRecord)) -> Self {
        Self {
            reference: record.reference,
            account: owner.email,
            category: record.category.as_str(),
            status: record.status.as_str(),
            balance: Amount(record.balance),
        }
    }
}

impl From<(Owner, BatchRecord)> for Batch {
    fn from((owner, record): (Owner, BatchRecord)) -> Self {
        Self {
            batchid: record.batchid.to_string(),
            reference: owner.reference,
            account: owner.email,
            status: record.status.as_str(),
            rows: record.rows,
            delivered: record.counts.get(MessageStatus::Delivered),
            created_at: DateTime(record.created_at),
        }
    }
}

impl From<FoundDeposit> for Deposit {
    fn from(deposit: FoundDeposit) -> Self {
        Self {
            bank_id: deposit.bank_id,
            reference: deposit.reference,
            amount: Amount(deposit.amount),
            received_at: DateTime(deposit.received_at),
            credited_to: deposit.owner.map(|owner| owner.reference),
        }
    }
}

impl From<(Owner, MaskedMessage)> for Message {
    fn from((owner, message): (Owner, MaskedMessage)) -> Self {
        Self {
            transid: message.transid.to_string(),
            requestid: message.requestid,
            reference: owner.reference,
            account: owner.email,
            number: message.number,
            status: message.status.as_str(),
            error: message.error,
            pages: message.pages,
            segments: message.segments,
            cost: Amount(message.cost),
            characters: message.chars,
            test: message.test,
            created_at: DateTime(message.created_at),
        }
    }
}

const ACCOUNTS: [Column<Account>; 4] = [
    ("ACCOUNT", |account| account.email.clone()),
    ("ROLE", |account| {
        let role = if account.staff { "staff" } else { "customer" };
        role.to_owned()
    }),
    ("CREATED", |account| account.created_at.0.to_table()),
    ("DISABLED", |account| {
        let disabled_at = account.disabled_at.map(|at| at.0.to_table());
        or_dash(disabled_at.as_deref())
    }),
];

const APPLICATIONS: [Column<Application>; 5] = [
    ("APPLICATION", |application| application.reference.to_string()),
    ("ACCOUNT", |application| application.account.clone()),
    ("CATEGORY", |application| application.category.to_owned()),
    ("STATUS", |application| application.status.to_owned()),
    ("BALANCE", |application| application.balance.0.to_string()),
];

const BATCHES: [Column<Batch>; 6] = [
    ("BATCH", |batch| batch.batchid.clone()),
    ("APPLICATION", |batch| batch.reference.to_string()),
    ("STATUS", |batch| batch.status.to_owned()),
    ("ROWS", |batch| batch.rows.to_string()),
    ("DELIVERED", |batch| batch.delivered.to_string()),
    ("ACCEPTED", |batch| batch.created_at.0.to_table()),
];

const DEPOSITS: [Column<Deposit>; 5] = [
    ("DEPOSIT", |deposit| deposit.bank_id.clone()),
    ("REFERENCE", |deposit| deposit.reference.clone()),
    ("AMOUNT", |deposit| deposit.amount.0.to_string()),
    ("RECEIVED", |deposit| deposit.received_at.0.to_table()),
    ("CREDITED TO", |deposit| {
        let reference = deposit.credited_to.map(|reference| reference.to_string());
        or_dash(reference.as_deref())
    }),
];

const MESSAGES: [Column<Message>; 7] = [
    ("MESSAGE", |message| message.transid.clone()),
    ("APPLICATION", |message| message.reference.to_string()),
    ("NUMBER", |message| message.number.clone()),
    ("REQUEST ID", |message| or_dash(message.requestid.as_deref())),
    ("STATUS", |message| message.status.to_owned()),
    ("COST", |message| message.cost.0.to_string()),
    ("ACCEPTED", |message| message.created_at.0.to_table()),
];

pub async fn run(service: &Service, text: &str, output: Output) -> Result<(), CommandError> {
    let found = service.support().desk_search(text).await?;
    Ok(output.print(&Shown::from(found), words)?)
}

impl From<Found> for Shown {
    fn from(found: Found) -> Self {
        Self {
            accounts: found.accounts.into_iter().map(Account::from).collect(),
            applications: found.applications.into_iter().map(Application::from).collect(),
            batches: found.batches.into_iter().map(Batch::from).collect(),
            deposits: found.deposits.into_iter().map(Deposit::from).collect(),
            messages: found.messages.into_iter().map(Message::from).collect(),
            incomplete: found.incomplete,
        }
    }
}

fn words(shown: &Shown) -> String {
    let mut parts = Vec::new();
    add(&mut parts, &shown.accounts, &ACCOUNTS);
    add(&mut parts, &shown.applications, &APPLICATIONS);
    add(&mut parts, &shown.batches, &BATCHES);
    add(&mut parts, &shown.deposits, &DEPOSITS);
    add(&mut parts, &shown.messages, &MESSAGES);
    if parts.is_empty() {
        parts.push("Nothing was found.".to_owned());
    }
    if shown.incomplete {
        let sentence = "The time was up before every application's messages were searched. \
                        Write the email or the reference before the number or request id.";
        parts.push(sentence.to_owned());
    }
    parts.join("\n\n")
}

/// Adds a table of one kind of results, if there are any.
fn add<T>(parts: &mut Vec<String>, found: &[T], columns: &[Column<T>]) {
    if !found.is_empty() {
        parts.push(table(found, columns));
    }
}
