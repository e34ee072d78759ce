//! `heliograph account export-number` and `erase-number`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use domain::Number;
use serde::Serialize;
use service::{Actor, Erasure, Service};

use super::{CommandError, Output};

/// The outcome of an erasure.
#[derive(Serialize)]
struct Erased {
    messages: u64,
    inbound_messages: u64,
    verifications: u64,
    opt_outs: u64,
    receipts: u64,
    /// Messages and codes that are still open.
    open: u64,
    /// Uploads whose files may have the number.
    uploads: u64,
}

pub async fn export(
    service: &Service,
    email: &str,
    number: &Number,
    file: &Path,
    output: Output,
) -> Result<(), CommandError> {
    let account = service.accounts().account_detail(email).await?.account;
    let shown = file.display().to_string();
    let refused = |error| CommandError::Refused(format!("can't write {shown}: {error}"));
    // The file is new, and only its owner can read it.
    let mut options = OpenOptions::new();
    let mut to = options.write(true).create_new(true).mode(0o600).open(file).map_err(refused)?;
    let messages = service.messages();
    let mut export = messages.export_number(&Actor::CommandLine, account.id, number).await?;
    while let Some(part) = export.next_part().await? {
        to.write_all(part.as_bytes()).map_err(refused)?;
    }
    Ok(output.print(&BTreeMap::from([("file", &shown)]), |_| format!("Exported to {shown}."))?)
}

pub async fn erase(
    service: &Service,
    email: Option<&str>,
    number: &Number,
    output: Output,
) -> Result<(), CommandError> {
    let messages = service.messages();
    let done = if let Some(email) = email {
        let account = service.accounts().account_detail(email).await?.account;
        messages.erase_number(&Actor::CommandLine, account.id, number).await?
    } else {
        messages.erase_number_everywhere(&Actor::CommandLine, number).await?
    };
    let Erasure { messages, inbound, verifications, opt_outs, receipts, open, uploads } = done;
    let inbound_messages = inbound;
    let erased =
        Erased { messages, inbound_messages, verifications, opt_outs, receipts, open, uploads };
    Ok(output.print(&erased, sentence)?)
}

fn sentence(erased: &Erased) -> String {
    let Erased { messages, inbound_messages, verifications, opt_outs, receipts, .. } = erased;
    let mut text = format!(
        "Erased the number in {messages} messages, {inbound_messages} inbound messages, \
         {verifications} verifications and {opt_outs} opt-outs, and {receipts} receipts."
    );
    if erased.open > 0 {
        let open = erased.open;
        _ = write!(
            text,
            " {open} messages or codes are still open and have the number. Erase it again when \
             they are final."
        );
    }
    if erased.uploads > 0 {
        let uploads = erased.uploads;
        _ = write!(
            text,
            " The files of {uploads} uploads that aren't messages yet may have the number. Erase \
             it again when they are."
        );
    }
    text
}
