//! `[[route]]`.

use domain::number::DIGITS_MAX;
use domain::routing::Route;
use domain::{Kind, Money, Reference, SenderName};

use super::fields::Fields;

/// Reads a route to one of these carriers.
pub(super) fn read(mut fields: Fields<'_>, carriers: &[String]) -> Option<Route> {
    let carrier = fields.parsed("carrier", None, "the name of a [[carrier]]", |name| {
        carriers.iter().find(|known| *known == name).cloned()
    });
    let priority = fields.within("priority", "10", &(0..=u32::MAX));
    let weight =
        fields.parsed("weight", Some("1"), "a whole number from 1", |text| text.parse().ok());
    let kind = fields.optional("kind", "local or international", Kind::parse);
    let prefix = fields.optional("prefix", "digits with country code, without +", prefix);
    let application =
        fields.optional("application", "an application's reference, 6 digits in quotes", |text| {
            Reference::parse(text).ok()
        });
    let sender = fields.optional("sender", "1 to 11 letters and digits", |text| {
        SenderName::parse(text).ok().map(|name| name.to_string())
    });
    let cost = fields
        .optional("cost", "an amount like 0.012, for a segment", |text| Money::parse(text).ok());
    fields.finish();
    Some(Route {
        carrier: carrier?,
        priority: priority?,
        weight: weight?,
        kind,
        prefix,
        application,
        sender,
        cost,
    })
}

fn prefix(text: &str) -> Option<String> {
    let fits = (1..=DIGITS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| text.to_owned())
}
