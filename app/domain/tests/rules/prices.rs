//! Prices: the longest prefix wins, each price has a start time, and prefixes always cost more than
//! local numbers.

use domain::records::PriceTable;
use domain::{
    Kind, Money, Number, PagesByPrice, Prefix, PriceChange, PriceHistory, PriceRecord,
    PriceRequest, PriceRow, PriceStep, Prices, Refusal, Timestamp,
};
use proptest::prelude::*;

use crate::seeded;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(ms)
}

fn money(text: &str) -> Money {
    Money::parse(text).unwrap()
}

fn base(local: &str, international: &str) -> PriceChange {
    PriceChange::Base(Prices::new(money(local), money(international)).unwrap())
}

fn of_prefix(digits: &str, price: &str) -> PriceChange {
    PriceChange::Prefix(Prefix::parse(digits).unwrap(), Some(money(price)))
}

fn removed(digits: &str) -> PriceChange {
    PriceChange::Prefix(Prefix::parse(digits).unwrap(), None)
}

/// Changes that were set at time 0, each with the time at which it comes into force.
fn history(changes: &[(i64, PriceChange)]) -> PriceHistory {
    let rows = (1..).zip(changes).map(|(id, (from, change))| PriceRow {
        id,
        change: change.clone(),
        from: at(*from),
        set_at: at(0),
    });
    PriceHistory::new(rows.collect())
}

/// Returns the price of a page to a number at a time, and the rule.
fn price(history: &PriceHistory, time: i64, number: &str) -> (String, String) {
    let number = Number::parse(number).unwrap();
    let price = history.at(at(time)).unwrap().unit_price(&number);
    (price.per_page.to_string(), price.rule(&number))
}

#[test]
fn prefixes_are_read() {
    for (text, digits) in [("27", "27"), ("+27", "27"), (" 1 ", "1"), ("0", "0")] {
        assert_eq!(Prefix::parse(text).unwrap().digits(), digits, "{text:?}");
    }
    for text in ["", "+", "++27", "2 7", "27x", "-1", "1234567890123456", "\u{662}"] {
        assert!(Prefix::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn the_longest_prefix_wins_and_local_numbers_have_none() {
    let history = history(&[
        (0, base("0.05", "0.25")),
        (0, of_prefix("27", "0.2")),
        (0, of_prefix("2782", "0.1")),
        (0, of_prefix("5", "0.9")),
    ]);
    for (number, per_page, rule) in [
        ("27821234567", "0.1", "prefix_2782"),
        ("27811234567", "0.2", "prefix_27"),
        ("26612345678", "0.25", "international_not_8_digits"),
        ("57000001", "0.05", "local_8_digits"),
        ("+57000001", "0.9", "prefix_5"),
        ("2782", "0.1", "prefix_2782"),
    ] {
        let expected = (per_page.to_owned(), rule.to_owned());
        assert_eq!(price(&history, 0, number), expected, "{number}");
    }
}

#[test]
fn changes_are_in_force_from_their_times_on() {
    let history = history(&[
        (0, base("0.05", "0.25")),
        (20, of_prefix("27", "0.2")),
        (10, of_prefix("27", "0.1")),
        (30, removed("27")),
        (40, base("0.06", "0.3")),
    ]);
    for (time, per_page) in
        [(0, "0.25"), (9, "0.25"), (10, "0.1"), (19, "0.1"), (20, "0.2"), (30, "0.25"), (40, "0.3")]
    {
        assert_eq!(price(&history, time, "27821234567").0, per_page, "{time}");
    }
    assert_eq!(history.at(at(-1)), None);
    assert_eq!(history.next_change(at(10)), Some(at(20)));
    assert_eq!(history.next_change(at(40)), None);
    // As of the second change.
    assert_eq!(price(&history.as_of(2), 10, "27821234567").0, "0.25");
    assert_eq!(price(&history.as_of(2), 30, "27821234567").0, "0.2");
}

#[test]
fn a_change_that_is_known_has_begun_whatever_the_clock_shows() {
    let mut rows = history(&[(0, base("0.05", "0.25"))]).rows().to_vec();
    rows.push(PriceRow { id: 2, change: base("0.06", "0.3"), from: at(50), set_at: at(50) });
    let history = PriceHistory::new(rows);
    assert_eq!(history.time(at(49)), at(50));
    assert_eq!(history.time(at(51)), at(51));
}

#[test]
fn changes_are_refused_that_begin_in_the_past_or_twice_or_too_cheap() {
    let history = history(&[
        (0, base("0.05", "0.25")),
        (100, base("0.1", "0.3")),
        (50, of_prefix("27", "0.12")),
    ]);
    let judge = |change: PriceChange, from: i64| history.judge(&change, at(from), at(10));
    assert_eq!(judge(of_prefix("44", "0.2"), 9), Err(Refusal::PriceInPast));
    assert_eq!(judge(of_prefix("44", "0.2"), 10), Ok(()));
    let twice = Err(Refusal::PriceSetTwice { at: at(50) });
    assert_eq!(judge(of_prefix("27", "0.2"), 50), twice);
    assert_eq!(judge(of_prefix("2", "0.2"), 50), Ok(()));
    let twice = Err(Refusal::PriceSetTwice { at: at(100) });
    assert_eq!(judge(base("0.07", "0.3"), 100), twice);
    assert_eq!(judge(removed("27"), 49), Err(Refusal::NoSuchPrefix));
    assert_eq!(judge(removed("27"), 60), Ok(()));
    let cheap = |prefix: &str, time, price, local| {
        Err(Refusal::PriceNotDearer {
            prefix: Prefix::parse(prefix).unwrap(),
            at: at(time),
            price: money(price),
            local: money(local),
        })
    };
    // The first refusal is for the start time, the second for a later time at which local numbers
    // become more expensive.
    assert_eq!(judge(of_prefix("44", "0.05"), 10), cheap("44", 10, "0.05", "0.05"));
    assert_eq!(judge(of_prefix("44", "0.1"), 10), cheap("44", 100, "0.1", "0.1"));
    assert_eq!(judge(base("0.12", "0.3"), 200), cheap("27", 200, "0.12", "0.12"));
    assert_eq!(judge(base("0.12", "0.3"), 20), cheap("27", 50, "0.12", "0.12"));
    let refusal = judge(base("0.12", "0.3"), 200).unwrap_err().to_string();
    assert!(refusal.contains("prefix 27"), "{refusal}");
    assert!(refusal.contains("At 1970-01-01 00:00:00 UTC"), "{refusal}");
}

#[test]
fn a_price_that_is_removed_in_time_holds_up_no_dearer_base_price() {
    let history = history(&[(0, base("0.05", "0.25")), (0, of_prefix("27", "0.12"))]);
    let rows = history.rows().iter().cloned();
    let removal = PriceRow { id: 3, change: removed("27"), from: at(100), set_at: at(0) };
    let history = PriceHistory::new(rows.chain([removal]).collect());
    assert_eq!(history.judge(&base("0.12", "0.3"), at(100), at(0)), Ok(()));
    assert!(history.judge(&base("0.12", "0.3"), at(99), at(0)).is_err());
}

#[test]
fn a_change_is_cancelled_before_it_comes_into_force() {
    let minute = 60_000;
    let known = history(&[
        (0, base("0.05", "0.25")),
        (10 * minute, of_prefix("27", "0.3")),
        (20 * minute, base("0.28", "0.4")),
    ]);
    let cancel = PriceChange::Cancel;
    for (id, now, refusal) in [
        (1, 0, Some(Refusal::PriceNotCancellable)),
        (2, 9 * minute - 1, None),
        (2, 9 * minute, Some(Refusal::PriceNotCancellable)),
        (4, 0, Some(Refusal::PriceNotCancellable)),
        (3, 0, None),
    ] {
        assert_eq!(known.judge(&cancel(id), at(now), at(now)).err(), refusal, "{id} {now}");
    }
    let step = PriceStep { kind: Kind::International, old: money("0.3"), new: money("0.25") };
    assert_eq!(known.steps(&cancel(2), at(0)), [step]);
    assert_eq!(known.steps(&cancel(9), at(0)), []);
    let mut rows = known.rows().to_vec();
    rows.push(PriceRow { id: 4, change: cancel(2), from: at(5), set_at: at(5) });
    let after = PriceHistory::new(rows);
    assert_eq!((after.version(), after.rows().len(), after.listed(at(5)).1.len()), (4, 2, 2));
    assert_eq!(price(&after, 11 * minute, "27821234567").0, "0.25");
    assert_eq!(price(&after.as_of(3), 11 * minute, "27821234567").0, "0.3");
    // It can't be cancelled twice, and its time is free again.
    assert!(after.judge(&cancel(2), at(6), at(6)).is_err());
    assert_eq!(after.judge(&of_prefix("27", "0.31"), at(10 * minute), at(6)), Ok(()));
    // Other changes stay.
    let known = history(&[
        (0, base("0.05", "0.25")),
        (0, of_prefix("27", "0.1")),
        (10 * minute, of_prefix("27", "0.3")),
        (20 * minute, base("0.2", "0.4")),
    ]);
    let refused = known.judge(&cancel(3), at(0), at(0)).unwrap_err();
    assert!(matches!(refused, Refusal::PriceNotDearer { .. }), "{refused}");
}

#[test]
fn a_request_is_a_text_and_a_large_factor_is_noticed() {
    let time = Some(at(1_767_225_600_000));
    for (change, from, text) in [
        (base("0.06", "0.3"), None, "base 0.06 0.3 now"),
        (of_prefix("27", "0.31"), time, "27 0.31 2026-01-01T00:00:00.000Z"),
        (removed("27"), None, "27 none now"),
    ] {
        let request = PriceRequest { change, from };
        assert_eq!(request.to_string(), text);
        assert_eq!(PriceRequest::parse(text), Some(request));
    }
    for text in
        ["", "27 0.31", "base 0.3 0.06 now", "27 1e3 now", "27 0,3 now", "x 1 now", "27 1 x"]
    {
        assert_eq!(PriceRequest::parse(text), None, "{text}");
    }
    for (old, new, factor, is_large) in [
        ("0.05", "6", "120", true),
        ("0.05", "0.15", "3", false),
        ("0.05", "0.150001", "3", true),
        ("0.3", "0.1", "0.33", false),
        ("0.3", "0.099999", "0.33", true),
    ] {
        let step = PriceStep { kind: Kind::Local, old: money(old), new: money(new) };
        assert_eq!((step.factor().as_str(), step.is_large()), (factor, is_large), "{old} {new}");
    }
}

#[test]
fn a_list_has_the_prices_in_force_and_those_to_come() {
    let history = history(&[
        (0, base("0.05", "0.25")),
        (5, of_prefix("44", "0.3")),
        (5, of_prefix("27", "0.2")),
        (20, removed("27")),
        (30, base("0.06", "0.3")),
        (6, removed("44")),
    ]);
    let (in_force, coming) = history.listed(at(10));
    let shown = |record: PriceRecord| {
        let prefix = record.prefix.map(String::from).unwrap_or_default();
        let price = record.per_page.map(|price| price.to_string());
        let price = price.unwrap_or_default();
        format!("{prefix}/{}/{price}/{}", record.kind.as_str(), record.from.unix_ms())
    };
    let in_force: Vec<_> = in_force.into_iter().map(shown).collect();
    let expected = ["/local/0.05/0", "/international/0.25/0", "27/international/0.2/5"];
    assert_eq!(in_force, expected);
    let coming: Vec<_> = coming.into_iter().map(shown).collect();
    let expected = ["/local/0.06/30", "/international/0.3/30", "27/international//20"];
    assert_eq!(coming, expected);
}

#[test]
fn a_list_is_reckoned_with_like_the_prices_in_force() {
    let history = history(&[
        (0, base("0.05", "0.3")),
        (0, of_prefix("27", "0.12")),
        (0, of_prefix("2782", "0.2")),
        (0, of_prefix("44", "0.4")),
        (1, removed("44")),
    ]);
    let (in_force, coming) = history.listed(at(2));
    let table = PriceTable { currency: "USD".to_owned(), in_force, coming };
    let prices = table.prices().unwrap();
    for number in ["58001987", "27821234567", "2711234567", "4412345678", "999123"] {
        let (expected, rule) = price(&history, 2, number);
        let number = Number::parse(number).unwrap();
        let unit_price = prices.unit_price(&number);
        let found = (unit_price.per_page.to_string(), unit_price.rule(&number));
        assert_eq!(found, (expected, rule));
    }
}

#[test]
fn a_charge_is_explained_by_the_price_that_it_was_made_at() {
    let history = history(&[
        (0, base("0.05", "0.25")),
        (10, of_prefix("27", "0.2")),
        (20, of_prefix("27", "0.3")),
    ]);
    let number = Number::parse("27821234567").unwrap();
    let rule = |time, price| {
        let why = history.explain(&number, at(time), money(price));
        why.rule(&number)
    };
    assert_eq!(rule(5, "0.25"), "international_not_8_digits");
    assert_eq!(rule(15, "0.2"), "prefix_27");
    // Decided just before the next price began.
    assert_eq!(rule(20, "0.2"), "prefix_27");
    assert_eq!(rule(10, "0.25"), "international_not_8_digits");
}

/// A sequence of changes that someone may try to make.
fn attempts() -> impl Strategy<Value = Vec<(PriceChange, i64)>> {
    let price = |max| (1..max).prop_map(Money::from_micros);
    let base = (price(10_i64), 1..10_i64).prop_map(|(local, more)| {
        let international = Money::from_micros(local.micros() + more);
        PriceChange::Base(Prices::new(local, international).unwrap())
    });
    let prefix = prop_oneof![Just("2"), Just("27"), Just("278"), Just("44")];
    let prefix = (prefix, prop::option::weighted(0.7, price(20)))
        .prop_map(|(digits, price)| PriceChange::Prefix(Prefix::parse(digits).unwrap(), price));
    prop::collection::vec((prop_oneof![base, prefix], 0..30_i64), 0..40)
}

proptest! {
    #![proptest_config(seeded(1_000))]

    #[test]
    fn at_no_time_a_prefix_is_as_cheap_as_a_local_number(attempts in attempts()) {
        let mut rows = history(&[(0, base("0.000001", "0.000002"))]).rows().to_vec();
        for (now, (change, wait)) in (0..).zip(attempts) {
            let known = PriceHistory::new(rows.clone());
            let from = at(now + wait);
            if known.judge(&change, from, at(now)).is_ok() {
                let id = known.version() + 1;
                rows.push(PriceRow { id, change, from, set_at: at(now) });
            }
        }
        let known = PriceHistory::new(rows);
        for time in 0..80 {
            let prices = known.at(at(time)).unwrap();
            let local = prices.base().local;
            prop_assert!(prices.base().international > local);
            for (prefix, price) in prices.by_prefix() {
                prop_assert!(price > local, "{} at {}", prefix, time);
            }
        }
        prop_assert_eq!(known.fault(), None);
    }

    #[test]
    fn the_price_of_a_file_is_the_sum_of_its_messages(
        numbers in prop::collection::vec(("[0-9]{4,15}", 1..=10_usize), 0..50),
        prefixes in prop::collection::btree_map("[0-9]{1,3}", 300_000..900_000_i64, 0..20),
    ) {
        let by_prefix = prefixes.iter().map(|(digits, price)| {
            (Prefix::parse(digits).unwrap(), Money::from_micros(*price))
        });
        let base = Prices::new(money("0.05"), money("0.25")).unwrap();
        let prices = domain::PricesInForce::new(base, by_prefix);
        let (mut pages, mut sum, mut total) = (PagesByPrice::default(), Money::ZERO, 0);
        for (digits, count) in &numbers {
            let number = Number::parse(digits).unwrap();
            // Searched without the shortcut by lengths.
            let longest = (1..=digits.len()).rev().find_map(|end| prefixes.get(&digits[..end]));
            let expected = match number.kind() {
                Kind::International => longest.map(|price| Money::from_micros(*price)),
                Kind::Local => None,
            };
            let expected = expected.unwrap_or(base.per_page(number.kind()));
            prop_assert_eq!(prices.per_page(number.kind(), digits), expected);
            pages.add(&prices, (number.kind(), digits), *count as u64);
            sum = sum.checked_add(prices.cost(&number, *count).unwrap()).unwrap();
            total += *count as u64;
        }
        prop_assert_eq!(prices.cost_of_all(&pages), Some(sum));
        prop_assert_eq!(pages.total(), Some(total));
        let thrice = pages.checked_times(3).unwrap();
        prop_assert_eq!(prices.cost_of_all(&thrice), sum.checked_times(3));
    }
}
