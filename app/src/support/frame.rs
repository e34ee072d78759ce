//! The frame of the support pages: a search, and the navigation with the pending work.

use domain::decision::Work;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::components::Outlet;
use leptos_router::hooks::{use_location, use_query_map};
use serde::{Deserialize, Serialize};

use super::confirm::DoneNotice;
use super::links::SEARCH_PATH;
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::signed_in;
#[cfg(feature = "ssr")]
use crate::problem::Cause;
use crate::problem::Problem;
use crate::time_zone::ShownZone;
use crate::ui::{Field, FormState, SearchForm, Submits};

/// The path of the first support page.
const HOME: &str = "/support";

/// A link of the navigation: its path and its text.
type Link = (&'static str, &'static str);

/// The pages with pending work, and the pages for looking things up.
const LINKS: [(Link, Option<Work>); 14] = [
    ((HOME, "Overview"), None),
    (("/support/applications", "Applications"), Some(Work::Activations)),
    (("/support/senders", "Sender names"), Some(Work::SenderNames)),
    (("/support/deposits", "Deposits"), Some(Work::Deposits)),
    (("/support/import", "Import"), Some(Work::BankLines)),
    ((APPROVALS, "Approvals"), None),
    (("/support/mail", "Mail"), Some(Work::Mails)),
    (("/support/inbound", "Unassigned messages"), Some(Work::Inbound)),
    (("/support/accounts", "Accounts"), None),
    (("/support/carriers", "Carriers"), None),
    (("/support/numbers", "Numbers"), None),
    (("/support/prices", "Prices"), None),
    (("/support/margin", "Margin"), None),
    (("/support/audit", "Audit"), None),
];
/// The requests that wait for a second member of staff. They aren't a kind of [`Work`].
const APPROVALS: &str = "/support/approvals";

/// The counts that the navigation shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeskWork {
    pending: Vec<(Work, i64)>,
    approvals: usize,
}

impl DeskWork {
    /// Returns how much work waits on the page of a link.
    fn count(&self, (path, _): Link, work: Option<Work>) -> i64 {
        if path == APPROVALS {
            return i64::try_from(self.approvals).unwrap_or(i64::MAX);
        }
        let found = self.pending.iter().find(|(each, _)| Some(*each) == work);
        found.map_or(0, |(_, count)| *count)
    }
}

/// Counts the pending work, for the navigation of staff. The page itself records the attempt of an
/// account that isn't staff, so this function doesn't.
#[server(prefix = "/fn", endpoint = "desk-work", input = GetUrl)]
pub async fn load_desk_work() -> Result<DeskWork, Problem> {
    let (current, account) = signed_in().await?;
    if !account.staff {
        return Err(Cause::NotFound.into());
    }
    let service = current.service();
    Ok(DeskWork {
        pending: service.applications().pending_counts().await?,
        approvals: service.support().approvals().await?.len(),
    })
}

/// The search and the navigation beside a support page, and above the page what its reader has just
/// done. Times are in UTC, so that staff in different time zones see the same times.
#[component]
pub fn DeskFrame() -> impl IntoView {
    ShownZone::provide_utc();
    let (path, query) = (use_location().pathname, use_query_map());
    // Read before the server renders on several threads, as in `ui::Frame`.
    path.with_untracked(|_| ());
    query.with_untracked(|_| ());
    let submits = use_context::<Submits>();
    // Counted again on each page, and after each form.
    let work = PageData::new(move || {
        path.track();
        let _ = submits.is_some_and(Submits::was_refused);
        LoadDeskWork {}
    });
    #[cfg(feature = "hydrate")]
    focus_by_key();
    view! {
        <div class="desk">
            <Transition>
                {move || Suspend::new(async move {
                    let work = work.get().await.ok();
                    work.map(|work| view! { <Side work path query/> })
                })}
            </Transition>
            <div class="desk-page" id="desk-page" tabindex="-1">
                <DoneNotice/>
                <Outlet/>
            </div>
        </div>
    }
}

#[component]
fn Side(
    work: DeskWork,
    path: Memo<String>,
    query: Memo<leptos_router::params::ParamsMap>,
) -> impl IntoView {
    let form = FormState::plain("search-alert", None);
    let text = if path.with_untracked(|path| path == SEARCH_PATH) {
        query.with_untracked(|query| query.get("q")).unwrap_or_default()
    } else {
        String::new()
    };
    let links = LINKS.map(|(link, of)| {
        let (href, name) = link;
        let count = work.count(link, of);
        let is_below =
            move |path: &String| path.strip_prefix(href).is_some_and(|rest| rest.starts_with('/'));
        let is_shown = move || path.with(|path| path == href || (href != HOME && is_below(path)));
        // Outside the link, so that its name stays the same.
        let count = (count > 0).then(|| {
            let waiting = format!("{count} waiting");
            view! { " " <span class="count" title=waiting>{count}</span> }
        });
        view! {
            <li>
                <a href=href aria-current=move || is_shown().then_some("page")>{name}</a>
                {count}
            </li>
        }
    });
    view! {
        <div class="desk-side">
            <SearchForm path=SEARCH_PATH label="Support" button="Search" plain=true form>
                <Field label="Search" name="q" value=text form/>
            </SearchForm>
            <nav class="desk-nav" aria-label="Support">
                <ul>{links.into_iter().collect_view()}</ul>
            </nav>
        </div>
    }
}

/// Moves the focus to the search when `/` is pressed outside a field.
#[cfg(feature = "hydrate")]
fn focus_by_key() {
    use leptos::wasm_bindgen::JsCast as _;
    let pressed = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() != "/" || event.ctrl_key() || event.alt_key() || event.meta_key() {
            return;
        }
        let typing = document().active_element().is_some_and(|element| {
            matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT")
        });
        let field = document().query_selector(".desk-side input[name=q]").ok().flatten();
        let field = field.and_then(|field| field.dyn_into::<web_sys::HtmlElement>().ok());
        if let (false, Some(field)) = (typing, field) {
            event.prevent_default();
            let _ = field.focus();
        }
    });
    on_cleanup(move || pressed.remove());
}
