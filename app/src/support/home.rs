//! `/support`.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::client::read;
use crate::problem::Problem;
use crate::ui::{Loaded, Page, Rendered};
#[cfg(feature = "ssr")]
use crate::visit::staff;

/// What staff can look after.
#[server(prefix = "/fn", endpoint = "support", input = GetUrl)]
pub async fn load_support() -> Result<Rendered, Problem> {
    let (visit, _) = staff().await?;
    let carriers = visit.service().carriers().await?;
    Ok(super::readings::contents(&carriers))
}

#[component]
pub fn SupportPage() -> impl IntoView {
    let data = Resource::new(
        || (),
        |()| async { read(LoadSupport {}).await.map(Rendered::placed) },
    );
    let render = |content: Rendered| {
        view! {
            <Page title="Support">
                <div inner_html=content.html()></div>
            </Page>
        }
    };
    view! { <Loaded data render/> }
}
