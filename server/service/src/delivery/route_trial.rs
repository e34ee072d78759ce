//! Finds the route that a message would take now, and says why.

use std::collections::BTreeMap;

use domain::records::CarrierState;
use domain::routing::{Choice, Route, RouteOrder, RoutingFacts};
use domain::{Money, Number, Reference};

use crate::Delivery;
use crate::delivery::routing::Message;
use store::error::Result;

/// The message to try routes for.
pub struct TrialMessage {
    pub number: Number,
    /// The default sender if `None`.
    pub sender: Option<String>,
    /// If `None`, no route for a particular application matches.
    pub application: Option<Reference>,
    pub segments: usize,
}

/// The route that a message would take, and the reasons.
pub struct RouteTrial {
    /// The number with country code.
    pub number: String,
    pub sender: String,
    /// The carrier that would get the message, or one of them if equally good routes lead to
    /// several. `None` if the message would wait or be rejected.
    pub carrier: Option<String>,
    /// The number and the sender as this carrier gets them.
    pub written: Option<(String, String)>,
    /// The outcome, in words.
    pub outcome: String,
    /// All routes, in the order in which they are tried.
    pub routes: Vec<TriedRoute>,
}

pub struct TriedRoute {
    pub route: Route,
    /// The carrier's charge for a segment to this number.
    pub cost: Option<Money>,
    /// The share of messages that the route's carrier delivered within the last hour, in percent.
    /// `None` with too few receipts, or if no route depends on the share.
    pub quality: Option<u64>,
    /// The route's condition that the message doesn't meet.
    pub mismatch: Option<&'static str>,
    /// The state of the route's carrier, if the state makes other carriers preferred.
    pub state: Option<CarrierState>,
}

impl TriedRoute {
    const fn is_open(&self) -> bool {
        self.mismatch.is_none() && self.state.is_none()
    }
}

impl Delivery<'_> {
    /// Returns the route that a message would take now, according to the states of the carriers
    /// that all processes reported.
    pub async fn try_routes(&self, message: TrialMessage) -> Result<RouteTrial> {
        let carriers = self.carriers().await?.into_iter();
        let states: BTreeMap<String, CarrierState> =
            carriers.map(|carrier| (carrier.name, carrier.state)).collect();
        self.update_qualities().await?;
        let router = &self.inner.router;
        let (network, qualities) = (router.network(), router.qualities());
        let TrialMessage { number, sender, application, segments } = message;
        let address = number.for_carrier(&router.country_code);
        let sender = sender.unwrap_or_else(|| router.default_sender.clone());
        let facts = RoutingFacts {
            kind: number.kind(),
            number: &address,
            application,
            sender: &sender,
            segments,
            now: self.now(),
            qualities: Some(&qualities),
        };
        let avoided =
            |name: &str| states.get(name).copied().filter(|state| *state != CarrierState::Up);
        let tried: Vec<TriedRoute> = (network.routes.as_slice().iter())
            .map(|route| TriedRoute {
                cost: route.cost.of(&address),
                quality: qualities.get(&route.carrier).copied(),
                mismatch: route.mismatch(&facts),
                state: avoided(&route.carrier),
                route: route.clone(),
            })
            .collect();
        // With this random number, [`RouteOrder::Quality`] never tries the worse routes.
        let choice = network.routes.choose(&facts, 1, |name| avoided(name).is_none(), &[]);
        let (carrier, outcome) = match choice {
            Choice::Carrier(carrier) => {
                let among = among_equals(carrier, &tried);
                (Some(carrier.to_owned()), format!("it goes to {carrier}{among}"))
            }
            Choice::Wait => (None, waits(&tried)),
            Choice::NoRoute | Choice::Exhausted => {
                let error = network.why_unroutable(&Message {
                    number: number.digits(),
                    kind: number.kind(),
                    sender: Some(&sender),
                    application,
                    segments,
                });
                let why = "because no route matches; its charge is released";
                (None, format!("it is rejected with {error}, {why}"))
            }
        };
        let written =
            carrier.as_deref().map(|carrier| router.written(carrier, &number, Some(&sender)));
        Ok(RouteTrial {
            number: address.clone(),
            sender: sender.clone(),
            carrier,
            written,
            outcome,
            routes: tried,
        })
    }
}

/// Returns what decided among several routes with the same priority.
fn among_equals(carrier: &str, tried: &[TriedRoute]) -> &'static str {
    let Some(taken) = tried.iter().find(|tried| tried.is_open() && tried.route.carrier == carrier)
    else {
        return "";
    };
    let priority = taken.route.priority;
    let equals = tried.iter().filter(|tried| tried.is_open() && tried.route.priority == priority);
    match taken.route.order {
        _ if equals.count() < 2 => "",
        RouteOrder::Weight => ", by weight among equals",
        RouteOrder::Cost => ", by cost among equals",
        RouteOrder::Quality => ", by quality among equals",
    }
}

/// Returns why a message waits.
fn waits(tried: &[TriedRoute]) -> String {
    let mut matching = tried.iter().filter(|tried| tried.mismatch.is_none());
    match matching.next() {
        Some(first) => format!("it waits for {}, as no carrier is up", first.route.carrier),
        None => "it waits until the hours of a route begin".to_owned(),
    }
}
