//! Money and prices: exact, in plain notation, without overflow.

use domain::money::MONEY_DECIMALS;
use domain::{Kind, Money, PageCount, Prices};
use proptest::prelude::*;

use crate::seeded;

#[test]
fn amounts_are_read_exactly() {
    let cases = [
        ("0", 0),
        ("0.0", 0),
        ("1", 1_000_000),
        ("01", 1_000_000),
        ("9.95", 9_950_000),
        ("10", 10_000_000),
        ("10.00", 10_000_000),
        ("12.50", 12_500_000),
        ("0.05", 50_000),
        ("0.1", 100_000),
        ("0.000001", 1),
        ("1.000000", 1_000_000),
        ("0.999999", 999_999),
        ("9223372036854.775807", i64::MAX),
    ];
    for (text, micros) in cases {
        assert_eq!(Money::parse(text).unwrap().micros(), micros, "{text}");
    }
}

#[test]
fn amounts_are_shown_with_thousands_apart_and_two_decimals_at_least() {
    let cases = [
        (0, "0.00"),
        (50_000, "0.05"),
        (9_400_000, "9.40"),
        (999_990_000, "999.99"),
        (1_234_500_000, "1,234.50"),
        (12_345_678_000_001, "12,345,678.000001"),
        (100_000_000_000, "100,000.00"),
        (-1_234_500_000, "-1,234.50"),
    ];
    for (micros, text) in cases {
        assert_eq!(Money::from_micros(micros).shown(), text);
    }
}

#[test]
fn texts_that_are_no_amounts_are_refused() {
    let cases = [
        "",
        " ",
        ".",
        ".5",
        "5.",
        "1.2.3",
        "1..2",
        "1,5",
        "1,000.00",
        "1_000",
        "+1",
        "-1",
        "-0",
        " 1",
        "1 ",
        "1\n",
        "1e3",
        "1E3",
        "1e-3",
        "0x10",
        "NaN",
        "inf",
        "ten",
        "$5",
        "0.0000001",
        "1.2345678",
        // The first amount that overflows, and much larger ones.
        "9223372036854.775808",
        "99999999999999999999",
        "79228162514264337593543950335",
        "79228162514264337593543950336",
        "1000000000000000000000000000000000000000000000",
        "0.00000000000000000000000000000000000000001",
        // Digits of another script.
        "\u{661}\u{662}",
        "\u{ff11}",
    ];
    for text in cases {
        assert!(Money::parse(text).is_err(), "{text:?} was taken for an amount");
    }
}

#[test]
fn amounts_are_shown_plainly() {
    let cases = [
        (0, "0"),
        (1, "0.000001"),
        (10, "0.00001"),
        (50_000, "0.05"),
        (9_950_000, "9.95"),
        (10_000_000, "10"),
        (100_000_000, "100"),
        (1_000_000_000_000, "1000000"),
        (-1, "-0.000001"),
        (-2_500_000, "-2.5"),
        (i64::MAX, "9223372036854.775807"),
        (i64::MIN, "-9223372036854.775808"),
    ];
    for (micros, text) in cases {
        assert_eq!(Money::from_micros(micros).to_string(), text);
    }
}

#[test]
fn arithmetic_that_would_overflow_gives_nothing() {
    let most = Money::from_micros(i64::MAX);
    let least = Money::from_micros(i64::MIN);
    let one = Money::from_micros(1);
    assert_eq!(most.checked_add(one), None);
    assert_eq!(least.checked_sub(one), None);
    assert_eq!(most.checked_times(2), None);
    assert_eq!(one.checked_times(usize::MAX), None);
    assert_eq!(most.checked_times(0), Some(Money::ZERO));
    assert_eq!(most.checked_times(1), Some(most));
    assert_eq!(
        Money::from_units(9_223_372_036_854).map(Money::micros),
        Some(9_223_372_036_854_000_000)
    );
    assert_eq!(Money::from_units(9_223_372_036_855), None);
    assert_eq!(Money::from_units(i64::MIN), None);
}

#[test]
fn prices_must_rise_from_local_to_international() {
    let price = Money::from_micros;
    assert!(Prices::new(price(50_000), price(250_000)).is_ok());
    assert!(Prices::new(price(1), price(2)).is_ok());
    for (local, international) in [(0, 0), (0, 1), (1, 1), (2, 1), (-1, 1), (-2, -1)] {
        assert!(
            Prices::new(price(local), price(international)).is_err(),
            "{local} and {international} were taken"
        );
    }
}

#[test]
fn a_message_costs_its_pages_times_the_price_of_its_destination() {
    let prices = Prices::new(Money::from_micros(50_000), Money::from_micros(250_000)).unwrap();
    let cases = [
        (Kind::Local, 1, "0.05"),
        (Kind::Local, 3, "0.15"),
        (Kind::Local, 10, "0.5"),
        (Kind::International, 1, "0.25"),
        (Kind::International, 10, "2.5"),
    ];
    for (kind, pages, cost) in cases {
        assert_eq!(prices.cost(kind, pages).unwrap().to_string(), cost);
    }
    assert_eq!(prices.cost(Kind::Local, usize::MAX), None);
    let dear = Prices::new(Money::from_micros(i64::MAX - 1), Money::from_micros(i64::MAX)).unwrap();
    assert_eq!(dear.cost(Kind::International, 1), Some(Money::from_micros(i64::MAX)));
    assert_eq!(dear.cost(Kind::International, 2), None);
}

/// Amounts of any size, often with few decimals.
fn any_micros() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -10_000_000..10_000_000_i64,
        (any::<i32>(), 0..=6_u32).prop_map(|(n, power)| i64::from(n) * 10_i64.pow(power)),
    ]
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn a_shown_amount_is_read_back(micros in any_micros()) {
        let money = Money::from_micros(micros);
        let text = money.to_string();
        match text.strip_prefix('-') {
            None => prop_assert_eq!(Money::parse(&text), Ok(money)),
            Some(_) => prop_assert!(Money::parse(&text).is_err()),
        }
    }

    #[test]
    fn a_shown_amount_is_a_plain_decimal_of_the_same_value(micros in any_micros()) {
        let text = Money::from_micros(micros).to_string();
        let unsigned = text.strip_prefix('-').unwrap_or(&text);
        let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        prop_assert!(unsigned.bytes().all(|b| b.is_ascii_digit() || b == b'.'), "{}", text);
        prop_assert!(whole == "0" || !whole.starts_with('0'), "{}", text);
        let is_plain =
            !whole.is_empty() && !unsigned.ends_with('.') && !decimals.ends_with('0');
        prop_assert!(is_plain, "{}", text);
        prop_assert!(decimals.len() <= MONEY_DECIMALS as usize);
        // Computes the value again from the digits.
        let sign = if text.starts_with('-') { "-" } else { "" };
        let integer: i128 = format!("{sign}{whole}{decimals:0<6}").parse().unwrap();
        prop_assert_eq!(integer, i128::from(micros));
    }

    #[test]
    fn an_amount_is_exact_or_refused(whole in 0..20_000_000_000_000_u64, decimals in "[0-9]{1,6}") {
        let text = format!("{whole}.{decimals}");
        let micros = format!("{decimals:0<6}").parse::<i128>().unwrap();
        let expected = i128::from(whole) * 1_000_000 + micros;
        let read = Money::parse(&text).ok().map(|money| i128::from(money.micros()));
        prop_assert_eq!(read, (expected <= i128::from(i64::MAX)).then_some(expected));
    }

    #[test]
    fn a_seventh_decimal_is_refused_and_never_rounded(
        whole in 0..1_000_u32,
        decimals in "[0-9]{6,12}[1-9]",
    ) {
        let text = format!("{whole}.{decimals}");
        prop_assert!(Money::parse(&text).is_err());
    }

    #[test]
    fn every_text_is_an_amount_or_refused(text in r"[0-9.eE+\-, ]{0,40}|\PC{0,40}") {
        if let Ok(money) = Money::parse(&text) {
            prop_assert!(money >= Money::ZERO);
            prop_assert_eq!(Money::parse(&money.to_string()), Ok(money));
        }
    }

    #[test]
    fn sums_and_products_are_exact_or_nothing(
        a in any_micros(),
        b in any_micros(),
        times in 0..=2_000_000_usize,
    ) {
        let (left, right) = (Money::from_micros(a), Money::from_micros(b));
        let exact = |value: i128| i64::try_from(value).ok().map(Money::from_micros);
        let (a, b) = (i128::from(a), i128::from(b));
        prop_assert_eq!(left.checked_add(right), exact(a + b));
        prop_assert_eq!(left.checked_sub(right), exact(a - b));
        prop_assert_eq!(left.checked_times(times), exact(a * times as i128));
    }

    #[test]
    fn costs_are_exact_or_nothing(
        local in 1..i64::MAX,
        more in 1..i64::MAX,
        pages in 0..=1_000_usize,
    ) {
        let Some(international) = local.checked_add(more) else { return Ok(()) };
        let prices =
            Prices::new(Money::from_micros(local), Money::from_micros(international)).unwrap();
        for (kind, price) in [(Kind::Local, local), (Kind::International, international)] {
            let exact = i128::from(price) * pages as i128;
            let exact = i64::try_from(exact).ok().map(Money::from_micros);
            prop_assert_eq!(prices.cost(kind, pages), exact);
            prop_assert_eq!(prices.per_page(kind).micros(), price);
        }
    }

    #[test]
    fn messages_together_cost_the_sum_of_their_prices(
        messages in prop::collection::vec((any::<bool>(), 1..=20_usize), 0..50),
        local in 1..1_000_000_i64,
        more in 1..1_000_000_i64,
    ) {
        let (local, international) = (Money::from_micros(local), Money::from_micros(local + more));
        let prices = Prices::new(local, international).unwrap();
        let (mut pages, mut sum) = (PageCount::default(), Money::ZERO);
        for (is_local, count) in messages {
            let kind = if is_local { Kind::Local } else { Kind::International };
            pages.add(kind, count as u64);
            sum = sum.checked_add(prices.cost(kind, count).unwrap()).unwrap();
        }
        prop_assert_eq!(prices.cost_of_all(pages), Some(sum));
    }

    #[test]
    fn in_json_an_amount_is_an_integer(micros in any_micros()) {
        let money = Money::from_micros(micros);
        let json = serde_json::to_string(&money).unwrap();
        prop_assert_eq!(&json, &micros.to_string());
        prop_assert_eq!(serde_json::from_str::<Money>(&json).unwrap(), money);
    }
}
