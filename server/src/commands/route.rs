//! `heliograph route`.

use domain::Money;
use serde::Serialize;
use service::{RouteTrial, Service, TrialMessage, TriedRoute};

use super::output::{Column, facts, or_dash, table};
use super::{CommandError, Output};
use crate::cli::RouteCommand;
use crate::json::shown;

/// The route that a message would take, and the reasons.
#[derive(Serialize)]
struct Shown {
    /// The number with country code.
    number: String,
    kind: &'static str,
    sender: String,
    /// The carrier that would get the message. Null if it would wait or be rejected.
    carrier: Option<String>,
    /// The number and the sender as this carrier gets them.
    carrier_number: Option<String>,
    carrier_sender: Option<String>,
    /// The outcome, in words.
    outcome: String,
    /// What the customer pays for a page.
    price: String,
    /// What the customer pays for the text. Null without one.
    price_of_text: Option<String>,
    routes: Vec<Line>,
}

shown! {
    /// A route, in the order in which routes are tried.
    struct Line from tried: TriedRoute {
        carrier: String = tried.route.carrier.clone(),
        priority: u32 = tried.route.priority,
        weight: u32 = tried.route.weight.get(),
        order: &'static str = tried.route.order.as_str(),
        /// The carrier's price for a segment.
        cost: Option<String> = tried.cost.as_ref().map(Money::to_string),
        /// The share of messages that the carrier delivered within the last hour.
        delivered_percent: Option<u64> = tried.quality,
        /// Why the message doesn't take it. Null if it may.
        unfit: Option<String> = unfit(&tried),
    }
}

fn unfit(tried: &TriedRoute) -> Option<String> {
    Some(match (tried.mismatch, tried.state) {
        (Some("hours"), _) => "it is closed at this hour".to_owned(),
        (Some("segments_max"), _) => {
            let max = tried.route.segments_max.unwrap_or_default();
            format!("its carrier accepts at most {max} segments")
        }
        (Some(condition), _) => format!("its {condition} doesn't match"),
        (None, Some(state)) => format!("its carrier is {state}"),
        (None, None) => return None,
    })
}

const COLUMNS: [Column<Line>; 7] = [
    ("ROUTE TO", |line| line.carrier.clone()),
    ("PRIORITY", |line| line.priority.to_string()),
    ("WEIGHT", |line| line.weight.to_string()),
    ("ORDER", |line| line.order.to_owned()),
    ("COST", |line| or_dash(line.cost.as_deref())),
    ("DELIVERED %", |line| or_dash(line.delivered_percent.map(|p| p.to_string()).as_deref())),
    ("NOT TAKEN BECAUSE", |line| or_dash(line.unfit.as_deref())),
];

pub async fn run(
    service: &Service,
    command: RouteCommand,
    output: Output,
) -> Result<(), CommandError> {
    let RouteCommand::Try { number, sender, application, text } = command;
    let price = service.money().price_of(&number).await?.price;
    let delivery = service.delivery();
    let pages = text.as_deref().map(domain::message::pages);
    let segments = text.as_deref().map_or(1, domain::message::segments);
    let kind = number.kind().as_str();
    let trial = delivery.try_routes(TrialMessage { number, sender, application, segments }).await?;
    let RouteTrial { number, sender, carrier, written, outcome, routes } = trial;
    let (carrier_number, carrier_sender) = written.unzip();
    let shown = Shown {
        number,
        kind,
        sender,
        carrier,
        carrier_number,
        carrier_sender,
        outcome,
        price: price.per_page.to_string(),
        price_of_text: pages
            .and_then(|pages| price.per_page.checked_times(pages))
            .map(|price| price.to_string()),
        routes: routes.into_iter().map(Line::from).collect(),
    };
    Ok(output.print(&shown, |shown| {
        let facts = facts(&[
            ("number", shown.number.clone()),
            ("kind", shown.kind.to_owned()),
            ("sender", shown.sender.clone()),
            ("outcome", shown.outcome.clone()),
            ("number for carrier", or_dash(shown.carrier_number.as_deref())),
            ("sender for carrier", or_dash(shown.carrier_sender.as_deref())),
            ("price per page", shown.price.clone()),
            ("price of the text", or_dash(shown.price_of_text.as_deref())),
        ]);
        format!("{facts}\n\n{}", table(&shown.routes, &COLUMNS))
    })?)
}
