//! Routes choose the carrier for a message.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::opening_hours::OpeningHours;
use crate::rewriting::Rewriting;
use crate::words::words;
use crate::{Kind, Money, Reference, Timestamp};

/// With the order [`RouteOrder::Quality`], one in this many messages is distributed by weight, so
/// that the qualities of all carriers stay known.
const EXPLORING: u64 = 20;
/// Carriers whose qualities differ by at most this many percentage points count as equally good.
const QUALITY_MARGIN: u64 = 2;

/// A rule that picks a carrier. A condition that is `None` holds for every message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The carrier's name.
    pub carrier: String,
    /// Routes with a smaller priority are tried first.
    pub priority: u32,
    /// The route's share of the messages, relative to other routes with the same priority.
    pub weight: NonZeroU32,
    /// How to choose among routes with the same priority. All of them have the same order.
    pub order: RouteOrder,
    pub kind: Option<Kind>,
    /// The leading digits of the number with country code, without `+`.
    pub prefix: Option<String>,
    /// A regular expression on the same number.
    pub pattern: Option<Pattern>,
    pub application: Option<Reference>,
    /// The sender, before it is rewritten. Names that differ only in case are the same name.
    pub sender: Option<String>,
    pub hours: Option<OpeningHours>,
    /// The most segments of a message that the carrier accepts.
    pub segments_max: Option<usize>,
    /// The carrier's charge for a segment.
    pub cost: Costs,
    /// How numbers and senders are rewritten on this route. These rules take precedence over the
    /// carrier's own.
    pub rewriting: Rewriting,
}

words! {
    /// How to choose among routes with the same priority.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum RouteOrder {
        /// At random, in proportion to the weights.
        #[default]
        Weight = "weight",
        /// The route with the lowest cost.
        Cost = "cost",
        /// By weight, among the carriers that deliver the largest shares of their messages.
        Quality = "quality",
    }
}

/// A carrier's charges for a segment, by the prefix of the number. The longest prefix that fits
/// counts. Empty if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs(Vec<(String, Money)>);

/// A regular expression. The caller provides it, because the domain has none.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    matches: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The share of messages that carriers delivered lately, in percent. Carriers with too few messages
/// aren't included.
pub type Qualities = BTreeMap<String, u64>;

/// The facts about a message that routes depend on.
#[derive(Clone, Copy, Debug)]
pub struct RoutingFacts<'a> {
    pub kind: Kind,
    /// The number with country code; see [`Number::for_carrier`](crate::Number::for_carrier).
    pub number: &'a str,
    /// If `None`, the application isn't known, and no route for a particular application matches.
    pub application: Option<Reference>,
    /// The application's sender name, or the default if it has none.
    pub sender: &'a str,
    pub segments: usize,
    pub now: Timestamp,
    /// `None` if the order of the routes doesn't depend on it.
    pub qualities: Option<&'a Qualities>,
}

/// The carrier for a message, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// Submit the message to this carrier.
    Carrier(&'a str),
    /// Wait: there are carriers for the message, but none is usable now, or their routes are
    /// closed.
    Wait,
    /// Every carrier that could take the message is excluded. Waiting doesn't help.
    Exhausted,
    /// No route matches the message. Waiting doesn't help.
    NoRoute,
}

/// All routes, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes(Vec<Route>);

impl Costs {
    /// Creates costs from prefixes. The empty prefix fits every number.
    pub fn new(mut by_prefix: Vec<(String, Money)>) -> Self {
        by_prefix.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Self(by_prefix)
    }

    /// Returns the charge for a segment to this number. `None` if unknown.
    pub fn of(&self, number: &str) -> Option<Money> {
        let fitting = self.0.iter().find(|(prefix, _)| number.starts_with(prefix));
        fitting.map(|(_, cost)| *cost)
    }
}

/// The same cost for all numbers.
impl From<Money> for Costs {
    fn from(cost: Money) -> Self {
        Self(vec![(String::new(), cost)])
    }
}

impl Pattern {
    /// `matches` must evaluate the expression `text`.
    pub fn new(text: String, matches: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self { text, matches: Arc::new(matches) }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}

impl Route {
    /// Creates a route for all messages.
    pub fn to(carrier: String) -> Self {
        Self {
            carrier,
            priority: 0,
            weight: NonZeroU32::MIN,
            order: RouteOrder::default(),
            kind: None,
            prefix: None,
            pattern: None,
            application: None,
            sender: None,
            hours: None,
            segments_max: None,
            cost: Costs::default(),
            rewriting: Rewriting::default(),
        }
    }

    /// Whether all conditions hold.
    pub fn matches(&self, facts: &RoutingFacts<'_>) -> bool {
        self.mismatch(facts).is_none()
    }

    /// Whether the message may take this route at some time: all conditions but the hours hold.
    pub fn fits(&self, facts: &RoutingFacts<'_>) -> bool {
        self.mismatch(facts).is_none_or(|condition| condition == "hours")
    }

    /// Returns the name of the first condition that doesn't hold. The hours come last.
    pub fn mismatch(&self, facts: &RoutingFacts<'_>) -> Option<&'static str> {
        let holds = [
            ("kind", self.kind.is_none_or(|kind| kind == facts.kind)),
            (
                "prefix",
                self.prefix.as_deref().is_none_or(|prefix| facts.number.starts_with(prefix)),
            ),
            ("pattern", self.pattern.as_ref().is_none_or(|p| (p.matches)(facts.number))),
            ("application", self.application.is_none() || self.application == facts.application),
            (
                "sender",
                self.sender.as_deref().is_none_or(|name| name.eq_ignore_ascii_case(facts.sender)),
            ),
            ("segments_max", self.segments_max.is_none_or(|max| facts.segments <= max)),
            ("hours", self.hours.as_ref().is_none_or(|hours| hours.include(facts.now))),
        ];
        holds.into_iter().find(|(_, holds)| !holds).map(|(name, _)| name)
    }

    /// Whether every message may take this route.
    pub const fn is_for_all(&self) -> bool {
        self.kind.is_none()
            && self.prefix.is_none()
            && self.pattern.is_none()
            && self.application.is_none()
            && self.sender.is_none()
            && self.hours.is_none()
            && self.segments_max.is_none()
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

    /// Returns the carrier's first route that fits a message, whatever the hour.
    pub fn first_to(&self, carrier: &str, facts: &RoutingFacts<'_>) -> Option<&Route> {
        let mut of_carrier = self.0.iter().filter(|route| route.carrier == carrier);
        of_carrier.find(|route| route.fits(facts))
    }

    /// Returns a carrier's charge for a segment of a message. The carrier's first route that fits
    /// the message determines it.
    pub fn cost(&self, carrier: &str, facts: &RoutingFacts<'_>) -> Option<Money> {
        self.first_to(carrier, facts)?.cost.of(facts.number)
    }

    /// Returns the carrier of the first matching route whose carrier is usable. Among routes with
    /// the same priority, their order decides.
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
            for route in equals.iter().filter(|route| route.fits(facts)) {
                if excluded.contains(&route.carrier.as_str()) {
                    if none == Choice::NoRoute {
                        none = Choice::Exhausted;
                    }
                } else if usable(&route.carrier) && route.matches(facts) {
                    candidates.push(route);
                } else {
                    none = Choice::Wait;
                }
            }
            prefer(&mut candidates, facts, random);
            if let Some(route) = by_weight(&candidates, random) {
                return Choice::Carrier(&route.carrier);
            }
        }
        none
    }
}

/// Leaves only the routes that their order prefers.
fn prefer(routes: &mut Vec<&Route>, facts: &RoutingFacts<'_>, random: u64) {
    let order = routes.first().map_or(RouteOrder::Weight, |route| route.order);
    match order {
        RouteOrder::Weight => {}
        RouteOrder::Cost => {
            // An unknown cost counts as the highest.
            let rank = |route: &Route| {
                let cost = route.cost.of(facts.number);
                (cost.is_none(), cost)
            };
            let least = routes.iter().map(|route| rank(route)).min();
            routes.retain(|route| Some(rank(route)) == least);
        }
        // The low bits are independent of the high bits, which `by_weight` uses.
        RouteOrder::Quality if random.is_multiple_of(EXPLORING) => {}
        RouteOrder::Quality => {
            let quality = |route: &Route| facts.qualities?.get(&route.carrier).copied();
            if let Some(best) = routes.iter().filter_map(|route| quality(route)).max() {
                routes.retain(|route| quality(route).is_some_and(|q| q + QUALITY_MARGIN >= best));
            }
        }
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
