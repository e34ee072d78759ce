//! `/support/import`: imports bank statements from files.

#![expect(clippy::too_many_arguments, reason = "a form has a field for each column of a file")]

use domain::decision::Decided;
use domain::records::{
    BankLineCase, BankStatement, BankStatementLine, KeptBankFile, LineOutcome, OpenBankLine, Paged,
    StatementReport,
};
use domain::{DeskAct, Money, Refusal};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::confirm::confirm_button;
use super::deposits::{closed_mark, details};
use super::desk::by;
use super::links::{application_link, deposit_link};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::{counted, grouped};
use crate::ui::{
    BUTTONS, FileField, FormState, Loaded, Page, PostForm, StepUpField, SubmitButton, Table,
    next_link, parameter, tabs,
};
#[cfg(feature = "ssr")]
use {
    super::desk::{APPROVALS_PATH, last_decision},
    crate::portal_request::{staff, step_up},
    crate::problem::Cause,
    domain::approval::StaffAct,
    service::{Actor, BankColumns, StatementFile},
};

pub const IMPORT_PATH: &str = "/support/import";
/// The path that the page's form sends a file to.
pub const IMPORT_FILE_PATH: &str = "/support/import/file";
/// The session entry with the reason why a file was refused.
pub const REFUSED_FILE: &str = "refused-file";
/// The number of lines on a page.
#[cfg(feature = "ssr")]
const LINES: i64 = 50;
/// The pause between two queries of a statement whose lines are being credited, in milliseconds.
#[cfg(feature = "hydrate")]
const LOOK_MS: u64 = 2000;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportView {
    /// Why the file that was just sent was refused.
    refused: Option<String>,
    /// The file whose columns staff have to choose.
    file: Option<KeptBankFile>,
    selected: Option<SelectedStatement>,
    /// The lines of all statements that couldn't be credited, until staff mark them as done.
    open: Vec<OpenBankLine>,
    statements: Vec<BankStatement>,
    currency: String,
}

/// A statement, and a page of its lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SelectedStatement {
    report: StatementReport,
    /// Who confirmed it, and when.
    confirmed: Option<Decided>,
    /// The outcome of the lines that are shown. `None` for all.
    outcome: Option<LineOutcome>,
    lines: Paged<BankLineCase>,
}

/// Loads the bank statements for staff, with the selected one or the file whose columns staff are
/// choosing.
#[server(prefix = "/fn", endpoint = "support-import", input = GetUrl)]
pub async fn load_import(
    #[server(default)] statement: Option<i64>,
    #[server(default)] outcome: Option<String>,
    #[server(default)] cursor: Option<String>,
    #[server(default)] file: Option<i64>,
) -> Result<ImportView, Problem> {
    let (current, _) = staff().await?;
    let money = current.service().money();
    let refused = if crate::portal_request::is_shown() {
        current.take_text(REFUSED_FILE).await?
    } else {
        None
    };
    let selected = match statement {
        Some(id) => {
            let outcome = outcome.as_deref().and_then(LineOutcome::parse);
            let report = money.statement_report(id).await?.ok_or(Cause::NotFound)?;
            let lines = money.statement_lines(id, outcome, cursor.as_deref(), LINES).await?;
            let confirmed = match report.statement.confirmed_at {
                Some(_) => last_decision(&current, "statement.confirm", &id.to_string()).await?,
                None => None,
            };
            Some(SelectedStatement { report, confirmed, outcome, lines })
        }
        None => None,
    };
    let kept = match file {
        Some(id) => money.kept_bank_file(id).await?,
        None => None,
    };
    let is_gone = file.is_some() && kept.is_none() && refused.is_none();
    Ok(ImportView {
        refused: if is_gone { Some(Refusal::BankFileGone.to_string()) } else { refused },
        file: kept,
        selected,
        open: money.open_bank_lines().await?,
        statements: money.bank_statements().await?,
        currency: current.site().currency.clone(),
    })
}

/// Confirms a bank statement. Its lines are then credited.
#[server(prefix = "/fn", endpoint = "confirm-statement")]
pub async fn confirm_statement(
    statement: i64,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    step_up(&current, &account, &credential).await?;
    let act = StaffAct::ConfirmStatement { id: statement };
    if current.service().support().act(account.id, act).await? {
        leptos_axum::redirect(&format!("{IMPORT_PATH}?statement={statement}"));
    } else {
        leptos_axum::redirect(APPROVALS_PATH);
    }
    Ok(())
}

/// Stores which columns are which, for all files with this header, and reads the kept file.
#[server(prefix = "/fn", endpoint = "choose-columns")]
pub async fn choose_columns(
    file: i64,
    bank_id: usize,
    reference: usize,
    amount: usize,
    #[server(default)] debit: String,
    #[server(default)] currency: String,
    #[server(default)] payer: String,
    #[server(default)] purpose: String,
    #[server(default)] paid_on: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let columns = BankColumns {
        bank_id,
        reference,
        amount,
        debit: debit.parse().ok(),
        currency: currency.parse().ok(),
        payer: payer.parse().ok(),
        purpose: purpose.parse().ok(),
        paid_on: paid_on.parse().ok(),
    };
    let actor = Actor::Account(account.id);
    match current.service().money().choose_columns(&actor, file, columns).await? {
        StatementFile::Stored(id) => {
            leptos_axum::redirect(&format!("{IMPORT_PATH}?statement={id}"));
        }
        StatementFile::Bad(bad) => {
            let kept = current.keep_text(REFUSED_FILE, &bad.to_string()).await;
            kept.map_err(Problem::after_change)?;
            leptos_axum::redirect(&format!("{IMPORT_PATH}?file={file}&refused=1"));
        }
        StatementFile::Columns { .. } => return Err(Cause::Failed.into()),
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Forms {
    confirm: FormState,
    columns: FormState,
}

#[component]
pub fn ImportPage() -> impl IntoView {
    let forms = Forms {
        confirm: FormState::new::<ConfirmStatement>("confirm-alert"),
        columns: FormState::new::<ChooseColumns>("columns-alert"),
    };
    let number = |text: Option<String>| text.and_then(|id| id.parse().ok());
    let (statement, file) = (parameter("statement"), parameter("file"));
    let (outcome, cursor) = (parameter("outcome"), parameter("cursor"));
    // If somebody else confirmed the statement meanwhile, the page shows it as it is now.
    let changed = forms.confirm.refused_with(|refusal| *refusal == Refusal::StatementConfirmed);
    let data = PageData::after([forms.confirm, forms.columns], move || {
        // `track` wouldn't compute the memo, and it would notify nobody.
        drop(changed.get());
        LoadImport {
            statement: number(statement.get()),
            outcome: outcome.get(),
            cursor: cursor.get(),
            file: number(file.get()),
        }
    });
    #[cfg(feature = "hydrate")]
    follow(data);
    view! { <Loaded data render=move |data| view! { <Import data forms/> }/> }
}

/// Loads the page again while lines are being credited.
#[cfg(feature = "hydrate")]
fn follow(data: PageData<ImportView>) {
    let look = move || {
        let is_under_way = data.now().and_then(Result::ok).and_then(|view| view.selected);
        if is_under_way.is_some_and(|selected| is_under_way_now(&selected.report.statement)) {
            data.load_again();
        }
    };
    let untracked = move || untrack(look);
    let period = std::time::Duration::from_millis(LOOK_MS);
    if let Ok(handle) = set_interval_with_handle(untracked, period) {
        on_cleanup(move || handle.clear());
    }
}

#[cfg(feature = "hydrate")]
const fn is_under_way_now(statement: &BankStatement) -> bool {
    statement.confirmed_at.is_some() && statement.done_at.is_none()
}

#[component]
fn Import(data: ImportView, forms: Forms) -> impl IntoView {
    let ImportView { refused, file, selected, open, statements, currency } = data;
    let page = (selected.as_ref()).map_or_else(
        || IMPORT_PATH.to_owned(),
        |shown| address_of(shown.report.statement.id, shown.outcome),
    );
    view! {
        <Page title="Import a bank statement" back=("/support/deposits", "Deposits")>
            {refused.map(|sentence| view! { <p class="alert" role="alert">{sentence}</p> })}
            {file.map(|file| view! { <Columns file form=forms.columns/> })}
            {(!open.is_empty()).then(|| open_lines(&open, &currency, &page))}
            {selected.map(|selected| view! { <Report selected currency form=forms.confirm/> })}
            <form class="form" method="post" action=IMPORT_FILE_PATH enctype="multipart/form-data">
                <FileField label="CSV file" name="file" accept=".csv,.txt,text/csv">
                    "At most 64 MiB and 1,000,000 lines. Nothing is credited before you confirm it."
                </FileField>
                <div class="buttons">
                    <button type="submit" class="button">"Check the file"</button>
                    <button type="submit" class="button button-quiet" name="choose_again" value="1">
                        "Choose its columns again"
                    </button>
                </div>
            </form>
            <h2>"Statements"</h2>
            {listed(&statements)}
        </Page>
    }
}

#[component]
fn Columns(file: KeptBankFile, form: FormState) -> impl IntoView {
    let KeptBankFile { id, names, rows, suggested } = file;
    let choice = |label, name, chosen| select(label, name, &names, chosen, false);
    let bank_id = choice("Bank ID", "bank_id", suggested.bank_id);
    let reference = choice("Reference", "reference", suggested.reference);
    let amount = choice("Amount, or money in", "amount", suggested.amount);
    let optional = |label, name, chosen| select(label, name, &names, chosen, true);
    let debit = optional("Money out", "debit", suggested.debit);
    let currency = optional("Currency", "currency", suggested.currency);
    let payer = optional("Payer", "payer", suggested.payer);
    let purpose = optional("Purpose", "purpose", suggested.purpose);
    let paid_on = optional("Paid on", "paid_on", suggested.paid_on);
    view! {
        <h2>"Columns"</h2>
        <p>
            "Check which column is which. The file is stored for an hour, so you don't need to send \
             it again. If money in and money out have columns of their own, choose both. Your \
             choice applies to all files with this header."
        </p>
        {sample(&names, &rows)}
        <PostForm form>
            <input type="hidden" name="file" value=id.to_string()/>
            <div class="groups">
                {bank_id}
                {reference}
                {amount}
                {debit}
                {currency}
                {payer}
                {purpose}
                {paid_on}
            </div>
            <SubmitButton label="Save" form primary=true/>
        </PostForm>
    }
}

/// Renders the first rows of a file.
fn sample(names: &[String], rows: &[Vec<String>]) -> AnyView {
    let columns = names.iter().enumerate();
    let table = columns.fold(Table::plain(rows), |table, (place, name)| {
        table.titled("", name.clone(), move |row: &Vec<String>| {
            row.get(place).cloned().unwrap_or_default()
        })
    });
    table.in_region_or("First rows of the file", "The file has no rows below its header.")
}

/// Renders the choice of a column.
fn select(
    label: &'static str,
    name: &'static str,
    columns: &[String],
    chosen: Option<usize>,
    is_optional: bool,
) -> impl IntoView + use<> {
    let options = (columns.iter().enumerate())
        .map(|(place, column)| {
            let selected = chosen == Some(place);
            view! { <option value=place.to_string() selected=selected>{column.clone()}</option> }
        })
        .collect_view();
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <select id=name name=name required=!is_optional>
                // Without a suggestion, the browser mustn't choose the first column.
                {(is_optional || chosen.is_none()).then(|| {
                    let words = if is_optional { "None" } else { "Choose a column" };
                    view! { <option value="">{words}</option> }
                })}
                {options}
            </select>
        </div>
    }
}

#[component]
fn Report(selected: SelectedStatement, currency: String, form: FormState) -> impl IntoView {
    let SelectedStatement { report, confirmed, outcome, lines } = selected;
    let confirmed = confirmed.map(|decided| format!("Imported{}", by(&decided)));
    let StatementReport { statement, counts, credits, waiting } = report;
    let is_confirmed = statement.confirmed_at.is_some();
    let id = statement.id.to_string();
    let address = |outcome| address_of(statement.id, outcome);
    let outcomes = counts
        .iter()
        .map(|(of, _)| (address(Some(*of)), label(*of, is_confirmed), outcome == Some(*of)));
    let lists = [(address(None), "All lines", outcome.is_none())].into_iter().chain(outcomes);
    let next = next_link(&address(outcome), lines.next, "More lines");
    view! {
        <h2>{format!("Statement {id}")}</h2>
        {confirmed.map(|sentence| view! { <p>{sentence}</p> })}
        {unmatched_link(&statement, &counts)}
        <p role="status">{progress(&statement, &counts, waiting)}</p>
        {Table::narrow(&counts)
            .column("Outcome", |(outcome, _)| label(*outcome, is_confirmed))
            .amount("Lines", |(_, lines)| grouped(*lines))
            .in_region("Outcomes")}
        {tabs("Lines of the statement", lists)}
        {table(&lines.items, &currency, is_confirmed)}
        {next}
        {(!is_confirmed)
            .then(|| {
                let Some(effect) = effect(&counts, credits, &currency) else {
                    return view! { <p>"This file has nothing new to import."</p> }.into_any();
                };
                view! {
                    <p>{effect}</p>
                    <PostForm form>
                        <input type="hidden" name="statement" value=id/>
                        <StepUpField form/>
                        <SubmitButton label="Import" form primary=true/>
                    </PostForm>
                }
                .into_any()
            })}
    }
}

/// Returns what the import of a statement does. `None` if it does nothing, because all payments
/// are known.
fn effect(counts: &[(LineOutcome, i64)], credits: Option<Money>, currency: &str) -> Option<String> {
    let count = |outcome| counts.iter().find(|(of, _)| *of == outcome).map_or(0, |(_, n)| *n);
    let nothing = [LineOutcome::Known, LineOutcome::Debit];
    if counts.iter().all(|(outcome, _)| nothing.contains(outcome)) {
        return None;
    }
    let credited = count(LineOutcome::Credited);
    let mut sentences = Vec::new();
    if credited > 0 {
        let lines = counted(credited, "line");
        let total = credits.map_or("an amount that is too large".to_owned(), |credits| {
            format!("{} {currency}", credits.shown())
        });
        sentences.push(format!(
            "Import credits up to {lines}, {total} in total, to their applications at once. \
             Payments to your own applications become deposits that are assigned later."
        ));
    }
    if count(LineOutcome::Unmatched) > 0 {
        sentences.push("Unmatched lines become deposits that are assigned later.".to_owned());
    }
    if count(LineOutcome::Conflict) + count(LineOutcome::OtherCurrency) > 0 {
        let listed = "Lines that can't be credited are listed above until you mark them as done.";
        sentences.push(listed.to_owned());
    }
    sentences.push("You can't undo this.".to_owned());
    Some(sentences.join(" "))
}

/// Renders where staff assign the unmatched lines of a statement.
fn unmatched_link(statement: &BankStatement, counts: &[(LineOutcome, i64)]) -> impl IntoView {
    let (_, lines) = counts.iter().find(|(of, _)| *of == LineOutcome::Unmatched)?;
    let deposits = counted(*lines, "unmatched line");
    statement.done_at.map(|_| {
        let were = if *lines == 1 { "was" } else { "were" };
        view! {
            <p>
                {format!("{deposits} {were} stored as deposits. ")}
                <a href="/support/deposits">"Assign unmatched deposits"</a>
            </p>
        }
    })
}

fn progress(statement: &BankStatement, counts: &[(LineOutcome, i64)], waiting: i64) -> String {
    let all: i64 = counts.iter().map(|(_, lines)| lines).sum();
    match (statement.confirmed_at, statement.done_at) {
        (None, _) => "Nothing is credited yet. The table shows what would happen to the lines now."
            .to_owned(),
        (Some(_), None) => {
            let (done, all) = (grouped(all - waiting), grouped(all));
            format!("The lines are being processed: {done} of {all} are done.")
        }
        (Some(_), Some(_)) => "All lines are done.".to_owned(),
    }
}

fn table(lines: &[BankLineCase], currency: &str, is_confirmed: bool) -> AnyView {
    Table::wide(lines)
        .amount("Line", |case| case.line.line)
        .styled("key", "Bank ID", |case| {
            // Only payments that came in are stored as deposits.
            match case.line.outcome {
                LineOutcome::Debit | LineOutcome::OtherCurrency => {
                    case.line.bank_id.clone().into_any()
                }
                _ => deposit_link(&case.line.bank_id).into_any(),
            }
        })
        .column("Reference as written", |case| case.line.reference.clone())
        .column("Payer and purpose", |case| {
            details(case.line.payer.as_deref(), case.line.purpose.as_deref())
        })
        .money("Amount", currency, |case| amount(&case.line))
        .styled("figures", "Paid on", |case| case.line.paid_on.clone())
        .column("Outcome", move |case| {
            view! { {label(case.line.outcome, is_confirmed)} {closed_mark(case.account_closed)} }
        })
        .column("May be for", |case| {
            case.suggestions.iter().map(|one| view! { {application_link(*one)} " " }).collect_view()
        })
        .in_region_or("Lines", "There are no such lines.")
}

/// Formats the amount of a line, with its currency if it isn't the installation's.
fn amount(line: &BankStatementLine) -> String {
    match &line.currency {
        Some(currency) => format!("{} {currency}", line.amount.shown()),
        None => line.amount.shown(),
    }
}

/// Returns the label of an outcome. Nothing is credited before staff confirm the statement.
fn label(outcome: LineOutcome, is_confirmed: bool) -> &'static str {
    match outcome {
        LineOutcome::Credited if !is_confirmed => "Will be credited",
        _ => outcome.label(),
    }
}

/// Returns the address of a statement's lines with this outcome, or of all its lines.
fn address_of(statement: i64, outcome: Option<LineOutcome>) -> String {
    let outcome = outcome.map(|of| format!("&outcome={}", of.as_str())).unwrap_or_default();
    format!("{IMPORT_PATH}?statement={statement}{outcome}")
}

/// Renders the lines that couldn't be credited. Staff return to `page` after they marked one as
/// done.
fn open_lines(lines: &[OpenBankLine], currency: &str, page: &str) -> impl IntoView + use<> {
    let table = Table::wide(lines)
        .column("Statement and line", |open| {
            let href = format!("{IMPORT_PATH}?statement={}", open.statement_id);
            // One element, so that a narrow screen doesn't put its parts into two columns.
            view! { <a href=href>{format!("{}, line {}", open.statement_id, open.line.line)}</a> }
        })
        .styled("key", "Bank ID", |open| deposit_link(&open.line.bank_id))
        .column("Reference as written", |open| open.line.reference.clone())
        .column("Payer and purpose", |open| {
            details(open.line.payer.as_deref(), open.line.purpose.as_deref())
        })
        .money("Amount", currency, |open| amount(&open.line))
        .column("Outcome", |open| open.line.outcome.label())
        .column("Stored deposit", OpenBankLine::stored_deposit)
        .styled(BUTTONS, "Action", |open| {
            let (statement, line) = (open.statement_id, open.line.line);
            let about = format!("line {line} of statement {statement}");
            let subject = format!("{statement} {line}");
            confirm_button(DeskAct::MarkLine, &about, subject, page.to_owned())
        })
        .in_region("Lines that weren't credited");
    view! {
        <h2>"Lines that weren't credited"</h2>
        <p>
            "Compare each line with the stored deposit and with the bank. If a payment came in \
             another currency, send it back or credit what it is worth. Mark the line as done when \
             its money is where it belongs."
        </p>
        {table}
    }
}

fn listed(statements: &[BankStatement]) -> AnyView {
    Table::narrow(statements)
        .column("Statement", |statement| {
            let href = format!("{IMPORT_PATH}?statement={}", statement.id);
            view! { <a href=href>{statement.id}</a> }
        })
        .time("Sent (UTC)", |one| one.created_at)
        .time("Confirmed (UTC)", |one| one.confirmed_at)
        .time("Done (UTC)", |one| one.done_at)
        .in_region_or("Statements", "No statement was imported yet.")
}
