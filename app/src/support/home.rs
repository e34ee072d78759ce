//! `/support`: the first page of staff, with what waits for them.

use domain::decision::Work;
use domain::records::{CarrierRecord, CarrierState, WaitingWork};
use domain::support::UnpaidUse;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::search::SupportSearch;
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::staff;
use crate::problem::Problem;
use crate::ui::{DateTime, Loaded, Page, StateMark, Table, within};

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SupportView {
    waiting: Vec<WaitingWork>,
    /// Where it is too much.
    unpaid: Option<UnpaidUse>,
    carriers: Vec<CarrierRecord>,
    /// What strangers try so often that it is slow for everybody.
    strained: Vec<String>,
}

/// The work that waits for staff, and the carriers.
#[server(prefix = "/fn", endpoint = "support", input = GetUrl)]
pub async fn load_support() -> Result<SupportView, Problem> {
    let (current, _) = staff().await?;
    let service = current.service();
    let mut waiting = service.waiting_work().await?;
    // The longest waiting first; kinds of which nothing waits come last.
    waiting.sort_by_key(|waiting| (waiting.oldest.is_none(), waiting.oldest));
    Ok(SupportView {
        waiting,
        unpaid: service.unpaid_use().filter(UnpaidUse::is_too_much),
        carriers: service.carriers().await?,
        strained: service
            .strained_limits()
            .into_iter()
            .map(str::to_owned)
            .collect(),
    })
}

#[component]
pub fn SupportPage() -> impl IntoView {
    let data = PageData::new(|| LoadSupport {});
    view! { <Loaded data render=|data| view! { <Contents data/> }/> }
}

#[component]
fn Contents(data: SupportView) -> impl IntoView {
    let SupportView {
        waiting,
        unpaid,
        carriers,
        strained,
    } = data;
    let in_state = |state| carriers.iter().filter(|c| c.state == state).count();
    let counts = [CarrierState::Up, CarrierState::Down, CarrierState::Drained]
        .into_iter()
        .map(|state| (state, in_state(state)))
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| {
            view! {
                <li>
                    {format!("{count} ")} <StateMark state=state/>
                </li>
            }
        })
        .collect_view();
    view! {
        <Page title="Support">
            <SupportSearch/>
            {unpaid.map(unpaid_warning)}
            {(!strained.is_empty()).then(|| strained_warning(&strained))}
            <h2>"What waits"</h2>
            {waits(&waiting)}
            <h2>
                <a href="/support/carriers">"Carriers"</a>
            </h2>
            <p>"The connections to those who take our messages, and the messages that wait."</p>
            <ul>{counts}</ul>
            <h2>"Everything"</h2>
            <ul>
                <li>
                    <a href="/support/accounts">"Accounts"</a>
                </li>
                <li>
                    <a href="/support/search">"Search"</a>
                </li>
                <li>
                    <a href="/support/audit">"Audit"</a>
                </li>
                <li>
                    <a href="/support/applications?list=all">"Applications"</a>
                </li>
                <li>
                    <a href="/support/senders">"Sender names"</a>
                </li>
                <li>
                    <a href="/support/deposits?list=all">"Deposits"</a>
                </li>
                <li>
                    <a href="/support/prices">"Prices"</a>
                </li>
                <li>
                    <a href="/support/margin">"Margin"</a>
                </li>
                <li>
                    <a href="/support/approvals">"Approvals"</a>
                </li>
                <li>
                    <a href="/support/mail">"Mail"</a>
                </li>
            </ul>
        </Page>
    }
}

/// What staff should know of accounts that use test keys alone.
fn unpaid_warning(unpaid: UnpaidUse) -> impl IntoView {
    let mib = |bytes: i64| bytes / (1024 * 1024);
    view! {
        <p class="notice">
            {format!(
                "Accounts without a deposit keep {} test messages, about {} MiB of the database. \
                 The limit is {} MiB. Look for accounts that use the service for free.",
                unpaid.messages,
                mib(unpaid.bytes),
                mib(unpaid.bytes_max),
            )}
        </p>
    }
}

/// What staff should know of strangers who use up the limits over all clients.
fn strained_warning(limits: &[String]) -> impl IntoView {
    let limits = limits.join(", ");
    view! {
        <p class="notice">
            {format!(
                "Strangers make too many attempts from many networks: {limits}. Until they stop, \
                 answers are slow, and each network has a small share.",
            )}
        </p>
    }
}

fn waits(waiting: &[WaitingWork]) -> AnyView {
    Table::narrow(waiting)
        .column("What", |waiting| link(waiting.work))
        .amount("Waiting", |waiting| waiting.count)
        .styled("figures", "Oldest (UTC)", |waiting| {
            waiting.oldest.map(|at| view! { <DateTime at/> })
        })
        .column("Usually done within", |waiting| {
            waiting.usual_ms.map(within)
        })
        .in_region("What waits")
}

fn link(work: Work) -> impl IntoView {
    let (title, href) = match work {
        Work::Activations => ("Activation requests", "/support/applications"),
        Work::SenderNames => ("Sender names", "/support/senders"),
        Work::Deposits => ("Unmatched deposits", "/support/deposits"),
        Work::Mails => ("Mails that failed", "/support/mail"),
    };
    view! { <a href=href>{title}</a> }
}
