//! Bank statements that staff import from files. The lines of a file are stored and shown to staff.
//! Once staff confirm the statement, its lines are credited, a few in each transaction.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Timestamp;
use domain::ids::Shard;
use domain::records::{BankStatement, LineOutcome, StatementReport};
use tokio::sync::mpsc;

use super::deposits::{self, DepositRequest, DepositStatus, written};
use super::statement_file::{BadStatement, OpenStatement};
use crate::transactions::work;
use crate::{Service, Verb, leave_time, run_blocking, run_detached};
use store::audit::{self, Actor};
use store::error::{Error, Fault, Refusal, Result};
use store::gate::Priority;
use store::statements::{BankColumns, FileLine, UnderWay};
use store::{Chore, WriteTx, installation, statements};

/// The number of a file's lines that one transaction stores. With SQLite, a send waits for the
/// whole transaction.
const STORED_AT_ONCE: usize = 50;
/// The number of chunks of lines that may be read before the earlier ones are stored.
const CHUNKS_READ_AHEAD: usize = 2;
/// The maximum number of lines that one transaction credits.
const CREDITED_AT_MOST: i64 = 200;
/// The maximum number of lines that one transaction credits with PostgreSQL, where it locks the
/// applications of all these lines.
const CREDITED_AT_MOST_SHARED: i64 = 20;
/// The number of lines after which a transaction ends if another transaction waits to write.
const CREDITED_BESIDE_OTHERS: usize = 50;
/// The time after which a transaction ends, even after few lines. With PostgreSQL,
/// `does_somebody_wait` doesn't see commit groups: they don't wait at the gate, but for the locked
/// row of an application.
const CREDIT_TIME: Duration = Duration::from_millis(10);
/// The pause after a transaction that others waited for. With this pause, one or two of a hundred
/// sends per second wait for a transaction that credits lines.
const OTHERS_TIME: Duration = Duration::from_millis(500);
/// How long the stored lines of an incomplete file are kept, in milliseconds. A file is incomplete
/// if the process ended before it stored all lines.
const ABANDONED_AFTER_MS: i64 = 60 * 60 * 1000;
/// The number of lines of incomplete files that one transaction deletes.
const FORGOTTEN_AT_ONCE: i64 = 1000;
/// The number of lines of each outcome that a report shows.
const FIRST_LINES: i64 = 5;
/// The number of statements in the list of statements.
const STATEMENTS_LISTED: i64 = 20;

/// The result of importing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementFile {
    /// The file is stored under this ID and waits for confirmation.
    Stored(i64),
    /// Staff must choose the file's columns, and then import the file again.
    Columns {
        /// The header line that the choice is stored under.
        header: String,
        names: Vec<String>,
    },
    /// The file is refused, and nothing of it is stored.
    Bad(BadStatement),
}

/// The result of a transaction that credits lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditedLines {
    /// Nothing is left to credit, or another process is crediting lines.
    None,
    /// The transaction credited lines. There may be more.
    Some,
    /// The transaction credited lines. Another transaction waited to write in the meantime.
    SomeWhileOthersWaited,
}

impl crate::Money<'_> {
    /// Checks a bank statement and stores it, without crediting anything yet. Stores nothing if the
    /// columns are unknown or `choose_again` is set.
    ///
    /// # Errors
    /// `Failed` if the file can't be read.
    pub async fn import_statement(&self, file: File, choose_again: bool) -> Result<StatementFile> {
        let opened = run_blocking(move || OpenStatement::open(file)).await?;
        let file = match opened.map_err(Fault::File)? {
            Ok(file) => file,
            Err(bad) => return Ok(StatementFile::Bad(bad)),
        };
        let (columns, currency) = {
            let mut conn = self.store().read().await?;
            let chosen = statements::columns(&mut conn, &file.header).await?;
            (chosen, installation::currency(&mut conn).await?)
        };
        let columns = columns.or_else(|| file.guessed());
        let Some(columns) = columns.filter(|_| !choose_again) else {
            let OpenStatement { header, names, .. } = file;
            return Ok(StatementFile::Columns { header, names });
        };
        let file = Arc::new(file);
        let checked = {
            let (file, currency) = (Arc::clone(&file), currency.clone());
            run_blocking(move || file.check(columns, &currency)).await?
        };
        match checked.map_err(Fault::File)? {
            Ok(()) => self.store_statement(file, columns, currency).await,
            Err(bad) => Ok(StatementFile::Bad(bad)),
        }
    }

    /// Stores the lines of a checked file. Staff don't see the statement until the last line is
    /// stored.
    async fn store_statement(
        &self,
        file: Arc<OpenStatement>,
        columns: BankColumns,
        currency: String,
    ) -> Result<StatementFile> {
        let id = self.in_transaction(work!(|tx, now| statements::insert(tx, now).await));
        let id = id.await?;
        let (sender, mut chunks) = mpsc::channel::<Vec<FileLine>>(CHUNKS_READ_AHEAD);
        let reading = run_blocking(move || {
            file.chunks(columns, &currency, STORED_AT_ONCE, |chunk| {
                sender
                    .blocking_send(chunk)
                    .map_err(|_| io::Error::other("the lines can't be stored"))
            })
        });
        let storing = async {
            while let Some(chunk) = chunks.recv().await {
                let (service, begun) = (self.0.clone(), Instant::now());
                run_detached(async move {
                    let mut tx = service.store().begin_as(Priority::Bulk).await?;
                    statements::insert_lines(&mut tx, id, &chunk).await?;
                    tx.commit().await
                })
                .await?;
                leave_time(begun).await;
            }
            drop(chunks);
            Ok::<_, Error>(())
        };
        let (read, stored) = tokio::join!(reading, storing);
        stored?;
        read?.map_err(Fault::File)?;
        let loaded = self.in_transaction(work!(|tx, now| statements::loaded(tx, id, now).await));
        loaded.await?;
        Ok(StatementFile::Stored(id))
    }

    /// Deletes the stored lines of incomplete files.
    pub async fn forget_abandoned_statements(&self) -> Result<()> {
        let (chore, shard) = (Chore::ForgetStatements, Shard::FIRST);
        self.do_chore_at(shard, chore, Priority::Bulk, |tx, now| {
            let before = now.plus_ms(-ABANDONED_AFTER_MS);
            Box::pin(
                async move { statements::forget_abandoned(tx, before, FORGOTTEN_AT_ONCE).await },
            )
        })
        .await
    }

    /// Stores what each column means in statements with this header line.
    ///
    /// # Errors
    /// `ColumnRepeated` if `columns` names a column twice.
    pub async fn choose_columns(
        &self,
        actor: &Actor,
        header: &str,
        columns: BankColumns,
    ) -> Result<()> {
        if columns.are_repeated() {
            return Err(Refusal::ColumnRepeated.into());
        }
        let (actor, header) = (*actor, written(header));
        self.in_transaction(work!(|tx, now| {
            if statements::columns(tx, &header).await? == Some(columns) {
                return Ok(());
            }
            statements::set_columns(tx, &header, columns).await?;
            audit::insert(tx, now, &actor, "statement.columns", &header, None).await
        }))
        .await
    }

    /// Returns the newest bank statements.
    pub async fn bank_statements(&self) -> Result<Vec<BankStatement>> {
        statements::newest(&mut self.store().read().await?, STATEMENTS_LISTED).await
    }

    /// Returns how many lines of a bank statement have each outcome, with the first lines of each.
    /// Lines that aren't credited yet have the outcome that they would have now.
    pub async fn statement_report(&self, id: i64) -> Result<Option<StatementReport>> {
        let mut conn = self.store().read().await?;
        let Some(statement) = statements::by_id(&mut conn, id).await? else {
            return Ok(None);
        };
        let counts = statements::counts(&mut conn, id).await?;
        let mut first = Vec::new();
        for (outcome, _) in &counts {
            first.extend(statements::first(&mut conn, id, *outcome, FIRST_LINES).await?);
        }
        Ok(Some(StatementReport { statement, counts, first }))
    }

    /// Confirms a bank statement. Its lines are credited from now on. A line for an application of
    /// the member of staff who confirms stays unmatched, and another member of staff assigns it.
    ///
    /// # Errors
    /// `StatementConfirmed` if the statement was confirmed before or doesn't exist.
    pub async fn confirm_statement(&self, actor: Actor, id: i64) -> Result<()> {
        self.in_transaction(confirming_statement(actor, None, id)).await
    }

    /// Credits the lines of confirmed statements, a few in each transaction. Each transaction also
    /// stores the last line that it credited. If the process stops, no line is lost or credited
    /// twice.
    pub async fn credit_statements(&self) -> Result<()> {
        loop {
            let begun = Instant::now();
            match self.credit_statement_lines().await? {
                CreditedLines::None => return Ok(()),
                CreditedLines::Some => leave_time(begun).await,
                CreditedLines::SomeWhileOthersWaited => tokio::time::sleep(OTHERS_TIME).await,
            }
        }
    }

    /// Credits the next lines. Does nothing while another process credits lines.
    pub async fn credit_statement_lines(&self) -> Result<CreditedLines> {
        {
            let mut conn = self.store().read().await?;
            if statements::under_way(&mut conn).await?.is_none() {
                return Ok(CreditedLines::None);
            }
        }
        let service = self.0.clone();
        run_detached(async move {
            let (chore, shard) = (Chore::CreditStatements, Shard::FIRST);
            let tx = service.store().begin_chore(chore, shard, Priority::Bulk);
            let Some(mut tx) = tx.await? else {
                return Ok(CreditedLines::None);
            };
            let Some(statement) = statements::under_way(&mut tx).await? else {
                return Ok(CreditedLines::None);
            };
            credit_lines(&service, &mut tx, &statement, service.now()).await?;
            let others_wait = service.store().does_somebody_wait();
            tx.commit().await?;
            Ok(if others_wait { CreditedLines::SomeWhileOthersWaited } else { CreditedLines::Some })
        })
        .await
    }
}

/// Returns the verb that confirms a bank statement. `asked_by` is the account that requested the
/// confirmation, if another member of staff approved it.
pub(crate) fn confirming_statement(actor: Actor, asked_by: Option<i64>, id: i64) -> Verb<()> {
    Box::new(work!(|tx, now| {
        let account_id = match actor {
            Actor::Account(id) => Some(id),
            Actor::CommandLine | Actor::System => None,
        };
        if !statements::confirm(tx, id, now, (account_id, asked_by)).await? {
            return Err(Refusal::StatementConfirmed.into());
        }
        audit::insert(tx, now, &actor, "statement.confirm", &id.to_string(), None).await
    }))
}

async fn credit_lines(
    service: &Service,
    tx: &mut WriteTx<'_>,
    statement: &UnderWay,
    now: Timestamp,
) -> Result<()> {
    let begun = Instant::now();
    let at_most = if service.store().dialect().is_shared() {
        CREDITED_AT_MOST_SHARED
    } else {
        CREDITED_AT_MOST
    };
    let lines = statements::next_lines(tx, statement, at_most).await?;
    let Some(mut last) = lines.first().map(|line| line.line) else {
        return statements::done(tx, statement.id, now).await;
    };
    let (lines, requests): (Vec<_>, Vec<_>) = lines
        .into_iter()
        .map(|line| {
            let request = DepositRequest {
                bank_id: line.bank_id,
                reference: line.reference,
                amount: line.amount,
            };
            (line.line, request)
        })
        .unzip();
    deposits::lock_receivers(service, tx, &requests).await?;
    let actor = statement.confirmed_by.map_or(Actor::CommandLine, Actor::Account);
    let by = (&actor, statement.asked_by.map(Actor::Account));
    let mut count = 0;
    for (line, request) in lines.into_iter().zip(&requests) {
        let outcome = match deposits::credit(service, tx, by, request, now).await {
            Ok(outcome) if outcome.already => LineOutcome::Known,
            Ok(outcome) => match outcome.status {
                DepositStatus::Credited => LineOutcome::Credited,
                DepositStatus::Unmatched => LineOutcome::Unmatched,
            },
            Err(Error::Refused(Refusal::BankIdConflict { .. })) => LineOutcome::Conflict,
            Err(Error::Refused(Refusal::BalanceTooLarge)) => LineOutcome::Refused,
            Err(error) => return Err(error),
        };
        statements::set_outcome(tx, statement.id, line, outcome).await?;
        last = line;
        count += 1;
        let others_wait = count >= CREDITED_BESIDE_OTHERS && service.store().does_somebody_wait();
        if others_wait || begun.elapsed() > CREDIT_TIME {
            break;
        }
    }
    statements::advance(tx, statement.id, last).await
}
