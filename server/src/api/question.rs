//! Requests that ask for something and change nothing: the key is judged first, then what is asked,
//! then whether it is one request too many.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use service::KeyAccess;

use super::SharedApi;
use super::address::Address;
use super::answer::{Answer, Failure};

/// What a request may ask for.
pub trait Question: Sized {
    /// Reads it from the id in the address and from the query.
    ///
    /// # Errors
    /// `not_found` for an id that is none; what is wrong with a parameter.
    fn read(id: Option<&str>, query: Option<&str>) -> Result<Self, Failure>;
}

/// A question of somebody who may ask it.
pub struct Asked<T> {
    pub address: Address,
    pub access: KeyAccess,
    pub question: T,
}

impl<T: Question + Send> FromRequestParts<SharedApi> for Asked<T> {
    type Rejection = Answer;

    async fn from_request_parts(parts: &mut Parts, api: &SharedApi) -> Result<Self, Answer> {
        let Ok(address) = Address::from_request_parts(parts, api).await;
        let judged = async {
            let access = api.service.authorize(address.key.as_deref()).await?;
            let question = T::read(address.id.as_deref(), parts.uri.query());
            // It counts whatever it is; a fault of its own comes before the limit.
            let taken = api.service.take_request(&access).await;
            let question = question?;
            taken?;
            Ok((access, question))
        };
        match judged.await {
            Ok((access, question)) => Ok(Self {
                address,
                access,
                question,
            }),
            Err(failure) => Err(address.answer(api, Err(failure))),
        }
    }
}
