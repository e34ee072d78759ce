//! `/support/audit`: the audit log, with filters.

use std::iter;

use domain::audit_action::{ACTIONS, readable, sentence};
use domain::records::Paged;
use domain::support::AuditRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::links::{deposit_link, named_link};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    Choice, Downloads, Field, FormState, Loaded, Page, SearchForm, Table, address, next_link, query,
};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::staff,
    crate::problem::{Cause, Filter},
    domain::timestamp::DAY_MS,
    domain::{Refusal, Timestamp},
    service::AuditFilter,
};

/// The path of the CSV file with the filtered entries.
pub const AUDIT_CSV_PATH: &str = "/support/audit.csv";
/// The number of entries on a page.
#[cfg(feature = "ssr")]
const ENTRIES: i64 = 50;

query! {
    /// The filters as staff typed them, and as the page's address holds them. An empty one filters
    /// nothing.
    pub struct AuditAddress {
        pub who,
        pub subject,
        pub action,
        /// The first day, in UTC.
        pub from,
        /// The last day, in UTC.
        pub to,
        pub cursor,
    }
}

impl AuditAddress {
    /// Returns an address with these filters, and without a cursor.
    fn address(&self, path: &str) -> String {
        address(
            path,
            [
                ("who", self.who.as_str()),
                ("subject", &self.subject),
                ("action", &self.action),
                ("from", &self.from),
                ("to", &self.to),
            ],
        )
    }

    /// Converts the filters to those of the service.
    ///
    /// # Errors
    /// [`Cause::Filter`] if a day is invalid, or if the first day is after the last.
    #[cfg(feature = "ssr")]
    pub fn parse(&self, limit: i64) -> Result<AuditFilter, Problem> {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let from = midnight(&self.from, Filter::From)?;
        let to = midnight(&self.to, Filter::To)?.map(|day| day.plus_ms(DAY_MS));
        if from.zip(to).is_some_and(|(from, to)| from >= to) {
            return Err(Cause::Filter(Filter::Order).into());
        }
        Ok(AuditFilter {
            who: given(&self.who),
            subject: given(&self.subject),
            action: given(&self.action),
            from,
            to,
            limit,
            cursor: given(&self.cursor),
        })
    }
}

/// Returns the time at which a day begins. Returns `None` if `day` is empty.
#[cfg(feature = "ssr")]
fn midnight(day: &str, filter: Filter) -> Result<Option<Timestamp>, Problem> {
    if day.is_empty() {
        return Ok(None);
    }
    match Timestamp::parse(&format!("{day}T00:00:00Z")) {
        Some(at) => Ok(Some(at)),
        None => Err(Cause::Filter(filter).into()),
    }
}

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditView {
    filter: AuditAddress,
    /// The entries that match the filters, or why the filters are invalid.
    found: Result<Paged<AuditRecord>, Problem>,
    currency: String,
}

/// Loads entries of the audit log for staff, newest first.
#[server(prefix = "/fn", endpoint = "support-audit", input = GetUrl)]
pub async fn load_audit(#[server(default)] filter: AuditAddress) -> Result<AuditView, Problem> {
    let (current, _) = staff().await?;
    let found = match filter.parse(ENTRIES) {
        Ok(wanted) => current.service().support().audit(&wanted).await.map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    match found {
        Err(problem) if !is_about_filters(&problem) => Err(problem),
        found => Ok(AuditView { filter, found, currency: current.site().currency.clone() }),
    }
}

/// Whether a problem is about the filters. It is then shown next to them, so that staff can correct
/// it.
#[cfg(feature = "ssr")]
fn is_about_filters(problem: &Problem) -> bool {
    matches!(problem.cause, Cause::Filter(_) | Cause::Refused(Refusal::InvalidCursor))
}

#[component]
pub fn AuditPage() -> impl IntoView {
    let query = use_query_map();
    let filter = Memo::new(move |_| query.with(|query| AuditAddress::read(|name| query.get(name))));
    let data = PageData::new(move || LoadAudit { filter: filter.get() });
    view! { <Loaded data render=|data| view! { <Audit data/> }/> }
}

#[component]
fn Audit(data: AuditView) -> impl IntoView {
    let AuditView { filter, found, currency } = data;
    let problem = found.as_ref().err().cloned();
    let entries = found.ok().map(|page| {
        let download = filter.address(AUDIT_CSV_PATH);
        view! {
            {audit_table(&page.items, &currency)}
            {next_link(&filter.address("/support/audit"), page.next, "Older entries")}
            <p><Downloads href=download/></p>
        }
    });
    view! {
        <Page title="Audit">
            <p class="lead">
                "This log shows what staff, customers and the command line changed. Entries are \
                 never changed or deleted."
            </p>
            <AuditFilters filter problem/>
            {entries}
        </Page>
    }
}

#[component]
fn AuditFilters(filter: AuditAddress, problem: Option<Problem>) -> impl IntoView {
    let form = FormState::plain("filter-alert", problem);
    let all = (String::new(), "All actions".to_owned());
    let actions =
        ACTIONS.iter().map(|(code, sentence)| ((*code).to_owned(), (*sentence).to_owned()));
    let options = iter::once(all).chain(actions).collect();
    view! {
        <SearchForm path="/support/audit" label="Audit" button="Apply filters" with_clear=true form>
            <Field
                label="Who"
                name="who"
                value=filter.who
                hint="A whole email, “command line” or “system”."
                form
            />
            <Field
                label="Subject"
                name="subject"
                value=filter.subject
                hint="An email, a transaction ID, a bank ID, a carrier, or a reference: also finds \
                      its messages, batches and deposits."
                form
            />
            <Choice label="Action" name="action" options chosen=filter.action/>
            <Field label="From (UTC)" name="from" kind="date" value=filter.from form/>
            <Field label="To (UTC)" name="to" kind="date" value=filter.to form/>
        </SearchForm>
    }
}

/// Renders entries of the audit log as a table.
pub fn audit_table(entries: &[AuditRecord], currency: &str) -> AnyView {
    Table::wide(entries)
        .time("Time (UTC)", |entry| entry.at)
        .column("Who", |entry| {
            let from = entry.address.clone();
            view! {
                {named_link(&entry.who)}
                {from.map(|from| view! { <div class="fine">{format!("from {from}")}</div> })}
            }
        })
        .column("Action", |entry| {
            sentence(&entry.action).map_or_else(|| entry.action.clone(), str::to_owned)
        })
        .styled("url", "Subject", |entry| {
            if entry.action.starts_with("deposit.") {
                return deposit_link(&entry.subject).into_any();
            }
            named_link(&entry.subject)
        })
        .styled("url", "Change", |entry| change(entry, currency))
        .in_region_or("Audit", "There is no such entry.")
}

/// Renders the values before and after a change, and its details.
fn change(entry: &AuditRecord, currency: &str) -> impl IntoView + use<> {
    let value = |text: &Option<String>| Some(readable(&entry.action, text.as_deref()?, currency));
    let values = match (value(&entry.before), value(&entry.after)) {
        (Some(before), Some(after)) => Some(format!("{before} → {after}")),
        (before, after) => before.or(after),
    };
    let detail = value(&entry.detail);
    view! { {values} {detail.map(|detail| view! { <div class="fine">{detail}</div> })} }
}
