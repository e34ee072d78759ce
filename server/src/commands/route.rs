//! `heliograph route`.

use domain::Money;
use serde::Serialize;
use service::{RouteTrial, Service, TriedRoute};

use super::output::{Column, facts, or_dash, table};
use super::{CommandError, Output};
use crate::cli::RouteCommand;

/// Which way a message would take.
#[derive(Serialize)]
struct Shown {
    /// The number as carriers get it.
    number: String,
    kind: &'static str,
    sender: String,
    /// The carrier that would get the message. Null if it would wait or be rejected.
    carrier: Option<String>,
    /// The outcome, in words.
    outcome: String,
    /// What the customer pays for a page.
    price: String,
    routes: Vec<Line>,
}

/// A route, in the order in which routes are tried.
#[derive(Serialize)]
struct Line {
    carrier: String,
    priority: u32,
    weight: u32,
    /// The carrier's price for a segment.
    cost: Option<String>,
    /// Why the message doesn't take it. Null if it may.
    unfit: Option<String>,
}

impl From<TriedRoute> for Line {
    fn from(tried: TriedRoute) -> Self {
        let TriedRoute { route, mismatch, state } = tried;
        let unfit = match (mismatch, state) {
            (Some(condition), _) => Some(format!("its {condition} doesn't match")),
            (None, Some(state)) => Some(format!("its carrier is {state}")),
            (None, None) => None,
        };
        Self {
            carrier: route.carrier,
            priority: route.priority,
            weight: route.weight.get(),
            cost: route.cost.as_ref().map(Money::to_string),
            unfit,
        }
    }
}

const COLUMNS: [Column<Line>; 5] = [
    ("ROUTE TO", |line| line.carrier.clone()),
    ("PRIORITY", |line| line.priority.to_string()),
    ("WEIGHT", |line| line.weight.to_string()),
    ("COST", |line| or_dash(line.cost.as_deref())),
    ("NOT TAKEN BECAUSE", |line| or_dash(line.unfit.as_deref())),
];

pub async fn run(
    service: &Service,
    command: RouteCommand,
    output: Output,
) -> Result<(), CommandError> {
    let RouteCommand::Try { number, sender, application } = command;
    let price = service.money().price_of(&number).await?.price;
    let delivery = service.delivery();
    let trial = delivery.try_routes(&number, sender.as_deref(), application).await?;
    let RouteTrial { number: address, sender, carrier, outcome, routes } = trial;
    let shown = Shown {
        number: address,
        kind: number.kind().as_str(),
        sender,
        carrier,
        outcome,
        price: price.per_page.to_string(),
        routes: routes.into_iter().map(Line::from).collect(),
    };
    Ok(output.print(&shown, |shown| {
        let facts = facts(&[
            ("number", shown.number.clone()),
            ("kind", shown.kind.to_owned()),
            ("sender", shown.sender.clone()),
            ("outcome", shown.outcome.clone()),
            ("price per page", shown.price.clone()),
        ]);
        format!("{facts}\n\n{}", table(&shown.routes, &COLUMNS))
    })?)
}
