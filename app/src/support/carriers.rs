//! `/support/carriers`: the carriers. The page updates itself while it is open.

use domain::Refusal;
use domain::incident::IncidentRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::carrier::{CarrierNow, connections, facts, figures};
use super::incidents::{IncidentForms, Incidents};
use crate::client::call;
use crate::page_data::PageData;
use crate::problem::{Cause, Problem};
use crate::ui::{FormAlert, FormState, Loaded, Page, PostForm, StepUpField, TableRegion};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{staff, step_up},
    service::{Actor, Service},
};

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
}

#[cfg(feature = "ssr")]
impl CarriersNow {
    /// Reads all carriers and the open notes.
    pub async fn read(service: &Service) -> service::Result<Self> {
        let carriers = service.delivery().carriers().await?.into_iter();
        let now = service.clock().now();
        Ok(Self {
            carriers: carriers.map(|record| CarrierNow::of(record, now)).collect(),
            incidents: service.delivery().incidents().await?,
        })
    }
}

/// Loads all carriers for staff.
#[server(prefix = "/fn", endpoint = "carriers", input = GetUrl)]
pub async fn load_carriers() -> Result<CarriersNow, Problem> {
    let (current, _) = staff().await?;
    Ok(CarriersNow::read(current.service()).await?)
}

/// Drains or resumes a carrier. Nothing happens if it is drained or resumed already. The last
/// carrier that accepts messages is drained only if `confirmed` is true.
#[server(prefix = "/fn", endpoint = "change-carrier")]
pub async fn change_carrier(
    name: String,
    action: String,
    #[server(default)] confirmed: bool,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let stepped_up = step_up(&current, &account, &credential).await;
    // The page has this form for each carrier. Only the form that was submitted asks for step-up
    // authentication or a confirmation.
    let of_it = |problem: Problem| problem.typed("name", &name);
    stepped_up.map_err(of_it)?;
    let (service, actor) = (current.service(), Actor::Account(account.id));
    let changed = match action.as_str() {
        DRAIN => service.delivery().drain_carrier(&actor, &name, confirmed).await,
        RESUME => service.delivery().resume_carrier(&actor, &name).await,
        _ => return Err(Cause::Unreadable.into()),
    };
    changed.map(drop).map_err(|error| of_it(error.into()))
}

const DRAIN: &str = "drain";
const RESUME: &str = "resume";

#[component]
pub fn CarriersPage() -> impl IntoView {
    let form = FormState::new::<ChangeCarrier>("carrier-alert");
    let notes = IncidentForms::new();
    let data = PageData::new(|| LoadCarriers {});
    let render = move |carriers| view! { <Carriers carriers form notes/> };
    view! { <Loaded data render/> }
}

#[component]
fn Carriers(carriers: CarriersNow, form: FormState, notes: IncidentForms) -> impl IntoView {
    let live = RwSignal::new(carriers);
    // A reload of the settings may add and remove carriers.
    let names = Memo::new(move |_| {
        let name = |carrier: &CarrierNow| carrier.record.name.clone();
        live.with(|live| live.carriers.iter().map(name).collect::<Vec<_>>())
    });
    #[cfg(feature = "hydrate")]
    crate::ui::follow(CARRIER_EVENTS_PATH, live, |_| true);
    Effect::new(move || {
        if form.accepted.get() + notes.accepted() > 0 {
            // Loads the states without waiting for the next event. They are replaced in place, so
            // that the pressed button stays on the page and keeps the focus.
            leptos::task::spawn_local(async move {
                if let Ok(carriers) = call(LoadCarriers {}).await {
                    live.try_set(carriers);
                }
            });
        }
    });
    let open = Memo::new(move |_| live.with(|live| live.incidents.clone()));
    let carriers = names.get_untracked();
    let section = move |name: String| view! { <Carrier name live form/> };
    view! {
        <Page title="Carriers">
            <p class="lead">
                "We submit no more messages to a drained carrier. It still delivers the messages \
                 that it has. Waiting messages take another route if there is one."
            </p>
            <FormAlert form/>
            <div class="visually-hidden" role="status">
                {move || live.with(|live| spoken(&live.carriers))}
            </div>
            <For each=move || names.get() key=String::clone children=section/>
            <Incidents open carriers forms=notes/>
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
fn Carrier(name: String, live: RwSignal<CarriersNow>, form: FormState) -> impl IntoView {
    let heading = format!("carrier-{name}");
    let wanted = name.clone();
    let carrier = Memo::new(move |_| {
        live.with(|live| live.carriers.iter().find(|it| it.record.name == wanted).cloned())
    });
    let drained = Memo::new(move |_| {
        carrier.with(|it| it.as_ref().is_some_and(|it| it.record.drained_at.is_some()))
    });
    let was_sent = form.was_sent("name", name.clone());
    let must_confirm = Memo::new(move |_| {
        let is_last = form.problem.with(|problem| {
            let cause = problem.as_ref().map(|problem| &problem.cause);
            matches!(cause, Some(Cause::Refused(Refusal::LastCarrier { .. })))
        });
        is_last && was_sent.get() && !drained.get()
    });
    let confirmation = || view! { <input type="hidden" name="confirmed" value="true"/> };
    view! {
        <section>
            <h2 id=heading.clone()>{name.clone()}</h2>
            {move || carrier.with(|it| it.as_ref().map(facts))}
            <TableRegion label=format!("Figures of {name}")>
                {move || carrier.with(|it| it.as_ref().map(figures))}
            </TableRegion>
            <p><a href=format!("/support/carriers/{name}/receipts")>"Receipts and figures by hour"</a></p>
            <TableRegion label=format!("Connections of {name}")>
                {move || carrier.with(|it| it.as_ref().map(connections))}
            </TableRegion>
            <PostForm form inline=true>
                <input type="hidden" name="name" value=name/>
                {move || was_sent.get().then(|| view! { <StepUpField form/> })}
                {move || must_confirm.get().then(confirmation)}
                <button
                    type="submit"
                    class="button"
                    name="action"
                    value=move || if drained.get() { RESUME } else { DRAIN }
                    aria-describedby=heading
                >
                    {move || match (drained.get(), must_confirm.get()) {
                        (true, _) => "Resume",
                        (false, true) => "Drain all the same",
                        (false, false) => "Drain",
                    }}
                </button>
            </PostForm>
        </section>
    }
}
