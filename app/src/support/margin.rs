//! `/support/margin`: compares what customers pay with what carriers charge.

use domain::Timestamp;
use domain::records::{MarginFigures, MarginReport, MarginRow};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{Downloads, Field, FormState, Loaded, Page, SearchForm, Table, parameter};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::staff,
    crate::problem::{Cause, Filter},
};

/// The path of the CSV file with the figures.
pub const MARGIN_CSV_PATH: &str = "/support/margin.csv";

/// The number of days in a report by default. The report ends yesterday.
#[cfg(feature = "ssr")]
const DAYS: i64 = 30;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MarginView {
    /// The report, or why the chosen days are invalid.
    report: Result<MarginReport, Problem>,
    from: String,
    to: String,
}

/// Loads the margins of some days for staff.
#[server(prefix = "/fn", endpoint = "margin", input = GetUrl)]
pub async fn load_margin(
    #[server(default)] from: Option<String>,
    #[server(default)] to: Option<String>,
) -> Result<MarginView, Problem> {
    let (current, _) = staff().await?;
    let service = current.service();
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let (from, to) = (given(from), given(to));
    let days = days(service.clock().now(), from.as_deref(), to.as_deref());
    let report = match days {
        Ok(days) => service.messages().margins(days).await.map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    let shown = |text: Option<String>, day: Option<i64>| {
        text.or_else(|| day.map(|day| Timestamp::of_day(day).to_date()))
    };
    let known = report.as_ref().ok();
    Ok(MarginView {
        from: shown(from, known.map(|report| report.first)).unwrap_or_default(),
        to: shown(to, known.map(|report| report.last)).unwrap_or_default(),
        report,
    })
}

/// Returns the first and the last day of a report.
///
/// # Errors
/// If a text isn't a day.
#[cfg(feature = "ssr")]
pub fn days(now: Timestamp, from: Option<&str>, to: Option<&str>) -> Result<(i64, i64), Problem> {
    let day = |text: Option<&str>, filter| match text {
        None => Ok(None),
        Some(text) => match Timestamp::parse_typed(text) {
            Some(time) => Ok(Some(time.day())),
            None => Err(Problem::from(Cause::Filter(filter))),
        },
    };
    let (first, last) = (day(from, Filter::From)?, day(to, Filter::To)?);
    let last = last.unwrap_or(now.day() - 1);
    Ok((first.unwrap_or(last - DAYS + 1), last))
}

#[component]
pub fn MarginPage() -> impl IntoView {
    let (from, to) = (parameter("from"), parameter("to"));
    let data = PageData::new(move || LoadMargin { from: from.get(), to: to.get() });
    view! { <Loaded data render=|data| view! { <Contents data/> }/> }
}

#[component]
fn Contents(data: MarginView) -> impl IntoView {
    let MarginView { report, from, to } = data;
    let address = format!("{MARGIN_CSV_PATH}?from={from}&to={to}");
    let (figures, problem) = match report {
        Ok(report) => (Some(figures(&report, address)), None),
        Err(problem) => (None, Some(problem)),
    };
    let form = FormState::plain("margin-alert", problem);
    view! {
        <Page title="Margin">
            <p class="lead">
                "This page compares what customers pay for pages with what carriers charge for \
                 segments. A page of 160 characters can be three segments: in a script that GSM-7 \
                 doesn't have, a segment holds 67 characters."
            </p>
            <SearchForm path="/support/margin" label="Days" button="Show" form>
                <Field label="From (UTC)" name="from" kind="date" value=from form/>
                <Field label="To (UTC)" name="to" kind="date" value=to form/>
            </SearchForm>
            {figures}
        </Page>
    }
}

fn figures(report: &MarginReport, address: String) -> impl IntoView + use<> {
    let currency = &report.currency;
    let date = |day: i64| Timestamp::of_day(day).to_date();
    let counted = match (report.counted, report.final_until) {
        (None, _) => "No day was counted yet: a day is counted once it is over.".to_owned(),
        (Some(last), None) => format!(
            "Counted until {}. All days are counted again once every message is final.",
            date(last)
        ),
        (Some(last), Some(until)) => format!(
            "Counted until {}. Days after {} are counted again once all of their messages are \
             final, after two days at the latest.",
            date(last),
            date(until)
        ),
    };
    let total = [MarginRow { name: "All".to_owned(), figures: report.total }];
    let days: Vec<_> = report.days.iter().map(with_date).collect();
    let unpriced = report.total.unpriced;
    let unpriced = (unpriced > 0).then(|| {
        view! {
            <p class="notice">
                {format!(
                    "{unpriced} segments went by routes without a cost in the settings: the money \
                     out is higher than shown. Set cost for each [[route]].",
                )}
            </p>
        }
    });
    view! {
        <p>{counted}</p>
        {unpriced}
        {listed("What", &total, currency).in_region("Sum of all days")}
        <p><Downloads href=address/></p>
        <h2>"By prefix"</h2>
        {listed("Numbers", &report.rules, currency)
            .in_region_or("Margin by prefix", "Nothing was sent on these days.")}
        <h2>"By application"</h2>
        {listed("Application", &report.applications, currency)
            .in_region_or("Margin by application", "Nothing was sent on these days.")}
        <h2>"By day"</h2>
        {listed("Day", &days, currency)
            .in_region_or("Margin by day", "Nothing was sent on these days.")}
    }
}

/// Returns a row that is named by its date instead of its number.
fn with_date(row: &MarginRow) -> MarginRow {
    let day = row.name.parse().map(Timestamp::of_day);
    MarginRow {
        name: day.map_or_else(|_| row.name.clone(), Timestamp::to_date),
        figures: row.figures,
    }
}

fn listed<'r>(
    heading: &'static str,
    rows: &'r [MarginRow],
    currency: &str,
) -> Table<'r, MarginRow> {
    Table::wide(rows)
        .styled("key", heading, |row| row.name.clone())
        .amount("Messages", |row| row.figures.messages)
        .amount("Billed pages", |row| row.figures.pages)
        .amount("Segments", |row| row.figures.segments)
        .amount("Segments per page", |row| row.figures.ratio())
        .money("Money in", currency, |row| row.figures.charged.shown())
        .money("Money out", currency, |row| row.figures.cost.shown())
        .money("Margin", currency, |row| MarginFigures::margin(&row.figures).shown())
}
