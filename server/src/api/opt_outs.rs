//! `/sms/optouts`: the numbers that an application may not send to.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use domain::{BulkMode, BulkWriting, OptOutRecord, Reason};
use serde::Serialize;
use service::{
    KeyAccess, NumberFile, OptOutAuthor, OptOutChange, OptOutFilter, Refusal, UploadError,
};
use utoipa::ToSchema;

use super::address::Address;
use super::answer::{self, Answer, Failure, Head};
use super::body::{self, Form};
use super::frames::body_if;
use super::get::{Get, GetParameters};
use super::listing::{self, wants_csv};
use super::parameters::Parameters;
use super::post::is_asked;
use super::upload::{self, Fields, File, Files};
use super::{Api, SharedApi, csv_report, shared_parameters};
use crate::json::{DateTime, shown};
use crate::openapi::refusals::{OptOutRefusals, OptOutsRefusals};
use crate::openapi::schemas;
use crate::opt_outs_csv;

/// The parameters of the list.
const KNOWN_OF_LIST: [&str; 4] = ["number", "limit", "cursor", "format"];
/// The parameters of a change in JSON, which has no files.
const KNOWN_OF_JSON: [&str; 2] = ["number", "remove"];
/// The most characters of a parameter that isn't a file.
const CHARACTERS_MAX: usize = 64;

shown! {
    /// A number that an application may not send to.
    #[derive(ToSchema)]
    pub struct OptOut from record: OptOutRecord {
        /// As carriers get it: with country code, without +. Null if the number was erased.
        #[schema(value_type = Option<schemas::Digits>, required)]
        number: Option<String> = record.number,
        #[schema(value_type = schemas::OptOutSource)]
        source: &'static str = record.source.as_str(),
        created_at: DateTime = DateTime(record.created_at),
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = OptOuts)]
struct ListAnswer {
    #[serde(flatten)]
    head: Head,
    optouts: Vec<OptOut>,
    /// Pass it as cursor to get the next opt-outs. Null on the last page.
    #[schema(value_type = Option<schemas::OptOutCursor>, required)]
    next: Option<String>,
}

/// The outcome of a change.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedOptOuts)]
struct ChangedAnswer {
    #[serde(flatten)]
    head: Head,
    /// The number of numbers in the request.
    #[schema(value_type = schemas::Positive)]
    rows: u64,
    /// How many of them weren't on the list before.
    added: u64,
    /// How many of them were removed.
    removed: u64,
}

/// A number to add or remove.
#[derive(ToSchema)]
#[schema(as = OptOutNumber)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct OneNumber {
    number: schemas::Number,
    /// Removes the number.
    #[schema(required = false)]
    remove: schemas::OnlyOne,
}

/// Numbers to add, one in each row.
#[derive(ToSchema)]
#[schema(as = OptOutFile)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct ManyNumbers {
    /// UTF-8, with lines that end with LF or CRLF and without a header line.
    #[schema(example = "57000001\n57000002")]
    numbers: String,
}

/// A change of either kind.
#[derive(ToSchema)]
#[schema(as = OptOutParameters)]
#[serde(untagged)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
enum Changes {
    One(OneNumber),
    Many(ManyNumbers),
}

// As for uploads, client generators can't use a oneOf here.
/// A change of either kind in a multipart body: number, or numbers.
#[derive(ToSchema)]
#[schema(as = OptOutMultipart)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct ChangeParts {
    #[schema(required = false)]
    number: schemas::Number,
    /// Removes the number.
    #[schema(required = false)]
    remove: schemas::OnlyOne,
    /// Numbers to add, one in each row.
    #[schema(required = false)]
    numbers: String,
}

/// A query for the list, as JSON or as a CSV file.
pub struct OptOuts {
    filter: OptOutFilter,
    as_csv: bool,
}

impl GetParameters for OptOuts {
    fn read(id: Option<&str>, query: Option<&str>) -> Result<Self, Failure> {
        if id.is_some() {
            return Err(Failure::of(Reason::NotFound));
        }
        let parameters = Parameters::of_query(&KNOWN_OF_LIST, query);
        let filter = OptOutFilter {
            number: parameters.number("number")?,
            limit: listing::limit(&parameters)?,
            cursor: listing::cursor(&parameters)?,
        };
        parameters.refuse_unknown()?;
        Ok(Self { filter, as_csv: wants_csv(&parameters)? })
    }
}

/// Lists opt-outs, newest first.
#[utoipa::path(
    get,
    path = "/sms/optouts/{key}",
    operation_id = "optouts",
    summary = "List opt-outs, newest first",
    description = "A send to one of these numbers is refused with opted_out. A handset that sends \
        STOP to the application's number is added and gets a free confirmation, and START removes \
        it. A test key has a list of its own.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("number" = Option<schemas::Number>, Query, description = "The opt-out of this number."),
        ("limit" = Option<schemas::Limit>, Query),
        ("cursor" = Option<schemas::OptOutCursor>, Query),
        ("format" = Option<schemas::Format>, Query),
    ),
    responses(
        (status = 200, description = "Done.",
         headers(("Content-Disposition"), ("X-Next-Cursor")), content(
            (ListAnswer = "application/json", example = json!({
                "code": 200, "message": "SUCCESS", "text": "SUCCESS", "optouts": [{
                    "number": "26657000001", "source": "api",
                    "created_at": "2026-11-21T08:30:00.000Z"
                }],
                "next": null
            })),
            (schemas::Table = "text/csv"),
        )),
        OptOutsRefusals,
    ),
)]
pub async fn list(State(api): State<SharedApi>, request: Get<OptOuts>) -> Answer {
    request.address.answer(&api, find(&api, &request.access, &request.parameters).await)
}

async fn find(api: &Api, access: &KeyAccess, request: &OptOuts) -> Result<Answer, Failure> {
    let page = api.service.applications().opt_outs(access, &request.filter).await?;
    if request.as_csv {
        let rows = page.items.into_iter().map(opt_outs_csv::row);
        return csv_report::file("optouts", opt_outs_csv::NAMES, rows, page.next.as_deref());
    }
    let optouts = page.items.into_iter().map(OptOut::from).collect();
    Ok(answer::json(&ListAnswer { head: Head::success(), optouts, next: page.next }))
}

/// Adds or removes a number, or adds the numbers of a file.
#[utoipa::path(
    post,
    path = "/sms/optouts/{key}",
    operation_id = "changeOptouts",
    summary = "Add or remove opt-outs",
    description = "Give number to add it, number and remove=1 to remove it, or the file numbers to \
        add all its numbers. One bad row refuses the file, and the response lists the first 20 bad \
        rows. A number that is on the list already isn't added again. When a number is added, \
        its messages that no carrier has yet are rejected, and their price is released.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        description = "number and remove can also be in the query, and application/json is \
            accepted for them too.",
        content(
            (ChangeParts = "multipart/form-data"),
            (Changes = "application/x-www-form-urlencoded"),
        ),
    ),
    responses(
        (status = 200, description = "Done.", body = ChangedAnswer,
         headers(("Idempotency-Replayed")), example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS",
            "rows": 1, "added": 1, "removed": 0
        })),
        OptOutRefusals,
    ),
)]
pub async fn change(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    address.answer(&api, take(&api, &address, request).await)
}

async fn take(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    let (head, body) = request.into_parts();
    let authorized = match address.id {
        Some(_) => Err(Reason::NotFound),
        None => api.service.messages().authorize(address.presented()).await,
    };
    let (access, body) = body_if(authorized, body)?;
    let wanted = read(api, access, &head, body).await;
    // Every request counts towards the limit, but its own error takes precedence.
    let allowed = api.service.messages().take_request(&access).await;
    let wanted = wanted?;
    let once = shared_parameters::idempotency(&head.headers)?;
    allowed?;
    let (applications, author) = (api.service.applications(), OptOutAuthor::Program);
    let changed = applications.change_opt_outs(&access, wanted, author, once.as_ref()).await;
    let changed = changed.map_err(|error| match error.refusal() {
        Some(Refusal::IdempotencyMismatch) => Reason::IdempotencyMismatch.into(),
        _ => Failure::from(error),
    })?;
    let response = answer::json(&ChangedAnswer {
        head: Head::success(),
        rows: changed.rows,
        added: changed.added,
        removed: changed.removed,
    });
    Ok(shared_parameters::answered(response, changed.replayed))
}

/// The files of a change.
struct NumberFiles<'a> {
    api: &'a Api,
    access: KeyAccess,
}

impl Files for NumberFiles<'_> {
    type Open = Box<NumberFile>;
    type Rows = OptOutChange;

    const KNOWN: &'static [&'static str] = &["number", "numbers", "remove"];
    const FILES: &'static [(&'static str, BulkMode)] = &[("numbers", BulkMode::OneToMany)];

    async fn open(&self, _: BulkMode, writing: BulkWriting) -> Result<Box<NumberFile>, Failure> {
        Ok(Box::new(self.api.service.messages().number_file(&self.access, writing)?))
    }

    async fn write(file: &mut Box<NumberFile>, data: &[u8]) -> Result<(), UploadError> {
        file.write(data)
    }

    async fn finish(file: Box<NumberFile>) -> Result<OptOutChange, UploadError> {
        file.finish()
    }
}

/// Reads the change that a POST requests.
async fn read(
    api: &Api,
    access: KeyAccess,
    head: &Parts,
    body: Body,
) -> Result<OptOutChange, Failure> {
    let (headers, query) = (&head.headers, head.uri.query());
    if body::form(headers) == Some(Form::Json) {
        let mut parameters = Parameters::of_query(&KNOWN_OF_JSON, query);
        body::read_parameters(headers, body, &mut parameters, 1).await?;
        return wanted(None, &parameters);
    }
    let files = NumberFiles { api, access };
    let mut fields = Fields::new(&files, CHARACTERS_MAX);
    let bytes_max = api.service.limits().bulk_bytes_max;
    upload::read(headers, query, body, bytes_max, &mut fields).await?;
    let (file, small) = fields.finish();
    wanted(file, &small)
}

fn wanted(
    file: Option<File<OptOutChange>>,
    parameters: &Parameters,
) -> Result<OptOutChange, Failure> {
    let number = parameters.number("number")?;
    let remove = is_asked(parameters, "remove")?;
    let change = match (number, file) {
        (Some(number), None) if remove => OptOutChange::Remove(number),
        (Some(number), None) => OptOutChange::Add(number),
        (None, Some(file)) if !remove => file.rows.map_err(Failure::of_list)?,
        (None, None) => return Err(parameters.missing("number")),
        (None, Some(_)) => {
            let detail = "remove=1 needs number; a file only adds its numbers.";
            return Err(Failure::with_detail(Reason::InvalidParameter, detail));
        }
        (Some(_), Some(_)) => {
            let detail = "Give number, or the file numbers, but not both.";
            return Err(Failure::with_detail(Reason::InvalidParameter, detail));
        }
    };
    parameters.refuse_unknown()?;
    Ok(change)
}
