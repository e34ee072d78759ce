//! How long a balance lasts.

use domain::Money;
use domain::spending::Spending;

const TODAY: i64 = 20_000;

fn units(units: i64) -> Money {
    Money::from_units(units).unwrap()
}

#[test]
fn days_are_counted_from_the_first_one_with_a_payment_to_yesterday() {
    for (paid, expected) in [
        (vec![], None),
        (vec![(TODAY - 3, Money::ZERO)], None),
        // Today doesn't count yet.
        (vec![(TODAY, units(5))], None),
        (vec![(TODAY - 1, units(5)), (TODAY, units(5))], Some((5, 1))),
        (
            vec![(TODAY - 9, Money::ZERO), (TODAY - 8, units(1)), (TODAY - 2, units(3))],
            Some((4, 8)),
        ),
    ] {
        let expected = expected.map(|(paid, days)| Spending { paid: units(paid), days });
        assert_eq!(Spending::before(TODAY, &paid), expected, "{paid:?}");
    }
}

#[test]
fn a_balance_lasts_as_long_as_it_did_on_average() {
    let spending = Spending { paid: units(4), days: 8 };
    for (balance, days) in [(0, 0), (1, 2), (100, 200)] {
        assert_eq!(spending.lasts_days(units(balance)), days);
    }
    assert_eq!(spending.lasts_days(Money::from_micros(499_999)), 0);
    assert_eq!(spending.lasts_days(Money::from_micros(-1)), 0);
    let little = Spending { paid: Money::from_micros(1), days: 30 };
    assert_eq!(little.lasts_days(Money::from_micros(i64::MAX)), i64::MAX);
}
