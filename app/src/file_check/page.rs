//! `/applications/{reference}/check-file`: checks a file before it is uploaded. The form posts the
//! file to the page itself, with and without JavaScript, and the response shows the outcome, so
//! that nothing has to be stored in between.

use domain::bulk::FileReport;
use domain::readiness::SpendCap;
use domain::records::ApplicationRecord;
use domain::{Category, Reference};
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::report::Report;
use crate::applications::{ApplicationFrame, NOT_FOR_SMS};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::grouped;
use crate::ui::{FileField, Loaded, TextArea, address, in_path, parameter, tabs};
#[cfg(feature = "ssr")]
use {crate::applications::owned, crate::portal_request::signed_in};

/// The path that the form posts the file to.
pub const CHECK_FILE_PATH: &str = "/applications/{reference}/check-file";
/// The value of the parameter `file` for files of numbers without messages.
const LIST: &str = "numbers";
const MIB: u64 = 1024 * 1024;

/// Whether the parameter `file` stands for a file of numbers without messages.
pub fn is_list(file: &str) -> bool {
    file == LIST
}

/// A file that was just checked, as an extension of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckedUpload {
    /// Whether the file has only numbers.
    pub is_list: bool,
    /// The message to all numbers, as it was typed.
    pub message: String,
    pub outcome: CheckOutcome,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CheckOutcome {
    Report(Box<FileReport>),
    /// The sentence says why the file couldn't be checked.
    Refused(String),
    /// The same, because too many files are being checked.
    Busy(String),
}

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileCheckView {
    application: ApplicationRecord,
    checked: Option<CheckedUpload>,
    /// The limit on the day's spend, if it refuses the file.
    spend_cap: Option<SpendCap>,
    currency: String,
    country_code: String,
    rows_max: u64,
    bytes_max: u64,
}

/// Loads one of the account's applications, and the outcome of the check that the request asked
/// for.
#[server(prefix = "/fn", endpoint = "check-file", input = GetUrl)]
pub async fn load_file_check(reference: String) -> Result<FileCheckView, Problem> {
    let (current, account) = signed_in().await?;
    let application = owned(current.service(), account.id, &reference).await?;
    let request = use_context::<http::request::Parts>();
    let checked = request.and_then(|request| request.extensions.get::<CheckedUpload>().cloned());
    let cost = checked.as_ref().and_then(|checked| match &checked.outcome {
        CheckOutcome::Report(report) => report.cost(),
        CheckOutcome::Refused(_) | CheckOutcome::Busy(_) => None,
    });
    let spend_cap = match cost {
        Some(cost) => {
            current.service().applications().spend_cap(application.reference, cost).await?
        }
        None => None,
    };
    let limits = current.service().limits();
    Ok(FileCheckView {
        application,
        checked,
        spend_cap,
        currency: current.site().currency.clone(),
        country_code: current.site().home.code.clone(),
        rows_max: limits.bulk_rows_max,
        bytes_max: limits.bulk_bytes_max,
    })
}

#[component]
pub fn FileCheckPage() -> impl IntoView {
    let reference = in_path("reference");
    let file = parameter("file");
    let data = PageData::new(move || LoadFileCheck { reference: reference.get() });
    let content = move |data: FileCheckView| {
        move || {
            let is_list = file.with(|file| file.as_deref().is_some_and(is_list));
            view! { <FileCheck data=data.clone() is_list/> }
        }
    };
    view! { <Loaded data render=content/> }
}

#[component]
fn FileCheck(data: FileCheckView, is_list: bool) -> impl IntoView {
    let application = data.application.clone();
    let content = match application.category {
        Category::Sms => Either::Left(checks(data, is_list)),
        Category::Electricity => Either::Right(view! { <p>{NOT_FOR_SMS}</p> }),
    };
    view! {
        <ApplicationFrame application at="Check a file">
            <h2>"Check a file"</h2>
            {content}
        </ApplicationFrame>
    }
}

fn checks(data: FileCheckView, is_list: bool) -> impl IntoView {
    let reference = data.application.reference;
    let of = |is_list: bool| page(reference, is_list);
    let tabs = tabs(
        "Kinds of files",
        [
            (of(false), "Numbers with messages", !is_list),
            (of(true), "Numbers, one message for all", is_list),
        ],
    );
    let checked = data.checked.filter(|checked| checked.is_list == is_list);
    let (message, outcome) =
        checked.map_or((String::new(), None), |checked| (checked.message, Some(checked.outcome)));
    let (balance, spend_cap, currency) = (data.application.balance, data.spend_cap, data.currency);
    let outcome = outcome.map(|outcome| match outcome {
        CheckOutcome::Report(report) => {
            let country_code = data.country_code;
            view! { <Report report=*report balance spend_cap currency country_code/> }.into_any()
        }
        CheckOutcome::Refused(sentence) | CheckOutcome::Busy(sentence) => {
            view! { <p class="alert" role="alert">{sentence}</p> }.into_any()
        }
    });
    let limits = format!(
        "At most {} rows and {} MiB.",
        grouped(data.rows_max.cast_signed()),
        data.bytes_max / MIB
    );
    view! {
        <p>
            "See what a file costs and which of its lines are bad, before your system uploads it \
             to " <a href="/docs#bulk" rel="external">"the API"</a>
            ". We don't store the file. Nothing is sent or charged."
        </p>
        {outcome}
        {tabs}
        <FileForm action=of(is_list) is_list message limits/>
    }
}

/// Returns the page's address for a kind of file.
fn page(reference: Reference, is_list: bool) -> String {
    let path = CHECK_FILE_PATH.replace("{reference}", reference.as_str());
    address(&path, [("file", if is_list { LIST } else { "" })])
}

#[component]
fn FileForm(action: String, is_list: bool, message: String, limits: String) -> impl IntoView {
    let (name, format) = if is_list {
        ("numbers", "One number in each line, without a header line. ")
    } else {
        ("bulksms", "In each line a number, a comma and a message, without a header line. ")
    };
    let message = is_list.then(|| {
        view! {
            <TextArea
                label="Message to all of them"
                id="message"
                name="message"
                rows="4"
                text=message
                required=true
            />
        }
    });
    view! {
        <form class="form" method="post" action=action enctype="multipart/form-data">
            {message}
            <FileField label="File" name>{format} {limits}</FileField>
            <div class="buttons">
                <button type="submit" class="button">"Check file"</button>
            </div>
        </form>
    }
}
