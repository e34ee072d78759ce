//! Margins: customers' payments for pages, compared with the carriers' charges for segments.

use domain::records::{MarginFigures, MarginRow};
use domain::routing::{Costs, Route, Routes};
use domain::{Prefix, PriceChange, Refusal, Timestamp};
use service::{Actor, Error, Network};

use crate::database::Backend;
use crate::network::{network, refused, taken_as};
use crate::sending::Sending;
use crate::world::{HOUR_MS, World, money};

on_each_backend![
    a_day_is_counted_when_it_is_over_and_again_when_all_is_final,
    the_days_of_a_report_are_bounded,
];

/// All messages go to acme, which charges 0.02 per segment. beta has no cost.
fn with_cost() -> Network {
    let network = network(&[("acme", 1, None), ("beta", 2, None)]);
    let priced = |route: &Route| Route {
        cost: match route.carrier.as_str() {
            "acme" => money("0.02").into(),
            _ => Costs::default(),
        },
        ..route.clone()
    };
    let routes = network.routes.as_slice().iter().map(priced);
    Network { routes: Routes::new(routes.collect()), ..network }
}

fn shown(row: &MarginRow) -> String {
    let figures = &row.figures;
    format!(
        "{}: {} messages, {} pages, {} segments ({}), {} - {} = {}",
        row.name,
        figures.messages,
        figures.pages,
        figures.segments,
        figures.ratio(),
        figures.charged,
        figures.cost,
        figures.margin(),
    )
}

async fn a_day_is_counted_when_it_is_over_and_again_when_all_is_final(backend: Backend) {
    let world = World::with(backend, with_cost()).await;
    let customer = world.active("one@example.org", "100").await;
    let day = world.now().day();
    world.pass(1);
    let abroad = PriceChange::Prefix(Prefix::parse("27").unwrap(), Some(money("0.2")));
    let ledger = world.service.money();
    let set = ledger.set_price(&Actor::CommandLine, abroad, None);
    set.await.unwrap();
    let sending = Sending { world, customer };
    // A page in three UCS-2 segments, a page abroad, and one that acme and beta refuse.
    let handed = sending.submitted().await;
    let three = [1, 2, 3].map(|n| (n, taken_as(&format!("c{n}"))));
    sending.answer_segments(&handed, 3, &three).await;
    let (world, live) = (&sending.world, &sending.customer.live);
    world.send(live, "27821234567").await.unwrap();
    let handed = sending.claim_one("acme").await;
    sending.answer(&handed, taken_as("c4")).await;
    let handed = sending.submitted().await;
    sending.answer(&handed, refused()).await;
    let handed = sending.claim_one("beta").await;
    sending.answer(&handed, refused()).await;
    // Test messages don't count.
    world.send(&sending.customer.test, "12345678").await.unwrap();

    world.service.messages().count_margins().await.unwrap();
    let nothing = world.service.messages().margins((day, day)).await.unwrap();
    assert_eq!((nothing.counted, nothing.total), (None, MarginFigures::default()));
    world.pass(25 * HOUR_MS);
    world.service.messages().count_margins().await.unwrap();
    let report = world.service.messages().margins((day, day + 1)).await.unwrap();
    assert_eq!((report.counted, report.final_until), (Some(day), None));
    let rules: Vec<_> = report.rules.iter().map(shown).collect();
    assert_eq!(
        rules,
        [
            "27: 1 messages, 1 pages, 1 segments (1.00), 0.2 - 0.02 = 0.18",
            "local: 2 messages, 1 pages, 3 segments (3.00), 0.05 - 0.06 = -0.01",
        ]
    );
    let reference = sending.customer.reference;
    let all = format!("{reference}: 3 messages, 2 pages, 4 segments (2.00), 0.25 - 0.08 = 0.17");
    assert_eq!(report.applications.iter().map(shown).collect::<Vec<_>>(), [all]);
    assert_eq!(report.days.len(), 1);
    assert_eq!(report.days[0].figures, report.total);
    let lines = world.service.messages().margin_lines((day, day)).await.unwrap();
    assert_eq!(lines.len(), 2);

    // The last day with messages counts as over only once a later message exists.
    world.send(live, "12345678").await.unwrap();
    // All are final two days later, without receipts. Their segments were submitted all the same.
    world.pass(48 * HOUR_MS);
    world.service.delivery().expire().await.unwrap();
    world.service.messages().count_margins().await.unwrap();
    let again = world.service.messages().margins((day, day)).await.unwrap();
    assert_eq!(again.final_until, Some(day));
    assert_eq!(again.total, report.total);
    world.assert_sound().await;
}

async fn the_days_of_a_report_are_bounded(backend: Backend) {
    let world = World::new(backend).await;
    let day = Timestamp::parse_typed("2026-01-01").unwrap().day();
    for days in [(day, day - 1), (day, day + 92)] {
        let report = world.service.messages().margins(days).await;
        assert!(matches!(report, Err(Error::Refused(Refusal::DaysInvalid))));
    }
    world.service.messages().margins((day, day + 91)).await.unwrap();
}
