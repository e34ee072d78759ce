//! The form with the filters of the reports page, and the filters in use.

use domain::{KeyKind, MessageStatus, Month, Reference, Timestamp};
use leptos::prelude::*;

use super::filter::Condition;
use crate::problem::Problem;
use crate::reports::ReportFilter;
use crate::ui::{Choice, Field, FormState, SearchForm, in_zone, tabs};

#[component]
pub fn Filters(
    applications: Vec<(Reference, String)>,
    filter: ReportFilter,
    /// Today's date in the page's time zone, as days since 1970-01-01.
    today: i64,
    problem: Option<Problem>,
) -> impl IntoView {
    let applications = with_any(
        applications
            .into_iter()
            .map(|(reference, name)| (reference.to_string(), format!("{name} ({reference})"))),
    );
    let statuses = with_any(MessageStatus::ALL.into_iter().map(both));
    let keys = with_any(KeyKind::ALL.into_iter().map(both));
    let form = FormState::plain("filter-alert", problem);
    let (chips, ranges) = (chips(&filter), ranges(&filter, today));
    let hour = filter.hour().to_owned();
    // A field that the problem is about must be visible. The links above the form show the days.
    let is_refused = form.problem.with_untracked(Option::is_some);
    let mut conditions = filter.conditions();
    let is_open =
        is_refused || conditions.any(|of| !["number", "from", "to", "hour"].contains(&of.name));
    drop(conditions);
    let field = move |label, name, kind, value: String| {
        view! { <Field label name kind value form/> }
    };
    let more = view! {
        <details open=is_open>
            <summary>"More filters"</summary>
            <div class="filters">
                <Choice label="Status" name="status" options=statuses chosen=filter.status/>
                <Choice
                    label="Application"
                    name="application"
                    options=applications
                    chosen=filter.application
                />
                <Choice label="Key" name="key" options=keys chosen=filter.key/>
                {field(in_zone("From (UTC)"), "from", "date", filter.from)}
                {field(in_zone("To (UTC)"), "to", "date", filter.to)}
                {field("Request ID", "requestid", "text", filter.requestid)}
                {field("Transaction ID", "transid", "text", filter.transid)}
                {field("Batch ID", "batchid", "text", filter.batchid)}
            </div>
        </details>
    };
    view! {
        <div class="in-use">{ranges} {chips}</div>
        <SearchForm
            path="/reports"
            label="Reports"
            button="Apply filters"
            with_clear=true
            more=Some(more.into_any())
            form
        >
            {field("Number", "number", "text", filter.number)}
            {kept("hour", hour)}
            {kept("by", filter.by)}
            {kept("columns", filter.columns)}
        </SearchForm>
    }
}

/// Returns a hidden field for a part of the address that isn't a filter. Applying filters then
/// keeps that part.
fn kept(name: &'static str, value: String) -> Option<impl IntoView> {
    (!value.is_empty()).then(|| view! { <input type="hidden" name=name value=value/> })
}

/// Returns an option whose value and label are the same.
fn both(word: impl ToString) -> (String, String) {
    (word.to_string(), word.to_string())
}

/// Puts the option that filters nothing before the others.
fn with_any(choices: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let any = (String::new(), "any".to_owned());
    std::iter::once(any).chain(choices).collect()
}

/// Returns the ranges of days that have a link. Each has a name, a first day and a last day. An
/// empty last day means today.
fn named_ranges(today: i64) -> [(&'static str, String, String); 5] {
    let date = |day| Timestamp::of_day(day).to_date();
    let month = Month::of(Timestamp::of_day(today));
    let end_of_last_month = month.start().plus_ms(-1).to_date();
    let until_today = |name, first| (name, first, String::new());
    [
        until_today("Today", date(today)),
        until_today("7 days", date(today - 6)),
        until_today("30 days", date(today - 29)),
        until_today("This month", month.start().to_date()),
        ("Last month", month.previous().start().to_date(), end_of_last_month),
    ]
}

/// Renders a link for each of the [`named_ranges`].
fn ranges(filter: &ReportFilter, today: i64) -> impl IntoView + use<> {
    let links = named_ranges(today).map(|(name, from, to)| {
        let is_chosen = filter.from == from && filter.to == to && filter.hour.is_empty();
        let href = filter.page_with(|filter| {
            filter.from = from;
            filter.to = to;
            filter.hour.clear();
        });
        (href, name, is_chosen)
    });
    tabs("Days", links)
}

/// Renders the filters in use. Each is a link to the page without that filter.
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
        view! { <ul class="chips" aria-label="Filters in use">{chips}</ul> }
    })
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::named_ranges;

    #[test]
    fn ranges_are_of_days_and_of_months_as_the_calendar_has_them() {
        let today = Timestamp::parse_typed("2026-03-01").unwrap().day();
        let ranges = named_ranges(today).map(|(name, from, to)| format!("{name} {from} {to}"));
        assert_eq!(
            ranges,
            [
                "Today 2026-03-01 ",
                "7 days 2026-02-23 ",
                "30 days 2026-01-31 ",
                "This month 2026-03-01 ",
                "Last month 2026-02-01 2026-02-28",
            ]
        );
    }
}
