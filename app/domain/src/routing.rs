//! Routes choose the carrier for a message.

use std::num::NonZeroU32;

use crate::{Kind, Money, Reference};

/// A rule that picks a carrier. A condition that is `None` holds for every message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The carrier's name.
    pub carrier: String,
    /// Routes with a smaller priority are tried first.
    pub priority: u32,
    /// The route's share of the messages, relative to other routes with the same priority.
    pub weight: NonZeroU32,
    pub kind: Option<Kind>,
    /// The leading digits of the number as the carrier gets it: with country code, without `+`.
    pub prefix: Option<String>,
    pub application: Option<Reference>,
    /// The sender as the carrier gets it. Names that differ only in case are the same name.
    pub sender: Option<String>,
    /// The carrier's charge for a segment. `None` if unknown.
    pub cost: Option<Money>,
}

/// The facts about a message that routes depend on.
#[derive(Clone, Copy, Debug)]
pub struct RoutingFacts<'a> {
    pub kind: Kind,
    /// The number as the carrier gets it; see [`Number::for_carrier`](crate::Number::for_carrier).
    pub number: &'a str,
    /// `None` if it isn't known. Then no route for a particular application matches.
    pub application: Option<Reference>,
    /// The sender as the carrier gets it: the application's name, or the default if it has none.
    pub sender: &'a str,
}

/// The carrier for a message, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// Submit the message to this carrier.
    Carrier(&'a str),
    /// Wait: there are carriers for the message, but none is usable now.
    Wait,
    /// Every carrier that could take the message is excluded. Waiting doesn't help.
    Exhausted,
    /// No route matches the message. Waiting doesn't help.
    NoRoute,
}

/// All routes, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes(Vec<Route>);

impl Route {
    /// Whether all conditions hold.
    pub fn matches(&self, facts: &RoutingFacts<'_>) -> bool {
        self.mismatch(facts).is_none()
    }

    /// Returns the name of the first condition that doesn't hold.
    pub fn mismatch(&self, facts: &RoutingFacts<'_>) -> Option<&'static str> {
        let holds = [
            ("kind", self.kind.is_none_or(|kind| kind == facts.kind)),
            (
                "prefix",
                self.prefix.as_deref().is_none_or(|prefix| facts.number.starts_with(prefix)),
            ),
            ("application", self.application.is_none() || self.application == facts.application),
            (
                "sender",
                self.sender.as_deref().is_none_or(|name| name.eq_ignore_ascii_case(facts.sender)),
            ),
        ];
        holds.into_iter().find(|(_, holds)| !holds).map(|(name, _)| name)
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

    /// Returns a carrier's charge for a segment of a message. The carrier's first matching route
    /// determines it.
    pub fn cost(&self, carrier: &str, facts: &RoutingFacts<'_>) -> Option<Money> {
        let mut of_carrier = self.0.iter().filter(|route| route.carrier == carrier);
        of_carrier.find(|route| route.matches(facts))?.cost
    }

    /// Returns the carrier of the first matching route whose carrier is usable. Among routes with
    /// the same priority, picks one at random by weight.
    ///
    /// `random` must be uniformly distributed over all `u64` values. `usable` returns whether a
    /// carrier can take a message now. `excluded` lists carriers that must not get this message,
    /// such as one that refused it.
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

/// Picks a route at random, in proportion to its weight. Returns `None` if there are no routes.
fn by_weight<'a>(routes: &[&'a Route], random: u64) -> Option<&'a Route> {
    let weight = |route: &Route| u64::from(route.weight.get());
    let total: u64 = routes.iter().map(|route| weight(route)).sum();
    // random / 2^64 × total, rounded down: uniformly distributed over the shares of all routes.
    let mut place = (u128::from(random) * u128::from(total)) >> u64::BITS;
    routes.iter().copied().find(|route| {
        let weight = u128::from(weight(route));
        let found = place < weight;
        place = place.saturating_sub(weight);
        found
    })
}
