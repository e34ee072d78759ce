//! Webhooks: endpoints that get events, and the attempts to deliver events to them.

mod chart;
mod check;
mod endpoint;
mod event;
mod list;
mod manage;
mod news;
mod replay;
mod types;

pub use endpoint::EndpointPage;
pub use event::WebhookEventPage;
pub use list::{Endpoint, LoadWebhooks, WebhooksPage, WebhooksView, status};
