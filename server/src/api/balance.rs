//! `/sms/balance`: the balance that is left to spend.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{Answer, Failure, Head, json};
use super::get::{Get, GetParameters};
use super::parameters::Parameters;
use super::{Api, SharedApi};
use crate::json::Amount;
use crate::openapi::refusals::BalanceRefusals;
use crate::openapi::schemas;

#[derive(Serialize, ToSchema)]
#[schema(as = Balance)]
struct Spendable<'a> {
    #[serde(flatten)]
    head: Head,
    balance: Amount,
    #[schema(value_type = schemas::Currency)]
    currency: &'a str,
}

/// A query for the balance.
pub struct Balance;

impl GetParameters for Balance {
    fn read(_: Option<&str>, query: Option<&str>) -> Result<Self, Failure> {
        Parameters::of_query(&[], query).refuse_unknown()?;
        Ok(Self)
    }
}

#[utoipa::path(
    get,
    path = "/sms/balance/{key}",
    operation_id = "balance",
    summary = "Get the balance",
    description = "The price of an accepted upload is already deducted.",
    params(("key" = schemas::ApiKey, Path)),
    responses(
        (status = 200, description = "Done.", body = Spendable, example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "balance": 9.95, "currency": "USD"
        })),
        BalanceRefusals,
    ),
)]
pub async fn get(State(api): State<SharedApi>, request: Get<Balance>) -> Answer {
    request.address.answer(&api, find(&api, &request).await)
}

async fn find(api: &Api, request: &Get<Balance>) -> Result<Answer, Failure> {
    let balance = api.service.messages().balance(&request.access).await?;
    Ok(json(&Spendable {
        head: Head::success(),
        balance: Amount(balance),
        currency: &api.currency,
    }))
}
