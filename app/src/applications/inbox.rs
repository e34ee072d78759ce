//! `/applications/{reference}/inbound`: the messages that handsets sent to the application.

use domain::records::{ApplicationRecord, InboundNumberRecord, Paged};
use domain::{InboundId, InboundRecord, Reference};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::frame::ApplicationFrame;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::ReportFilter;
use crate::ui::{Downloads, Field, FormState, Loaded, SearchForm, Table, in_path, in_zone, pager};
#[cfg(feature = "ssr")]
use {
    super::application_view::owned,
    crate::portal_request::signed_in,
    crate::problem::Filter,
    crate::reports::given,
    domain::{Number, Zone},
    service::{InboundFilter, Service},
};

/// The path of the CSV file with the filtered messages.
pub const INBOUND_CSV_PATH: &str = "/applications/{reference}/inbound.csv";
/// The path of the server-sent events. Each is the ID of the newest message, or null.
pub const INBOUND_EVENTS_PATH: &str = "/applications/{reference}/inbound/events";
/// The number of messages on a page.
#[cfg(feature = "ssr")]
const MESSAGES: i64 = 50;

/// The filters as the user typed them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InboxFilter {
    /// The number that the messages were sent to.
    recipient: String,
    /// A part of the text.
    text: String,
    /// Only the filters `number`, `from`, `to` and `cursor` apply.
    of_reports: ReportFilter,
}

impl InboxFilter {
    /// Reads the filters. `parameter` returns the value of the parameter with a name.
    pub fn read(parameter: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name| parameter(name).unwrap_or_default().trim().to_owned();
        Self {
            recipient: text("recipient"),
            text: text("text"),
            of_reports: ReportFilter::read(parameter),
        }
    }

    /// Returns the address of a page of messages that match the filters.
    fn address(&self, path: &str, more: &[(&str, &str)]) -> String {
        let filter = &self.of_reports;
        let shown = ReportFilter {
            number: filter.number.clone(),
            from: filter.from.clone(),
            to: filter.to.clone(),
            ..ReportFilter::default()
        };
        let own = [("recipient", self.recipient.as_str()), ("text", &self.text)];
        let own = own.into_iter().filter(|(_, value)| !value.is_empty());
        shown.address(path, &own.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    fn is_empty(&self) -> bool {
        self.recipient.is_empty() && self.text.is_empty() && self.of_reports.is_empty()
    }
}

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InboxView {
    application: ApplicationRecord,
    numbers: Vec<InboundNumberRecord>,
    filter: InboxFilter,
    /// The newest message of all.
    newest: Option<InboundId>,
    /// The messages that match the filters, or why they can't be shown.
    found: Result<Paged<InboundRecord>, Problem>,
}

/// Loads the messages that handsets sent to one of the account's applications.
#[server(prefix = "/fn", endpoint = "inbound", input = GetUrl)]
pub async fn load_inbox(
    reference: String,
    #[server(default)] filter: InboxFilter,
) -> Result<InboxView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let reference = application.reference;
    let numbers = service.messages().account_numbers(account.id, reference).await?;
    let newest = newest_inbound(service, account.id, reference).await?;
    let zone = current.zone(current.browser_zone()).await;
    let found = async {
        let wanted = inbound_filter(&filter, MESSAGES, &zone)?;
        Ok(service.messages().account_inbound(account.id, reference, &wanted).await?)
    };
    Ok(InboxView { application, numbers, newest, found: found.await, filter })
}

/// Converts the page's filters to those of the service. Days are in the time zone `zone`.
///
/// # Errors
/// If a filter's value is invalid.
#[cfg(feature = "ssr")]
pub fn inbound_filter(
    filter: &InboxFilter,
    limit: i64,
    zone: &Zone,
) -> Result<InboundFilter, Problem> {
    let (_, parsed) = filter.of_reports.parse(limit, zone)?;
    let number = |text: &str| Number::parse_typed(text).ok();
    Ok(InboundFilter {
        number: number(&filter.of_reports.number),
        recipient: given(&filter.recipient, Filter::Recipient, number)?,
        text: filter.text.clone(),
        from: parsed.from,
        to: parsed.to,
        key: None,
        limit,
        cursor: parsed.cursor,
    })
}

/// Returns the newest message of one of an account's applications.
///
/// # Errors
/// `NoSuchApplication`.
#[cfg(feature = "ssr")]
pub async fn newest_inbound(
    service: &Service,
    account_id: i64,
    reference: Reference,
) -> service::Result<Option<InboundId>> {
    let first = InboundFilter { limit: 1, ..InboundFilter::default() };
    let page = service.messages().account_inbound(account_id, reference, &first).await?;
    Ok(page.items.first().map(|message| message.inboundid))
}

#[component]
pub fn InboxPage() -> impl IntoView {
    let reference = in_path("reference");
    let query = use_query_map();
    let filter = Memo::new(move |_| query.with(|query| InboxFilter::read(|name| query.get(name))));
    let data =
        PageData::new(move || LoadInbox { reference: reference.get(), filter: filter.get() });
    view! { <Loaded data render=|data| view! { <Inbox data/> }/> }
}

#[component]
fn Inbox(data: InboxView) -> impl IntoView {
    let InboxView { application, numbers, filter, newest, found } = data;
    let problem = found.as_ref().err().cloned();
    #[cfg(feature = "ssr")]
    if let Some(problem) = &problem {
        crate::portal_request::set_status(&problem.cause);
    }
    let reference = application.reference;
    let found = RwSignal::new(found.ok());
    #[cfg(feature = "hydrate")]
    follow_newest(reference, &filter, newest, found);
    #[cfg(not(feature = "hydrate"))]
    let _ = newest;
    let form = FormState::plain("inbound-alert", problem);
    let path = format!("/applications/{reference}/inbound");
    let list = {
        let filter = filter.clone();
        move || found.get().map(|found| listed(&found, reference, &filter))
    };
    view! {
        <ApplicationFrame application at="Inbox">
            <p>
                "The messages that people sent to your numbers, newest first. Programs read them \
                 with the "
                <a href="/docs#inbound" rel="external">"API"</a> " or get them as events."
            </p>
            <p>{named(&numbers)}</p>
            <SearchForm path label="Inbox" button="Apply filters" with_clear=true form>
                <Field label="From number" name="number" value=filter.of_reports.number form/>
                <Field label="To number" name="recipient" value=filter.recipient form/>
                <Field label="Text" name="text" value=filter.text form/>
                <Field
                    label=in_zone("From (UTC)")
                    name="from"
                    kind="date"
                    value=filter.of_reports.from
                    form
                />
                <Field label=in_zone("To (UTC)") name="to" kind="date" value=filter.of_reports.to form/>
            </SearchForm>
            <div id="found">{list}</div>
        </ApplicationFrame>
    }
}

/// Names the numbers of the application, with their keywords.
fn named(numbers: &[InboundNumberRecord]) -> String {
    let named = numbers.iter().map(|number| match &number.keyword {
        Some(keyword) => format!("{} with the keyword {keyword}", number.number),
        None => number.number.clone(),
    });
    match named.collect::<Vec<_>>().as_slice() {
        [] => "This application has no number yet. Ask support for one.".to_owned(),
        named => format!("Your numbers: {}.", named.join(", ")),
    }
}

/// Loads the first page again whenever a message arrives.
#[cfg(feature = "hydrate")]
fn follow_newest(
    reference: Reference,
    filter: &InboxFilter,
    newest: Option<InboundId>,
    found: RwSignal<Option<Paged<InboundRecord>>>,
) {
    if !filter.of_reports.cursor.is_empty() || found.with_untracked(Option::is_none) {
        return;
    }
    let address = INBOUND_EVENTS_PATH.replace("{reference}", reference.as_str());
    let (filter, known) = (filter.clone(), StoredValue::new(newest));
    crate::ui::follow_by(
        &address,
        |_: &Option<InboundId>| true,
        move |newest| {
            // The user may have left the page.
            if known.try_with_value(|known| *known != newest) != Some(true) {
                return;
            }
            known.set_value(newest);
            let again = LoadInbox { reference: reference.to_string(), filter: filter.clone() };
            leptos::task::spawn_local(async move {
                // If loading fails, the page keeps its list.
                if let Ok(Ok(now)) = crate::client::call(again).await.map(|view| view.found) {
                    found.try_set(Some(now));
                }
            });
        },
    );
}

fn listed(messages: &Paged<InboundRecord>, reference: Reference, filter: &InboxFilter) -> AnyView {
    let path = format!("/applications/{reference}/inbound");
    let next = messages.next.as_deref();
    let pager = pager("messages", &filter.of_reports.cursor, next, |way| {
        filter.address(&path, &[("cursor", way)])
    });
    let file = INBOUND_CSV_PATH.replace("{reference}", reference.as_str());
    let download = (!messages.items.is_empty()).then(|| {
        view! {
            <p>
                <Downloads href=filter.address(&file, &[])/>
            </p>
        }
    });
    let nothing = if filter.is_empty() {
        "Nobody has sent a message to this application yet."
    } else {
        "No message fits these filters."
    };
    let table = Table::wide(&messages.items)
        .compact()
        .time(in_zone("Time (UTC)"), |message| message.received_at)
        .styled("figures", "From", |message| message.number.clone())
        .styled("figures", "To", |message| message.recipient.clone())
        .styled("message", "Message", inbound_text)
        .in_region_or("Inbound messages", nothing);
    view! {
        {table}
        {pager}
        {download}
    }
    .into_any()
}

/// Renders the text of a message, and what it was recognized as.
fn inbound_text(message: &InboundRecord) -> impl IntoView + use<> {
    let tag = |text: String| view! { " " <span class="tag">{text}</span> };
    let command = message.optout.map(|command| tag(command.to_string()));
    let keyword = message.keyword.clone().map(tag);
    let test = message.test.then(|| tag("test".to_owned()));
    view! {
        <span class="message-text">{message.message.clone()}</span>
        {keyword}
        {command}
        {test}
    }
}
