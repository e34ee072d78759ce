//! Routes choose the carrier for a message.

use std::num::NonZeroU32;

use domain::routing::{Choice, Route, Routes, RoutingFacts};
use domain::{Kind, Reference};
use proptest::prelude::*;

use crate::seeded;

const CARRIERS: [&str; 4] = ["north", "south", "east", "west"];
const REFERENCES: [&str; 2] = ["012345", "987654"];

fn route(carrier: &str, priority: u32, weight: u32) -> Route {
    Route {
        carrier: carrier.to_owned(),
        priority,
        weight: NonZeroU32::new(weight).unwrap(),
        kind: None,
        prefix: None,
        application: None,
        sender: None,
        cost: None,
    }
}

fn reference(text: &str) -> Reference {
    Reference::parse(text).unwrap()
}

fn local<'a>(number: &'a str, application: Reference, sender: &'a str) -> RoutingFacts<'a> {
    RoutingFacts { kind: Kind::Local, number, application: Some(application), sender }
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
            cost: None,
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
        let application = Some(application);
        let facts = RoutingFacts { kind, number, application, sender };
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
