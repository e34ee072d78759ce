//! Requests that change something. The key is checked first, then the body is read, then the
//! parameters are checked, and then the rate limit.

use axum::extract::Request;
use service::{IdempotencyKey, KeyAccess};

use super::address::Address;
use super::answer::Failure;
use super::frames::body_if;
use super::listing;
use super::parameters::Parameters;
use super::{Api, body, shared_parameters};

/// A request with a valid key and valid parameters.
pub struct Posted<T> {
    pub access: KeyAccess,
    pub wanted: T,
    pub once: Option<IdempotencyKey>,
}

/// Reads a request. `known` has the names of its parameters, and `wanted` reads their values. The
/// body may be as large as that of a send of this many `pages`.
pub async fn read<T>(
    api: &Api,
    address: &Address,
    known: &'static [&'static str],
    pages: usize,
    request: Request,
    wanted: impl FnOnce(&Parameters) -> Result<T, Failure>,
) -> Result<Posted<T>, Failure> {
    let (head, body) = request.into_parts();
    let messages = api.service.messages();
    let (access, body) = body_if(messages.authorize(address.presented()).await, body)?;
    let mut parameters = Parameters::of_query(known, head.uri.query());
    let taken = body::read_parameters(&head.headers, body, &mut parameters, pages).await;
    let wanted = taken.and_then(|()| wanted(&parameters));
    // Every request counts towards the limit, but its own error takes precedence.
    let allowed = messages.take_request(&access).await;
    let wanted = wanted?;
    parameters.refuse_unknown()?;
    let once = shared_parameters::idempotency(&head.headers)?;
    allowed?;
    Ok(Posted { access, wanted, once })
}

/// Reads a parameter that can only be given as 1 or true. In JSON, false is as if it weren't given.
pub fn is_asked(parameters: &Parameters, name: &str) -> Result<bool, Failure> {
    if let Some(yes) = parameters.json_boolean(name) {
        return Ok(yes);
    }
    let read = listing::read(parameters, name, "1 or true", |text| {
        matches!(text, "1" | "true").then_some(true)
    });
    Ok(read?.unwrap_or(false))
}
