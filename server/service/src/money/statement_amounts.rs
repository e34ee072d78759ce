//! Reads amounts as banks write them.

use domain::Money;

/// An amount in a bank statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Payment(Money),
    /// The amount isn't above 0, so the line isn't a payment to us.
    Debit(Money),
}

/// Parses an amount with a decimal point or comma. Returns `None` if the text isn't an amount.
///
/// A single separator with three digits after it may group thousands or begin the decimals, so
/// `1,234` is refused.
pub(super) fn amount(text: &str) -> Option<Amount> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let is_debit = text.starts_with('-') || text.ends_with('-');
    let digits =
        text.strip_prefix(['-', '+']).or_else(|| text.strip_suffix(['-', '+'])).unwrap_or(&text);
    let plain = decimal(digits)?;
    let amount = Money::parse(&plain).ok()?;
    let is_payment = !is_debit && amount > Money::ZERO;
    Some(if is_payment {
        Amount::Payment(amount)
    } else {
        Amount::Debit(Money::from_micros(-amount.micros()))
    })
}

/// Whether an amount can't be read because its only separator has three digits after it.
pub(super) fn is_ambiguous(text: &str) -> bool {
    let text = text.trim().trim_matches(['-', '+']);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split_once([',', '.'])
        .is_some_and(|(whole, rest)| is_number(whole) && is_number(rest) && rest.len() == 3)
}

/// Parses the amount of a line in a file with separate columns for incoming and outgoing money.
/// Some banks write outgoing money with a sign. Returns `None` if both cells are empty, if both
/// have an amount other than zero, or if a cell has another text.
pub(super) fn amount_of_two(credit: &str, debit: &str) -> Option<Amount> {
    let read =
        |text: &str| if text.trim().is_empty() { Some(None) } else { amount(text).map(Some) };
    let is_zero = |amount: &Amount| *amount == Amount::Debit(Money::ZERO);
    let (credit, debit) = (read(credit)?, read(debit)?);
    match (credit.filter(|amount| !is_zero(amount)), debit.filter(|amount| !is_zero(amount))) {
        (Some(_), Some(_)) => None,
        (Some(credit), None) => Some(credit),
        (None, Some(Amount::Payment(debit))) => {
            Some(Amount::Debit(Money::from_micros(-debit.micros())))
        }
        (None, Some(debit)) => Some(debit),
        // Neither cell has an amount other than zero.
        (None, None) => credit.or(debit),
    }
}

/// Returns an amount in the form that [`Money::parse`] reads. `None` if its separators are
/// ambiguous or in the wrong places.
fn decimal(text: &str) -> Option<String> {
    let Some(place) = text.rfind([',', '.']) else {
        return Some(text.to_owned());
    };
    let (whole, fraction) = (&text[..place], &text[place + 1..]);
    let sign = &text[place..=place];
    let grouped = |whole: &str, sign: &str| {
        let groups: Vec<_> = whole.split(sign).collect();
        let fits = groups[1..].iter().all(|group| group.len() == 3);
        let begins = matches!(groups[0].len(), 1..=3) || groups.len() == 1;
        (fits && begins).then(|| groups.concat())
    };
    if whole.contains(sign) {
        return grouped(text, sign);
    }
    let other = if sign == "," { "." } else { "," };
    if !whole.contains(other) && fraction.len() == 3 {
        return None;
    }
    Some(format!("{}.{fraction}", grouped(whole, other)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_banks_write_them() {
        for (text, expected) in [
            ("12", "12"),
            ("12.50", "12.5"),
            ("12,50", "12.5"),
            ("+1.234,50", "1234.5"),
            ("1,234.50", "1234.5"),
            ("1 234,50", "1234.5"),
            ("1,234,567", "1234567"),
        ] {
            let expected = Money::parse(expected).unwrap();
            assert_eq!(amount(text), Some(Amount::Payment(expected)), "{text}");
        }
        for (debit, micros) in [("-12.50", -12_500_000), ("12,50-", -12_500_000), ("0.00", 0)] {
            let expected = Amount::Debit(Money::from_micros(micros));
            assert_eq!(amount(debit), Some(expected), "{debit}");
        }
        let (in_, out) = (Money::parse("12.5").unwrap(), Money::from_micros(-12_500_000));
        for (credit, debit, expected) in [
            ("12,50", "", Some(Amount::Payment(in_))),
            ("12.50", "0.00", Some(Amount::Payment(in_))),
            ("", "12,50", Some(Amount::Debit(out))),
            ("0,00", "-12,50", Some(Amount::Debit(out))),
            // A reversal.
            ("-12.50", "", Some(Amount::Debit(out))),
            ("0.00", "", Some(Amount::Debit(Money::ZERO))),
            ("", " ", None),
            ("1", "2", None),
            ("x", "2", None),
            ("1", "x", None),
        ] {
            assert_eq!(amount_of_two(credit, debit), expected, "{credit:?} {debit:?}");
        }
        for (text, expected) in [("1,234", true), ("-1.234", true), ("1.23", false), ("x", false)] {
            assert_eq!(is_ambiguous(text), expected, "{text}");
        }
        for bad in ["", "x", "1,234", "1.234", "1,23,4", "=1+1", "1.2.3", "12,34.50"] {
            assert_eq!(amount(bad), None, "{bad}");
        }
    }
}
