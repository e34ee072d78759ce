//! `/applications/{reference}/settings`: an application's settings.

use domain::Category;
use domain::records::ApplicationRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::characters::{CharactersSection, SetCharacters};
use super::frame::ApplicationFrame;
use super::limit_trial::LimitTrialSection;
use super::limits::{LimitsSection, LimitsView, SetLimits};
use super::name::{DeleteApplication, DeleteSection, NameSection, SetName};
use super::notices::{NoticesSection, SetNotices};
use super::unconfirmed::{SetLostAnswer, UnconfirmedSection};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{AcceptedNotice, FormState, Loaded, Parts, in_path};
#[cfg(feature = "ssr")]
use {super::application_view::owned, crate::portal_request::signed_in, domain::Reason};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettingsView {
    application: ApplicationRecord,
    currency: String,
    limits: LimitsView,
    /// Whether the application was never used, so that it can be deleted.
    can_delete: bool,
    sends_mail: bool,
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
    let refusals = refusals.into_iter().map(|(reason, count)| {
        let sentence = Reason::parse(&reason).map_or("", Reason::sentence).to_owned();
        (reason, sentence, count)
    });
    let refusals = refusals.collect();
    let limits = LimitsView { limits, currency: currency.clone(), refusals };
    let can_delete = service.applications().can_delete(account.id, application.reference).await?;
    let sends_mail = service.operations().sends_mail();
    Ok(SettingsView { application, currency, limits, can_delete, sends_mail })
}

#[component]
pub fn SettingsPage() -> impl IntoView {
    let reference = in_path("reference");
    let name = FormState::new::<SetName>("name-alert");
    let notices = FormState::new::<SetNotices>("notices-alert");
    let unconfirmed = FormState::new::<SetLostAnswer>("unconfirmed-alert");
    let limits = FormState::new::<SetLimits>("limits-alert");
    let characters = FormState::new::<SetCharacters>("characters-alert");
    let data = PageData::after([name, notices, unconfirmed, limits, characters], move || {
        LoadSettings { reference: reference.get() }
    });
    let render = move |data| view! { <Settings data name notices unconfirmed limits characters/> };
    view! { <Loaded data render/> }
}

#[component]
fn Settings(
    data: SettingsView,
    name: FormState,
    notices: FormState,
    unconfirmed: FormState,
    limits: FormState,
    characters: FormState,
) -> impl IntoView {
    let SettingsView { application, currency, limits: in_limits, can_delete, sends_mail } = data;
    let deletion = FormState::new::<DeleteApplication>("delete-alert");
    let deleted = application.clone();
    let (reference, in_force) = (application.reference, application.lost_answer);
    let replaces = in_limits.limits.replace_characters;
    let sends = application.category == Category::Sms;
    let mut parts = vec![("name", "Name"), ("mails", "Mails")];
    if sends {
        parts.extend([
            ("unconfirmed", "Unconfirmed messages"),
            ("characters", "Characters"),
            ("limits", "Limits"),
        ]);
    }
    parts.push(("delete", "Delete"));
    view! {
        <ApplicationFrame application=application.clone() at="Settings">
            <AcceptedNotice parameter="named" sentence="The name is saved."/>
            <AcceptedNotice parameter="mails" sentence="The mails are saved."/>
            <AcceptedNotice
                parameter="unconfirmed"
                sentence="The choice about unconfirmed messages is saved."
            />
            <AcceptedNotice
                parameter="characters"
                sentence="The choice about characters is saved."
            />
            <AcceptedNotice parameter="limits" sentence="The limits are saved."/>
            <Parts label="Settings" parts>
                <NameSection application=application.clone() form=name/>
                <NoticesSection application currency sends_mail form=notices/>
                {sends
                    .then(|| view! {
                        <UnconfirmedSection reference in_force form=unconfirmed/>
                        <CharactersSection reference in_force=replaces form=characters/>
                        <LimitsSection reference data=in_limits form=limits/>
                        <LimitTrialSection reference/>
                    })}
                <DeleteSection application=deleted can_delete form=deletion/>
            </Parts>
        </ApplicationFrame>
    }
}
