//! The time zone in which pages show times: the account's setting, else the browser's zone, else
//! UTC. The server determines the zone before it renders a page and writes it into the page, so
//! that the browser renders the same times.

use domain::Zone;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::portal_request::current_request;
use crate::problem::Problem;

/// The zone of a page. The server puts it into the request's extensions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PageZone {
    /// The zone in which the page shows times.
    pub zone: Zone,
    /// The name of the browser's zone, if the browser has reported it.
    pub browser: Option<String>,
}

/// The zone in which the next page shows times. A change doesn't affect the page on screen.
#[derive(Clone, Copy)]
pub struct ShownZone(StoredValue<Zone>);

impl ShownZone {
    /// Provides the server's zone to the components below.
    pub fn provide() {
        let page = SharedValue::new(page_zone).into_inner();
        let shown = Self(StoredValue::new(page.zone));
        provide_context(shown);
        #[cfg(feature = "hydrate")]
        Effect::new(move || browser::tell(page.browser.as_deref(), shown));
    }

    /// Provides UTC to the components below.
    pub fn provide_utc() {
        provide_context(Self(StoredValue::new(Zone::default())));
    }

    /// Calls `read` with the zone that the components above provide.
    pub fn read<T>(read: impl FnOnce(&Zone) -> T) -> T {
        match use_context::<Self>() {
            Some(Self(zone)) => zone.with_value(read),
            None => read(&Zone::default()),
        }
    }
}

/// Returns the page's zone. The browser reads it from the page.
fn page_zone() -> PageZone {
    #[cfg(feature = "ssr")]
    if let Some(request) = use_context::<http::request::Parts>() {
        return request.extensions.get().cloned().unwrap_or_default();
    }
    PageZone::default()
}

/// Stores the name of the browser's zone in a cookie. Returns the zone in which this browser's
/// pages show times. Ignores a name that isn't in the time zone database.
#[server(prefix = "/fn", endpoint = "tell-time-zone")]
pub async fn report_time_zone(time_zone: String) -> Result<Zone, Problem> {
    let current = current_request()?;
    if current.service().zone(&time_zone).is_none() {
        return Ok(current.zone(current.browser_zone()).await);
    }
    current.keep_browser_zone(&time_zone);
    Ok(current.zone(Some(time_zone)).await)
}

#[cfg(feature = "hydrate")]
mod browser {
    use leptos::prelude::*;
    use leptos::wasm_bindgen::JsValue;
    use web_sys::js_sys::{Intl, Reflect};

    use super::{ReportTimeZone, ShownZone};
    use crate::client::call;

    /// Reports the browser's zone to the server, unless the server knows it already.
    pub fn tell(known: Option<&str>, shown: ShownZone) {
        let Some(time_zone) = zone() else {
            return;
        };
        if time_zone == known.unwrap_or("UTC") {
            return;
        }
        leptos::task::spawn_local(async move {
            if let Ok(zone) = call(ReportTimeZone { time_zone }).await {
                shown.0.try_set_value(zone);
            }
        });
    }

    /// Returns the IANA name of the browser's zone.
    fn zone() -> Option<String> {
        let format = Intl::DateTimeFormat::default();
        let options = format.resolved_options();
        let zone = Reflect::get(&options, &JsValue::from_str("timeZone"));
        zone.ok()?.as_string()
    }
}
