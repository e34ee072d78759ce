//! The time zone setting of an account.

use leptos::prelude::*;

#[cfg(feature = "ssr")]
use crate::portal_request::{redirect_to, signed_in};
use crate::problem::Problem;
use crate::ui::{Choice, FormState, PostForm, SubmitButton};

/// Sets the time zone by its IANA name. Empty for the browser's zone.
#[server(prefix = "/fn", endpoint = "set-time-zone")]
pub async fn set_time_zone(time_zone: String) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("time_zone", &time_zone);
    let (current, account) = signed_in().await.map_err(keep)?;
    let name = Some(time_zone.as_str()).filter(|name| !name.is_empty());
    current.service().accounts().set_time_zone(account.id, name).await?;
    redirect_to("/account?time-zone=1")
}

#[component]
pub fn TimeZoneSection(names: Vec<String>, chosen: Option<String>) -> impl IntoView {
    // The server writes the zone into the next page.
    let form = FormState::new::<SetTimeZone>("time-zone-alert").loading_next();
    let browsers = (String::new(), "The browser's".to_owned());
    let others = names.into_iter().map(|name| (name.clone(), name));
    let options = std::iter::once(browsers).chain(others).collect();
    view! {
        <h2>"Times"</h2>
        <p>
            "Pages and files for spreadsheets show times in this zone, and reports count days and \
             hours in it. Days of statements, CSV files and answers of the API use UTC."
        </p>
        <PostForm form>
            <Choice
                label="Time zone"
                name="time_zone"
                options
                chosen=form.typed("time_zone").or(chosen).unwrap_or_default()
            />
            <SubmitButton label="Save time zone" form/>
        </PostForm>
    }
}
