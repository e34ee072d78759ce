//! Price lists for customers and staff.

use domain::number::LOCAL_DIGITS;
use domain::{Kind, Money, PriceRecord};

use crate::ui::{Table, in_zone};

/// A table of prices per page, each with its start time.
pub fn listed<'r>(prices: &'r [PriceRecord], currency: &str) -> Table<'r, PriceRecord> {
    Table::narrow(prices)
        .column("Numbers", numbers)
        .money("Per page", currency, |price| {
            let none = || "same as other international numbers".to_owned();
            price.per_page.map_or_else(none, Money::shown)
        })
        .time(in_zone("From (UTC)"), |price| price.from)
}

fn numbers(price: &PriceRecord) -> String {
    match (&price.prefix, price.kind) {
        (Some(prefix), _) => format!("International, beginning with {prefix}"),
        (None, Kind::Local) => format!("Local ({LOCAL_DIGITS} digits)"),
        (None, Kind::International) => "International".to_owned(),
    }
}
