//! The SMS API: everything under `/sms`.
//!
//! It takes requests before any router does: a router answers bad encodings and wrong methods in
//! its own words, and here every answer is JSON with a code.

mod answer;
mod balance;
mod batches;
pub mod body;
mod bulk;
mod credentials;
mod csv_report;
pub mod form;
mod json_body;
mod listing;
mod multipart;
mod parameters;
mod rate;
mod record;
mod reports;
mod route;
mod send;
mod shared_parameters;
mod upload;

use std::sync::Arc;

use axum::http::{HeaderValue, Method, Request};
use domain::Reason;
use hyper::body::Incoming;
use service::Service;

use crate::metrics::Metrics;
use answer::Failure;
use credentials::KeyText;

pub use answer::{Answer, internal, unreadable, without_host, without_path};
pub use route::{Route, is_in};

/// What the API's handlers need. Clones share it.
#[derive(Clone)]
pub struct Api {
    pub service: Service,
    pub metrics: Arc<Metrics>,
    /// ISO 4217 code.
    pub currency: Arc<str>,
    /// To recognise numbers that were probably meant to be local.
    pub country_code: Arc<str>,
    /// Pages of the longest message.
    pub message_pages_max: usize,
}

impl Api {
    /// Answers a request whose path [`is_in`] the API; with the template of its route.
    pub async fn answer(&self, request: Request<Incoming>) -> (&'static str, Answer) {
        let Some(route) = Route::find(request.uri().path()) else {
            let failure = not_found(request.uri().path());
            body::drop_rest(request.into_body());
            return ("/sms/…", failure.into_response());
        };
        let template = route.template();
        (template, self.dispatch(route, request).await)
    }

    async fn dispatch(&self, route: Route, request: Request<Incoming>) -> Answer {
        if !route.allows(request.method()) {
            let mut response = Failure::of(Reason::MethodNotAllowed).into_response();
            let allow = HeaderValue::from_static(route.allowed());
            response.headers_mut().insert("allow", allow);
            body::drop_rest(request.into_body());
            return response;
        }
        let key = KeyText::find(route.key(), request.headers());
        let mut response = self.answer_route(route, &key, request).await;
        rate::note(self, &key, &mut response);
        response
    }

    async fn answer_route(
        &self,
        route: Route,
        key: &KeyText,
        request: Request<Incoming>,
    ) -> Answer {
        let query = request.uri().query();
        let answered = match route {
            Route::Send(_) if request.method() == Method::POST => {
                return send::post(self, key, request).await;
            }
            // Boxed, since its state is several times that of the others, and each request makes
            // room for the largest.
            Route::Bulk(_) => return Box::pin(bulk::post(self, key, request)).await,
            Route::Send(_) => send::get(self, key, &request).await,
            Route::Reports(_) => reports::list(self, key, query).await,
            Route::Report(_, transid) => reports::one(self, key, &transid, query).await,
            Route::Batches(_) => batches::list(self, key, query).await,
            Route::Batch(_, batchid) => batches::one(self, key, &batchid, query).await,
            Route::Balance(_) => balance::get(self, key).await,
        };
        body::drop_rest(request.into_body());
        answered.unwrap_or_else(Failure::into_response)
    }
}

fn not_found(path: &str) -> Failure {
    if path.starts_with("//") {
        let detail = "There is nothing at this address: its path starts with more than one slash.";
        return Failure::with_detail(Reason::NotFound, detail);
    }
    Failure::of(Reason::NotFound)
}
