//! The time zone in which pages show times: the one that the account chose, else the browser's, else
//! UTC. The server finds it out before it makes a page and writes it into the page, so that the
//! browser makes the same page again.

use domain::Zone;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::portal_request::current_request;
use crate::problem::Problem;

/// The zone of a page; the server puts it into the request's extensions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PageZone {
    /// The zone in which the page shows times.
    pub zone: Zone,
    /// The name of the browser's zone, as the browser told it earlier.
    pub browser: Option<String>,
}

/// The zone in which the page that is made next shows times. A page that is shown stays as it is
/// when it changes.
#[derive(Clone, Copy)]
pub struct ShownZone(StoredValue<Zone>);

impl ShownZone {
    /// Gives the components below the zone that the server found out.
    pub fn provide() {
        let page = SharedValue::new(page_zone).into_inner();
        let shown = Self(StoredValue::new(page.zone));
        provide_context(shown);
        #[cfg(feature = "hydrate")]
        Effect::new(move || browser::tell(page.browser.as_deref(), shown));
    }

    /// Gives the components below UTC.
    pub fn provide_utc() {
        provide_context(Self(StoredValue::new(Zone::default())));
    }

    /// Reads the zone that the component has from those above it.
    pub fn read<T>(read: impl FnOnce(&Zone) -> T) -> T {
        match use_context::<Self>() {
            Some(Self(zone)) => zone.with_value(read),
            None => read(&Zone::default()),
        }
    }
}

/// The browser reads it in the page.
fn page_zone() -> PageZone {
    #[cfg(feature = "ssr")]
    if let Some(request) = use_context::<http::request::Parts>() {
        return request.extensions.get().cloned().unwrap_or_default();
    }
    PageZone::default()
}

/// Has the server keep the name of the browser's zone, for the pages that this browser asks for;
/// gives the zone in which these show times. A name that isn't in the time zone database is passed
/// over.
#[server(prefix = "/fn", endpoint = "tell-time-zone")]
pub async fn tell_time_zone(time_zone: String) -> Result<Zone, Problem> {
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

    use super::{ShownZone, TellTimeZone};
    use crate::client::call;

    /// Tells the server the browser's zone, unless it is the one that the server knows.
    pub fn tell(known: Option<&str>, shown: ShownZone) {
        let Some(time_zone) = zone() else {
            return;
        };
        if time_zone == known.unwrap_or("UTC") {
            return;
        }
        leptos::task::spawn_local(async move {
            if let Ok(zone) = call(TellTimeZone { time_zone }).await {
                shown.0.try_set_value(zone);
            }
        });
    }

    /// The IANA name of the browser's zone.
    fn zone() -> Option<String> {
        let format = Intl::DateTimeFormat::default();
        let options = format.resolved_options();
        let zone = Reflect::get(&options, &JsValue::from_str("timeZone"));
        zone.ok()?.as_string()
    }
}
