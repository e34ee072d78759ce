//! Receives the files of opt-outs that owners send.

use app::opt_outs::{FileOutcome, OptOutsQuery, file_outcome_entry};
use app::portal_request::PortalRequest as _;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Redirect;
use domain::{BulkWriting, KeyKind, Reference};
use multer::Multipart;
use service::{Error, KeyAccess, NumberFile, OptOutAuthor, OptOutChange, UploadError};

use super::changes;
use super::import::{NOT_OUR_FORM, bad, boundary};
use super::portal_request::Portal;
use super::signed_in::{Refused, SignedIn};

/// `POST /applications/{reference}/optouts/file`: adds the numbers of a file, and redirects to the
/// page, which shows the outcome.
pub async fn upload(
    State(portal): State<Portal>,
    Path(reference): Path<String>,
    signed_in: SignedIn,
    request: Request,
) -> Result<Redirect, Refused> {
    let (current, account) = (&signed_in.current, &signed_in.account);
    let reference = Reference::parse(&reference).map_err(app::problem::Problem::from)?;
    let kind = signed_in.parameter("key").and_then(|key| KeyKind::parse(&key));
    let kind = kind.unwrap_or(KeyKind::Live);
    let access = portal.service.webhooks().access_of(account.id, reference, kind).await?;
    if let Some(refusal) = changes::refuse_file(current, account) {
        return Err(refusal.into());
    }
    let (parts, body) = request.into_parts();
    let boundary = boundary(&parts.headers).ok_or_else(|| bad(NOT_OUR_FORM))?;
    let outcome = match receive(&portal, &access, body, boundary).await? {
        Ok(change) => {
            let author = OptOutAuthor::Owner(account.id);
            let applications = portal.service.applications();
            let changed = applications.change_opt_outs(&access, change, author, None).await?;
            FileOutcome::Imported { rows: changed.rows, added: changed.added }
        }
        Err(outcome) => outcome,
    };
    let text = serde_json::to_string(&outcome).unwrap_or_default();
    current.keep_text(&file_outcome_entry(reference), &text).await?;
    Ok(Redirect::to(&OptOutsQuery::of(kind).address(reference, "")))
}

/// Reads the file of the form as it arrives. Returns the change that adds its numbers, or why the
/// file is refused.
async fn receive(
    portal: &Portal,
    access: &KeyAccess,
    body: Body,
    boundary: String,
) -> Result<Result<OptOutChange, FileOutcome>, Refused> {
    let incomplete = |error| {
        tracing::info!(%error, "a file of opt-outs can't be received");
        bad("The file arrived incomplete, or it is larger than 64 MiB.")
    };
    let mut form = Multipart::new(body.into_data_stream(), boundary);
    let mut read = None;
    while let Some(mut field) = form.next_field().await.map_err(incomplete)? {
        if field.name() != Some("file") || read.is_some() {
            continue;
        }
        let file = portal.service.messages().number_file(access, BulkWriting::Plain);
        let mut file = file.map_err(|reason| FileOutcome::Refused(reason.sentence().to_owned()));
        while let Some(chunk) = field.chunk().await.map_err(incomplete)? {
            file = match file {
                Ok(file) => write(file, &chunk)?,
                // The rest is read anyway, because browsers show no answer before they have sent
                // everything.
                refused => refused,
            };
        }
        read = Some(match file {
            Ok(file) => match file.finish() {
                Ok(change) => Ok(change),
                Err(error) => Err(refused(error)?),
            },
            Err(outcome) => Err(outcome),
        });
    }
    read.ok_or_else(|| bad("Choose a file."))
}

fn write(mut file: NumberFile, chunk: &[u8]) -> Result<Result<NumberFile, FileOutcome>, Error> {
    match file.write(chunk) {
        Ok(()) => Ok(Ok(file)),
        Err(error) => Ok(Err(refused(error)?)),
    }
}

/// Returns the outcome that the page shows for a file that can't be imported.
fn refused(error: UploadError) -> Result<FileOutcome, Error> {
    match error {
        UploadError::Bad(bad) => Ok(FileOutcome::Bad {
            errors: bad.errors.iter().map(|bad| (bad.line, bad.detail.to_owned())).collect(),
            count: bad.error_count,
        }),
        UploadError::TooLarge { limit, of } => Ok(FileOutcome::Refused(format!(
            "The file has more than {limit} {of}. Import it in parts."
        ))),
        UploadError::Failed(error) => Err(error),
    }
}
