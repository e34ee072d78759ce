//! Read-only requests. The key is checked first, then the parameters, then the rate limit.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use service::KeyAccess;

use super::SharedApi;
use super::address::Address;
use super::answer::{Answer, Failure};

/// The parameters of a read-only request.
pub trait GetParameters: Sized {
    /// Parses the ID in the path and the query.
    ///
    /// # Errors
    /// `not_found` if the ID is malformed, or the refusal of a parameter.
    fn read(id: Option<&str>, query: Option<&str>) -> Result<Self, Failure>;
}

/// A read-only request with a valid key and valid parameters.
pub struct Get<T> {
    pub address: Address,
    pub access: KeyAccess,
    pub parameters: T,
}

impl<T: GetParameters + Send> FromRequestParts<SharedApi> for Get<T> {
    type Rejection = Answer;

    async fn from_request_parts(parts: &mut Parts, api: &SharedApi) -> Result<Self, Answer> {
        let Ok(address) = Address::from_request_parts(parts, api).await;
        let judged = async {
            let access = api.service.messages().authorize(address.presented()).await?;
            let parameters = T::read(address.id.as_deref(), parts.uri.query());
            // Every request counts towards the limit, but its own error takes precedence.
            let taken = api.service.messages().take_request(&access).await;
            let parameters = parameters?;
            taken?;
            Ok((access, parameters))
        };
        match judged.await {
            Ok((access, parameters)) => Ok(Self { address, access, parameters }),
            Err(failure) => Err(address.answer(api, Err(failure))),
        }
    }
}
