//! An application's statement by time: the lines of a period, and its days and months.

use domain::ledger::TransferKind;
use domain::records::{StatementLine, StatementTotals};
use domain::timestamp::DAY_MS;
use domain::{Money, Month, Timestamp};
use service::StatementFilter;
use service::{SANDBOX_CARRIER, SubmitOutcome};

use crate::database::Backend;
use crate::network::answered;
use crate::world::{Customer, World, whole};

on_each_backend![
    days_and_months_add_up_to_the_ledger,
    the_lines_of_a_period_are_listed,
    a_month_without_transfers_keeps_its_balance,
];

/// Lets some days pass. Some of them have a deposit, charges and a release. Another customer has
/// transfers at the same time.
async fn months(world: &World) -> Customer {
    let customer = world.active("one@example.org", "100").await;
    let other = world.active("two@example.org", "100").await;
    // Days between sends: past the ends of two months, several sends on one day, and a long pause.
    for (step, days) in [0, 1, 0, 3, 12, 0, 9, 45, 2].into_iter().enumerate() {
        world.pass(days * DAY_MS + 1000);
        if step % 3 == 2 {
            let bank_id = format!("more-{step}");
            world.deposit(&bank_id, customer.reference, "7.5").await;
        }
        for number in 0..=step {
            let number = format!("5800{number:04}");
            world.send(&customer.live, &number).await.unwrap();
            world.send(&other.live, &number).await.unwrap();
        }
        let outcome = if step % 4 == 1 {
            SubmitOutcome::Refused { error: "refused".to_owned() }
        } else {
            SubmitOutcome::Accepted { carrier_message_id: None }
        };
        let (lease, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 500).await.unwrap();
        let results =
            claimed.into_iter().map(|message| answered(&message, outcome.clone())).collect();
        world.record(SANDBOX_CARRIER, &lease, results).await;
    }
    customer
}

/// Returns the whole statement, oldest line first.
async fn lines(world: &World, customer: &Customer) -> Vec<StatementLine> {
    let mut lines = list(world, customer, whole(None, 1000)).await;
    lines.reverse();
    lines
}

async fn list(
    world: &World,
    customer: &Customer,
    filter: StatementFilter<'_>,
) -> Vec<StatementLine> {
    let (account, reference) = (customer.account.id, customer.reference);
    let found = world.service.applications().statement(account, reference, filter).await;
    found.unwrap().items
}

/// Sums the lines one by one.
fn counted(before: Money, lines: &[&StatementLine]) -> StatementTotals {
    let of = |kind| {
        let of_kind = lines.iter().filter(|line| line.kind == kind);
        Money::from_micros(of_kind.map(|line| line.amount.micros()).sum())
    };
    StatementTotals {
        opening: before,
        deposits: of(TransferKind::Deposit),
        charges: of(TransferKind::Charge),
        releases: of(TransferKind::Release),
        closing: lines.last().map_or(before, |line| line.balance_after),
    }
}

/// Returns the balance before the first line that matches.
fn balance_before(lines: &[StatementLine], is_in: impl Fn(&StatementLine) -> bool) -> Money {
    let before = lines.iter().take_while(|line| !is_in(line)).last();
    before.map_or(Money::ZERO, |line| line.balance_after)
}

async fn days_and_months_add_up_to_the_ledger(backend: Backend) {
    let world = World::new(backend).await;
    let customer = months(&world).await;
    let lines = lines(&world, &customer).await;
    let kinds: std::collections::HashSet<_> = lines.iter().map(|line| line.kind).collect();
    assert_eq!(kinds.len(), 3, "deposits, charges and releases");
    let last = Month::of(world.now());
    let mut month = Month::of(lines[0].at);
    let (mut months, mut days) = (0, 0);
    while month <= last {
        let found = world
            .service
            .applications()
            .statement_month(customer.account.id, customer.reference, month)
            .await
            .unwrap();
        let of_month: Vec<_> = (lines.iter()).filter(|line| Month::of(line.at) == month).collect();
        let before = balance_before(&lines, |line| Month::of(line.at) >= month);
        assert_eq!(found.totals, counted(before, &of_month), "{month}");
        assert_eq!(found.has_older, months > 0, "{month}");
        let mut newest = i64::MAX;
        for day in &found.days {
            assert!(day.day.day() < newest, "the newest day comes first");
            newest = day.day.day();
            let of_day: Vec<_> =
                (of_month.iter().copied()).filter(|line| line.at.day() == newest).collect();
            let before = balance_before(&lines, |line| line.at.day() >= newest);
            assert_eq!(day.totals, counted(before, &of_day), "{}", day.day);
            assert!(!of_day.is_empty());
        }
        days += found.days.len();
        months += 1;
        month = month.next();
    }
    let with_lines: std::collections::HashSet<_> = lines.iter().map(|l| l.at.day()).collect();
    assert_eq!(days, with_lines.len());
    assert!(months >= 3, "{months}");
    world.assert_sound().await;
}

async fn the_lines_of_a_period_are_listed(backend: Backend) {
    let world = World::new(backend).await;
    let customer = months(&world).await;
    let lines = lines(&world, &customer).await;
    let middle = lines[lines.len() / 2].at;
    let (from, to) = (Timestamp::of_day(middle.day()), middle.plus_ms(1));
    for kind in [None, Some(TransferKind::Charge), Some(TransferKind::Deposit)] {
        for (from, to) in
            [(Some(from), None), (None, Some(to)), (Some(from), Some(to)), (Some(to), Some(from))]
        {
            let filter = StatementFilter { kind, from, to, ..whole(None, 1000) };
            let expected: Vec<_> = (lines.iter().rev())
                .filter(|line| kind.is_none_or(|kind| line.kind == kind))
                .filter(|line| from.is_none_or(|from| line.at >= from))
                .filter(|line| to.is_none_or(|to| line.at < to))
                .cloned()
                .collect();
            assert_eq!(list(&world, &customer, filter).await, expected, "{filter:?}");
        }
    }
}

async fn a_month_without_transfers_keeps_its_balance(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "3").await;
    let (account, reference) = (customer.account.id, customer.reference);
    let this = Month::of(world.now());
    for (month, balance, has_older) in
        [(this.previous(), Money::ZERO, false), (this.next(), Money::from_micros(3_000_000), true)]
    {
        let applications = world.service.applications();
        let found = applications.statement_month(account, reference, month);
        let found = found.await.unwrap();
        assert_eq!(found.days, []);
        assert_eq!(found.has_older, has_older, "{month}");
        let totals = (found.totals.opening, found.totals.closing);
        assert_eq!(totals, (balance, balance), "{month}");
    }
    // A stranger's account gets the answer that there is no such application.
    let stranger = world.account("two@example.org").await;
    let applications = world.service.applications();
    let refused = applications.statement_month(stranger.id, reference, this);
    assert!(refused.await.unwrap_err().refusal().is_some());
}
