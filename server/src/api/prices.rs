//! `/sms/prices`: the price of a page.

use axum::extract::State;
use domain::{Kind, Number, PriceRecord};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{self, Answer, Failure, Head};
use super::get::{Get, GetParameters};
use super::parameters::Parameters;
use super::{Api, SharedApi};
use crate::json::{Amount, DateTime};
use crate::openapi::refusals::PricesRefusals;
use crate::openapi::schemas;

const KNOWN: [&str; 1] = ["number"];

#[derive(Serialize, ToSchema)]
#[schema(as = Prices)]
struct PricesAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    prices: Vec<Price<'a>>,
    /// The current price of a page to the number. Present only if the request has a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<OfNumber>,
}

/// A current or future price.
#[derive(Serialize, ToSchema)]
struct Price<'a> {
    /// The price is for numbers that begin with these digits. Null for all numbers of the kind.
    #[schema(value_type = Option<schemas::PrefixDigits>, required)]
    prefix: Option<String>,
    #[schema(value_type = schemas::Kind)]
    kind: Kind,
    /// Null if the prefix has no price of its own from this time on.
    #[schema(required)]
    per_page: Option<Amount>,
    #[schema(value_type = schemas::Currency)]
    currency: &'a str,
    from: DateTime,
}

impl<'a> Price<'a> {
    fn new(record: PriceRecord, currency: &'a str) -> Self {
        Self {
            prefix: record.prefix.map(String::from),
            kind: record.kind,
            per_page: record.per_page.map(Amount),
            currency,
            from: DateTime(record.from),
        }
    }
}

/// The price of a page to a number.
#[derive(Serialize, ToSchema)]
#[schema(as = PriceOfNumber)]
struct OfNumber {
    per_page: Amount,
    /// A stable code, the same as in a report's charge.
    rule: String,
}

/// A query for all prices and, optionally, for the price of a number.
pub struct Prices(Option<Number>);

impl GetParameters for Prices {
    fn read(_: Option<&str>, query: Option<&str>) -> Result<Self, Failure> {
        let parameters = Parameters::of_query(&KNOWN, query);
        let number = parameters.number("number")?;
        parameters.refuse_unknown()?;
        Ok(Self(number))
    }
}

#[utoipa::path(
    get,
    path = "/sms/prices/{key}",
    operation_id = "prices",
    summary = "Get the price of a page",
    description = "Lists the current prices, then the future ones, each with the time from which \
        it applies. For an international number, the longest matching prefix decides. If none \
        matches, the price without a prefix applies.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("number" = Option<schemas::Number>, Query,
            description = "Adds the price of this number."),
    ),
    responses(
        (status = 200, description = "Done.", body = PricesAnswer, example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS",
            "prices": [
                {"prefix": null, "kind": "local", "per_page": 0.05, "currency": "USD",
                 "from": "2026-01-01T00:00:00.000Z"},
                {"prefix": null, "kind": "international", "per_page": 0.25, "currency": "USD",
                 "from": "2026-01-01T00:00:00.000Z"},
                {"prefix": "27", "kind": "international", "per_page": 0.12, "currency": "USD",
                 "from": "2026-03-01T00:00:00.000Z"}
            ],
            "price": {"per_page": 0.12, "rule": "prefix_27"}
        })),
        PricesRefusals,
    ),
)]
pub async fn get(State(api): State<SharedApi>, request: Get<Prices>) -> Answer {
    request.address.answer(&api, find(&api, &request).await)
}

async fn find(api: &Api, request: &Get<Prices>) -> Result<Answer, Failure> {
    let table = api.service.money().price_table().await?;
    let price = match &request.parameters.0 {
        Some(number) => Some(api.service.money().price_of(number).await?),
        None => None,
    };
    let records = table.in_force.into_iter().chain(table.coming);
    Ok(answer::json(&PricesAnswer {
        head: Head::success(),
        prices: records.map(|record| Price::new(record, &api.currency)).collect(),
        price: price
            .map(|found| OfNumber { per_page: Amount(found.price.per_page), rule: found.rule }),
    }))
}
