//! `/sms/balance`: what can still be spent.

use serde::Serialize;

use super::Api;
use super::answer::{Answer, Failure, Head, json};
use super::credentials::KeyText;
use super::rate;
use crate::json::Amount;

#[derive(Serialize)]
struct Spendable<'a> {
    #[serde(flatten)]
    head: Head,
    balance: Amount,
    currency: &'a str,
}

pub async fn get(api: &Api, key: &KeyText) -> Result<Answer, Failure> {
    let access = api.service.authorize(key.as_deref()).await?;
    rate::counted(api, &access, Ok(())).await?;
    let balance = api.service.balance(&access).await?;
    Ok(json(&Spendable {
        head: Head::success(),
        balance: Amount(balance),
        currency: &api.currency,
    }))
}
