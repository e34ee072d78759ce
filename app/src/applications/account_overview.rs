//! The overview of an account that has sent messages: their number, outcome and cost, and the
//! requests that wait for support.

use domain::records::{ApplicationRecord, MessageRecord};
use domain::spending::Spending;
use domain::timestamp::DAY_MS;
use domain::{ApplicationStatus, MessageStatus, SenderStatus, Timestamp};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::reports::{ReportFilter, counted, grouped, meaning};
use crate::ui::{DateTime, Fact, StateMark, Table, answered_within, in_zone};
#[cfg(feature = "ssr")]
use {
    crate::problem::Problem,
    crate::reports::Periods,
    domain::decision::Work,
    domain::quarter::Figures,
    domain::records::StatusCounts,
    domain::status::Mark,
    domain::{Category, KeyKind, Reference, Zone},
    service::{MessageFilter, Service},
};

/// The number of days before today that the overview covers.
const DAYS_BEFORE: i64 = 29;
/// The maximum number of failures listed.
#[cfg(feature = "ssr")]
const FAILURES: usize = 3;
/// The longest balance duration shown in days.
const YEAR_DAYS: i64 = 365;

/// The figures of the account's SMS application. They count messages sent with the live key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccountOverview {
    application: ApplicationRecord,
    /// Today in the page's zone, in days since 1970-01-01.
    day: i64,
    /// Only counts other than 0.
    counts: Vec<Count>,
    spending: Option<Spending>,
    /// The most recent failed messages, newest first. `None` if they can't be read now.
    failures: Option<Vec<MessageRecord>>,
    /// How long an activation usually takes, in milliseconds, if one is pending.
    activation_ms: Option<i64>,
    /// How long a sender name usually takes, in milliseconds, if one is pending.
    sender_ms: Option<i64>,
}

/// The number of messages with a status.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Count {
    /// `None` for all messages under way, which aren't counted by status in zones other than UTC.
    status: Option<MessageStatus>,
    /// In the page's zone.
    today: i64,
    /// Today and the [`DAYS_BEFORE`] days before it.
    all: i64,
}

#[cfg(feature = "ssr")]
impl AccountOverview {
    /// Returns the overview of the account with these applications, or `None` if none is for SMS.
    pub async fn find(
        service: &Service,
        account_id: i64,
        applications: &[ApplicationRecord],
        zone: &Zone,
    ) -> Result<Option<Self>, Problem> {
        let sms = applications.iter().find(|one| one.category == Category::Sms);
        let Some(application) = sms.cloned() else {
            return Ok(None);
        };
        let now = service.clock().now();
        let reference = application.reference;
        let days = (now.day() - DAYS_BEFORE, now.day());
        let messages = service.messages();
        let paid = messages.account_paid(account_id, Some(reference), days);
        let spending = paid.await?.first().and_then(|(_, paid)| Spending::before(days.1, paid));
        let day = zone.day(now);
        let mut counts = if zone.is_utc() {
            by_utc_day(service, account_id, reference, day).await?
        } else {
            by_day(service, account_id, reference, (day, zone)).await?
        };
        counts.retain(|count| count.all > 0);
        let from = zone.start_of_day(day - DAYS_BEFORE);
        let failures = failures(service, account_id, reference, from, &counts);
        let usual = async |work, waits: fn(&ApplicationRecord) -> bool| {
            if applications.iter().any(waits) {
                service.applications().usual_answer_ms(work).await
            } else {
                Ok(None)
            }
        };
        Ok(Some(Self {
            // If too many searches run at once, show the overview without the failures.
            failures: failures.await.ok(),
            activation_ms: usual(Work::Activations, activation_waits).await?,
            sender_ms: usual(Work::SenderNames, sender_waits).await?,
            application,
            day,
            counts,
            spending,
        }))
    }
}

/// Counts messages by status, in UTC days.
#[cfg(feature = "ssr")]
async fn by_utc_day(
    service: &Service,
    account_id: i64,
    reference: Reference,
    day: i64,
) -> service::Result<Vec<Count>> {
    let days = (day - DAYS_BEFORE, day);
    let messages = service.messages();
    let found = messages.account_days(account_id, Some(reference), Some(KeyKind::Live), days);
    let (mut today, mut all) = (StatusCounts::default(), StatusCounts::default());
    for found in found.await? {
        all.add(&found.counts);
        if found.day == day {
            today.add(&found.counts);
        }
    }
    let counts = MessageStatus::ALL.map(|status| Count {
        status: Some(status),
        today: today.get(status),
        all: all.get(status),
    });
    Ok(counts.to_vec())
}

/// Counts messages by status, in the zone's days.
#[cfg(feature = "ssr")]
async fn by_day(
    service: &Service,
    account_id: i64,
    reference: Reference,
    (day, zone): (i64, &Zone),
) -> service::Result<Vec<Count>> {
    let days = Periods::of_days(day - DAYS_BEFORE, day).quarters(zone);
    let messages = service.messages();
    let found = messages.account_figures(account_id, Some(reference), Some(KeyKind::Live), &days);
    let (mut today, mut all) = (Figures::default(), Figures::default());
    for (period, figures) in found.await?.iter().flat_map(|(_, periods)| periods) {
        all.add(figures);
        if *period == day {
            today.add(figures);
        }
    }
    let statuses = MessageStatus::ALL.into_iter().filter(|one| one.is_final());
    let finals = statuses.map(|status| Count {
        status: Some(status),
        today: today.of_status(status),
        all: all.of_status(status),
    });
    let under_way = Count { status: None, today: today.under_way(), all: all.under_way() };
    Ok(std::iter::once(under_way).chain(finals).collect())
}

/// Returns the most recent failed messages since `from`. Queries only statuses that have messages.
#[cfg(feature = "ssr")]
async fn failures(
    service: &Service,
    account_id: i64,
    reference: Reference,
    from: Timestamp,
    counts: &[Count],
) -> service::Result<Vec<MessageRecord>> {
    let mut failures = Vec::new();
    let failed = |status: &MessageStatus| status.describe().mark == Mark::Bad;
    for status in MessageStatus::ALL.into_iter().filter(failed) {
        if counts.iter().any(|count| count.status == Some(status)) {
            let filter = MessageFilter {
                status: Some(status),
                key: Some(KeyKind::Live),
                from: Some(from),
                limit: FAILURES.cast_signed() as i64,
                ..MessageFilter::default()
            };
            let messages = service.messages();
            let found = messages.account_messages(account_id, Some(reference), &filter);
            failures.extend(found.await?.items);
        }
    }
    failures.sort_unstable_by_key(|message| std::cmp::Reverse(message.transid));
    failures.truncate(FAILURES);
    Ok(failures)
}

fn activation_waits(application: &ApplicationRecord) -> bool {
    application.status == ApplicationStatus::Pending
        && application.activation_requested_at.is_some()
}

fn sender_waits(application: &ApplicationRecord) -> bool {
    let asked = application.requested_sender.as_ref();
    asked.is_some_and(|request| request.status == SenderStatus::Pending)
}

/// Renders the overview.
pub fn account_overview(
    data: &AccountOverview,
    applications: &[ApplicationRecord],
    currency: &str,
) -> impl IntoView + use<> {
    view! {
        <section class="panel" aria-labelledby="overview">
            <h2 id="overview">"Overview"</h2>
            <dl class="facts">{money(data, currency)}</dl>
            <h3>"Live messages"</h3>
            {by_status(data)}
            <h3>"Last failures"</h3>
            {last_failures(data)}
            <h3>"Waiting for support"</h3>
            {waiting(data, applications)}
        </section>
    }
}

fn money(data: &AccountOverview, currency: &str) -> impl IntoView + use<> {
    let balance = data.application.balance;
    let (spent, lasts) = match data.spending {
        Some(spending) => {
            let days = counted(spending.days, "day");
            let spent = format!("{} {currency} in {days}", spending.paid.shown());
            (spent, lasts(spending.lasts_days(balance)))
        }
        None => (
            "Nothing yet".to_owned(),
            "We estimate how long your balance will last after one full day of sending.".to_owned(),
        ),
    };
    let balance = format!("{} {currency}", balance.shown());
    view! {
        <Fact term="Balance">{balance} <div class="fine">{lasts}</div></Fact>
        <Fact term="Charged until yesterday (UTC)">{spent}</Fact>
    }
}

fn lasts(days: i64) -> String {
    match days {
        ..1 => "lasts less than a day".to_owned(),
        1..=YEAR_DAYS => format!("lasts about {}", counted(days, "day")),
        _ => "lasts more than a year".to_owned(),
    }
}

/// Shows the counts of each status and their totals, with links to the messages.
fn by_status(data: &AccountOverview) -> AnyView {
    let total = Count {
        status: None,
        today: data.counts.iter().map(|count| count.today).sum(),
        all: data.counts.iter().map(|count| count.all).sum(),
    };
    let rows: Vec<_> = data.counts.iter().map(Some).chain([None]).collect();
    let cell = |row: Option<&Count>, days_before: i64, count: fn(&Count) -> i64| {
        let number = grouped(count(row.unwrap_or(&total)));
        if row.is_some_and(|row| row.status.is_none()) {
            return number.into_any();
        }
        let status = row.and_then(|row| row.status);
        let first_day = data.day - days_before;
        let filter = ReportFilter {
            application: data.application.reference.to_string(),
            status: status.map(|status| status.to_string()).unwrap_or_default(),
            key: "live".to_owned(),
            from: Timestamp::from_unix_ms(first_day * DAY_MS).to_date(),
            ..ReportFilter::default()
        };
        view! { <a href=filter.page()>{number}</a> }.into_any()
    };
    Table::narrow(&rows)
        .column("Status", |row| match row {
            Some(Count { status: Some(status), .. }) => {
                view! { <StateMark state=*status/> }.into_any()
            }
            Some(Count { status: None, .. }) => "under way".into_any(),
            None => "Total".into_any(),
        })
        .styled("amount", in_zone("Today (UTC)"), |row| cell(*row, 0, |count| count.today))
        .styled("amount", "Last 30 days", |row| cell(*row, DAYS_BEFORE, |count| count.all))
        .in_region("Live messages")
}

fn last_failures(data: &AccountOverview) -> AnyView {
    let Some(failures) = &data.failures else {
        return view! { <p>"Failures can't be shown right now. Reload the page in a minute."</p> }
            .into_any();
    };
    if failures.is_empty() {
        return view! { <p>"No messages failed in the last 30 days."</p> }.into_any();
    }
    let items: Vec<_> = failures
        .iter()
        .map(|message| {
            let href = format!("/reports/{}", message.transid);
            let why = meaning(message.status, message.error.as_deref());
            view! {
                <li>
                    <DateTime at=message.created_at with_zone=true/>
                    " to "
                    <a href=href>{message.number.clone()}</a>
                    ": "
                    {why}
                </li>
            }
        })
        .collect();
    view! { <ul>{items}</ul> }.into_any()
}

fn waiting(data: &AccountOverview, applications: &[ApplicationRecord]) -> AnyView {
    let link = |application: &ApplicationRecord, page: &str, words: String| {
        let href = format!("/applications/{}{page}", application.reference);
        view! { <a href=href>{words}</a> }
    };
    let activations = applications.iter().filter(|one| activation_waits(one));
    let activations = activations.map(|one| {
        let words = format!("Activation of your {} application", one.category);
        let usual = answered_within(data.activation_ms);
        view! { <li>{link(one, "", words)} ": " {usual}</li> }.into_any()
    });
    let senders = applications.iter().filter(|one| sender_waits(one));
    let senders = senders.map(|one| {
        let asked = one.requested_sender.as_ref();
        let name = asked.map_or("", |request| request.name.as_str());
        let usual = answered_within(data.sender_ms);
        view! { <li>{link(one, "/sender", format!("Sender name {name}"))} ": " {usual}</li> }
            .into_any()
    });
    let items: Vec<_> = activations.chain(senders).collect();
    if items.is_empty() {
        view! { <p>"Nothing waits for support."</p> }.into_any()
    } else {
        view! { <ul>{items}</ul> }.into_any()
    }
}

#[cfg(test)]
mod tests {
    use super::lasts;

    #[test]
    fn a_balance_lasts_days_in_words() {
        for (days, words) in [
            (0, "lasts less than a day"),
            (1, "lasts about 1 day"),
            (365, "lasts about 365 days"),
            (366, "lasts more than a year"),
        ] {
            assert_eq!(lasts(days), words);
        }
    }
}
