use domain::{Money, Prefix, PriceRecord, Timestamp};

use super::*;

fn price(prefix: Option<&str>, kind: Kind, price: &str) -> PriceRecord {
    PriceRecord {
        prefix: prefix.map(|digits| Prefix::parse(digits).unwrap()),
        kind,
        per_page: Some(Money::parse(price).unwrap()),
        from: Timestamp::from_unix_ms(0),
    }
}

fn status(text: &str, number: &str) -> String {
    let data = CounterData {
        table: PriceTable {
            currency: "USD".to_owned(),
            in_force: vec![
                price(None, Kind::Local, "0.05"),
                price(None, Kind::International, "0.3"),
                price(Some("27"), Kind::International, "0.12"),
            ],
            coming: Vec::new(),
        },
        home: HomeCountry::of_code("266"),
        pages_max: 10,
        typed: TypedText::default(),
    };
    data.status(text, number)
}

#[test]
fn a_text_and_a_number_have_a_cost() {
    for (text, number, says) in [
        (
            "a".repeat(161),
            "58 00 19 87",
            "Left: 159 characters of this page, 145 places of this segment. Cost: 0.10 USD (2 \
             pages at 0.05) to 58001987, a local number. The API refuses spaces and hyphens: \
             leave them out.",
        ),
        (
            "مرحبا".to_owned(),
            "+27 82-123 4567",
            "Left: 155 characters of this page, 65 places of this segment. Cost: 0.12 USD (1 \
             page at 0.12) to +27821234567, an international number that begins with 27. The \
             API refuses spaces and hyphens: leave them out.",
        ),
        (
            "😀".repeat(1_600),
            "99912345678",
            "Left: 0 characters of this page, 35 places of this segment. Cost: 3.00 USD (10 \
             pages at 0.30) to 99912345678, an international number whose prefix has no price \
             of its own.",
        ),
        (
            "a".repeat(160),
            " ",
            "Left: 0 characters of this page, 0 places of this segment. Give a number to see \
             the cost.",
        ),
        (
            "a".repeat(161),
            "+266 58001987",
            "Left: 159 characters of this page, 145 places of this segment. Cost: 0.60 USD (2 \
             pages at 0.30) to +26658001987, an international number whose prefix has no price \
             of its own. Without the country code it is 58001987, a local number in Lesotho \
             (+266), and costs 0.10 USD. The API refuses spaces and hyphens: leave them out.",
        ),
        (
            "Hi".to_owned(),
            "058001987",
            "Left: 158 characters of this page, 158 places of this segment. Cost: 0.30 USD (1 \
             page at 0.30) to 058001987, an international number whose prefix has no price of \
             its own. No country code begins with 0: check the number. It has 9 digits, where a \
             local number has 8: check the number.",
        ),
        (
            "Hi".to_owned(),
            "+5800x",
            "Left: 158 characters of this page, 158 places of this segment. A number has 4 to \
             15 digits, with at most a leading +.",
        ),
    ] {
        assert_eq!(status(&text, number), says);
    }
}

#[test]
fn a_text_that_cannot_be_sent_says_why() {
    for (text, says) in [
        (String::new(), "Write a text to see how it is counted."),
        (
            "a\0b".to_owned(),
            "The text has a NUL character, which no message can have. Take it out.",
        ),
        (
            "😀".repeat(1_601),
            "The text has 1,601 characters: 1 character more than 10 pages, the maximum for a \
             message. Shorten it, or send it as several messages.",
        ),
    ] {
        assert_eq!(status(&text, "58001987"), says);
    }
}
