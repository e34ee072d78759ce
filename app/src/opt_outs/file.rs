//! The form that imports a file of numbers, and its outcome.

use domain::{KeyKind, Reference};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::ui::{FileField, Table};

/// The path that the form sends a file to. The parameter `key` has the kind of the key.
pub const FILE_PATH: &str = "/applications/{reference}/optouts/file";

/// The outcome of an import. The page shows it once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FileOutcome {
    Imported {
        rows: u64,
        /// How many numbers weren't on the list before.
        added: u64,
    },
    /// The first bad rows, each with its line and what is wrong, and the number of all bad rows.
    Bad { errors: Vec<(u64, String)>, count: u64 },
    /// The sentence says why the file was refused as a whole.
    Refused(String),
}

/// Returns the session entry that holds the outcome of a file, as JSON.
pub fn file_outcome_entry(reference: Reference) -> String {
    format!("opt-outs-{reference}")
}

#[component]
pub fn FileForm(reference: Reference, kind: KeyKind) -> impl IntoView {
    let path = FILE_PATH.replace("{reference}", reference.as_str());
    let action = format!("{path}?key={kind}", kind = kind.as_str());
    view! {
        <form class="form" method="post" action=action enctype="multipart/form-data">
            <FileField label="File of numbers" name="file" accept=".csv,.txt,text/*">
                "One number in each line, without a header line. If a line is bad, we import nothing \
                 and show you which one it is."
            </FileField>
            <div class="buttons">
                <button type="submit" class="button">"Import file"</button>
            </div>
        </form>
    }
}

pub fn shown_outcome(outcome: FileOutcome) -> AnyView {
    match outcome {
        FileOutcome::Imported { rows, added } => {
            let sentence = format!("The file has {}. {} on the list.", numbers(rows), new(added));
            view! { <p class="notice notice-good" role="status">{sentence}</p> }.into_any()
        }
        FileOutcome::Refused(sentence) => {
            view! { <p class="alert" role="alert">{sentence}</p> }.into_any()
        }
        FileOutcome::Bad { errors, count } => {
            let sentence = match count {
                1 => "One line of the file is bad, so we imported nothing.".to_owned(),
                count => format!("{count} lines of the file are bad, so we imported nothing."),
            };
            let table = Table::wide(&errors)
                .amount("Line", |(line, _)| *line)
                .column("What is wrong", |(_, sentence)| sentence.clone())
                .in_region("Bad lines");
            let is_cut = count > errors.len() as u64;
            let first = is_cut.then(|| format!("These are the first {}.", errors.len()));
            view! {
                <p class="alert" role="alert">{sentence} " " {first}</p>
                {table}
            }
            .into_any()
        }
    }
}

fn numbers(count: u64) -> String {
    if count == 1 { "1 number".to_owned() } else { format!("{count} numbers") }
}

fn new(count: u64) -> String {
    if count == 1 { "1 number is new".to_owned() } else { format!("{count} numbers are new") }
}
