//! Trying out routes: which way a message would take now, and why.

use std::collections::BTreeMap;

use domain::records::CarrierState;
use domain::routing::{Route, RoutingFacts};
use domain::{Number, Reference};

use crate::Delivery;
use store::error::Result;

/// Which way a message would take.
pub struct RouteTrial {
    /// The number as carriers get it.
    pub number: String,
    pub sender: String,
    /// The carrier that would get the message. `None` if it would wait or be rejected. Among
    /// routes with the same priority, one of several carriers.
    pub carrier: Option<String>,
    /// The outcome, in words.
    pub outcome: String,
    /// All routes, in the order in which they are tried.
    pub routes: Vec<TriedRoute>,
}

pub struct TriedRoute {
    pub route: Route,
    /// The condition that doesn't hold.
    pub mismatch: Option<&'static str>,
    /// The state of its carrier, if other carriers are preferred because of it.
    pub state: Option<CarrierState>,
}

impl Delivery<'_> {
    /// Returns which way a message would take now, according to the states of the carriers that all
    /// processes reported. Without an application, no route for a particular one matches.
    pub async fn try_routes(
        &self,
        number: &Number,
        sender: Option<&str>,
        application: Option<Reference>,
    ) -> Result<RouteTrial> {
        let carriers = self.carriers().await?.into_iter();
        let states: BTreeMap<String, CarrierState> =
            carriers.map(|carrier| (carrier.name, carrier.state)).collect();
        let router = &self.inner.router;
        let network = router.network();
        let address = number.for_carrier(&router.country_code);
        let sender = sender.unwrap_or(&router.default_sender).to_owned();
        let facts =
            RoutingFacts { kind: number.kind(), number: &address, application, sender: &sender };
        let avoided =
            |name: &str| states.get(name).copied().filter(|state| *state != CarrierState::Up);
        let tried: Vec<TriedRoute> = (network.routes.as_slice().iter())
            .map(|route| TriedRoute {
                mismatch: route.mismatch(&facts),
                state: avoided(&route.carrier),
                route: route.clone(),
            })
            .collect();
        let matching = || tried.iter().filter(|tried| tried.mismatch.is_none());
        let first = matching().find(|tried| tried.state.is_none());
        let (carrier, outcome) = match (first, matching().next()) {
            (Some(first), _) => {
                let carrier = first.route.carrier.clone();
                let priority = first.route.priority;
                let equals = matching()
                    .filter(|tried| tried.state.is_none() && tried.route.priority == priority);
                let shared = if equals.count() > 1 { ", by weight among equals" } else { "" };
                let outcome = format!("it goes to {carrier}{shared}");
                (Some(carrier), outcome)
            }
            (None, Some(first)) => {
                (None, format!("it waits for {}, as no carrier is up", first.route.carrier))
            }
            (None, None) => (
                None,
                "it is rejected, because no route matches; its charge is released".to_owned(),
            ),
        };
        Ok(RouteTrial {
            number: address.clone(),
            sender: sender.clone(),
            carrier,
            outcome,
            routes: tried,
        })
    }
}
