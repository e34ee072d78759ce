//! An event as programs get it: in the list of events, and in the body of a delivery.

use serde::Serialize;
use serde_json::value::RawValue;
use service::{EventData, EventRecord};
use utoipa::ToSchema;

use super::record::{Batch, Inbound, Report};
use crate::json::DateTime;
use crate::openapi::schemas;

/// Something that happened to an application or one of its messages.
#[derive(Serialize, ToSchema)]
pub struct Event<'a> {
    #[schema(value_type = schemas::EventId)]
    pub id: String,
    #[serde(rename = "type")]
    #[schema(value_type = schemas::EventType)]
    pub kind: &'static str,
    pub timestamp: DateTime,
    /// The application's reference.
    #[schema(value_type = schemas::Reference)]
    pub application: String,
    /// True if it is an event of the test key.
    pub test: bool,
    /// The fields depend on the type; see webhooks in this document.
    #[schema(value_type = Object)]
    pub data: Data<'a>,
}

/// The data of an event.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Data<'a> {
    Message(Box<Report<'a>>),
    Batch(Box<Batch<'a>>),
    Inbound(Box<Inbound>),
    Other(Box<RawValue>),
}

impl<'a> Event<'a> {
    /// # Errors
    /// If the stored data of the event isn't JSON.
    pub fn new(event: EventRecord, currency: &'a str) -> Result<Self, serde_json::Error> {
        Ok(Self {
            id: event.id.to_string(),
            kind: event.kind.as_str(),
            timestamp: DateTime(event.at),
            application: event.id.reference.to_string(),
            test: event.id.test,
            data: match event.data {
                EventData::Message(record) => {
                    Data::Message(Box::new(Report::without_text(*record, currency)))
                }
                EventData::Batch(record) => Data::Batch(Box::new(Batch::new(*record, currency))),
                EventData::Inbound(record) => Data::Inbound(Box::new(Inbound::from(*record))),
                EventData::Other(json) => Data::Other(RawValue::from_string(json)?),
            },
        })
    }
}
