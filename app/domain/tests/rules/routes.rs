//! Routes choose the carrier for a message.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use domain::opening_hours::{Days, OpeningHours, Span};
use domain::rewriting::NumberRule;
use domain::routing::{Choice, Costs, Qualities, Route, RouteOrder, Routes, RoutingFacts};
use domain::{Kind, Money, Reference, Timestamp, Zone};
use proptest::prelude::*;

use crate::seeded;

const CARRIERS: [&str; 4] = ["north", "south", "east", "west"];
const REFERENCES: [&str; 2] = ["012345", "987654"];

fn route(carrier: &str, priority: u32, weight: u32) -> Route {
    Route { priority, weight: NonZeroU32::new(weight).unwrap(), ..Route::to(carrier.to_owned()) }
}

fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

fn local<'a>(number: &'a str, application: Reference, sender: &'a str) -> RoutingFacts<'a> {
    RoutingFacts {
        kind: Kind::Local,
        number,
        application: Some(application),
        sender,
        segments: 1,
        now: Timestamp::from_unix_ms(0),
        qualities: None,
    }
}

#[test]
fn every_condition_can_exclude_a_message() {
    let (own, other) = (reference("012345"), reference("987654"));
    let facts = local("26657000001", own, "Acme");
    let with = |change: &dyn Fn(&mut Route)| {
        let mut route = route("north", 1, 1);
        change(&mut route);
        route.matches(&facts)
    };
    assert!(with(&|_| ()));
    assert!(with(&|route| route.kind = Some(Kind::Local)));
    assert!(!with(&|route| route.kind = Some(Kind::International)));
    for (prefix, fits) in [
        ("2665", true),
        ("26657000001", true),
        ("27", false),
        ("57", false),
        ("266570000010", false),
    ] {
        let fitted = with(&|route| route.prefix = Some(prefix.to_owned()));
        assert_eq!(fitted, fits, "{prefix}");
    }
    assert!(with(&|route| route.application = Some(own)));
    assert!(!with(&|route| route.application = Some(other)));
    for (sender, fits) in [("Acme", true), ("ACME", true), ("Acm", false)] {
        let fitted = with(&|route| route.sender = Some(sender.to_owned()));
        assert_eq!(fitted, fits, "{sender}");
    }
    // One condition that doesn't hold is enough to rule out a route.
    assert!(!with(&|route| {
        route.kind = Some(Kind::Local);
        route.prefix = Some("27".to_owned());
    }));
}

#[test]
fn a_message_without_carrier_has_a_reason() {
    let own = reference("012345");
    let facts = local("26657000001", own, "Acme");
    let abroad = Route { kind: Some(Kind::International), ..route("west", 1, 1) };
    let routes = Routes::new(vec![abroad, route("south", 2, 1), route("north", 1, 1)]);
    let choose = |usable: &[&str], excluded: &[&str]| {
        routes.choose(&facts, 0, |carrier| usable.contains(&carrier), excluded)
    };
    let all = &CARRIERS;
    assert_eq!(choose(all, &[]), Choice::Carrier("north"));
    assert_eq!(choose(&["south"], &[]), Choice::Carrier("south"));
    assert_eq!(choose(all, &["north"]), Choice::Carrier("south"));
    assert_eq!(choose(&["west"], &[]), Choice::Wait);
    assert_eq!(choose(&["north"], &["north"]), Choice::Wait);
    assert_eq!(choose(&[], &["south"]), Choice::Wait);
    assert_eq!(choose(all, &["south", "north"]), Choice::Exhausted);
    let only_abroad = Routes::new(vec![routes.as_slice()[0].clone()]);
    assert_eq!(only_abroad.as_slice()[0].carrier, "west");
    assert_eq!(only_abroad.choose(&facts, 0, |_| true, &[]), Choice::NoRoute);
    assert_eq!(only_abroad.choose(&facts, 0, |_| true, &["west"]), Choice::NoRoute);
    assert_eq!(Routes::default().choose(&facts, 0, |_| true, &[]), Choice::NoRoute);
}

/// Returns a time in the week that began on Monday, 1970-01-05.
fn at(day: i64, hour: i64, minute: i64) -> Timestamp {
    Timestamp::from_unix_ms(((4 + day) * 24 * 60 + hour * 60 + minute) * 60_000)
}

fn open(span: &str, days: &str) -> OpeningHours {
    OpeningHours {
        span: Span::parse(span).unwrap(),
        days: Days::parse(days).unwrap(),
        zone: Zone::default(),
    }
}

#[test]
fn hours_begin_and_end_on_their_days() {
    let day = open("08:00-20:00", "mon-fri");
    assert!(day.include(at(0, 8, 0)) && day.include(at(4, 19, 59)));
    assert!(!day.include(at(0, 7, 59)) && !day.include(at(0, 20, 0)) && !day.include(at(5, 12, 0)));
    // The hours after midnight belong to the day before.
    let night = open("20:00-06:00", "sun, mon");
    for (time, is_open) in [
        (at(0, 5, 59), true),
        (at(0, 6, 0), false),
        (at(0, 20, 0), true),
        (at(1, 5, 59), true),
        (at(1, 20, 0), false),
        (at(6, 5, 0), false),
    ] {
        assert_eq!(night.include(time), is_open, "{time:?}");
    }
    let east = vec![(Timestamp::from_unix_ms(0), 120, "SAST".to_owned())];
    let zone = Zone::new("Africa/Maseru".to_owned(), east);
    let there = OpeningHours { zone, ..open("08:00-24:00", "tue") };
    assert!(there.include(at(1, 6, 0)) && there.include(at(1, 21, 59)));
    assert!(!there.include(at(1, 5, 59)) && !there.include(at(1, 22, 0)));
    for (hours, time, opening) in [
        (&day, at(0, 12, 0), at(0, 12, 0)),
        (&day, at(0, 20, 0), at(1, 8, 0)),
        (&day, at(4, 20, 0), at(7, 8, 0)),
        (&night, at(1, 6, 0), at(6, 20, 0)),
        (&there, at(2, 6, 0), at(8, 6, 0)),
    ] {
        assert_eq!(hours.opening(time), opening, "{time:?}");
    }
    for wrong in ["8:00-9:00", "08:00", "08:00-24:01", "24:00-08:00", "08:60-09:00", "-"] {
        assert_eq!(Span::parse(wrong), None, "{wrong}");
    }
    assert_eq!(Days::parse("fri-mon"), Days::parse("fri,sat,sun,mon"));
    assert_eq!(Days::parse("mon,,tue"), None);
}

#[test]
fn a_closed_route_makes_messages_wait_unless_another_one_matches() {
    let own = reference("012345");
    let night = Route { hours: Some(open("20:00-06:00", "mon-sun")), ..route("north", 1, 1) };
    let facts = RoutingFacts { now: at(0, 12, 0), ..local("26657000001", own, "Acme") };
    let alone = Routes::new(vec![night.clone()]);
    assert_eq!(alone.choose(&facts, 0, |_| true, &[]), Choice::Wait);
    assert_eq!(alone.choose(&facts, 0, |_| true, &["north"]), Choice::Exhausted);
    let later = RoutingFacts { now: at(0, 20, 0), ..facts };
    assert_eq!(alone.choose(&later, 0, |_| true, &[]), Choice::Carrier("north"));
    let both = Routes::new(vec![night, route("south", 2, 1)]);
    assert_eq!(both.choose(&facts, 0, |_| true, &[]), Choice::Carrier("south"));
    assert_eq!(both.choose(&later, 0, |_| true, &[]), Choice::Carrier("north"));
}

#[test]
fn the_lowest_cost_or_the_best_quality_wins_among_equals() {
    let own = reference("012345");
    let of = |order, costs: [&[(&str, i64)]; 3]| {
        let priced = costs.into_iter().zip(CARRIERS).map(|(costs, carrier)| Route {
            order,
            cost: Costs::new(
                costs
                    .iter()
                    .map(|(prefix, cost)| ((*prefix).to_owned(), Money::from_micros(*cost)))
                    .collect(),
            ),
            ..route(carrier, 1, 1)
        });
        Routes::new(priced.chain([route("west", 2, 1)]).collect())
    };
    let routes = of(RouteOrder::Cost, [&[("", 5), ("2665", 3)], &[("", 4)], &[]]);
    let cheapest = |number, usable: &[&str]| {
        let facts = local(number, own, "Acme");
        match routes.choose(&facts, u64::MAX, |carrier| usable.contains(&carrier), &[]) {
            Choice::Carrier(carrier) => carrier.to_owned(),
            none => format!("{none:?}"),
        }
    };
    assert_eq!(cheapest("26657000001", &CARRIERS), "north");
    assert_eq!(cheapest("26622000001", &CARRIERS), "south");
    // An unknown cost counts as the highest, and other priorities come later.
    assert_eq!(cheapest("26622000001", &["east", "west"]), "east");
    assert_eq!(cheapest("26622000001", &["west"]), "west");

    let routes = of(RouteOrder::Quality, [&[], &[], &[]]);
    let qualities = Qualities::from([("north", 91), ("south", 93)].map(|(c, q)| (c.to_owned(), q)));
    let taken = |qualities: &Qualities| {
        let facts = local("26657000001", own, "Acme");
        let facts = RoutingFacts { qualities: Some(qualities), ..facts };
        // The high bits choose by weight, and the low bits whether quality counts.
        let step = u64::MAX / 400;
        let mut taken: BTreeMap<String, u32> = BTreeMap::new();
        for random in (0..400).map(|place| place * step) {
            match routes.choose(&facts, random, |_| true, &[]) {
                Choice::Carrier(carrier) => *taken.entry(carrier.to_owned()).or_default() += 1,
                none => panic!("{none:?}"),
            }
        }
        taken
    };
    let close = taken(&qualities);
    assert!(close["north"] > 150 && close["south"] > 150 && close["east"] < 20, "{close:?}");
    let apart = taken(&Qualities::from([("north".to_owned(), 50), ("south".to_owned(), 93)]));
    assert!(apart["south"] > 350 && apart["north"] < 20, "{apart:?}");
    let unknown = taken(&Qualities::new());
    assert!(unknown.values().all(|count| *count > 100), "{unknown:?}");
}

#[test]
fn a_number_rule_changes_only_numbers_that_begin_so() {
    let rule = |strip: &str, add: &str| NumberRule { strip: strip.to_owned(), add: add.to_owned() };
    for (strip, add, number, written) in [
        ("266", "0", "26657000001", "057000001"),
        ("266", "", "26657000001", "57000001"),
        ("", "00", "26657000001", "0026657000001"),
        ("", "+", "26657000001", "+26657000001"),
    ] {
        let rule = rule(strip, add);
        assert_eq!(rule.apply(number), written);
        assert_eq!(rule.undo(written).as_deref(), Some(number));
    }
    assert_eq!(rule("266", "0").apply("2782000000"), "2782000000");
    assert_eq!(rule("266", "0").undo("2782000000"), None);
}

fn any_route() -> impl Strategy<Value = Route> {
    (
        prop::sample::select(CARRIERS.to_vec()),
        0..3_u32,
        prop_oneof![1..5_u32, Just(u32::MAX)],
        prop::option::of(prop::sample::select(vec![Kind::Local, Kind::International])),
        prop::option::of(prop::sample::select(vec!["266", "2665", "27", "4"])),
        prop::option::of(prop::sample::select(REFERENCES.to_vec())),
        prop::option::of(prop::sample::select(vec!["Acme", "acme", "Other"])),
    )
        .prop_map(|(carrier, priority, weight, kind, prefix, application, sender)| Route {
            kind,
            prefix: prefix.map(str::to_owned),
            application: application.map(reference),
            sender: sender.map(str::to_owned),
            ..route(carrier, priority, weight)
        })
}

/// Any subset of the carriers.
fn any_carriers() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(CARRIERS.to_vec(), 0..=CARRIERS.len())
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn the_choice_is_of_the_first_priority_that_has_a_carrier(
        routes in prop::collection::vec(any_route(), 0..8),
        facts in (
            prop::sample::select(vec![Kind::Local, Kind::International]),
            prop::sample::select(vec!["26657000001", "26622000001", "2782000000", "4420000000"]),
            prop::sample::select(REFERENCES.to_vec()),
            prop::sample::select(vec!["Acme", "Heliograph"]),
        ),
        usable in any_carriers(),
        excluded in any_carriers(),
        random in any::<u64>(),
    ) {
        let (kind, number, application, sender) = facts;
        let application = reference(application);
        let facts = RoutingFacts { kind, ..local(number, application, sender) };
        let held = Routes::new(routes.clone());
        let choice = held.choose(&facts, random, |carrier| usable.contains(&carrier), &excluded);

        // The routes that remain after each step.
        let matching: Vec<&Route> = routes.iter().filter(|route| route.matches(&facts)).collect();
        let allowed: Vec<&Route> = matching.iter().copied()
            .filter(|route| !excluded.contains(&route.carrier.as_str())).collect();
        let able: Vec<&Route> = allowed.iter().copied()
            .filter(|route| usable.contains(&route.carrier.as_str())).collect();
        match choice {
            Choice::Carrier(carrier) => {
                let first = able.iter().map(|route| route.priority).min();
                let is_chosen =
                    |route: &&Route| route.carrier == carrier && Some(route.priority) == first;
                prop_assert!(able.iter().any(is_chosen));
            }
            Choice::Wait => prop_assert!(able.is_empty() && !allowed.is_empty()),
            Choice::Exhausted => prop_assert!(allowed.is_empty() && !matching.is_empty()),
            Choice::NoRoute => prop_assert!(matching.is_empty()),
        }
    }

    #[test]
    fn routes_of_one_priority_get_exactly_their_weights(
        weights in prop::collection::vec(1..20_u32, 1..=CARRIERS.len()),
        down in prop::option::of(0..CARRIERS.len()),
    ) {
        let down = down.map(|place| CARRIERS[place]);
        let usable = |carrier: &str| Some(carrier) != down;
        let equals =
            weights.iter().zip(CARRIERS).map(|(weight, carrier)| route(carrier, 5, *weight));
        // This route isn't chosen while one of the routes above is usable.
        let routes = Routes::new(equals.chain([route("last", 6, 1_000)]).collect());
        let own = reference("012345");
        let facts = local("26657000001", own, "Acme");
        let mut wanted: Vec<(&str, u32)> = CARRIERS.into_iter().zip(weights).collect();
        wanted.retain(|(carrier, _)| usable(carrier));
        if wanted.is_empty() {
            wanted.push(("last", 1));
        }
        // One random number for each share of the total weight: the first number of the share.
        let total: u32 = wanted.iter().map(|(_, weight)| weight).sum();
        let numbers = (0..total).map(|share| {
            let number = (u128::from(share) << 64).div_ceil(u128::from(total));
            u64::try_from(number).unwrap()
        });
        let chosen: Vec<Choice> = numbers
            .map(|random| routes.choose(&facts, random, usable, &[]))
            .collect();
        for (carrier, weight) in wanted {
            let times = chosen.iter().filter(|choice| **choice == Choice::Carrier(carrier)).count();
            prop_assert_eq!(times, weight as usize, "{}", carrier);
        }
    }
}
