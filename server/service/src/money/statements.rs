//! Bank statements that staff import from files. The lines of a file are stored and shown to staff.
//! Once staff confirm the statement, its lines are credited, a few in each transaction.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Timestamp;
use domain::ids::Shard;
use domain::records::{
    BankLineCase, BankStatement, KeptBankFile, LineOutcome, OpenBankLine, Paged, StatementReport,
};
use tokio::sync::mpsc;

use super::deposits::{self, DepositRequest, DepositStatus};
use super::statement_file::{BadStatement, OpenStatement};
use crate::transactions::work;
use crate::{Service, Verb, leave_time, run_blocking, run_detached};
use store::audit::{self, Actor};
use store::error::{Error, Fault, Refusal, Result};
use store::gate::Priority;
use store::statements::{BankColumns, FileLine, UnderWay};
use store::{Chore, Tx, installation, statements};

/// The number of a file's lines that one transaction stores. With SQLite, a send waits for the
/// whole transaction.
const STORED_AT_ONCE: usize = 50;
/// The number of chunks that may be read from the file while an earlier chunk is being stored.
const CHUNKS_READ_AHEAD: usize = 2;
const CREDITED_AT_MOST: i64 = 200;
/// The maximum number of lines that one transaction credits with PostgreSQL, where it locks the
/// applications of all these lines.
const CREDITED_AT_MOST_SHARED: i64 = 20;
/// The number of lines after which a transaction ends if another transaction waits to write.
const CREDITED_BESIDE_OTHERS: usize = 50;
/// A transaction that has taken this long ends, even if it has credited few lines. With PostgreSQL,
/// `does_somebody_wait` doesn't see commit groups: they don't wait at the gate, but for the locked
/// row of an application.
const CREDIT_TIME: Duration = Duration::from_millis(10);
/// The pause after a transaction that others waited for. At 100 sends a second, this pause makes
/// only one or two of them wait for a transaction that credits lines.
const OTHERS_TIME: Duration = Duration::from_millis(500);
/// How long a file whose columns nobody chooses is kept, in milliseconds. The stored lines of an
/// incomplete file are kept as long. A file is incomplete if the process ended before it stored all
/// lines.
const ABANDONED_AFTER_MS: i64 = 60 * 60 * 1000;
/// The number of lines of incomplete files that one transaction deletes.
const FORGOTTEN_AT_ONCE: i64 = 1000;
/// The maximum number of lines on a page.
const LINES_MAX: i64 = 100;
/// The number of rows that are shown while staff choose the columns.
const ROWS_SHOWN: usize = 5;
/// The number of statements in the list of statements.
const STATEMENTS_LISTED: i64 = 20;

/// The result of importing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementFile {
    /// The file is stored under this ID and waits for confirmation.
    Stored(i64),
    /// Staff must choose the file's columns.
    Columns {
        /// The header line that the choice is stored under.
        header: String,
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
            let (header, sampled) = (file.header.clone(), run_blocking(move || file.sample()));
            let (rows, _) = sampled.await?.map_err(Fault::File)?;
            return Ok(if rows.is_empty() {
                StatementFile::Bad(BadStatement::Empty)
            } else {
                StatementFile::Columns { header }
            });
        };
        match self.checked(file, columns, &currency).await? {
            Ok(file) => self.store_statement(file, columns, currency).await,
            Err(bad) => Ok(StatementFile::Bad(bad)),
        }
    }

    async fn checked(
        &self,
        file: OpenStatement,
        columns: BankColumns,
        currency: &str,
    ) -> Result<std::result::Result<Arc<OpenStatement>, BadStatement>> {
        let file = Arc::new(file);
        let checked = {
            let (file, currency) = (Arc::clone(&file), currency.to_owned());
            run_blocking(move || file.check(columns, &currency)).await?
        };
        Ok(checked.map_err(Fault::File)?.map(|()| file))
    }

    /// Keeps a file, decoded to UTF-8, until staff have chosen its columns. Returns the ID under
    /// which it is kept.
    ///
    /// # Errors
    /// `Failed` if the file can't be read. `BankFileGone` if it isn't a bank statement.
    pub async fn keep_bank_file(&self, file: File) -> Result<i64> {
        let opened = run_blocking(move || OpenStatement::open(file)).await?;
        let Ok(file) = opened.map_err(Fault::File)? else {
            return Err(Refusal::BankFileGone.into());
        };
        let (sender, mut parts) = mpsc::channel::<String>(CHUNKS_READ_AHEAD);
        let reading = run_blocking(move || {
            let gone = |_| io::Error::other("the parts can't be stored");
            file.parts(|part| sender.blocking_send(part).map_err(gone))
        });
        let id = self.next_id(self.now());
        let storing = async {
            let mut number = 0;
            while let Some(part) = parts.recv().await {
                self.in_transaction(work!(|tx, now| {
                    statements::keep_part(tx, id, number, &part, now).await
                }))
                .await?;
                number += 1;
            }
            drop(parts);
            Ok::<_, Error>(())
        };
        let (read, stored) = tokio::join!(reading, storing);
        stored?;
        read?.map_err(Fault::File)?;
        Ok(id)
    }

    /// Returns the columns and the first rows of a kept file. `None` if it isn't kept any more.
    pub async fn kept_bank_file(&self, id: i64) -> Result<Option<KeptBankFile>> {
        let first = statements::kept_part(&mut self.store().read().await?, id, 0).await?;
        let Some(first) = first else {
            return Ok(None);
        };
        let sampled = run_blocking(move || {
            let mut file = tempfile::tempfile()?;
            file.write_all(first.as_bytes())?;
            let Ok(file) = OpenStatement::open(file)? else { return Ok(None) };
            let (rows, suggested) = file.sample()?;
            Ok::<_, io::Error>(Some((file.names, rows, suggested)))
        });
        let sampled = sampled.await?.map_err(Fault::File)?;
        Ok(sampled.map(|(names, mut rows, suggested)| {
            rows.truncate(ROWS_SHOWN);
            KeptBankFile { id, names, rows, suggested }
        }))
    }

    /// Returns a kept file, decoded to UTF-8.
    async fn read_kept(&self, id: i64) -> Result<File> {
        let mut file = tempfile::tempfile().map_err(Fault::File)?;
        let mut number = 0;
        loop {
            let mut conn = self.store().read().await?;
            let Some(part) = statements::kept_part(&mut conn, id, number).await? else {
                break;
            };
            drop(conn);
            file = run_blocking(move || file.write_all(part.as_bytes()).map(|()| file))
                .await?
                .map_err(Fault::File)?;
            number += 1;
        }
        if number == 0 { Err(Refusal::BankFileGone.into()) } else { Ok(file) }
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
        self.mark_repeated(id).await?;
        let loaded = self.in_transaction(work!(|tx, now| statements::loaded(tx, id, now).await));
        loaded.await?;
        Ok(StatementFile::Stored(id))
    }

    /// Marks those lines of a statement as known that an earlier statement has, too, and that
    /// couldn't be credited then. That statement's line is the one that staff handle.
    async fn mark_repeated(&self, id: i64) -> Result<()> {
        let repeated = statements::repeated(&mut self.store().read().await?, id).await?;
        for lines in repeated.chunks(STORED_AT_ONCE) {
            let lines = lines.to_vec();
            self.in_transaction(work!(|tx, _| {
                for line in &lines {
                    statements::mark_repeated(tx, id, *line).await?;
                }
                Ok(())
            }))
            .await?;
        }
        Ok(())
    }

    /// Deletes the stored lines of incomplete files, and files whose columns nobody has chosen.
    pub async fn forget_abandoned_statements(&self) -> Result<()> {
        let (chore, shard) = (Chore::ForgetStatements, Shard::FIRST);
        self.do_chore_at(shard, chore, Priority::Bulk, |tx, now| {
            let before = now.plus_ms(-ABANDONED_AFTER_MS);
            Box::pin(async move {
                let files = statements::drop_old_file(tx, before).await?;
                let lines = statements::forget_abandoned(tx, before, FORGOTTEN_AT_ONCE).await?;
                Ok(files || lines)
            })
        })
        .await
    }

    /// Checks and stores a kept file. Also stores the columns, for all later files with the same
    /// header line. If the file has bad lines, it stays kept, so that staff can choose other
    /// columns.
    ///
    /// # Errors
    /// `ColumnRepeated` if `columns` names a column twice. `BankFileGone` if the file isn't kept
    /// any more.
    pub async fn choose_columns(
        &self,
        actor: &Actor,
        file: i64,
        columns: BankColumns,
    ) -> Result<StatementFile> {
        if columns.are_repeated() {
            return Err(Refusal::ColumnRepeated.into());
        }
        let (actor, kept) = (*actor, self.read_kept(file).await?);
        let opened = run_blocking(move || OpenStatement::open(kept)).await?;
        let opened = match opened.map_err(Fault::File)? {
            Ok(opened) => opened,
            Err(bad) => return Ok(StatementFile::Bad(bad)),
        };
        let currency = installation::currency(&mut self.store().read().await?).await?;
        let opened = match self.checked(opened, columns, &currency).await? {
            Ok(opened) => opened,
            Err(bad) => return Ok(StatementFile::Bad(bad)),
        };
        let header = opened.header.clone();
        self.in_transaction(work!(|tx, now| {
            if !statements::drop_file(tx, file).await? {
                return Err(Refusal::BankFileGone.into());
            }
            if statements::columns(tx, &header).await? == Some(columns) {
                return Ok(());
            }
            statements::set_columns(tx, &header, columns).await?;
            audit::insert(tx, now, &actor, "statement.columns", &header, None).await
        }))
        .await?;
        self.store_statement(opened, columns, currency).await
    }

    pub async fn bank_statements(&self) -> Result<Vec<BankStatement>> {
        statements::newest(&mut self.store().read().await?, STATEMENTS_LISTED).await
    }

    /// Returns how many lines of a bank statement have each outcome. A line that isn't credited yet
    /// counts under the outcome that it would have now. Returns `None` if there is no such
    /// statement.
    pub async fn statement_report(&self, id: i64) -> Result<Option<StatementReport>> {
        let mut conn = self.store().read().await?;
        let Some(statement) = statements::by_id(&mut conn, id).await? else {
            return Ok(None);
        };
        let counts = statements::counts(&mut conn, id).await?;
        let waiting = statements::waiting(&mut conn, id).await?;
        let credits = statements::credits(&mut conn, id).await?;
        Ok(Some(StatementReport { statement, counts, credits, waiting }))
    }

    /// Returns a page of a bank statement's lines, in the file's order. With `of`, only those with
    /// this outcome. Unmatched lines come with the applications that their payers may have meant.
    ///
    /// # Errors
    /// `InvalidCursor`.
    pub async fn statement_lines(
        &self,
        id: i64,
        of: Option<LineOutcome>,
        cursor: Option<&str>,
        limit: i64,
    ) -> Result<Paged<BankLineCase>> {
        let after = match cursor {
            Some(cursor) => cursor.parse().map_err(|_| Refusal::InvalidCursor)?,
            None => 0,
        };
        let limit = limit.clamp(1, LINES_MAX);
        let mut conn = self.store().read().await?;
        let lines = statements::lines(&mut conn, id, of, after, limit + 1).await?;
        let page = Paged::of(lines, limit, |line| line.line.to_string());
        let mut items = Vec::new();
        for line in page.items {
            let (suggestions, account_closed) = if line.outcome == LineOutcome::Unmatched {
                let purpose = line.purpose.as_deref();
                deposits::of_unmatched(&mut conn, &line.reference, purpose).await?
            } else {
                (Vec::new(), false)
            };
            items.push(BankLineCase { line, suggestions, account_closed });
        }
        Ok(Paged { items, next: page.next })
    }

    /// Returns the lines of all statements that couldn't be credited and that staff haven't marked
    /// as done: the bank ID is known with other data, or the balance would be too large. Returns at
    /// most a page, oldest statement first.
    pub async fn open_bank_lines(&self) -> Result<Vec<OpenBankLine>> {
        statements::open_lines(&mut self.store().read().await?, LINES_MAX).await
    }

    /// Returns a line of a statement that couldn't be credited and that staff haven't marked as
    /// done. `None` for every other line.
    pub async fn open_bank_line(&self, statement: i64, line: i64) -> Result<Option<OpenBankLine>> {
        statements::open_line(&mut self.store().read().await?, statement, line).await
    }

    /// Marks a line that couldn't be credited as done, so that it isn't pending work any more. Does
    /// nothing if it was marked before.
    pub async fn handle_bank_line(&self, actor: &Actor, statement: i64, line: i64) -> Result<()> {
        let actor = *actor;
        self.in_transaction(work!(|tx, now| {
            if !statements::handle(tx, statement, line, now).await? {
                return Ok(());
            }
            let (subject, detail) = (statement.to_string(), format!("line {line}"));
            audit::insert(tx, now, &actor, "statement.line", &subject, Some(&detail)).await
        }))
        .await
    }

    /// Confirms a bank statement. Its lines are credited from now on. If a line is for an
    /// application of the member of staff who confirms, it stays unmatched, and another member of
    /// staff has to assign it.
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
        let under_way = statements::under_way(&mut self.store().read().await?).await?;
        let Some(begun) = under_way else {
            return Ok(CreditedLines::None);
        };
        if begun.last_line == 0 {
            // Statements are credited one after the other. Here, all earlier ones are done.
            self.mark_repeated(begun.id).await?;
        }
        let service = self.0.clone();
        run_detached(async move {
            let (chore, shard) = (Chore::CreditStatements, Shard::FIRST);
            let tx = service.store().begin_chore(chore, shard, Priority::Bulk);
            let Some(mut tx) = tx.await? else {
                return Ok(CreditedLines::None);
            };
            let Some(statement) = statements::under_way(&mut tx).await? else {
                tx.commit().await?;
                return Ok(CreditedLines::None);
            };
            if statement != begun {
                // Another process has credited lines meanwhile.
                tx.commit().await?;
                return Ok(CreditedLines::Some);
            }
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
    tx: &mut Tx<'_>,
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
            ((line.line, [line.payer, line.purpose, line.paid_on]), request)
        })
        .unzip();
    deposits::lock_receivers(service, tx, &requests).await?;
    let actor = statement.confirmed_by.map_or(Actor::CommandLine, Actor::Account);
    let by = (&actor, statement.asked_by.map(Actor::Account));
    let mut count = 0;
    for ((line, details), request) in lines.into_iter().zip(&requests) {
        let credited = deposits::credit(service, tx, by, request, now).await;
        if credited.as_ref().is_ok_and(|outcome| !outcome.already)
            && details.iter().any(Option::is_some)
        {
            let details = details.each_ref().map(Option::as_deref);
            store::deposits::describe(tx, &request.bank_id, details).await?;
        }
        let outcome = match credited {
            Ok(outcome) if outcome.already => LineOutcome::Known,
            Ok(outcome) => match outcome.status {
                DepositStatus::Credited => LineOutcome::Credited,
                DepositStatus::Unmatched => LineOutcome::Unmatched,
                DepositStatus::Returned => LineOutcome::Known,
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
