//! Shows which other members of staff are viewing a case.

use domain::decision::{CaseKind, Viewer};
use leptos::prelude::*;
#[cfg(feature = "ssr")]
use service::Service;

#[cfg(feature = "ssr")]
use crate::portal_request::staff;
use crate::problem::Problem;

/// The maximum number of cases on a page.
#[cfg(feature = "ssr")]
const CASES_MAX: usize = 100;

/// Records that a member of staff is viewing cases, and returns the other viewers. `cases` holds
/// the identifiers of the cases, separated by commas.
#[server(prefix = "/fn", endpoint = "view-cases")]
pub async fn view_cases(kind: CaseKind, cases: String) -> Result<Vec<Viewer>, Problem> {
    let (current, account) = staff().await?;
    // All identifiers of cases are numbers.
    let is_name = |case: &&str| !case.is_empty() && case.bytes().all(|b| b.is_ascii_digit());
    let names = cases.split(',').filter(is_name).take(CASES_MAX);
    view(current.service(), account.id, kind, names.map(str::to_owned)).await
}

/// Like [`view_cases`], for a page that is being loaded.
#[cfg(feature = "ssr")]
pub async fn view(
    service: &Service,
    account_id: i64,
    kind: CaseKind,
    cases: impl Iterator<Item = String>,
) -> Result<Vec<Viewer>, Problem> {
    Ok(service.applications().view_cases(account_id, kind, cases.collect()).await?)
}

/// Returns the other viewers of a page's cases. The browser reloads them whenever its window gets
/// the focus.
pub fn followed(kind: CaseKind, cases: Vec<String>, viewers: Vec<Viewer>) -> RwSignal<Vec<Viewer>> {
    let viewers = RwSignal::new(viewers);
    #[cfg(feature = "hydrate")]
    if !cases.is_empty() {
        follow(kind, cases.join(","), viewers);
    }
    #[cfg(not(feature = "hydrate"))]
    let _ = (kind, cases);
    viewers
}

#[cfg(feature = "hydrate")]
fn follow(kind: CaseKind, cases: String, viewers: RwSignal<Vec<Viewer>>) {
    let focused = window_event_listener(leptos::ev::focus, move |_| {
        let cases = cases.clone();
        leptos::task::spawn_local(async move {
            if let Ok(found) = crate::client::call(ViewCases { kind, cases }).await {
                viewers.try_set(found);
            }
        });
    });
    on_cleanup(move || focused.remove());
}

/// Renders a sentence for each other member of staff who is viewing a case.
pub fn others(viewers: RwSignal<Vec<Viewer>>, case: String) -> impl IntoView {
    let emails = move || {
        viewers.with(|viewers| {
            let of_case = viewers.iter().filter(|look| look.case == case);
            let sentences =
                of_case.map(|viewer| format!("{} is looking at this too", viewer.email));
            sentences.collect::<Vec<_>>()
        })
    };
    move || {
        let sentences = emails().into_iter();
        sentences.map(|sentence| view! { <div class="fine">{sentence}</div> }).collect_view()
    }
}
