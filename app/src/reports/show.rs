//! `/reports/{transid}` and `/reports/{batchid}`.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_params_map;
use serde::{Deserialize, Serialize};

use super::batch::{BatchContent, LiveBatch};
use crate::client::read;
use crate::problem::Problem;
use crate::ui::{Loaded, Page, Rendered};
#[cfg(feature = "ssr")]
use {
    super::parts,
    crate::portal_request::signed_in,
    crate::problem::Cause,
    domain::{BatchId, Transid},
};

/// What the page shows: the two share an address, told apart by how their ids begin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Subject {
    Message(Rendered),
    Batch(LiveBatch),
}

impl Subject {
    fn placed(self) -> Self {
        match self {
            Self::Message(content) => Self::Message(content.placed()),
            Self::Batch(batch) => Self::Batch(LiveBatch {
                facts: batch.facts.placed(),
                ..batch
            }),
        }
    }
}

/// One message or batch of the account.
#[server(prefix = "/fn", endpoint = "report", input = GetUrl)]
pub async fn load_report(id: String) -> Result<Subject, Problem> {
    let (current, account) = signed_in().await?;
    let (service, currency) = (current.service(), &current.site().currency);
    if let Some(batchid) = BatchId::parse(&id) {
        let found = service.account_batch(account.id, batchid).await?;
        let batch = found.ok_or(Cause::NotFound)?;
        return Ok(Subject::Batch(LiveBatch::of(&batch, currency)));
    }
    let transid = Transid::parse(&id).ok_or(Cause::NotFound)?;
    let found = service.account_message(account.id, transid).await?;
    let detail = found.ok_or(Cause::NotFound)?;
    Ok(Subject::Message(parts::message(detail, currency)))
}

#[component]
pub fn ReportPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).unwrap_or_default());
    let data = Resource::new(
        move || id.get(),
        |id| async { read(LoadReport { id }).await.map(Subject::placed) },
    );
    let render = |subject| {
        let (title, content) = match subject {
            Subject::Message(content) => (
                "Message",
                view! { <div inner_html=content.html()></div> }.into_any(),
            ),
            Subject::Batch(batch) => ("Batch", view! { <BatchContent batch/> }.into_any()),
        };
        view! {
            <Page title>
                <p class="back">
                    <a href="/reports">"All reports"</a>
                </p>
                {content}
            </Page>
        }
    };
    view! { <Loaded data render/> }
}
