//! The frame of an application's pages: its name and the navigation.

use domain::records::ApplicationRecord;
use domain::{Category, Reference};
use leptos::prelude::*;
use leptos_router::components::A;

use crate::ui::Page;

/// An application's page: the application's name, the navigation and the content.
#[component]
pub fn ApplicationFrame(
    application: ApplicationRecord,
    /// The page's name in the navigation.
    at: &'static str,
    children: Children,
) -> impl IntoView {
    view! {
        <Page title=application.display_name() section=at>
            <Navigation reference=application.reference category=application.category/>
            {children()}
        </Page>
    }
}

#[component]
fn Navigation(reference: Reference, category: Category) -> impl IntoView {
    let page = move |name: &str| format!("/applications/{reference}{name}");
    // Only SMS applications send messages.
    let sends = category == Category::Sms;
    view! {
        <nav class="subnav" aria-label="Application">
            <A href=page("") exact=true>"Overview"</A>
            {sends.then(|| view! { <A href=page("/messages")>"Messages"</A> })}
            {sends.then(|| view! { <A href=page("/inbound")>"Inbox"</A> })}
            {sends.then(|| view! { <A href=page("/optouts")>"Opt-outs"</A> })}
            <A href=page("/statement")>"Statement"</A>
            <A href=page("/sender")>"Sender name"</A>
            <A href=page("/keys")>"Keys"</A>
            {sends.then(|| view! { <A href=page("/webhooks")>"Webhooks"</A> })}
            {sends.then(|| view! { <A href=page("/verify")>"Codes"</A> })}
            <A href=page("/settings")>"Settings"</A>
            {sends.then(|| view! { <A href=page("/check-file")>"Check a file"</A> })}
            {sends.then(|| view! { <A href=page("/start")>"Quick start"</A> })}
        </nav>
    }
}
