//! `/applications/{reference}/settings`: an application's settings.

use domain::Category;
use leptos::prelude::*;

use super::application_view::{ApplicationView, LoadApplication};
use super::frame::ApplicationFrame;
use super::notices::{NoticesSection, SetNotices};
use super::unconfirmed::{SetLostAnswer, UnconfirmedSection};
use crate::page_data::PageData;
use crate::ui::{AcceptedNotice, FormState, Loaded, in_path};

#[component]
pub fn SettingsPage() -> impl IntoView {
    let reference = in_path("reference");
    let notices = FormState::new::<SetNotices>("notices-alert");
    let unconfirmed = FormState::new::<SetLostAnswer>("unconfirmed-alert");
    let data = PageData::new(move || {
        notices.accepted.track();
        unconfirmed.accepted.track();
        LoadApplication { reference: reference.get() }
    });
    let render = move |data| view! { <Settings data notices unconfirmed/> };
    view! { <Loaded data render/> }
}

#[component]
fn Settings(data: ApplicationView, notices: FormState, unconfirmed: FormState) -> impl IntoView {
    let ApplicationView { application, currency, .. } = data;
    let (reference, in_force) = (application.reference, application.lost_answer);
    let sends = application.category == Category::Sms;
    view! {
        <ApplicationFrame application=application.clone() at="Settings">
            <AcceptedNotice parameter="mails" sentence="The mails are saved."/>
            <AcceptedNotice
                parameter="unconfirmed"
                sentence="The choice about unconfirmed messages is saved."
            />
            <NoticesSection application currency form=notices/>
            {sends
                .then(|| view! { <UnconfirmedSection reference in_force form=unconfirmed/> })}
        </ApplicationFrame>
    }
}
