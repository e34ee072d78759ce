//! `heliograph search`.

use domain::MessageStatus;
use domain::Reference;
use domain::records::{ApplicationRecord, BatchRecord, DepositRecord};
use domain::support::{AccountLine, Found, MaskedMessage, Owner};
use service::Service;

use super::output::{Column, or_dash, table};
use super::{CommandError, Output};
use crate::json::{Amount, DateTime, shown};

shown! {
    /// The search results as the command line shows them.
    struct Shown from found: Found {
        accounts: Vec<Account> = found.accounts.into_iter().map(Account::from).collect(),
        applications: Vec<Application> =
            found.applications.into_iter().map(Application::from).collect(),
        batches: Vec<Batch> = found.batches.into_iter().map(Batch::from).collect(),
        deposits: Vec<Deposit> = found.deposits.into_iter().map(Deposit::from).collect(),
        messages: Vec<Message> = found.messages.into_iter().map(Message::from).collect(),
        /// True if the search timed out before it reached every application's messages.
        incomplete: bool = found.incomplete,
    }
}

shown! {
    struct Account from line: AccountLine {
        email: String = line.account.email,
        staff: bool = line.account.staff,
        created_at: DateTime = DateTime(line.created_at),
        disabled_at: Option<DateTime> = line.disabled_at.map(DateTime),
    }
}

shown! {
    struct Application from (owner, record): (Owner, ApplicationRecord) {
        reference: Reference = record.reference,
        account: String = owner.email,
        category: &'static str = record.category.as_str(),
        status: &'static str = record.status.as_str(),
        balance: Amount = Amount(record.balance),
    }
}

shown! {
    struct Batch from (owner, record): (Owner, BatchRecord) {
        batchid: String = record.batchid.to_string(),
        reference: Reference = owner.reference,
        account: String = owner.email,
        status: &'static str = record.status.as_str(),
        rows: i64 = record.rows,
        delivered: i64 = record.counts.get(MessageStatus::Delivered),
        created_at: DateTime = DateTime(record.created_at),
    }
}

shown! {
    struct Deposit from deposit: DepositRecord {
        bank_id: String = deposit.bank_id,
        /// As the payer wrote it.
        reference: String = deposit.reference,
        amount: Amount = Amount(deposit.amount),
        received_at: DateTime = DateTime(deposit.received_at),
        /// The reference of the application that it was credited to.
        credited_to: Option<Reference> = deposit.assigned_to,
    }
}

shown! {
    /// A message without its text.
    struct Message from (owner, message): (Owner, MaskedMessage) {
        transid: String = message.transid.to_string(),
        requestid: Option<String> = message.requestid,
        reference: Reference = owner.reference,
        account: String = owner.email,
        number: String = message.number,
        status: &'static str = message.status.as_str(),
        error: Option<String> = message.error,
        pages: i64 = message.pages,
        segments: i64 = message.segments,
        cost: Amount = Amount(message.cost),
        characters: usize = message.chars,
        test: bool = message.test,
        created_at: DateTime = DateTime(message.created_at),
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
        let sentence = "The search timed out before it reached every application's messages. \
                        Write the email or the reference before the number or request ID.";
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
