//! `/sms/balance`: what can still be spent.

use axum::body::Body;
use axum::http::Response;
use serde::Serialize;

use super::Api;
use super::answer::{Failure, Head, json};
use super::credentials::KeyText;
use super::rate;
use crate::json::Amount;

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    head: Head,
    balance: Amount,
    currency: &'a str,
}

pub async fn get(api: &Api, key: &KeyText) -> Result<Response<Body>, Failure> {
    let access = api.service.authorize(key.as_deref()).await?;
    rate::counted(api, &access, Ok(())).await?;
    let balance = api.service.balance(&access).await?;
    Ok(json(&Answer {
        head: Head::success(),
        balance: Amount(balance),
        currency: &api.currency,
    }))
}
