//! `heliograph price`.

use domain::records::NumberPrice;
use domain::{Kind, Number, PriceChange, PriceRecord, Prices, Refusal, Timestamp};
use serde::Serialize;
use service::{Actor, Service};

use super::output::Column;
use super::{CommandError, Output};
use crate::cli::{Beginning, Price};
use crate::json::{Amount, DateTime};

/// A price as the command line shows it.
#[derive(Serialize)]
struct Listed {
    prefix: Option<String>,
    kind: Kind,
    per_page: Option<Amount>,
    currency: String,
    from: DateTime,
}

const COLUMNS: [Column<Listed>; 4] = [
    ("PREFIX", |price| super::output::or_dash(price.prefix.as_deref())),
    ("KIND", |price| price.kind.as_str().to_owned()),
    ("PER PAGE", |price| {
        let shown = |amount: &Amount| format!("{} {}", amount.0, price.currency);
        price.per_page.as_ref().map_or_else(|| "removed".to_owned(), shown)
    }),
    ("FROM", |price| price.from.0.to_table()),
];

/// A change that was made.
#[derive(Serialize)]
struct Set {
    from: DateTime,
}

/// The price of a number, and the reason.
#[derive(Serialize)]
struct OfNumber {
    per_page: Amount,
    currency: String,
    rule: String,
    why: String,
}

pub async fn run(service: &Service, command: Price, output: Output) -> Result<(), CommandError> {
    let (change, from) = match command {
        Price::List => return list(service, output).await,
        Price::Of { number } => return of(service, &number, output).await,
        Price::Set { local, international, from } => {
            let prices = Prices::new(local, international).map_err(Refusal::from);
            (PriceChange::Base(prices.map_err(service::Error::from)?), from)
        }
        Price::SetPrefix { prefix, price, from } => {
            (PriceChange::Prefix(prefix, Some(price)), from)
        }
        Price::RemovePrefix { prefix, from } => (PriceChange::Prefix(prefix, None), from),
    };
    set(service, change, from, output).await
}

async fn list(service: &Service, output: Output) -> Result<(), CommandError> {
    let table = service.money().price_table().await?;
    let records = table.in_force.into_iter().chain(table.coming);
    let listed = |record: PriceRecord| Listed {
        prefix: record.prefix.map(String::from),
        kind: record.kind,
        per_page: record.per_page.map(Amount),
        currency: table.currency.clone(),
        from: DateTime(record.from),
    };
    let shown: Vec<Listed> = records.map(listed).collect();
    Ok(output.list::<Listed>(shown, &COLUMNS)?)
}

async fn of(service: &Service, number: &Number, output: Output) -> Result<(), CommandError> {
    let NumberPrice { price, rule, currency, why } = service.money().price_of(number).await?;
    let shown = OfNumber { per_page: Amount(price.per_page), currency, rule, why };
    Ok(output.print(&shown, |shown| {
        let (price, currency) = (shown.per_page.0, &shown.currency);
        format!("{price} {currency} a page ({}). {}", shown.rule, shown.why)
    })?)
}

async fn set(
    service: &Service,
    change: PriceChange,
    from: Beginning,
    output: Output,
) -> Result<(), CommandError> {
    let money = service.money();
    let set = money.set_price(&Actor::CommandLine, change, from.from);
    let from: Timestamp = set.await?;
    Ok(output.print(&Set { from: DateTime(from) }, |set| {
        format!("In force from {} (UTC).", set.from.0.to_table())
    })?)
}
