//! Routes: which carrier gets a message.

use std::num::NonZeroU32;

use crate::{Kind, Money, Reference};

/// A rule that picks a carrier. An absent condition holds for every message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The carrier's name.
    pub carrier: String,
    /// The route with the smallest priority is tried first.
    pub priority: u32,
    /// The route's share of the messages among routes of one priority.
    pub weight: NonZeroU32,
    pub kind: Option<Kind>,
    /// What the number begins with, as the carrier gets it: with country code, without `+`.
    pub prefix: Option<String>,
    pub application: Option<Reference>,
    /// The sender as the carrier gets it, in any case of letters: two cases of a name are one name.
    pub sender: Option<String>,
    /// What the carrier charges for a segment; `None` where that isn't known.
    pub cost: Option<Money>,
}

/// What routes look at in a message.
#[derive(Clone, Copy, Debug)]
pub struct RoutingFacts<'a> {
    pub kind: Kind,
    /// As the carrier gets it (see [`Number::for_carrier`](crate::Number::for_carrier)).
    pub number: &'a str,
    pub application: Reference,
    /// As the carrier gets it: the application's name, or the default when it has none.
    pub sender: &'a str,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// It goes to this carrier.
    Carrier(&'a str),
    /// It waits: carriers that could take it can't be used now.
    Wait,
    /// It goes nowhere: every carrier that could take it is excluded. Waiting changes nothing.
    Exhausted,
    /// It goes nowhere: no route matches it. Waiting changes nothing.
    NoRoute,
}

/// All routes, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct Routes(Vec<Route>);

impl Route {
    /// Whether all conditions hold.
    pub fn matches(&self, facts: &RoutingFacts<'_>) -> bool {
        self.kind.is_none_or(|kind| kind == facts.kind)
            && (self.prefix.as_deref()).is_none_or(|prefix| facts.number.starts_with(prefix))
            && (self.application).is_none_or(|reference| reference == facts.application)
            && (self.sender.as_deref())
                .is_none_or(|sender| sender.eq_ignore_ascii_case(facts.sender))
    }
}

impl Routes {
    pub fn new(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|route| route.priority);
        Self(routes)
    }

    pub fn as_slice(&self) -> &[Route] {
        &self.0
    }

    /// What a carrier charges for a segment of a message, by the first of its routes that matches.
    pub fn cost(&self, carrier: &str, facts: &RoutingFacts<'_>) -> Option<Money> {
        let mut of_carrier = self.0.iter().filter(|route| route.carrier == carrier);
        of_carrier.find(|route| route.matches(facts))?.cost
    }

    /// The carrier of the first route that matches, by weight among those of one priority; the next
    /// one where a carrier isn't usable.
    ///
    /// `random` is a random number: every `u64` must be equally likely. `usable` says whether a
    /// carrier can take a message now. `excluded` are carriers that must not get this message, such
    /// as one that refused it.
    pub fn choose<'a>(
        &'a self,
        facts: &RoutingFacts<'_>,
        random: u64,
        usable: impl Fn(&str) -> bool,
        excluded: &[&str],
    ) -> Choice<'a> {
        let mut none = Choice::NoRoute;
        for equals in self.0.chunk_by(|a, b| a.priority == b.priority) {
            let mut candidates = Vec::new();
            for route in equals.iter().filter(|route| route.matches(facts)) {
                if excluded.contains(&route.carrier.as_str()) {
                    if none == Choice::NoRoute {
                        none = Choice::Exhausted;
                    }
                } else if usable(&route.carrier) {
                    candidates.push(route);
                } else {
                    none = Choice::Wait;
                }
            }
            if let Some(route) = by_weight(&candidates, random) {
                return Choice::Carrier(&route.carrier);
            }
        }
        none
    }
}

/// One of the routes, each as often as its weight says; `None` if there is no route.
fn by_weight<'a>(routes: &[&'a Route], random: u64) -> Option<&'a Route> {
    let weight = |route: &Route| u64::from(route.weight.get());
    let total: u64 = routes.iter().map(|route| weight(route)).sum();
    // random / 2^64 × total, rounded down: evenly spread over the shares of all routes.
    let mut place = (u128::from(random) * u128::from(total)) >> u64::BITS;
    routes.iter().copied().find(|route| {
        let weight = u128::from(weight(route));
        let found = place < weight;
        place = place.saturating_sub(weight);
        found
    })
}
