//! `/support/carriers`: the carriers. The page updates itself while it is open.

use domain::DeskAct;
use domain::incident::IncidentRecord;
use domain::records::{MailGap, RefusedReload};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::carrier::{
    CarrierNow, connections, facts, figures, held_warning, last_errors, mail_gap_warning, refusals,
    reload_warning,
};
use super::confirm::confirm_button;
use super::incidents::{CARRIERS_PATH, CheckIncident, Incidents};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{FormState, Loaded, Page, TableRegion};
#[cfg(feature = "ssr")]
use {crate::portal_request::staff, domain::records::CarrierState, service::Service};

/// The path of the server-sent events with the carriers' changes. Each event is a [`CarriersNow`]
/// in JSON.
pub const CARRIER_EVENTS_PATH: &str = "/support/carriers/events";

/// The carriers and the open notes about incidents, as the page shows them. Two values are equal if
/// the page looks the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriersNow {
    carriers: Vec<CarrierNow>,
    /// The open notes.
    incidents: Vec<IncidentRecord>,
    refused_reloads: Vec<RefusedReload>,
    /// Why no mail about a carrier that fails would leave.
    mail_gap: Option<MailGap>,
}

#[cfg(feature = "ssr")]
impl CarriersNow {
    /// Reads all carriers and the open notes. Carriers that are down come first, then degraded and
    /// drained ones.
    pub async fn read(service: &Service) -> service::Result<Self> {
        let mut carriers = service.delivery().carriers().await?;
        carriers.sort_by_key(|carrier| match carrier.state {
            CarrierState::Down => 0,
            CarrierState::Degraded => 1,
            CarrierState::Drained => 2,
            CarrierState::Up => 3,
        });
        let now = service.clock().now();
        let carriers = carriers.into_iter();
        Ok(Self {
            carriers: carriers.map(|record| CarrierNow::of(record, now)).collect(),
            incidents: service.delivery().incidents().await?,
            refused_reloads: service.delivery().refused_reloads().await?,
            mail_gap: service.operations().carrier_mail_gap().await?,
        })
    }
}

impl CarriersNow {
    /// Whether the messages for all carriers are held.
    fn is_held(&self) -> bool {
        self.carriers.iter().any(|carrier| carrier.record.held_since.is_some())
    }
}

/// Loads all carriers for staff.
#[server(prefix = "/fn", endpoint = "carriers", input = GetUrl)]
pub async fn load_carriers() -> Result<CarriersNow, Problem> {
    let (current, _) = staff().await?;
    Ok(CarriersNow::read(current.service()).await?)
}

#[component]
pub fn CarriersPage() -> impl IntoView {
    let notes = FormState::new::<CheckIncident>("open-incident-alert");
    let data = PageData::new(|| LoadCarriers {});
    let render = move |carriers| view! { <Carriers carriers notes/> };
    view! { <Loaded data render/> }
}

#[component]
fn Carriers(carriers: CarriersNow, notes: FormState) -> impl IntoView {
    let live = RwSignal::new(carriers);
    // A reload of the settings may add and remove carriers.
    let names = Memo::new(move |_| {
        let name = |carrier: &CarrierNow| carrier.record.name.clone();
        live.with(|live| live.carriers.iter().map(name).collect::<Vec<_>>())
    });
    #[cfg(feature = "hydrate")]
    crate::ui::follow(CARRIER_EVENTS_PATH, live, |_| true);
    let open = Memo::new(move |_| live.with(|live| live.incidents.clone()));
    let carriers = names.get_untracked();
    let section = move |name: String| view! { <Carrier name live/> };
    view! {
        <Page title="Carriers">
            <p class="lead">
                "We submit no more messages to a drained carrier. It still delivers the messages \
                 that it has. Waiting messages take another route if there is one."
            </p>
            {move || live.with(|live| live.is_held().then(held_warning))}
            {move || live.with(|live| reload_warning(&live.refused_reloads))}
            {move || live.with(|live| live.mail_gap.map(mail_gap_warning))}
            {confirm_button(DeskAct::Reload, "", String::new(), CARRIERS_PATH.to_owned())}
            <div class="visually-hidden" role="status">
                {move || live.with(|live| spoken(&live.carriers))}
            </div>
            <p class="fine">
                "Accepted, refused, deferred, throttled and unanswered count submits: each part of \
                 a long message, and each attempt. Delivered, failed and expired count receipts."
            </p>
            <For each=move || names.get() key=String::clone children=section/>
            <Incidents open carriers form=notes/>
        </Page>
    }
}

/// Returns the carriers' states for screen readers. The sentence changes with a state, and not with
/// every figure.
fn spoken(carriers: &[CarrierNow]) -> String {
    let states: Vec<_> = (carriers.iter())
        .map(|CarrierNow { record, .. }| format!("{} is {}", record.name, record.state.as_str()))
        .collect();
    format!("{}.", states.join(", "))
}

#[component]
fn Carrier(name: String, live: RwSignal<CarriersNow>) -> impl IntoView {
    let wanted = name.clone();
    let carrier = Memo::new(move |_| {
        live.with(|live| live.carriers.iter().find(|it| it.record.name == wanted).cloned())
    });
    let drained = Memo::new(move |_| {
        carrier.with(|it| it.as_ref().is_some_and(|it| it.record.drained_at.is_some()))
    });
    let binds = Memo::new(move |_| {
        carrier.with(|it| it.as_ref().is_some_and(|it| it.record.binds == Some(true)))
    });
    let act = move || if drained.get() { DeskAct::Resume } else { DeskAct::Drain };
    let subject = name.clone();
    view! {
        <section>
            <h2>{name.clone()}</h2>
            {move || carrier.with(|it| it.as_ref().map(facts))}
            <TableRegion label=format!("Figures of {name}")>
                {move || carrier.with(|it| it.as_ref().map(figures))}
            </TableRegion>
            {move || carrier.with(|it| it.as_ref().and_then(refusals))}
            <p><a href=format!("/support/carriers/{name}/receipts")>"Receipts and figures by hour"</a></p>
            <TableRegion label=format!("Connections of {name}")>
                {move || carrier.with(|it| it.as_ref().map(connections))}
            </TableRegion>
            {move || carrier.with(|it| it.as_ref().and_then(last_errors))}
            {move || confirm_button(act(), &subject, subject.clone(), CARRIERS_PATH.to_owned())}
            {move || binds.get().then(|| confirm_button(
                DeskAct::Rebind,
                &name,
                name.clone(),
                CARRIERS_PATH.to_owned(),
            ))}
        </section>
    }
}
