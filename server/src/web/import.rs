//! Receives the files with bank statements that staff send.

use std::fs::File;
use std::io;
use std::path::Path;

use app::portal_request::PortalRequest as _;
use app::support::{IMPORT_PATH, REFUSED_FILE};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect};
use multer::Multipart;
use service::StatementFile;
use tokio::fs;
use tokio::io::AsyncWriteExt as _;

use super::changes;
use super::portal_request::Portal;
use super::signed_in::{Refused, Staff};

/// The maximum size of a form with a file, in bytes.
pub const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The refusal of a request that isn't from the page's form.
pub const NOT_OUR_FORM: &str = "Use the form on the page.";

/// `POST /support/import/file`: stores the statement and redirects to the page.
pub async fn upload(
    State(portal): State<Portal>,
    Staff(staff): Staff,
    request: Request,
) -> Result<Redirect, Refused> {
    let current = &staff.current;
    if let Some(refusal) = changes::refuse_file(current, &staff.account) {
        return Err(refusal.into());
    }
    let (parts, body) = request.into_parts();
    let boundary = boundary(&parts.headers).ok_or_else(|| bad(NOT_OUR_FORM))?;
    let sent = match receive(body, boundary, &portal.data_dir).await {
        Ok(sent) => sent,
        Err(error) => {
            tracing::info!(%error, "a bank statement can't be received");
            return Err(bad("The file arrived incomplete, or it is larger than 64 MiB."));
        }
    };
    let money = portal.service.money();
    let imported = money.import_statement(sent.file, sent.choose_again);
    match imported.await? {
        StatementFile::Stored(id) => {
            return Ok(Redirect::to(&format!("{IMPORT_PATH}?statement={id}")));
        }
        StatementFile::Bad(bad) => current.keep_text(REFUSED_FILE, &bad.to_string()).await?,
        StatementFile::Columns { .. } => {
            let file = money.keep_bank_file(sent.again).await?;
            return Ok(Redirect::to(&format!("{IMPORT_PATH}?file={file}")));
        }
    }
    Ok(Redirect::to(IMPORT_PATH))
}

/// Returns the boundary between the fields of a form with a file. `None` if there is none.
pub fn boundary(headers: &HeaderMap) -> Option<String> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    multer::parse_boundary(content_type).ok()
}

/// Returns the refusal of a form that can't be read.
pub fn bad(sentence: &'static str) -> Refused {
    (StatusCode::BAD_REQUEST, sentence).into_response().into()
}

/// The content of the page's form.
struct Sent {
    file: File,
    /// The same file, in case it has to be kept.
    again: File,
    /// Whether staff want to choose the file's columns again.
    choose_again: bool,
}

/// Writes the file of the form to disk as it arrives. The file has no name, so the system deletes
/// it when it is closed, however the process ends.
async fn receive(body: Body, boundary: String, data_dir: &Path) -> io::Result<Sent> {
    let mut form = Multipart::new(body.into_data_stream(), boundary);
    let mut file = fs::File::from_std(tempfile::tempfile_in(data_dir)?);
    let mut choose_again = false;
    while let Some(mut field) = form.next_field().await.map_err(io::Error::other)? {
        match field.name() {
            Some("file") => {
                while let Some(chunk) = field.chunk().await.map_err(io::Error::other)? {
                    file.write_all(&chunk).await?;
                }
            }
            Some("choose_again") => choose_again = true,
            _ => {}
        }
    }
    file.flush().await?;
    let file = file.into_std().await;
    Ok(Sent { again: file.try_clone()?, file, choose_again })
}
