//! Staff who look at the same case see each other.

use domain::decision::{CaseKind, Look};
use leptos::prelude::*;
#[cfg(feature = "ssr")]
use service::Service;

#[cfg(feature = "ssr")]
use crate::portal_request::staff;
use crate::problem::Problem;

/// The most cases of a page.
#[cfg(feature = "ssr")]
const CASES_MAX: usize = 100;

/// Notes that a member of staff looks at cases of a kind, whose names are separated by commas, and
/// gives the looks of others at them.
///
/// # Errors
/// When nobody is signed in, whoever is signed in isn't staff, or the service fails.
#[server(prefix = "/fn", endpoint = "look-at-cases")]
pub async fn look_at_cases(kind: CaseKind, cases: String) -> Result<Vec<Look>, Problem> {
    let (current, account) = staff().await?;
    // All names of cases are numbers.
    let is_name = |case: &&str| !case.is_empty() && case.bytes().all(|b| b.is_ascii_digit());
    let names = cases.split(',').filter(is_name).take(CASES_MAX);
    look(
        current.service(),
        account.id,
        kind,
        names.map(str::to_owned),
    )
    .await
}

/// Like [`look_at_cases`], for a page that is being loaded.
///
/// # Errors
/// When the service fails.
#[cfg(feature = "ssr")]
pub async fn look(
    service: &Service,
    account_id: i64,
    kind: CaseKind,
    cases: impl Iterator<Item = String>,
) -> Result<Vec<Look>, Problem> {
    Ok(service
        .look_at_cases(account_id, kind, cases.collect())
        .await?)
}

/// The looks of others at the cases of a page, as it was loaded. In a browser they are read again
/// each time that the window gets the focus.
pub fn followed(kind: CaseKind, cases: Vec<String>, looks: Vec<Look>) -> RwSignal<Vec<Look>> {
    let looks = RwSignal::new(looks);
    #[cfg(feature = "hydrate")]
    if !cases.is_empty() {
        follow(kind, cases.join(","), looks);
    }
    #[cfg(not(feature = "hydrate"))]
    let _ = (kind, cases);
    looks
}

#[cfg(feature = "hydrate")]
fn follow(kind: CaseKind, cases: String, looks: RwSignal<Vec<Look>>) {
    let focused = window_event_listener(leptos::ev::focus, move |_| {
        let cases = cases.clone();
        leptos::task::spawn_local(async move {
            if let Ok(found) = crate::client::call(LookAtCases { kind, cases }).await {
                looks.try_set(found);
            }
        });
    });
    on_cleanup(move || focused.remove());
}

/// The sentences that name the other members of staff who have a case open.
pub fn others(looks: RwSignal<Vec<Look>>, case: String) -> impl IntoView {
    let emails = move || {
        looks.with(|looks| {
            let of_case = looks.iter().filter(|look| look.case == case);
            let sentences = of_case.map(|look| format!("{} is looking at this too", look.email));
            sentences.collect::<Vec<_>>()
        })
    };
    move || {
        let sentences = emails().into_iter();
        sentences
            .map(|sentence| view! { <div class="fine">{sentence}</div> })
            .collect_view()
    }
}
