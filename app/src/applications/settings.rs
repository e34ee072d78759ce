//! `/applications/{reference}/settings`: an application's settings.

use domain::Category;
use domain::records::ApplicationRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::frame::ApplicationFrame;
use super::limit_trial::LimitTrialSection;
use super::limits::{LimitsSection, LimitsView, SetLimits};
use super::notices::{NoticesSection, SetNotices};
use super::unconfirmed::{SetLostAnswer, UnconfirmedSection};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{AcceptedNotice, FormState, Loaded, in_path};
#[cfg(feature = "ssr")]
use {super::application_view::owned, crate::portal_request::signed_in};

/// An application with its settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettingsView {
    application: ApplicationRecord,
    currency: String,
    limits: LimitsView,
}

/// Loads the settings of one of the account's applications.
#[server(prefix = "/fn", endpoint = "settings", input = GetUrl)]
pub async fn load_settings(reference: String) -> Result<SettingsView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let currency = current.site().currency.clone();
    let limits = service.applications().send_limits(application.reference).await?;
    let refusals = service.applications().limit_refusals(account.id, application.reference).await?;
    let limits = LimitsView { limits, currency: currency.clone(), refusals };
    Ok(SettingsView { application, currency, limits })
}

#[component]
pub fn SettingsPage() -> impl IntoView {
    let reference = in_path("reference");
    let notices = FormState::new::<SetNotices>("notices-alert");
    let unconfirmed = FormState::new::<SetLostAnswer>("unconfirmed-alert");
    let limits = FormState::new::<SetLimits>("limits-alert");
    let data = PageData::new(move || {
        notices.accepted.track();
        unconfirmed.accepted.track();
        limits.accepted.track();
        LoadSettings { reference: reference.get() }
    });
    let render = move |data| view! { <Settings data notices unconfirmed limits/> };
    view! { <Loaded data render/> }
}

#[component]
fn Settings(
    data: SettingsView,
    notices: FormState,
    unconfirmed: FormState,
    limits: FormState,
) -> impl IntoView {
    let SettingsView { application, currency, limits: in_limits } = data;
    let (reference, in_force) = (application.reference, application.lost_answer);
    let sends = application.category == Category::Sms;
    view! {
        <ApplicationFrame application=application.clone() at="Settings">
            <AcceptedNotice parameter="mails" sentence="The mails are saved."/>
            <AcceptedNotice
                parameter="unconfirmed"
                sentence="The choice about unconfirmed messages is saved."
            />
            <AcceptedNotice parameter="limits" sentence="The limits are saved."/>
            <NoticesSection application currency form=notices/>
            {sends
                .then(|| view! {
                    <LimitsSection reference data=in_limits form=limits/>
                    <LimitTrialSection reference/>
                    <UnconfirmedSection reference in_force form=unconfirmed/>
                })}
        </ApplicationFrame>
    }
}
