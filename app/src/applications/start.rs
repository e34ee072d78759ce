//! `/applications/{reference}/start`: the first calls of the API with the application's keys.

use domain::Category;
use leptos::either::Either;
use leptos::prelude::*;

use super::NOT_FOR_SMS;
use super::data::{ApplicationView, LoadApplication};
use super::frame::{ApplicationFrame, reference_in_address};
use super::quick_start::QuickStart;
use crate::client::call;
use crate::ui::Loaded;

#[component]
pub fn QuickStartPage() -> impl IntoView {
    let reference = reference_in_address();
    let data = Resource::new(
        move || reference.get(),
        |reference| call(LoadApplication { reference }),
    );
    view! { <Loaded data render=|data| view! { <Start data/> }/> }
}

#[component]
fn Start(data: ApplicationView) -> impl IntoView {
    let ApplicationView {
        application,
        base_url,
        ..
    } = data;
    let reference = application.reference;
    let calls = match application.category {
        Category::Sms => Either::Left(view! { <QuickStart reference base_url test_key=None/> }),
        Category::Electricity => Either::Right(view! { <p>{NOT_FOR_SMS}</p> }),
    };
    view! {
        <ApplicationFrame application at="Quick start">
            {calls}
        </ApplicationFrame>
    }
}
