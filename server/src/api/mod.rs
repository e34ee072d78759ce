//! The SMS API: everything under `/sms`.
//!
//! It takes requests before any router does: a router answers bad encodings and wrong methods in its
//! own words, and here every answer is JSON with a code.

mod answer;
mod balance;
mod body;
mod credentials;
mod csv_report;
mod form;
mod json_body;
mod parameters;
mod record;
mod reports;
mod route;
mod send;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response};
use domain::Reason;
use hyper::body::Incoming;
use service::Service;

use crate::metrics::Metrics;
use crate::site::RouteTemplate;
use answer::Failure;
use credentials::KeyText;

pub use answer::{internal, without_host};
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
    /// Answers a request whose path [`is_in`] the API.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let Some(route) = Route::find(request.uri().path()) else {
            let mut response = Failure::of(Reason::NotFound).into_response();
            note_route(&mut response, "/sms/…");
            body::drop_rest(request.into_body());
            return response;
        };
        let template = route.template();
        let mut response = self.dispatch(route, request).await;
        note_route(&mut response, template);
        response
    }

    async fn dispatch(&self, route: Route, request: Request<Incoming>) -> Response<Body> {
        if !route.allows(request.method()) {
            let mut response = Failure::of(Reason::MethodNotAllowed).into_response();
            let allow = HeaderValue::from_static(route.allowed());
            response.headers_mut().insert("allow", allow);
            body::drop_rest(request.into_body());
            return response;
        }
        let key = KeyText::find(route.key(), request.headers());
        let answered = match route {
            Route::Send(_) if request.method() == Method::POST => {
                return send::post(self, key, request).await;
            }
            Route::Send(_) => send::get(self, &key, &request).await,
            Route::Reports(_) => reports::list(self, &key, request.uri().query()).await,
            Route::Report(_, transid) => {
                reports::one(self, &key, &transid, request.uri().query()).await
            }
            Route::Balance(_) => balance::get(self, &key).await,
        };
        body::drop_rest(request.into_body());
        answered.unwrap_or_else(Failure::into_response)
    }
}

fn note_route(response: &mut Response<Body>, template: &'static str) {
    response
        .extensions_mut()
        .insert(RouteTemplate(template.into()));
}
