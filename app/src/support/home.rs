//! `/support`.

use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::client::read;
#[cfg(feature = "ssr")]
use crate::portal_request::staff;
use crate::problem::Problem;
use crate::ui::{Loaded, Page, Rendered};

/// What staff can look after.
#[server(prefix = "/fn", endpoint = "support", input = GetUrl)]
pub async fn load_support() -> Result<Rendered, Problem> {
    let (current, _) = staff().await?;
    let carriers = current.service().carriers().await?;
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
