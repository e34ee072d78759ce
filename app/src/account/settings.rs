//! `/account`.

use domain::records::AccountRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_query_map;

use super::register::judge_password;
use crate::client::read;
use crate::problem::{Cause, Problem};
use crate::ui::{Field, FormAlert, FormState, Loaded, Page, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use {crate::portal_request::signed_in, domain::Password};

/// The account that is signed in.
#[server(prefix = "/fn", endpoint = "account", input = GetUrl)]
pub async fn load_account() -> Result<AccountRecord, Problem> {
    signed_in().await.map(|(_, account)| account)
}

/// Changes the password; all other devices are signed out.
#[server(prefix = "/fn", endpoint = "change-password")]
pub async fn change_password(password: String, new_password: String) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let new = Password::parse(&new_password)?;
    let keep = current.token().unwrap_or_default();
    current
        .service()
        .change_password(account.id, &password, &new, &keep)
        .await?;
    leptos_axum::redirect("/account?changed=1");
    Ok(())
}

#[component]
pub fn AccountPage() -> impl IntoView {
    let data = Resource::new(|| (), |()| read(LoadAccount {}));
    view! { <Loaded data render=|account| view! { <Settings account/> }/> }
}

#[component]
fn Settings(account: AccountRecord) -> impl IntoView {
    let form = FormState::new::<ChangePassword>("account-alert");
    let query = use_query_map();
    let changed = move || query.with(|query| query.get("changed").is_some());

    view! {
        <Page title="Account">
            <dl class="facts">
                <div>
                    <dt>"E-mail"</dt>
                    <dd>{account.email.clone()}</dd>
                </div>
            </dl>
            <h2>"Password"</h2>
            <div role="status">
                {move || {
                    changed()
                        .then(|| {
                            view! {
                                <p class="notice">
                                    "The password is changed, and all other devices are signed out."
                                </p>
                            }
                        })
                }}
            </div>
            <p>"Changing it signs out all other devices. The keys of your applications stay as they are."</p>
            <PostForm form>
                <FormAlert form/>
                // Password managers file the new password under this name.
                <input
                    type="hidden"
                    name="username"
                    autocomplete="username"
                    value=account.email
                    disabled=true
                />
                <Field
                    label="Current password"
                    name="password"
                    kind="password"
                    autocomplete="current-password"
                    required=true
                    form
                />
                <Field
                    label="New password"
                    name="new_password"
                    kind="password"
                    autocomplete="new-password"
                    required=true
                    hint=Cause::Password.sentence()
                    judge=judge_password
                    form
                />
                <SubmitButton label="Change password" form primary=true/>
            </PostForm>
        </Page>
    }
}
