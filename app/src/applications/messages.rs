//! `/applications/{reference}/messages`: the newest messages of an application.

use domain::records::{ApplicationRecord, MessageRecord, Paged};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::frame::ApplicationFrame;
use crate::incidents::{IncidentNote, IncidentNotices};
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::reports::{ReportFilter, messages_section};
use crate::ui::{Loaded, in_path};
#[cfg(feature = "ssr")]
use {
    super::application_view::owned, crate::incidents::incident_notes,
    crate::portal_request::signed_in, service::MessageFilter,
};

/// The maximum number of messages on the page. The reports have the older ones.
#[cfg(feature = "ssr")]
const MESSAGES: i64 = 25;

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessagesView {
    application: ApplicationRecord,
    messages: Paged<MessageRecord>,
    currency: String,
    incidents: Vec<IncidentNote>,
}

/// Loads the newest messages of one of the account's applications.
#[server(prefix = "/fn", endpoint = "application-messages", input = GetUrl)]
pub async fn load_messages(reference: String) -> Result<MessagesView, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let application = owned(service, account.id, &reference).await?;
    let newest = MessageFilter { limit: MESSAGES, ..MessageFilter::default() };
    let messages = service
        .messages()
        .account_messages(account.id, Some(application.reference), &newest)
        .await?;
    Ok(MessagesView {
        application,
        messages,
        currency: current.site().currency.clone(),
        incidents: incident_notes(service).await?,
    })
}

#[component]
pub fn MessagesPage() -> impl IntoView {
    let reference = in_path("reference");
    let data = PageData::new(move || LoadMessages { reference: reference.get() });
    view! { <Loaded data render=|data| view! { <Messages data/> }/> }
}

#[component]
fn Messages(data: MessagesView) -> impl IntoView {
    let filter = ReportFilter {
        application: data.application.reference.to_string(),
        ..ReportFilter::default()
    };
    let reports = filter.address("/reports", &[]);
    let check_file = format!("/applications/{}/check-file", data.application.reference);
    let listed = i64::try_from(data.messages.items.len()).ok();
    let total = listed.filter(|_| data.messages.next.is_none());
    view! {
        <ApplicationFrame application=data.application at="Messages">
            <IncidentNotices notes=data.incidents/>
            <p>
                "The newest messages. " <a href=reports>"Reports"</a>
                " have all of them, with filters and a chart. Before your system uploads a file, "
                <a href=check_file>"check the file"</a> "."
            </p>
            {messages_section(&data.messages, total, (&filter, ()), &data.currency)}
        </ApplicationFrame>
    }
}
