//! `strip`, `add` and `send_as` of carriers and routes.

use domain::number::DIGITS_MAX;
use domain::rewriting::{NumberRule, Rewriting, SenderRule};

use super::fields::Fields;

/// The maximum length of an address in SMPP 3.4 (5.2.8).
const SENDER_CHARS_MAX: usize = 20;

pub(super) fn read(fields: &mut Fields<'_>) -> Rewriting {
    let strip = fields.optional("strip", "digits", digits);
    let add = fields.optional("add", "digits, or + and digits", |text| {
        (text == "+" || digits(text.trim_start_matches('+')).is_some()).then(|| text.to_owned())
    });
    let is_set = strip.is_some() || add.is_some();
    let rule = || NumberRule { strip: strip.unwrap_or_default(), add: add.unwrap_or_default() };
    Rewriting { number: is_set.then(rule), sender: sender_rule(fields) }
}

fn sender_rule(fields: &mut Fields<'_>) -> Option<SenderRule> {
    if !fields.is_table("send_as") {
        let wanted = format!("a sender of at most {SENDER_CHARS_MAX} ASCII characters, or a table");
        return fields.optional("send_as", &wanted, sender).map(SenderRule::Fixed);
    }
    let mut names = std::collections::BTreeMap::new();
    for (own, other) in fields.map("send_as") {
        if let Some(other) = sender(&other) {
            names.insert(own.to_ascii_lowercase(), other);
        } else {
            let wanted = format!("a sender of at most {SENDER_CHARS_MAX} ASCII characters");
            fields.problem(&format!("send_as.{own} must be {wanted}"));
        }
    }
    Some(SenderRule::Table(names))
}

fn sender(text: &str) -> Option<String> {
    let fits = (1..=SENDER_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    fits.then(|| text.to_owned())
}

/// Returns the beginning of a number, if it can be one.
pub(super) fn digits(text: &str) -> Option<String> {
    let fits = (1..=DIGITS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| text.to_owned())
}
