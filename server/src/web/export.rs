//! The data of an account as a JSON file for its owner: the account, its details on receipts, its
//! devices, its security events, and its applications with their verifications and statements.
//! Nothing in the file gives access. A second file contains what is stored about one phone number.

use app::portal_request::PortalRequest as _;
use app::problem::{Cause, Filter};
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use domain::billing::BillingDetails;
use domain::records::{
    AccountRecord, AccountSettings, ApplicationRecord, DeviceRecord, SecurityEventRecord,
    StatementLine,
};
use domain::webhook::{DisabledReason, WebhookRecord};
use domain::{KeyKind, Money, Number, Reference, Timestamp, VerifyId};
use futures_util::stream::try_unfold;
use serde_json::{Value, json};
use service::{Actor, Service, StatementFilter, VerificationRecord};

use super::portal_request::Portal;
use super::signed_in::{Refused, SignedIn};

/// The number of statement lines, and of verifications, per read. A file is never in memory as a
/// whole.
const LINES_AT_ONCE: i64 = 200;

/// `GET /account/export.json`.
pub async fn download(
    State(portal): State<Portal>,
    signed_in: SignedIn,
) -> Result<Response, Refused> {
    let token = signed_in.current.token().unwrap_or_default();
    // Reads everything but the statements before the response begins. An error after that can't
    // change the status.
    Ok(file(Export::begin(portal.service, &signed_in.account, &token).await?))
}

/// `GET /account/number.json?number=`: what is stored about a phone number.
pub async fn download_number(
    State(portal): State<Portal>,
    signed_in: SignedIn,
) -> Result<Response, Refused> {
    let number = signed_in.parameter("number").unwrap_or_default();
    let number = Number::parse_typed(&number).map_err(|_| Cause::Filter(Filter::Number))?;
    let id = signed_in.account.id;
    let export = portal.service.messages().export_number(&Actor::Account(id), id, &number).await?;
    let chunks = try_unfold(export, |mut export| async move {
        let part = export.next_part().await;
        let part = part.inspect_err(|error| tracing::error!(%error, "an export ended early"))?;
        Ok::<_, service::Error>(part.map(|part| (part, export)))
    });
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (CONTENT_DISPOSITION, "attachment; filename=\"heliograph-number.json\""),
    ];
    Ok((headers, Body::from_stream(chunks)).into_response())
}

fn file(export: Export) -> Response {
    let chunks = try_unfold(Some((export, Next::Head)), |rest| async move {
        let Some((export, next)) = rest else {
            return Ok::<_, service::Error>(None);
        };
        let written = export.write(next).await;
        let (chunk, next) =
            written.inspect_err(|error| tracing::error!(%error, "an export ended early"))?;
        Ok(Some((chunk, next.map(|next| (export, next)))))
    });
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (CONTENT_DISPOSITION, "attachment; filename=\"heliograph-account.json\""),
    ];
    (headers, Body::from_stream(chunks)).into_response()
}

/// An export that is being written.
struct Export {
    service: Service,
    account_id: i64,
    /// The part of the file before the applications.
    head: Value,
    applications: Vec<ApplicationRecord>,
}

/// The part of the file to write next.
enum Next {
    Head,
    /// The application with this index, or the end of the file if there is none.
    Application(usize),
    /// The verifications of a key after one.
    Verifications {
        application: usize,
        key: KeyKind,
        after: VerifyId,
        /// Whether none of the application's verifications is written yet.
        is_first: bool,
    },
    Lines {
        application: usize,
        cursor: Option<String>,
    },
}

impl Export {
    async fn begin(
        service: Service,
        account: &AccountRecord,
        token: &str,
    ) -> Result<Self, service::Error> {
        let settings = service.accounts().account_settings(account.id).await?;
        let billing = service.accounts().billing_details(account.id).await?;
        let devices = service.accounts().devices(account.id, token).await?;
        let events = service.accounts().all_security_events(account.id).await?;
        let head = json!({
            "exported_at": at(service.clock().now()),
            "account": account_value(&settings),
            "billing_details": billing_value(&billing),
            "devices": devices.iter().map(device_value).collect::<Vec<_>>(),
            "security_events": events.iter().map(event_value).collect::<Vec<_>>(),
        });
        let applications = service.applications().of_account(account.id).await?;
        Ok(Self { service, account_id: account.id, head, applications })
    }

    /// Returns a part of the file, and the part to write after it.
    async fn write(&self, next: Next) -> Result<(String, Option<Next>), service::Error> {
        match next {
            Next::Head => {
                let text = open(&self.head, "applications");
                Ok((text, Some(Next::Application(0))))
            }
            Next::Application(index) => self.application(index).await,
            Next::Verifications { application, key, after, is_first } => {
                self.verifications(application, (key, after), is_first).await
            }
            Next::Lines { application, cursor } => self.lines(application, cursor).await,
        }
    }

    async fn application(&self, index: usize) -> Result<(String, Option<Next>), service::Error> {
        let Some(application) = self.applications.get(index) else {
            return Ok(("]}\n".to_owned(), None));
        };
        let comma = if index > 0 { "," } else { "" };
        let mut value = application_value(application);
        value["webhooks"] = self.webhooks(application.reference).await?;
        let text = open(&value, "verifications");
        let next = Next::Verifications {
            application: index,
            key: KeyKind::Live,
            after: VerifyId(0),
            is_first: true,
        };
        Ok((format!("{comma}{text}"), Some(next)))
    }

    /// Returns some verifications of a key, oldest first. Those of the live key come first.
    async fn verifications(
        &self,
        index: usize,
        (key, after): (KeyKind, VerifyId),
        is_first: bool,
    ) -> Result<(String, Option<Next>), service::Error> {
        let reference = self.applications[index].reference;
        let access = self.service.webhooks().access_of(self.account_id, reference, key).await?;
        let found = self.service.messages().verifications(&access, after, LINES_AT_ONCE).await?;
        let values: Vec<_> =
            found.iter().map(|it| verification_value(key, it).to_string()).collect();
        let comma = if is_first || values.is_empty() { "" } else { "," };
        let text = format!("{comma}{}", values.join(","));
        let (key, after) = match (found.last(), key) {
            (Some(last), key) => (key, last.id),
            (None, KeyKind::Live) => (KeyKind::Test, VerifyId(0)),
            (None, KeyKind::Test) => {
                let next = Next::Lines { application: index, cursor: None };
                return Ok((format!("{text}],\"statement\":["), Some(next)));
            }
        };
        let is_first = is_first && found.is_empty();
        Ok((text, Some(Next::Verifications { application: index, key, after, is_first })))
    }

    async fn webhooks(&self, reference: Reference) -> Result<Value, service::Error> {
        let found = self.service.webhooks().of_application(reference).await?;
        Ok(found.iter().map(|(kind, endpoint)| webhook_value(*kind, endpoint)).collect())
    }

    /// Returns some lines of an application's statement, newest first.
    async fn lines(
        &self,
        index: usize,
        cursor: Option<String>,
    ) -> Result<(String, Option<Next>), service::Error> {
        let reference = self.applications[index].reference;
        let filter = StatementFilter {
            cursor: cursor.as_deref(),
            limit: LINES_AT_ONCE,
            ..StatementFilter::default()
        };
        let page =
            self.service.applications().statement(self.account_id, reference, filter).await?;
        let lines: Vec<_> = page.items.iter().map(|line| line_value(line).to_string()).collect();
        let comma = if cursor.is_some() && !lines.is_empty() { "," } else { "" };
        let text = format!("{comma}{}", lines.join(","));
        Ok(match page.next {
            Some(cursor) => {
                let next = Next::Lines { application: index, cursor: Some(cursor) };
                (text, Some(next))
            }
            None => (format!("{text}]}}"), Some(Next::Application(index + 1))),
        })
    }
}

/// Returns an object as JSON, up to the start of its last member, which is a list. The caller
/// writes the items and the end.
fn open(object: &Value, list: &str) -> String {
    let text = object.to_string();
    let members = text.strip_suffix('}').unwrap_or(&text);
    format!("{members},\"{list}\":[")
}

fn at(time: Timestamp) -> String {
    time.to_string()
}

fn money(amount: Money) -> String {
    amount.to_string()
}

fn account_value(settings: &AccountSettings) -> Value {
    let account = &settings.account;
    let unwanted = settings.unwanted_mails.iter();
    json!({
        "id": account.id,
        "email": account.email,
        "new_email": settings.new_email,
        "new_email_at": settings.new_email_at.map(at),
        "staff": account.staff,
        "confirmed_at": account.confirmed_at.map(at),
        "password_changed_at": at(account.password_changed_at),
        "second_factor": account.second_factor,
        "theme": account.theme.as_str(),
        "time_zone": account.time_zone,
        "unwanted_mails": unwanted.map(|kind| kind.as_str()).collect::<Vec<_>>(),
    })
}

fn billing_value(details: &BillingDetails) -> Value {
    json!({
        "name": details.name,
        "address": details.address,
        "tax_number": details.tax_number,
    })
}

fn device_value(device: &DeviceRecord) -> Value {
    json!({
        "name": device.name,
        "user_agent": device.user_agent,
        "address": device.address,
        "signed_in_at": at(device.signed_in_at),
        "last_seen_at": at(device.last_seen_at),
        "this_device": device.current,
    })
}

fn event_value(event: &SecurityEventRecord) -> Value {
    json!({
        "at": at(event.at),
        "kind": event.kind.as_str(),
        "address": event.address,
        "user_agent": event.user_agent,
        "detail": event.detail,
    })
}

fn application_value(application: &ApplicationRecord) -> Value {
    let requested = application.requested_sender.as_ref();
    json!({
        "reference": application.reference.to_string(),
        "name": application.name,
        "category": application.category.as_str(),
        "status": application.status.as_str(),
        "suspend_reason": application.suspend_reason,
        "sender_name": application.sender_name,
        "requested_sender_name": requested.map(|request| &request.name),
        "balance": money(application.balance),
        "test_balance": money(application.test_balance),
        "lost_answer": application.lost_answer.as_str(),
        "low_balance": application.low_balance.map(money),
        "created_at": at(application.created_at),
        "activation_requested_at": application.activation_requested_at.map(at),
    })
}

fn webhook_value(kind: KeyKind, endpoint: &WebhookRecord) -> Value {
    json!({
        "webhookid": endpoint.webhookid.to_string(),
        "key": kind.as_str(),
        "url": endpoint.url,
        "events": endpoint.types(),
        "disabled": endpoint.disabled.map(DisabledReason::as_str),
        "created_at": at(endpoint.created_at),
    })
}

fn verification_value(key: KeyKind, verification: &VerificationRecord) -> Value {
    json!({
        "verifyid": verification.id.to_string(),
        "key": key.as_str(),
        "number": verification.number,
        "locale": verification.locale.as_str(),
        "name": verification.name,
        "started_at": at(verification.created_at),
        "expires_at": at(verification.expires_at),
        "resends": verification.resends,
        "attempts": verification.attempts,
        "verified_at": verification.verified_at.map(at),
    })
}

fn line_value(line: &StatementLine) -> Value {
    json!({
        "at": at(line.at),
        "kind": line.kind.as_str(),
        "amount": money(line.amount),
        "balance_after": money(line.balance_after),
        "subject": line.subject,
    })
}
