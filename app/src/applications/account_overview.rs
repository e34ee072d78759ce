//! The overview of an account that has sent messages. It shows the balance, the number, outcome and
//! cost of messages, and alarms, failures and requests that the owner should know about.

use domain::records::{AlarmRecord, ApplicationRecord, BatchRecord, MessageRecord, ScheduledRows};
use domain::spending::Spending;
use domain::support_hours::UsualTime;
use domain::timestamp::DAY_MS;
use domain::{ApplicationStatus, MessageStatus, Money, SenderStatus, Timestamp};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::reports::{Bars, Chart, ReportFilter, batch_progress, counted, grouped, meaning, rate};
use crate::ui::{DateTime, Fact, StateMark, Table, answered_within, in_zone};
#[cfg(feature = "ssr")]
use {
    crate::problem::Problem,
    crate::reports::Periods,
    domain::decision::Work,
    domain::quarter::Figures,
    domain::status::Mark,
    domain::{Category, KeyKind, Month, Reference, Zone},
    service::{FiguresByPeriod, MessageFilter, Service},
};

/// The number of days before today that the overview covers.
const DAYS_BEFORE: i64 = 29;
/// The charges of this many days before today decide how long the balance is estimated to last.
#[cfg(feature = "ssr")]
const SPENDING_DAYS: i64 = 7;
#[cfg(feature = "ssr")]
const FAILURES: usize = 3;
/// The maximum number of batches listed.
#[cfg(feature = "ssr")]
const BATCHES: i64 = 3;
/// If the balance lasts longer than this, the overview says so instead of naming the days.
const YEAR_DAYS: i64 = 365;

/// The figures of the account's SMS application. They count only messages sent with the live key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccountOverview {
    application: ApplicationRecord,
    /// Today in the page's zone, in days since 1970-01-01.
    day: i64,
    /// The first day of the month.
    month: i64,
    /// The counts that aren't 0. All messages under way are one count, whatever their status is.
    counts: Vec<Count>,
    /// The charges today and this month.
    spent: [Money; 2],
    /// The charges of the [`SPENDING_DAYS`] before today. `None` if there were none.
    spending: Option<Spending>,
    /// `None` if fewer than two days have messages.
    chart: Option<Chart>,
    /// The most recent failed messages, newest first. `None` if they can't be read now.
    failures: Option<Vec<MessageRecord>>,
    /// The alarms that the owner hasn't marked as read.
    alarms: Vec<AlarmRecord>,
    /// The newest batches.
    batches: Vec<BatchRecord>,
    /// The rows of scheduled batches. They aren't messages yet, so `counts` doesn't include them.
    scheduled: ScheduledRows,
    /// How long an activation usually takes. `None` if none is pending.
    activation_usual: Option<UsualTime>,
    /// How long a decision about a sender name usually takes. `None` if none is pending.
    sender_usual: Option<UsualTime>,
}

/// The number of messages with a status.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Count {
    /// `None` stands for all messages under way.
    status: Option<MessageStatus>,
    /// Days and months are those of the page's zone.
    today: i64,
    month: i64,
    /// Today and the [`DAYS_BEFORE`] days before it.
    all: i64,
}

#[cfg(feature = "ssr")]
impl AccountOverview {
    /// Returns the overview of the account that has these applications, or `None` if none of them
    /// is for SMS. All numbers come from figures by day. The figures of days that no longer change
    /// are cached.
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
        let reference = application.reference;
        let day = zone.day(service.clock().now());
        let month = Month::of(Timestamp::of_day(day)).start().day();
        let shown = Periods::of_days(day - DAYS_BEFORE, day);
        let read = Periods::of_days(shown.first.min(month), day).quarters(zone);
        let messages = service.messages();
        let found = messages.overview(account_id, reference, &read, BATCHES).await?;
        let figures = found.figures;
        let totals = [day, month, shown.first].map(|first| sum_from(&figures, first));
        let counts = counts(&totals);
        let from = zone.start_of_day(shown.first);
        let failures = failures(service, account_id, reference, from, &counts);
        let usual = async |work, waits: fn(&ApplicationRecord) -> bool| {
            if applications.iter().any(waits) {
                service.applications().usual_answer(work).await
            } else {
                Ok(None)
            }
        };
        let charged = figures.range(day - SPENDING_DAYS..day);
        let charged: Vec<_> = charged.map(|(day, figures)| (*day, figures.cost)).collect();
        Ok(Some(Self {
            // If too many searches run at once, show the overview without the failures.
            failures: failures.await.ok(),
            alarms: found.alarms,
            batches: found.batches,
            scheduled: found.scheduled,
            activation_usual: usual(Work::Activations, activation_waits).await?,
            sender_usual: usual(Work::SenderNames, sender_waits).await?,
            spending: Spending::before(day, &charged),
            chart: chart(shown, figures),
            spent: [totals[0].cost, totals[1].cost],
            application,
            day,
            month,
            counts,
        }))
    }
}

#[cfg(feature = "ssr")]
fn sum_from(figures: &FiguresByPeriod, first: i64) -> Figures {
    let mut sum = Figures::default();
    for (_, day) in figures.range(first..) {
        sum.add(day);
    }
    sum
}

/// Counts messages by status. `totals` are the figures of today, of the month and of all days.
#[cfg(feature = "ssr")]
fn counts(totals: &[Figures; 3]) -> Vec<Count> {
    let finals = MessageStatus::ALL.into_iter().filter(|one| one.is_final()).map(Some);
    let counted = std::iter::once(None).chain(finals).map(|status| {
        let [today, month, all] =
            [&totals[0], &totals[1], &totals[2]].map(|figures| match status {
                Some(status) => figures.of_status(status),
                None => figures.under_way(),
            });
        Count { status, today, month, all }
    });
    counted.filter(|count| count.all > 0 || count.month > 0).collect()
}

/// Returns the chart, unless only one day has messages.
#[cfg(feature = "ssr")]
fn chart(shown: Periods, mut figures: FiguresByPeriod) -> Option<Chart> {
    figures.retain(|day, of_day| *day >= shown.first && of_day.accepted > 0);
    (figures.len() > 1).then(|| Chart::of_days(shown, &figures))
}

/// Returns the most recent failed messages since `from`. Queries only statuses that `counts` has.
#[cfg(feature = "ssr")]
async fn failures(
    service: &Service,
    account_id: i64,
    reference: Reference,
    from: Timestamp,
    counts: &[Count],
) -> service::Result<Vec<MessageRecord>> {
    let mut failures = Vec::new();
    let failed = |status: &MessageStatus| status.mark() == Mark::Bad;
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
    let filter = filter(data, None, data.day - DAYS_BEFORE);
    let chart = data.chart.clone().map(|chart| {
        let figure = Bars { chart, filter, currency: currency.to_owned() }.figure();
        view! {
            <h3>"Messages by day"</h3>
            {figure}
        }
    });
    view! {
        <section class="panel overview" aria-labelledby="overview">
            <h2 id="overview">"Overview"</h2>
            <dl class="facts">{money(data, currency)}</dl>
            {alarms(data)}
            {chart}
            <h3>"Live messages"</h3>
            {by_status(data)}
            <h3>"Last failures"</h3>
            {last_failures(data)}
            {last_batches(data)}
            {waiting(data, applications)}
        </section>
    }
}

fn money(data: &AccountOverview, currency: &str) -> impl IntoView + use<> {
    let balance = data.application.balance;
    let lasts = match data.spending {
        Some(spending) => lasts(spending.lasts_days(balance)),
        None if data.counts.iter().all(|count| count.all == count.today) => {
            "After your first full day of sending, we estimate how long your balance will last."
                .to_owned()
        }
        None => "You weren't charged in the last 7 days.".to_owned(),
    };
    let amount = |amount: Money| format!("{} {currency}", amount.shown());
    let sum = |count: fn(&Count) -> i64| -> i64 { data.counts.iter().map(count).sum() };
    let of = |wanted| {
        let found = data.counts.iter().find(|count| count.status == wanted);
        found.map_or(0, |count| count.all)
    };
    // No carrier got the cancelled messages, so they don't count for the delivery rate.
    let completed = sum(|count| count.all) - of(None) - of(Some(MessageStatus::Cancelled));
    let rate = rate((of(Some(MessageStatus::Delivered)), completed));
    let rate = rate.unwrap_or_else(|| "not known yet".to_owned());
    let [today, month] = [sum(|count| count.today), sum(|count| count.month)];
    let [today, month] = [today, month].map(|messages| counted(messages, "message"));
    let [spent_today, spent] = data.spent.map(|spent| format!("{} charged", amount(spent)));
    let balance = amount(balance);
    let ScheduledRows { rows, reserved } = data.scheduled;
    let scheduled = (rows > 0).then(|| {
        let reserved = amount(reserved);
        let reserved = format!("{reserved} reserved. The rows become messages at their time.");
        view! {
            <Fact term="Scheduled batches">
                {counted(rows, "row")} <div class="fine">{reserved}</div>
            </Fact>
        }
    });
    view! {
        <Fact term="Balance">{balance} <div class="fine">{lasts}</div></Fact>
        <Fact term="Today">{today} <div class="fine">{spent_today}</div></Fact>
        <Fact term="This month">{month} <div class="fine">{spent}</div></Fact>
        {scheduled}
        <Fact term="Delivery rate">
            {rate}
            <div class="fine">"Of the final messages of 30 days, except cancelled ones"</div>
        </Fact>
    }
}

fn lasts(days: i64) -> String {
    match days {
        ..1 => "At your recent rate, it lasts less than a day.".to_owned(),
        1..=YEAR_DAYS => format!("At your recent rate, it lasts about {}.", counted(days, "day")),
        _ => "At your recent rate, it lasts more than a year.".to_owned(),
    }
}

/// Returns the filter that selects the live messages with a status since a day.
fn filter(data: &AccountOverview, status: Option<MessageStatus>, first_day: i64) -> ReportFilter {
    ReportFilter {
        application: data.application.reference.to_string(),
        status: status.map(|status| status.to_string()).unwrap_or_default(),
        key: "live".to_owned(),
        from: Timestamp::from_unix_ms(first_day * DAY_MS).to_date(),
        ..ReportFilter::default()
    }
}

/// Shows the counts of each status, and their totals. The counts are links to the messages.
fn by_status(data: &AccountOverview) -> AnyView {
    let sum = |count: fn(&Count) -> i64| data.counts.iter().map(count).sum();
    let total = Count {
        status: None,
        today: sum(|count| count.today),
        month: sum(|count| count.month),
        all: sum(|count| count.all),
    };
    let rows: Vec<_> = data.counts.iter().map(Some).chain([None]).collect();
    let cell = |row: Option<&Count>, first_day: i64, count: fn(&Count) -> i64| {
        let number = grouped(count(row.unwrap_or(&total)));
        if row.is_some_and(|row| row.status.is_none()) {
            return number.into_any();
        }
        let href = filter(data, row.and_then(|row| row.status), first_day).page();
        view! { <a href=href>{number}</a> }.into_any()
    };
    Table::narrow(&rows)
        .column("Status", |row| match row {
            Some(Count { status: Some(status), .. }) => {
                view! { <StateMark state=*status/> }.into_any()
            }
            Some(Count { status: None, .. }) => "under way".into_any(),
            None => "Total".into_any(),
        })
        .styled("amount", in_zone("Today (UTC)"), |row| cell(*row, data.day, |count| count.today))
        .styled("amount", "This month", |row| cell(*row, data.month, |count| count.month))
        .styled("amount", "Last 30 days", |row| {
            cell(*row, data.day - DAYS_BEFORE, |count| count.all)
        })
        .in_region("Live messages")
}

/// Lists the open alarms. Each links to the application's page, which says what to do about it.
fn alarms(data: &AccountOverview) -> Option<impl IntoView + use<>> {
    let href = format!("/applications/{}#alarms", data.application.reference);
    let items = data.alarms.iter().map(|alarm| {
        let words = alarm.kind.heading();
        view! {
            <li>
                <a href=href.clone()>{words}</a>
                ", "
                <DateTime at=alarm.at with_zone=true/>
            </li>
        }
    });
    let items: Vec<_> = items.collect();
    (!items.is_empty()).then(|| {
        view! {
            <h3>"Alarms"</h3>
            <ul>{items}</ul>
        }
    })
}

fn last_batches(data: &AccountOverview) -> Option<impl IntoView + use<>> {
    let table = Table::wide(&data.batches)
        .styled("key", "Batch ID", |batch| {
            let href = format!("/reports/{}", batch.batchid);
            view! { <a href=href>{batch.batchid.to_string()}</a> }
        })
        .time(in_zone("Time (UTC)"), |batch| batch.created_at)
        .state("Status", |batch| batch.status)
        .column("Progress", batch_progress);
    (!data.batches.is_empty()).then(|| {
        view! {
            <h3>"Last batches"</h3>
            {table.in_region("Last batches")}
        }
    })
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

/// Lists the requests that wait for support.
fn waiting(
    data: &AccountOverview,
    applications: &[ApplicationRecord],
) -> Option<impl IntoView + use<>> {
    let link = |application: &ApplicationRecord, page: &str, words: String| {
        let href = format!("/applications/{}{page}", application.reference);
        view! { <a href=href>{words}</a> }
    };
    let activations = applications.iter().filter(|one| activation_waits(one));
    let activations = activations.map(|one| {
        let words = format!("Activation of {}", one.display_name());
        let usual = answered_within(data.activation_usual);
        view! { <li>{link(one, "", words)} ": " {usual}</li> }.into_any()
    });
    let senders = applications.iter().filter(|one| sender_waits(one));
    let senders = senders.map(|one| {
        let asked = one.requested_sender.as_ref();
        let name = asked.map_or("", |request| request.name.as_str());
        let usual = answered_within(data.sender_usual);
        view! { <li>{link(one, "/sender", format!("Sender name {name}"))} ": " {usual}</li> }
            .into_any()
    });
    let items: Vec<_> = activations.chain(senders).collect();
    (!items.is_empty()).then(|| {
        view! {
            <h3>"Waiting for support"</h3>
            <ul>{items}</ul>
        }
    })
}

#[cfg(test)]
mod tests {
    use super::lasts;

    #[test]
    fn a_balance_lasts_days_in_words() {
        for (days, words) in [
            (0, "At your recent rate, it lasts less than a day."),
            (1, "At your recent rate, it lasts about 1 day."),
            (365, "At your recent rate, it lasts about 365 days."),
            (366, "At your recent rate, it lasts more than a year."),
        ] {
            assert_eq!(lasts(days), words);
        }
    }
}
