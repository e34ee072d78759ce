//! The section `webhooks` of the document: each type of event, as an endpoint gets it.

use domain::event::EventType::{
    Activated, BalanceLow, BatchDone, Cancelled, Delivered, DepositReceived, Expired, Failed,
    KeyReplaced, LimitAlarm, OptOutAdded, OptOutRemoved, Received, Reinstated, Rejected,
    SenderAccepted, SenderRejected, Submitted, Suspended, Test,
};
use domain::{AlarmKind, EventType};
use serde_json::{Map, Value, json};

/// Returns the section. Adds the schema of a message in an event, which is that of a report without
/// the text, to the schemas of the document.
pub fn webhooks(schemas: &mut Value) -> Value {
    let mut message = schemas["Report"].clone();
    if let Some(properties) = message["properties"].as_object_mut() {
        properties.remove("message");
    }
    if let Some(required) = message["required"].as_array_mut() {
        required.retain(|name| name != "message");
    }
    message["description"] =
        json!("A message as it was at the time of an event, without its text.");
    schemas["EventMessage"] = message;
    let hooks = EventType::ALL.map(|kind| (kind.as_str().to_owned(), webhook(kind)));
    Value::Object(hooks.into_iter().collect())
}

fn webhook(kind: EventType) -> Value {
    let header = |name: &str, about: &str| {
        json!({
            "name": name, "in": "header", "required": true, "description": about,
            "schema": {"type": "string"}
        })
    };
    json!({"post": {
        "summary": summary(kind),
        "description": "Answer with any 2xx within 15 seconds. Deliveries follow Standard Webhooks.",
        "parameters": [
            header("webhook-id", "The event's id. A repeated delivery has the same one."),
            header("webhook-timestamp", "Unix seconds of this attempt."),
            header("webhook-signature", "v1, and the base64 of HMAC-SHA256 over \
                id.timestamp.body; two of them, separated by a space, for a day after a rotation."),
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {
            "allOf": [
                {"$ref": "#/components/schemas/Event"},
                {
                    "type": "object",
                    "required": ["type", "data"],
                    "properties": {"type": {"enum": [kind.as_str()]}, "data": data(kind)}
                }
            ]
        }}}},
        "responses": {"2XX": {"description": "The event was received."}}
    }})
}

const fn summary(kind: EventType) -> &'static str {
    match kind {
        Submitted => "A carrier accepted a message. Only for endpoints that name this type",
        Delivered => "A message reached the handset",
        Failed => "A message couldn't be delivered",
        Expired => "The time of a message ran out",
        Rejected => "No carrier accepted a message, and its price was released",
        Cancelled => "A message was cancelled, and its price was released",
        Received => "A handset sent a message to one of the application's numbers",
        BatchDone => "All messages of a batch are final",
        BalanceLow => "The balance fell below the threshold that the owner set",
        DepositReceived => "A deposit was added to the balance",
        Activated => "Support approved the application",
        Suspended => "Support suspended the application",
        Reinstated => "Support reinstated the application",
        SenderAccepted => "Support accepted a sender name",
        SenderRejected => "Support rejected a sender name",
        KeyReplaced => "A key was replaced",
        OptOutAdded => "A number was added to the opt-outs",
        LimitAlarm => {
            "The application is used in a suspicious way, 80 % of its spend of the day are spent, \
            or it sends to an international number for the first time in 30 days. example is a \
            masked number. Events of earlier versions have no detail"
        }
        OptOutRemoved => "A number was removed from the opt-outs. source says who removed it",
        Test => "The owner tested the endpoint",
    }
}

/// Returns the schema of an event's data.
fn data(kind: EventType) -> Value {
    let text = || json!({"type": "string"});
    let optional = || json!({"type": ["string", "null"]});
    let amount = || json!({"$ref": "#/components/schemas/Money"});
    match kind {
        Submitted | Delivered | Failed | Expired | Rejected | Cancelled => {
            json!({"$ref": "#/components/schemas/EventMessage"})
        }
        Received => json!({"$ref": "#/components/schemas/InboundMessage"}),
        BatchDone => json!({"$ref": "#/components/schemas/Batch"}),
        BalanceLow => {
            object([("balance", amount()), ("threshold", amount()), ("currency", text())])
        }
        DepositReceived => {
            object([("amount", amount()), ("balance", amount()), ("currency", text())])
        }
        Activated | Suspended | Reinstated => object([("status", text()), ("reason", optional())]),
        SenderAccepted | SenderRejected => object([("sender", text()), ("reason", optional())]),
        KeyReplaced => object([("kind", json!({"type": "string", "enum": ["live", "test"]}))]),
        LimitAlarm => {
            let kinds = AlarmKind::ALL.map(AlarmKind::as_str);
            let mut alarm = object([
                ("limit", json!({"type": "string", "enum": kinds})),
                ("count", json!({"type": "integer"})),
                ("example", optional()),
                ("at", json!({"$ref": "#/components/schemas/DateTime"})),
            ]);
            alarm["properties"]["detail"] = text();
            alarm
        }
        OptOutAdded | OptOutRemoved => json!({"$ref": "#/components/schemas/OptOut"}),
        Test => object([]),
    }
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let names = fields.each_ref().map(|(name, _)| *name);
    let properties: Map<_, _> =
        fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({"type": "object", "required": names.as_slice(), "properties": properties})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_of_earlier_versions_fit_without_a_detail() {
        let alarm = data(LimitAlarm);
        assert_eq!(alarm["required"], json!(["limit", "count", "example", "at"]));
        assert_eq!(alarm["properties"]["detail"], json!({"type": "string"}));
    }
}
