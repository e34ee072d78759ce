//! The SMS API: an axum router for everything under `/sms`.
//!
//! Except for CSV reports and the OpenAPI document, every response is JSON with a code. That
//! includes the responses of extractors and fallbacks, which refuse a request before it reaches a
//! handler.

mod address;
pub mod answer;
mod balance;
mod batches;
pub mod body;
mod bulk;
mod cancel;
mod csv_report;
pub mod event;
mod events;
pub mod form;
pub mod frames;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod get;
mod inbound;
mod json_body;
mod limits;
mod listing;
mod multipart;
mod opt_outs;
mod parameters;
mod post;
mod prices;
mod rate;
pub mod record;
mod reports;
mod send;
mod shared_parameters;
mod state;
mod test_clock;
mod test_inbound;
pub mod upload;
mod verify;
mod webhooks;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response};
use axum::routing::MethodRouter;
use domain::Reason;
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use crate::openapi::schemas;
use address::Address;
use answer::Failure;

#[cfg(test)]
pub use address::TEMPLATES;
pub use address::{DOCUMENT_PATH, is_in};
pub use answer::{Answer, RouteTemplate, internal, unreadable, without_host, without_path};
pub use state::{Api, SharedApi};

/// The route template in logs and metrics for requests that match no route.
const NO_ROUTE: &str = "/sms/…";

/// The methods of a batch, also where axum matched the list because the key is in the header.
const ON_BATCH: &str = "GET, POST";

/// The schemas of refusals and parameters, which utoipa can't discover by itself.
#[derive(OpenApi)]
#[openapi(components(schemas(
    answer::ErrorBody,
    schemas::ApiKey,
    schemas::BatchId,
    schemas::CheckFailure,
    schemas::CodeLength,
    schemas::CodeLocale,
    schemas::CodeName,
    schemas::CodeTtl,
    schemas::DryRun,
    schemas::EventId,
    schemas::EventType,
    schemas::EventTypes,
    schemas::Format,
    schemas::IdempotencyKey,
    schemas::InboundId,
    schemas::Limit,
    schemas::LimitMode,
    schemas::Message,
    schemas::Number,
    schemas::Otp,
    schemas::RequestId,
    schemas::SendAt,
    schemas::Since,
    schemas::Status,
    schemas::Transid,
    schemas::Validity,
    schemas::VerifyId,
    schemas::WebhookId,
    schemas::WebhookUrl,
)))]
struct Schemas;

/// Returns a router for all paths that satisfy [`is_in`].
pub fn router(api: Api) -> Router {
    let routes: Router<SharedApi> = documented_routes().into();
    routes.fallback(not_found).with_state(Arc::new(api))
}

/// Returns the routes together with their OpenAPI documentation.
pub fn documented_routes() -> OpenApiRouter<SharedApi> {
    let routes = OpenApiRouter::with_openapi(Schemas::openapi());
    let routes = add(routes, "GET, POST", routes!(send::get, send::post));
    let routes = add(routes, "POST", routes!(bulk::post));
    let routes = add(routes, "GET", routes!(reports::list));
    let routes = add(routes, "GET", routes!(reports::one));
    // With the key in the header, a batch has the same path as the list has with its key.
    let (schemas, paths, methods) = routes!(batches::list);
    let routes = add(routes, "GET", (schemas, paths, methods.post(batches::change)));
    let routes = add(routes, ON_BATCH, routes!(batches::one, batches::change));
    let routes = add(routes, "POST", routes!(cancel::post));
    let routes = add(routes, "GET", routes!(inbound::list));
    let routes = add(routes, "GET", routes!(events::list));
    let routes = add(routes, "GET, POST", routes!(webhooks::list, webhooks::create));
    let routes = add(routes, "GET, POST", routes!(webhooks::one, webhooks::change_one));
    let routes = add(routes, "GET, POST", routes!(opt_outs::list, opt_outs::change));
    let routes = add(routes, "POST", routes!(test_clock::post));
    let routes = add(routes, "POST", routes!(verify::start));
    let routes = add(routes, "POST", routes!(verify::check));
    let routes = add(routes, "POST", routes!(test_inbound::post));
    let routes = add(routes, "GET, POST", routes!(limits::get, limits::change));
    let routes = add(routes, "GET", routes!(balance::get));
    let routes = add(routes, "GET", routes!(prices::get));
    add(routes, "GET", routes!(document))
}

/// Adds the methods of a path. If the path ends with the key, also adds the path without the key,
/// for keys in the Authorization header.
fn add(
    routes: OpenApiRouter<SharedApi>,
    allowed: &'static str,
    (schemas, paths, methods): UtoipaMethodRouter<SharedApi>,
) -> OpenApiRouter<SharedApi> {
    let methods = only(allowed, methods);
    let path = paths.paths.keys().next().cloned().unwrap_or_default();
    let routes = match path.strip_suffix("/{key}") {
        Some(bare) => {
            routes.route(bare, methods.clone()).route(&format!("{bare}/"), methods.clone())
        }
        None => routes,
    };
    routes.routes((schemas, paths, methods))
}

/// Refuses every other method. HEAD is refused too: it would have to do what GET does, which is to
/// send a message.
fn only(allowed: &'static str, methods: MethodRouter<SharedApi>) -> MethodRouter<SharedApi> {
    let refuse = move |State(api): State<SharedApi>, address: Address, request: Request| async move {
        frames::drop_rest(request.into_body());
        address.refuse_method(&api, if address.is_of_batch() { ON_BATCH } else { allowed })
    };
    methods.head(refuse).fallback(refuse)
}

/// The OpenAPI document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "openapi",
    summary = "Get this document",
    responses((status = 200, description = "OpenAPI 3.1.", body = Object)),
)]
async fn document(State(api): State<SharedApi>, address: Address) -> Answer {
    let mut answer = Response::new(Body::from(api.document.clone()));
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    address.name(answer)
}

/// Responds `not_found` to a path that matches no route.
pub async fn not_found(request: Request) -> Answer {
    let failure = if request.uri().path().starts_with("//") {
        let detail = "There is nothing at this address: its path starts with more than one slash.";
        Failure::with_detail(Reason::NotFound, detail)
    } else {
        Failure::of(Reason::NotFound)
    };
    frames::drop_rest(request.into_body());
    let mut answer = failure.into_answer();
    answer.extensions_mut().insert(RouteTemplate(NO_ROUTE.into()));
    answer
}
