//! Keeps the lists up to date while messages are under way.

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlElement};

use super::filter::ReportFilter;
use super::results::{Found, LoadReports, REPORT_EVENTS_PATH, is_under_way};
use crate::client::call;
use crate::ui::follow_by;

/// Loads the results again whenever the messages under way change. Later pages of a list aren't
/// reloaded, because their messages are older.
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
    follow_by(&of.address(REPORT_EVENTS_PATH, &[]), is_under_way, move |counts| {
        // The user may have left the page.
        let is_new = known.try_with_value(|known| *known != counts);
        if is_new == Some(true) {
            known.set_value(counts);
            leptos::task::spawn_local(read_again(filter.clone(), found));
        }
    });
}

async fn read_again(filter: ReportFilter, found: RwSignal<Option<Found>>) {
    // If loading fails, the page keeps its results. The signals are gone if the user left the page.
    let Ok(reports) = call(LoadReports { filter }).await else {
        return;
    };
    let Ok(now) = reports.found else {
        return;
    };
    let is_new = found.try_with_untracked(|before| before.as_ref() != Some(&now));
    if is_new == Some(true) {
        let (focused, table_is_open) = (focused(), is_table_open());
        found.try_set(Some(now));
        request_animation_frame(move || {
            if let Some(details) = chart_table().filter(|_| table_is_open) {
                let _ = details.set_attribute("open", "");
            }
            if let Some(selector) = focused {
                focus(&selector);
            }
        });
    }
}

/// Returns a selector of the link or the field in the results that has the focus.
fn focused() -> Option<String> {
    let focused = document().active_element()?;
    focused.closest("#found").ok()??;
    // Addresses are escaped and contain no quotes.
    let of_link = |address| format!("#found a[href=\"{address}\"]");
    let id = Some(focused.id()).filter(|id| !id.is_empty());
    id.map(|id| format!("#{id}")).or_else(|| focused.get_attribute("href").map(of_link))
}

/// Focuses an element that has been rendered again.
fn focus(selector: &str) {
    let element = document().query_selector(selector).ok().flatten();
    if let Some(element) = element.and_then(|element| element.dyn_into::<HtmlElement>().ok()) {
        let _ = element.focus();
    }
}

/// Returns the element that contains the chart's table.
fn chart_table() -> Option<Element> {
    document().query_selector("#found details").ok().flatten()
}

fn is_table_open() -> bool {
    chart_table().is_some_and(|details| details.has_attribute("open"))
}
