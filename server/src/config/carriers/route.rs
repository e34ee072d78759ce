//! `[[route]]`.

use std::collections::BTreeMap;

use domain::opening_hours::{Days, OpeningHours, Span};
use domain::routing::{Costs, Pattern, Route, RouteOrder};
use domain::{Kind, Money, Reference, SenderName};
use regex::RegexBuilder;

use super::CarrierSettings;
use super::fields::Fields;
use super::rewriting::{self, digits};

/// The maximum size of a compiled pattern in bytes.
const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// The setting `order` of the routes so far, by priority.
pub(super) type Orders = BTreeMap<u32, RouteOrder>;

/// Reads a route to one of these carriers.
pub(super) fn read(
    mut fields: Fields<'_>,
    carriers: &[CarrierSettings],
    names: &[String],
    orders: &mut Orders,
) -> Option<Route> {
    let name = fields.parsed("carrier", None, "the name of a [[carrier]]", |name| {
        names.iter().find(|known| *known == name).cloned()
    });
    let priority = fields.within("priority", "10", &(0..=u32::MAX));
    let weight =
        fields.parsed("weight", Some("1"), "a whole number from 1", |text| text.parse().ok());
    let ways = RouteOrder::ALL.map(|order| (order.as_str(), order));
    let order = fields.choice("order", Some("weight"), &ways);
    let kind = fields.optional("kind", "local or international", Kind::parse);
    let prefix = fields.optional("prefix", "digits with country code, without +", digits);
    let pattern = fields.optional("pattern", "a regular expression", pattern);
    let application =
        fields.optional("application", "an application's reference, 6 digits in quotes", |text| {
            Reference::parse(text).ok()
        });
    let sender = fields.optional("sender", "1 to 11 letters and digits", |text| {
        SenderName::parse(text).ok().map(|name| name.to_string())
    });
    if carriers.iter().any(|one| Some(&one.name) == name.as_ref() && one.only_receives()) {
        fields.problem("carrier has bind = \"receiver\", so it can't send messages");
    }
    let hours = hours(&mut fields);
    let cost = costs(&mut fields);
    let rewriting = rewriting::read(&mut fields);
    if application.is_some() && !rewriting.is_empty() {
        fields.problem(
            "application can't be set together with strip, add or send_as: set them on the \
             carrier, or choose the messages by prefix or sender",
        );
    }
    if order == Some(RouteOrder::Cost) && cost == Costs::default() {
        fields.problem("cost is missing: order = \"cost\" needs it");
    }
    if let (Some(priority), Some(order)) = (priority, order)
        && *orders.entry(priority).or_insert(order) != order
    {
        fields.problem(&format!("order must be the same on all routes with priority {priority}"));
    }
    fields.finish();
    let carrier = name?;
    let settings = carriers.iter().find(|known| known.name == carrier);
    Some(Route {
        segments_max: settings.and_then(|settings| settings.segments_max),
        carrier,
        priority: priority?,
        weight: weight?,
        order: order?,
        kind,
        prefix,
        pattern,
        application,
        sender,
        hours,
        cost,
        rewriting,
    })
}

fn pattern(text: &str) -> Option<Pattern> {
    let regex = RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build().ok()?;
    Some(Pattern::new(text.to_owned(), move |number| regex.is_match(number)))
}

/// Reads `hours` and `days`, and the `zone` that they need.
fn hours(fields: &mut Fields<'_>) -> Option<OpeningHours> {
    let span = fields.optional("hours", "a time like 08:00-20:00", Span::parse);
    let days = fields.list("days");
    let has_hours = span.is_some() || !days.is_empty();
    let days = if days.is_empty() { Some(Days::ALL) } else { Days::parse(&days.join(",")) };
    if days.is_none() {
        fields.problem("days must be days like mon-fri or [\"sat\", \"sun\"]");
    }
    let wanted = "a time zone like Africa/Maseru";
    if !has_hours {
        if fields.optional("zone", wanted, |_| Some(())).is_some() {
            fields.problem("zone is set, so hours or days must be too");
        }
        return None;
    }
    let now = service::Clock::system().now();
    let zone = fields.parsed("zone", None, wanted, |name| service::zones::zone(name, now))?;
    Some(OpeningHours { span: span.unwrap_or(Span::ALL), days: days?, zone })
}

/// Reads one cost, or a table of costs by prefix.
fn costs(fields: &mut Fields<'_>) -> Costs {
    let wanted = "an amount like 0.012, for a segment";
    if !fields.is_table("cost") {
        let cost = fields.optional("cost", wanted, |text| Money::parse(text).ok());
        return cost.map(Costs::from).unwrap_or_default();
    }
    let mut costs = Vec::new();
    for (prefix, text) in fields.map("cost") {
        if !prefix.is_empty() && digits(&prefix).is_none() {
            fields.problem(&format!("cost.{prefix}: the prefix must be digits, or empty"));
        } else if let Ok(cost) = Money::parse(&text) {
            costs.push((prefix, cost));
        } else {
            fields.problem(&format!("cost.{prefix} must be {wanted}"));
        }
    }
    Costs::new(costs)
}
