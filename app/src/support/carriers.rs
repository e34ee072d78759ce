//! `/support/carriers`; it follows the carriers while it is open.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::client::read;
use crate::problem::Problem;
use crate::ui::{FormAlert, FormState, Loaded, Page, PostForm, Rendered};
#[cfg(feature = "ssr")]
use {
    super::readings, crate::portal_request::staff, crate::problem::Cause, domain::Timestamp,
    domain::records::CarrierRecord, service::Actor,
};

/// Where the carriers' changes are told, as server-sent events; each is [`LiveCarriers`] in JSON.
pub const CARRIER_EVENTS_PATH: &str = "/support/carriers/events";

/// The carriers as their page shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveCarriers {
    /// For who listens rather than looks: it changes with a carrier's state alone.
    pub spoken: String,
    pub carriers: Vec<LiveCarrier>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveCarrier {
    pub name: String,
    pub drained: bool,
    pub readings: Rendered,
    pub connections: Rendered,
}

impl LiveCarriers {
    #[cfg(feature = "ssr")]
    #[must_use]
    pub fn of(carriers: Vec<CarrierRecord>, now: Timestamp) -> Self {
        let live = |carrier: CarrierRecord| LiveCarrier {
            readings: readings::readings(&carrier, now),
            connections: readings::connections(&carrier),
            drained: carrier.drained_at.is_some(),
            name: carrier.name,
        };
        Self {
            spoken: readings::spoken(&carriers),
            carriers: carriers.into_iter().map(live).collect(),
        }
    }

    fn placed(mut self) -> Self {
        for carrier in &mut self.carriers {
            carrier.readings = carrier.readings.clone().placed();
            carrier.connections = carrier.connections.clone().placed();
        }
        self
    }
}

/// Every carrier, for staff.
#[server(prefix = "/fn", endpoint = "carriers", input = GetUrl)]
pub async fn load_carriers() -> Result<LiveCarriers, Problem> {
    let (current, _) = staff().await?;
    let service = current.service();
    let carriers = service.carriers().await?;
    Ok(LiveCarriers::of(carriers, service.clock().now()))
}

/// Drains or resumes a carrier; what is so already stays so.
#[server(prefix = "/fn", endpoint = "change-carrier")]
pub async fn change_carrier(name: String, action: String) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let (service, actor) = (current.service(), Actor::Account(account.id));
    match action.as_str() {
        DRAIN => service.drain_carrier(&actor, &name).await?,
        RESUME => service.resume_carrier(&actor, &name).await?,
        _ => return Err(Cause::Unreadable.into()),
    };
    Ok(())
}

const DRAIN: &str = "drain";
const RESUME: &str = "resume";

#[component]
pub fn CarriersPage() -> impl IntoView {
    let form = FormState::new::<ChangeCarrier>("carrier-alert");
    let data = Resource::new(
        || (),
        |()| async { read(LoadCarriers {}).await.map(LiveCarriers::placed) },
    );
    let render = move |carriers| view! { <Carriers carriers form/> };
    view! { <Loaded data render/> }
}

#[component]
fn Carriers(carriers: LiveCarriers, form: FormState) -> impl IntoView {
    let names: Vec<_> = (carriers.carriers.iter())
        .map(|carrier| carrier.name.clone())
        .collect();
    let live = RwSignal::new(carriers);
    #[cfg(feature = "hydrate")]
    crate::ui::follow(CARRIER_EVENTS_PATH, live, |_| true);
    Effect::new(move || {
        if form.accepted.get() > 0 {
            // At once, and without new buttons: the one that was pressed keeps the focus.
            leptos::task::spawn_local(async move {
                if let Ok(carriers) = read(LoadCarriers {}).await {
                    live.try_set(carriers);
                }
            });
        }
    });
    let sections = (names.into_iter().enumerate())
        .map(|(place, name)| view! { <Carrier place name live form/> })
        .collect_view();
    view! {
        <Page title="Carriers">
            <p class="back">
                <a href="/support">"Support"</a>
            </p>
            <p class="lead">
                "A drained carrier is handed nothing more; what it has goes on, and what waits takes another route where there is one."
            </p>
            <FormAlert form/>
            <div class="visually-hidden" role="status">
                {move || live.with(|live| live.spoken.clone())}
            </div>
            {sections}
        </Page>
    }
}

/// One carrier: its place in the list, which stays what it is while the server runs.
#[component]
fn Carrier(
    place: usize,
    name: String,
    live: RwSignal<LiveCarriers>,
    form: FormState,
) -> impl IntoView {
    let heading = format!("carrier-{name}");
    let of = move |part: fn(&LiveCarrier) -> &Rendered| {
        live.with(|live| live.carriers.get(place).map(|carrier| part(carrier).html()))
    };
    let drained = Memo::new(move |_| {
        live.with(|live| {
            live.carriers
                .get(place)
                .is_some_and(|carrier| carrier.drained)
        })
    });
    view! {
        <section>
            <h2 id=heading.clone()>{name.clone()}</h2>
            <div inner_html=move || of(|carrier| &carrier.readings)></div>
            <div
                class="table-scroll"
                tabindex="0"
                role="region"
                aria-label=format!("Connections of {name}")
                inner_html=move || of(|carrier| &carrier.connections)
            ></div>
            <PostForm form class="form-inline">
                <input type="hidden" name="name" value=name/>
                <button
                    type="submit"
                    class="button"
                    name="action"
                    value=move || if drained.get() { RESUME } else { DRAIN }
                    aria-describedby=heading
                >
                    {move || if drained.get() { "Resume" } else { "Drain" }}
                </button>
            </PostForm>
        </section>
    }
}
