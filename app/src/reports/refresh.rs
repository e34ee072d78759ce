//! Keeps the lists up to date while messages are under way.

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlElement};

use super::filter::ReportFilter;
use super::results::{Found, LoadReports, REPORT_EVENTS_PATH, is_under_way};
use crate::client::call;
use crate::ui::follow_by;

/// Reads what the filters find again with each change of the messages that are under way. Pages
/// after the first one have messages that are older, and stay as they are.
pub fn refresh(filter: &ReportFilter, found: RwSignal<Option<Found>>) {
    let open = found.with_untracked(|found| found.as_ref().map(|found| found.open));
    let (Some(open), true) = (open, filter.cursor.is_empty() && filter.batches.is_empty()) else {
        return;
    };
    if !is_under_way(&open) {
        return;
    }
    let of = ReportFilter {
        application: filter.application.clone(),
        key: filter.key.clone(),
        ..ReportFilter::default()
    };
    let filter = filter.clone();
    let known = StoredValue::new(open);
    follow_by(
        &of.address(REPORT_EVENTS_PATH, &[]),
        is_under_way,
        move |counts| {
            // The page may be left.
            let is_new = known.try_with_value(|known| *known != counts);
            if is_new == Some(true) {
                known.set_value(counts);
                leptos::task::spawn_local(read_again(filter.clone(), found));
            }
        },
    );
}

async fn read_again(filter: ReportFilter, found: RwSignal<Option<Found>>) {
    // What was found stays when it can't be read again; signals are gone if the page was left.
    let Ok(reports) = call(LoadReports { filter }).await else {
        return;
    };
    let Ok(now) = reports.found else {
        return;
    };
    let is_new = found.try_with_untracked(|before| before.as_ref() != Some(&now));
    if is_new == Some(true) {
        let (focused, table_is_open) = (focused_address(), is_table_open());
        found.try_set(Some(now));
        request_animation_frame(move || {
            if let Some(details) = chart_table().filter(|_| table_is_open) {
                let _ = details.set_attribute("open", "");
            }
            if let Some(address) = focused {
                focus(&address);
            }
        });
    }
}

/// The address of the link in the lists that has the focus.
fn focused_address() -> Option<String> {
    let focused = document().active_element()?;
    focused.closest("#found").ok()??;
    focused.get_attribute("href")
}

/// Focuses the link with this address: the one that had the focus was made anew.
fn focus(address: &str) {
    // Addresses are escaped and have no quotes.
    let link = document().query_selector(&format!("#found a[href=\"{address}\"]"));
    let link = link.ok().flatten();
    if let Some(link) = link.and_then(|link| link.dyn_into::<HtmlElement>().ok()) {
        let _ = link.focus();
    }
}

/// What holds the chart's table.
fn chart_table() -> Option<Element> {
    document().query_selector("#found details").ok().flatten()
}

fn is_table_open() -> bool {
    chart_table().is_some_and(|details| details.has_attribute("open"))
}
