//! `/applications/{reference}/optouts`: the numbers that an application may not send to.

use domain::records::{ApplicationRecord, Paged};
use domain::{KeyKind, OptOutRecord, OptOutSource, Reference};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::file::{FileForm, FileOutcome, shown_outcome};
use super::manage::{AddOptOut, RemoveOptOut};
use super::query::OptOutsQuery;
use crate::applications::ApplicationFrame;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    AcceptedNotice, BUTTONS, Downloads, Field, FormState, Loaded, PostForm, SearchForm,
    SubmitButton, Table, address, in_path, in_zone, pager, tabs,
};
#[cfg(feature = "ssr")]
use {
    super::file::file_outcome_entry,
    crate::applications::owned,
    crate::portal_request::{is_shown, signed_in},
    crate::problem::{Cause, Filter},
    crate::ui::last,
    domain::{Number, Refusal},
    service::{KeyAccess, OptOutFilter, Service},
};

/// The number of opt-outs on a page.
#[cfg(feature = "ssr")]
const OPT_OUTS: i64 = 50;

/// The path of the CSV file with the whole list of a key.
pub const OPT_OUTS_CSV_PATH: &str = "/applications/{reference}/optouts.csv";

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OptOutsView {
    application: ApplicationRecord,
    query: OptOutsQuery,
    /// The opt-outs, or why the search is invalid.
    found: Result<Paged<OptOutRecord>, Problem>,
    /// The outcome of the file that was just sent.
    file: Option<FileOutcome>,
}

/// Loads the opt-outs of one of the account's applications.
#[server(prefix = "/fn", endpoint = "opt-outs", input = GetUrl)]
pub async fn load_opt_outs(
    reference: String,
    #[server(default)] query: OptOutsQuery,
) -> Result<OptOutsView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let reference = application.reference;
    let access = service.webhooks().access_of(account.id, reference, query.kind()).await?;
    let found = match search(service, &access, &query).await {
        Err(problem) if !is_about_search(&problem) => return Err(problem),
        found => found,
    };
    let file =
        if is_shown() { current.take_text(&file_outcome_entry(reference)).await? } else { None };
    let file = file.and_then(|text| serde_json::from_str(&text).ok());
    Ok(OptOutsView { application, query, found, file })
}

#[cfg(feature = "ssr")]
async fn search(
    service: &Service,
    access: &KeyAccess,
    query: &OptOutsQuery,
) -> Result<Paged<OptOutRecord>, Problem> {
    let number = match query.number.as_str() {
        "" => None,
        text => Some(Number::parse_typed(text).map_err(|_| Cause::Filter(Filter::Number))?),
    };
    let cursor = last(&query.page).map(str::to_owned);
    let filter = OptOutFilter { number, limit: OPT_OUTS, cursor };
    Ok(service.applications().opt_outs(access, &filter).await?)
}

/// Whether a problem is about the search. It is then shown next to the search, so that it can be
/// corrected.
#[cfg(feature = "ssr")]
fn is_about_search(problem: &Problem) -> bool {
    matches!(problem.cause, Cause::Filter(_) | Cause::Refused(Refusal::InvalidCursor))
}

#[derive(Clone, Copy)]
struct Forms {
    add: FormState,
    remove: FormState,
}

#[component]
pub fn OptOutsPage() -> impl IntoView {
    let reference = in_path("reference");
    let forms = Forms {
        add: FormState::new::<AddOptOut>("add-alert"),
        remove: FormState::new::<RemoveOptOut>("remove-alert"),
    };
    let query = use_query_map();
    let query = Memo::new(move |_| query.with(|query| OptOutsQuery::read(|name| query.get(name))));
    let data = PageData::after([forms.add, forms.remove], move || LoadOptOuts {
        reference: reference.get(),
        query: query.get(),
    });
    view! { <Loaded data render=move |data| view! { <OptOuts data forms/> }/> }
}

#[component]
fn OptOuts(data: OptOutsView, forms: Forms) -> impl IntoView {
    let OptOutsView { application, query, found, file } = data;
    let (reference, kind) = (application.reference, query.kind());
    let tab = |of, text| (OptOutsQuery::of(of).address(reference, ""), text, of == kind);
    let tabs = tabs("Keys", [tab(KeyKind::Live, "API key"), tab(KeyKind::Test, "Test key")]);
    let confirmation = (!query.remove.is_empty()).then(|| {
        let number = query.remove.clone();
        view! { <Removal reference kind number form=forms.remove/> }
    });
    view! {
        <ApplicationFrame application at="Opt-outs">
            <h2>"Opt-outs"</h2>
            <AcceptedNotice parameter="added" sentence="The number is on the list."/>
            <AcceptedNotice
                parameter="doubtful"
                sentence="The number is on the list, but it may be mistyped. A local number has \
                          8 digits, and an international one begins with a country code, not with \
                          0."
            />
            <AcceptedNotice parameter="removed" sentence="The number isn't on the list any more."/>
            {file.map(shown_outcome)}
            {confirmation}
            <p>
                "We send no messages to these numbers, even if your system asks for it. You don't \
                 pay for such messages. A recipient who replies STOP to your number is added, and \
                 one who replies START is removed. "
                <a href="/docs#optouts" rel="external">"Opt-outs in the API"</a>
            </p>
            {tabs}
            {searched(reference, &query, found)}
            <h2>"Add a number"</h2>
            <AddForm reference kind form=forms.add/>
            <h2>"Import a file"</h2>
            <FileForm reference kind/>
        </ApplicationFrame>
    }
}

/// Returns the address of the CSV file with the whole list of a key.
fn csv_address(reference: Reference, key: &str) -> String {
    let path = OPT_OUTS_CSV_PATH.replace("{reference}", reference.as_str());
    address(&path, [("key", key)])
}

/// Renders the search and the opt-outs that it found.
fn searched(
    reference: Reference,
    query: &OptOutsQuery,
    found: Result<Paged<OptOutRecord>, Problem>,
) -> impl IntoView + use<> {
    let form = FormState::plain("search-alert", found.as_ref().err().cloned());
    let path = OptOutsQuery::default().address(reference, "");
    let (key, number) = (query.key.clone(), query.number.clone());
    let list = found.ok().map(|page| {
        let address = |way: &str| {
            let query = OptOutsQuery { page: way.to_owned(), ..query.clone() };
            OptOutsQuery { remove: String::new(), ..query }.address(reference, "")
        };
        let file = (!page.items.is_empty()).then(|| csv_address(reference, &key));
        view! {
            {file.map(|href| view! { <p><Downloads href/></p> })}
            {listed(reference, query, &page.items)}
            {pager("opt-outs", &query.page, page.next.as_deref(), address)}
        }
    });
    view! {
        <SearchForm path label="Search opt-outs" button="Search" plain=true form>
            {(!key.is_empty()).then(|| view! { <input type="hidden" name="key" value=key/> })}
            <Field label="Number" name="number" value=number form/>
        </SearchForm>
        {list}
    }
}

fn listed(reference: Reference, query: &OptOutsQuery, opt_outs: &[OptOutRecord]) -> AnyView {
    let empty = match (query.number.is_empty(), query.page.is_empty()) {
        (false, _) => "This number isn't on the list.",
        (true, true) => "No number is on the list.",
        (true, false) => "No more numbers are on the list.",
    };
    Table::wide(opt_outs)
        .styled("key", "Number", |opt_out| match &opt_out.number {
            Some(number) => format!("+{number}"),
            None => "Erased".to_owned(),
        })
        .column("Added by", |opt_out| match opt_out.source {
            OptOutSource::Reply => "The recipient",
            OptOutSource::Api => "Your system",
            OptOutSource::Portal => "You",
        })
        .time(in_zone("Added (UTC)"), |opt_out| opt_out.created_at)
        .styled(BUTTONS, "Action", |opt_out| {
            // An erased number can be removed only after a search for it.
            let number = opt_out.number.as_ref().map(|number| format!("+{number}"));
            let remove = number.unwrap_or_else(|| query.number.clone());
            (!remove.is_empty()).then(|| {
                let label = format!("Remove {remove}");
                let query = OptOutsQuery { remove, ..query.clone() };
                let href = query.address(reference, "");
                view! { <a class="button button-danger" href=href aria-label=label>"Remove"</a> }
            })
        })
        .in_region_or("Opt-outs", empty)
}

/// Asks whether to remove a number.
#[component]
fn Removal(reference: Reference, kind: KeyKind, number: String, form: FormState) -> impl IntoView {
    let back = OptOutsQuery::of(kind).address(reference, "");
    view! {
        <section class="panel" aria-labelledby="removal">
            <h3 id="removal">{format!("Remove {number}?")}</h3>
            <p>
                "Your system can then send messages to this number again. Remove it only if the \
                 recipient has agreed to that."
            </p>
            <PostForm form>
                <input type="hidden" name="reference" value=reference.to_string()/>
                <input type="hidden" name="key" value=kind.as_str()/>
                <input type="hidden" name="number" value=number/>
                <div class="buttons">
                    <SubmitButton label="Remove opt-out" form danger=true/>
                    <a class="button button-quiet" href=back>"Cancel"</a>
                </div>
            </PostForm>
        </section>
    }
}

#[component]
fn AddForm(reference: Reference, kind: KeyKind, form: FormState) -> impl IntoView {
    view! {
        <PostForm form>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <input type="hidden" name="key" value=kind.as_str()/>
            <Field
                label="Number"
                name="number"
                kind="tel"
                required=true
                hint="A number of another country begins with + and the country code."
                form
            />
            <SubmitButton label="Add number" form primary=true/>
        </PostForm>
    }
}
