//! `/support`: the home page of staff, with the pending work.

use domain::decision::Work;
use domain::records::{CarrierRecord, CarrierState, RefusedReload, WaitingWork};
use domain::support::UnpaidUse;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::carrier::{held_warning, reload_warning};
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::staff;
use crate::problem::Problem;
use crate::ui::{Loaded, Page, StateMark, Table, within};

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SupportView {
    waiting: Vec<WaitingWork>,
    /// Set only if unpaid use is above its limit.
    unpaid: Option<UnpaidUse>,
    carriers: Vec<CarrierRecord>,
    /// The kinds of attempts for which all clients together have reached the limit. The service
    /// answers them slowly.
    strained: Vec<String>,
    /// The settings that customers miss.
    missing: Vec<String>,
    /// Whether all messages are held, because a backup was restored.
    held: bool,
    refused_reloads: Vec<RefusedReload>,
}

/// Loads the pending work and the carriers for staff.
#[server(prefix = "/fn", endpoint = "support", input = GetUrl)]
pub async fn load_support() -> Result<SupportView, Problem> {
    let (current, _) = staff().await?;
    let service = current.service();
    let mut waiting = service.applications().waiting_work().await?;
    // The oldest work comes first. Kinds without pending work come last.
    waiting.sort_by_key(|waiting| (waiting.oldest.is_none(), waiting.oldest));
    let site = current.site();
    let missing = [
        ("support_contact", site.footer.support_contact.is_some()),
        ("payment_instructions", site.payment_instructions.is_some()),
        ("smtp_url", service.operations().sends_mail()),
    ];
    let missing = missing.into_iter().filter(|(_, is_set)| !is_set);
    Ok(SupportView {
        missing: missing.map(|(name, _)| name.to_owned()).collect(),
        waiting,
        held: service.operations().hold_since().await?.is_some(),
        unpaid: service.operations().unpaid_use().filter(UnpaidUse::is_too_much),
        carriers: service.delivery().carriers().await?,
        refused_reloads: service.delivery().refused_reloads().await?,
        strained: service.accounts().strained_limits().into_iter().map(str::to_owned).collect(),
    })
}

#[component]
pub fn SupportPage() -> impl IntoView {
    let data = PageData::new(|| LoadSupport {});
    view! { <Loaded data render=|data| view! { <Contents data/> }/> }
}

#[component]
fn Contents(data: SupportView) -> impl IntoView {
    let SupportView { waiting, unpaid, carriers, strained, missing, held, refused_reloads } = data;
    let in_state = |state| carriers.iter().filter(|c| c.state == state).count();
    let counts = CarrierState::ALL
        .into_iter()
        .map(|state| (state, in_state(state)))
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| {
            view! { <li>{format!("{count} ")} <StateMark state=state/></li> }
        })
        .collect_view();
    view! {
        <Page title="Support">
            {held.then(held_warning)}
            {reload_warning(&refused_reloads)}
            {(!missing.is_empty()).then(|| missing_warning(&missing))}
            {unpaid.map(unpaid_warning)}
            {(!strained.is_empty()).then(|| strained_warning(&strained))}
            <h2>"Pending work"</h2>
            {waits(&waiting)}
            <h2>"Connections to carriers"</h2>
            <ul>{counts}</ul>
        </Page>
    }
}

/// Warns staff that customers miss information, because a setting is missing.
fn missing_warning(missing: &[String]) -> impl IntoView {
    let rows = missing.iter().map(|name| {
        let effect = match name.as_str() {
            "support_contact" => "Customers aren't told how to reach support.",
            "payment_instructions" => "Customers aren't told how to make a deposit.",
            _ => {
                "No mail is sent. Customers can't reset a password without your help, and staff \
                 aren't told when a carrier is down."
            }
        };
        view! { <li><code>{name.clone()}</code>": "{effect}</li> }
    });
    view! {
        <div class="notice">
            <p>"Some settings of the server are missing:"</p>
            <ul>{rows.collect_view()}</ul>
        </div>
    }
}

/// Warns staff that accounts without a deposit keep too many test messages.
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

/// Warns staff that unknown clients exhaust the limits that all clients share.
fn strained_warning(limits: &[String]) -> impl IntoView {
    let limits = limits.join(", ");
    view! {
        <p class="notice">
            {format!(
                "Unknown clients on many networks make too many attempts: {limits}. Until they \
                 stop, the service answers slowly and accepts few attempts from each network.",
            )}
        </p>
    }
}

fn waits(waiting: &[WaitingWork]) -> AnyView {
    Table::narrow(waiting)
        .column("What", |waiting| link(waiting.work))
        .amount("Waiting", |waiting| waiting.count)
        .time("Oldest (UTC)", |waiting| waiting.oldest)
        .column("Usually done within", |waiting| waiting.usual.map(within))
        .in_region("Pending work")
}

fn link(work: Work) -> impl IntoView {
    let (title, href) = match work {
        Work::Activations => ("Activation requests", "/support/applications"),
        Work::SenderNames => ("Requests for sender names", "/support/senders"),
        Work::Deposits => ("Unmatched deposits", "/support/deposits"),
        Work::Mails => ("Mails that failed", "/support/mail"),
        Work::Inbound => ("Unassigned messages", "/support/inbound"),
        Work::Resets => ("Reset links requested", "/support/mail"),
        Work::BankLines => ("Bank lines that weren't credited", "/support/import"),
    };
    view! { <a href=href>{title}</a> }
}
