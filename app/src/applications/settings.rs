//! `/applications/{reference}/settings`: an application's settings.

use domain::Category;
use leptos::prelude::*;

use super::data::{ApplicationView, LoadApplication};
use super::frame::{ApplicationFrame, reference_in_address};
use super::notices::{NoticesSection, SetNotices};
use super::unconfirmed::{SetLostAnswer, UnconfirmedSection};
use crate::client::call;
use crate::ui::{FormState, Loaded};

#[component]
pub fn SettingsPage() -> impl IntoView {
    let reference = reference_in_address();
    let notices = FormState::new::<SetNotices>("notices-alert");
    let unconfirmed = FormState::new::<SetLostAnswer>("unconfirmed-alert");
    let data = Resource::new(
        move || {
            let changes = (notices.accepted.get(), unconfirmed.accepted.get());
            (reference.get(), changes)
        },
        |(reference, _)| call(LoadApplication { reference }),
    );
    let render = move |data| view! { <Settings data notices unconfirmed/> };
    view! { <Loaded data render/> }
}

#[component]
fn Settings(data: ApplicationView, notices: FormState, unconfirmed: FormState) -> impl IntoView {
    let ApplicationView {
        application,
        currency,
        ..
    } = data;
    let (reference, in_force) = (application.reference, application.lost_answer);
    let sends = application.category == Category::Sms;
    view! {
        <ApplicationFrame application=application.clone() at="Settings">
            <NoticesSection application currency form=notices/>
            {sends
                .then(|| {
                    view! { <UnconfirmedSection reference in_force form=unconfirmed/> }
                })}
        </ApplicationFrame>
    }
}
