//! `/support`: the first page of staff.

use domain::records::{CarrierRecord, CarrierState};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::client::call;
#[cfg(feature = "ssr")]
use crate::portal_request::staff;
use crate::problem::Problem;
use crate::ui::{Loaded, Page, StateMark};

/// The carriers, which the page counts.
///
/// # Errors
/// When nobody is signed in, whoever is signed in isn't staff, or the service fails.
#[server(prefix = "/fn", endpoint = "support", input = GetUrl)]
pub async fn load_support() -> Result<Vec<CarrierRecord>, Problem> {
    let (current, _) = staff().await?;
    Ok(current.service().carriers().await?)
}

#[component]
pub fn SupportPage() -> impl IntoView {
    let data = Resource::new(|| (), |()| call(LoadSupport {}));
    view! { <Loaded data render=|carriers| view! { <Contents carriers/> }/> }
}

#[component]
fn Contents(carriers: Vec<CarrierRecord>) -> impl IntoView {
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
            <h2>
                <a href="/support/carriers">"Carriers"</a>
            </h2>
            <p>"The connections to those who take our messages, and the messages that wait."</p>
            <ul>{counts}</ul>
        </Page>
    }
}
