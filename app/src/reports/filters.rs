//! The form of the reports' filters, and the filters that are in use.

use domain::timestamp::DAY_MS;
use domain::{Category, KeyKind, MessageStatus, Reference, Timestamp};
use leptos::prelude::*;

use super::filter::Condition;
use crate::problem::{Cause, Problem};
use crate::reports::ReportFilter;
use crate::ui::{Choice, Field, FormState, SearchForm};

/// The ranges of days that a link chooses: its name, and how many days there are before today.
const RANGES: [(&str, i64); 3] = [("Today", 0), ("7 days", 6), ("30 days", 29)];

#[component]
pub fn Filters(
    applications: Vec<(Reference, Category)>,
    filter: ReportFilter,
    /// The day that it is, since 1970-01-01 UTC.
    today: i64,
    problem: Option<Problem>,
) -> impl IntoView {
    let applications =
        with_any(applications.into_iter().map(|(reference, category)| {
            (reference.to_string(), format!("{category} {reference}"))
        }));
    let statuses = with_any(MessageStatus::ALL.into_iter().map(both));
    let keys = with_any(KeyKind::ALL.into_iter().map(both));
    let cause = problem.as_ref().map(|problem| problem.cause.clone());
    let form = FormState::plain("filter-alert", problem);
    let (chips, ranges) = (chips(&filter), ranges(&filter, today));
    let field = move |label, name, kind, value: String| {
        filter_field(label, name, kind, value, (form, cause.as_ref()))
    };
    view! {
        <SearchForm path="/reports" label="Reports" button="Apply filters" with_clear=true form>
            <Choice
                label="Application"
                name="application"
                options=applications
                chosen=filter.application
            />
            <Choice label="Status" name="status" options=statuses chosen=filter.status/>
            <Choice label="Key" name="key" options=keys chosen=filter.key/>
            {field("Number", "number", "text", filter.number)}
            {field("From (UTC)", "from", "date", filter.from)}
            {field("To (UTC)", "to", "date", filter.to)}
            {field("Request id", "requestid", "text", filter.requestid)}
            {field("Transid", "transid", "text", filter.transid)}
            {field("Batchid", "batchid", "text", filter.batchid)}
            {(!filter.by.is_empty())
                .then(|| view! { <input type="hidden" name="by" value=filter.by/> })}
        </SearchForm>
        <div class="in-use">{ranges} {chips}</div>
    }
}

/// A word as the value and the word of a choice.
fn both(word: impl ToString) -> (String, String) {
    (word.to_string(), word.to_string())
}

/// Choices after the choice that filters nothing.
fn with_any(choices: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let any = (String::new(), "any".to_owned());
    std::iter::once(any).chain(choices).collect()
}

/// A field, with the sentence about its fault below it.
fn filter_field(
    label: &'static str,
    name: &'static str,
    kind: &'static str,
    value: String,
    (form, cause): (FormState, Option<&Cause>),
) -> AnyView {
    match cause.filter(|cause| cause.field() == Some(name)) {
        Some(cause) => {
            let hint = cause.sentence().into_owned();
            view! { <Field label name kind value hint form/> }.into_any()
        }
        None => view! { <Field label name kind value form/> }.into_any(),
    }
}

/// Links to the page with the last days alone.
fn ranges(filter: &ReportFilter, today: i64) -> impl IntoView + use<> {
    let links = RANGES.map(|(name, days_before)| {
        let from = Timestamp::from_unix_ms((today - days_before) * DAY_MS).to_date();
        let is_chosen = filter.from == from && filter.to.is_empty();
        let href = filter.page_with(|filter| {
            filter.from = from;
            filter.to = String::new();
        });
        view! {
            <li>
                <a href=href aria-current=is_chosen.then_some("true")>
                    {name}
                </a>
            </li>
        }
    });
    view! {
        <nav class="tabs" aria-label="Days">
            <ul>{Vec::from(links)}</ul>
        </nav>
    }
}

/// The filters that are in use, each a link to the page without it.
fn chips(filter: &ReportFilter) -> Option<impl IntoView + use<>> {
    let chips: Vec<_> = filter
        .conditions()
        .map(|Condition { name, label, text }| {
            let words = format!("{label}: {text}");
            view! {
                <li>
                    <a class="chip" href=filter.page_without(name)>
                        <span class="visually-hidden">"Remove filter "</span>
                        <span class="chip-text">{words}</span>
                        <span aria-hidden="true">"×"</span>
                    </a>
                </li>
            }
        })
        .collect();
    (!chips.is_empty()).then(|| {
        view! {
            <ul class="chips" aria-label="Filters in use">
                {chips}
            </ul>
        }
    })
}
