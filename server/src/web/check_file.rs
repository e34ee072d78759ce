//! Checks the files that owners send to the page that checks files. The response is the page with
//! the outcome.

use app::file_check::{CheckOutcome, CheckedUpload, is_list};
use app::overload::RETRY_AFTER_S;
use app::portal_request::PortalRequest as _;
use axum::body::Body;
use axum::extract::{FromRequestParts as _, Path, Request, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use domain::message::{InvalidMessage, PAGE_CHARS};
use domain::{BulkMode, BulkWriting, KeyKind, MessageText, Reason, Reference};
use service::{CHECKS_PER_APPLICATION, CheckedFile, FileCheck, KeyAccess, Service, UploadError};

use super::portal_request::Portal;
use super::signed_in::SignedIn;
use crate::api::answer::Failure;
use crate::api::upload::{self, Fields, Files};

/// Reads the file of the form as it arrives, and passes the outcome to the page. If the owner of
/// the application isn't signed in, the file isn't read.
pub async fn read(
    State(portal): State<Portal>,
    Path(reference): Path<String>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let signed_in = match SignedIn::from_request_parts(&mut parts, &portal).await {
        Ok(signed_in) => signed_in,
        Err(refused) => return refused.into_response(),
    };
    let Some(access) = owner(&signed_in, &reference).await else {
        // The page says that there is no such application.
        return next.run(Request::from_parts(parts, Body::empty())).await;
    };
    let is_list = signed_in.parameter("file").is_some_and(|file| is_list(&file));
    let (message, outcome) = check(&portal.service, access, &parts.headers, body).await;
    let checked = CheckedUpload { is_list, message, outcome };
    let is_busy = matches!(checked.outcome, CheckOutcome::Busy(_));
    parts.extensions.insert(checked);
    let mut response = next.run(Request::from_parts(parts, Body::empty())).await;
    if is_busy {
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
    }
    response
}

/// Returns the access of the signed-in account to the application, if it is the account's.
async fn owner(signed_in: &SignedIn, reference: &str) -> Option<KeyAccess> {
    let reference = Reference::parse(reference).ok()?;
    let webhooks = signed_in.current.service().webhooks();
    webhooks.access_of(signed_in.account.id, reference, KeyKind::Live).await.ok()
}

async fn check(
    service: &Service,
    access: KeyAccess,
    headers: &HeaderMap,
    body: Body,
) -> (String, CheckOutcome) {
    let limits = service.limits();
    let files = Checks { service, access };
    let characters_max = limits.message_pages_max.saturating_mul(PAGE_CHARS);
    // A browser sends a line break in the message as two characters.
    let mut fields = Fields::new(&files, characters_max.saturating_mul(2));
    let read = upload::read(headers, None, body, limits.bulk_bytes_max, &mut fields).await;
    let (file, small) = fields.finish();
    let message = small.optional("message", Reason::InvalidMessage).ok().flatten();
    let message = message.unwrap_or_default().replace("\r\n", "\n");
    let refused = |sentence: &str| CheckOutcome::Refused(sentence.to_owned());
    let shares_text = file.as_ref().is_some_and(|file| file.mode == BulkMode::OneToMany);
    let outcome = match (read, file.map(|file| file.rows)) {
        (Err(failure), _) => CheckOutcome::Refused(sentence(&failure)),
        (Ok(()), None | Some(Err(_))) => refused("Choose a file."),
        (Ok(()), Some(Ok(Err(outcome)))) => outcome,
        (Ok(()), Some(Ok(Ok(file)))) => {
            let pages_max = limits.message_pages_max;
            let text = shares_text.then(|| MessageText::parse(message.clone(), pages_max));
            match text.transpose() {
                Ok(text) => match file.report(text.as_ref()) {
                    Some(report) => CheckOutcome::Report(Box::new(report)),
                    None => refused("The price of the file is too large to calculate."),
                },
                Err(invalid) => CheckOutcome::Refused(bad_message(invalid)),
            }
        }
    };
    (message, outcome)
}

fn bad_message(invalid: InvalidMessage) -> String {
    match invalid {
        InvalidMessage::Empty => "Write the message.".to_owned(),
        InvalidMessage::Nul => "The message has a NUL character. Take it out.".to_owned(),
        InvalidMessage::TooLong { max_pages } => {
            let characters_max = max_pages * PAGE_CHARS;
            format!("The message has more than {characters_max} characters. Shorten it.")
        }
    }
}

fn sentence(failure: &Failure) -> String {
    failure.detail().unwrap_or_else(|| failure.reason().sentence().to_owned())
}

/// The files of the form. A file that can't be checked is received to its end anyway, because
/// browsers show no answer before they have sent everything.
struct Checks<'a> {
    service: &'a Service,
    access: KeyAccess,
}

impl Files for Checks<'_> {
    type Open = Result<Box<FileCheck>, CheckOutcome>;
    type Rows = Result<CheckedFile, CheckOutcome>;

    const KNOWN: &'static [&'static str] = &["bulksms", "numbers", "message"];
    const FILES: &'static [(&'static str, BulkMode)] =
        &[("bulksms", BulkMode::OneToOne), ("numbers", BulkMode::OneToMany)];

    async fn open(&self, mode: BulkMode, writing: BulkWriting) -> Result<Self::Open, Failure> {
        let begun = self.service.messages().check_file(self.access, mode, writing).await?;
        Ok(begun.map(Box::new).map_err(busy))
    }

    async fn write(file: &mut Self::Open, data: &[u8]) -> Result<(), UploadError> {
        if let Ok(check) = file
            && let Err(error) = check.write(data)
        {
            *file = Err(refused(error)?);
        }
        Ok(())
    }

    async fn finish(file: Self::Open) -> Result<Self::Rows, UploadError> {
        match file.map(|check| check.finish()) {
            Ok(Ok(checked)) => Ok(Ok(checked)),
            Ok(Err(error)) => Ok(Err(refused(error)?)),
            Err(outcome) => Ok(Err(outcome)),
        }
    }
}

fn busy(reason: Reason) -> CheckOutcome {
    CheckOutcome::Busy(if reason == Reason::RateLimited {
        format!(
            "{CHECKS_PER_APPLICATION} files of this application are being checked. Try again when \
             one of them is done."
        )
    } else {
        "Too many files are being checked. Try again in a minute.".to_owned()
    })
}

fn refused(error: UploadError) -> Result<CheckOutcome, UploadError> {
    match error {
        UploadError::TooLarge { limit, of } => Ok(CheckOutcome::Refused(format!(
            "The file has more than {limit} {of}. Split it, and check the parts."
        ))),
        error => Err(error),
    }
}
