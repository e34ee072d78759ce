//! `/support/import`: imports bank statements from files.

use domain::records::{BankStatement, BankStatementLine, LineOutcome, StatementReport};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{FormState, Loaded, Page, PostForm, StepUpField, SubmitButton, Table, parameter};
#[cfg(feature = "ssr")]
use {
    super::desk::APPROVALS_PATH,
    crate::portal_request::{staff, step_up},
    crate::problem::Cause,
    domain::approval::StaffAct,
    service::{Actor, BankColumns},
};

/// The path of the page.
pub const IMPORT_PATH: &str = "/support/import";
/// The path that the page's form sends a file to.
pub const IMPORT_FILE_PATH: &str = "/support/import/file";
/// The session entry with the reason why a file was refused.
pub const REFUSED_FILE: &str = "refused-file";
/// The session entry that holds an [`UnknownColumns`] as JSON.
pub const UNKNOWN_COLUMNS: &str = "unknown-columns";

/// The header of a file whose columns staff haven't chosen yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnknownColumns {
    /// The header line.
    pub header: String,
    pub names: Vec<String>,
}

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportView {
    /// Why the file that was just sent was refused.
    refused: Option<String>,
    /// The columns of the file that was just sent, if staff have to choose them.
    columns: Option<UnknownColumns>,
    /// The report on the selected statement.
    report: Option<StatementReport>,
    statements: Vec<BankStatement>,
    currency: String,
}

/// Loads the bank statements for staff, and the report on the selected one.
#[server(prefix = "/fn", endpoint = "support-import", input = GetUrl)]
pub async fn load_import(#[server(default)] statement: Option<i64>) -> Result<ImportView, Problem> {
    let (current, _) = staff().await?;
    let service = current.service();
    let (mut refused, mut columns) = (None, None);
    if crate::portal_request::is_shown() {
        refused = current.take_text(REFUSED_FILE).await?;
        columns = current.take_text(UNKNOWN_COLUMNS).await?;
    }
    let report = match statement {
        Some(id) => Some(service.money().statement_report(id).await?.ok_or(Cause::NotFound)?),
        None => None,
    };
    Ok(ImportView {
        refused,
        columns: columns.and_then(|text| serde_json::from_str(&text).ok()),
        report,
        statements: service.money().bank_statements().await?,
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

/// Stores which columns are which, for all files with this header.
#[server(prefix = "/fn", endpoint = "choose-columns")]
pub async fn choose_columns(
    header: String,
    bank_id: usize,
    reference: usize,
    amount: usize,
    #[server(default)] currency: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let columns = BankColumns { bank_id, reference, amount, currency: currency.parse().ok() };
    let actor = Actor::Account(account.id);
    let money = current.service().money();
    let chosen = money.choose_columns(&actor, &header, columns);
    chosen.await?;
    leptos_axum::redirect(IMPORT_PATH);
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
    let statement = parameter("statement");
    let data = PageData::new(move || {
        forms.confirm.accepted.track();
        LoadImport { statement: statement.get().and_then(|id| id.parse().ok()) }
    });
    view! { <Loaded data render=move |data| view! { <Import data forms/> }/> }
}

#[component]
fn Import(data: ImportView, forms: Forms) -> impl IntoView {
    let ImportView { refused, columns, report, statements, currency } = data;
    view! {
        <Page title="Import a bank statement" back=("/support/deposits", "Deposits")>
            {refused.map(|sentence| view! { <p class="alert" role="alert">{sentence}</p> })}
            {columns.map(|columns| view! { <Columns columns form=forms.columns/> })}
            {report.map(|report| view! { <Report report currency form=forms.confirm/> })}
            <form class="form" method="post" action=IMPORT_FILE_PATH enctype="multipart/form-data">
                <div class="field">
                    <label for="file">"CSV file"</label>
                    <input id="file" type="file" name="file" accept=".csv,.txt,text/csv" required/>
                    <p class="hint">
                        "At most 64 MiB and 1,000,000 lines. Nothing is credited before you \
                         confirm it."
                    </p>
                </div>
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
fn Columns(columns: UnknownColumns, form: FormState) -> impl IntoView {
    let UnknownColumns { header, names } = columns;
    let bank_id = select("Bank id", "bank_id", &names, false);
    let reference = select("Reference", "reference", &names, false);
    let amount = select("Amount", "amount", &names, false);
    let currency = select("Currency", "currency", &names, true);
    view! {
        <h2>"Columns"</h2>
        <p>
            "We don't know the columns of this file. Choose them here, and then send the file \
             again. Your choice applies to all files with this header."
        </p>
        <PostForm form>
            <input type="hidden" name="header" value=header/>
            {bank_id}
            {reference}
            {amount}
            {currency}
            <SubmitButton label="Save" form/>
        </PostForm>
    }
}

/// Renders the choice of a column.
fn select(
    label: &'static str,
    name: &'static str,
    columns: &[String],
    is_optional: bool,
) -> impl IntoView + use<> {
    let options = (columns.iter().enumerate())
        .map(|(place, column)| view! { <option value=place.to_string()>{column.clone()}</option> })
        .collect_view();
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <select id=name name=name>
                {is_optional.then(|| view! { <option value="">"None"</option> })}
                {options}
            </select>
        </div>
    }
}

#[component]
fn Report(report: StatementReport, currency: String, form: FormState) -> impl IntoView {
    let StatementReport { statement, counts, first } = report;
    let id = statement.id.to_string();
    view! {
        <h2>{format!("Statement {id}")}</h2>
        <p>{progress(&statement)}</p>
        {Table::narrow(&counts)
            .column("Outcome", |(outcome, _)| title(*outcome))
            .amount("Lines", |(_, lines)| *lines)
            .in_region("Outcomes")}
        {lines(&first, &currency)}
        {statement
            .confirmed_at
            .is_none()
            .then(|| {
                view! {
                    <PostForm form>
                        <input type="hidden" name="statement" value=id/>
                        <StepUpField form/>
                        <SubmitButton label="Import" form primary=true/>
                    </PostForm>
                }
            })}
    }
}

const fn progress(statement: &BankStatement) -> &'static str {
    match (statement.confirmed_at, statement.done_at) {
        (None, _) => "Nothing is credited yet. The table shows what would happen to the lines now.",
        (Some(_), None) => "The lines are being credited. Reload the page to see the progress.",
        (Some(_), Some(_)) => "All lines are done.",
    }
}

const fn title(outcome: LineOutcome) -> &'static str {
    match outcome {
        LineOutcome::Credited => "Credited",
        LineOutcome::Unmatched => "Unmatched",
        LineOutcome::Known => "Known already",
        LineOutcome::Conflict => "Conflict: the bank id is known with other data",
        LineOutcome::Refused => "Refused: the balance would be too large",
        LineOutcome::Debit => "Skipped: no money came in",
        LineOutcome::OtherCurrency => "Skipped: another currency",
    }
}

fn lines(lines: &[BankStatementLine], currency: &str) -> AnyView {
    Table::wide(lines)
        .amount("Line", |line| line.line)
        .styled("key", "Bank id", |line| line.bank_id.clone())
        .column("Reference as written", |line| line.reference.clone())
        .money("Amount", currency, |line| line.amount.shown())
        .column("Outcome", |line| title(line.outcome))
        .in_region("First lines")
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
