//! `/account/close`: closing the account.

use domain::records::ApplicationRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::fields::PasswordField;
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::{signed_in, step_up};
use crate::problem::Problem;
use crate::ui::{Field, FormState, Loaded, Page, PostForm, StepUpField, SubmitButton, Table};

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Closing {
    applications: Vec<ApplicationRecord>,
    currency: String,
    /// Whether the account is staff. Members of staff can't close their accounts.
    staff: bool,
}

/// Loads the page's data.
#[server(prefix = "/fn", endpoint = "closing", input = GetUrl)]
pub async fn load_closing() -> Result<Closing, Problem> {
    let (current, account) = signed_in().await?;
    Ok(Closing {
        applications: current.service().applications().of_account(account.id).await?,
        currency: current.site().currency.clone(),
        staff: account.staff,
    })
}

/// Closes the account permanently.
#[server(prefix = "/fn", endpoint = "close-account")]
pub async fn close_account(
    #[server(default)] references: String,
    password: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("references", &references);
    let (current, account) = signed_in().await.map_err(keep)?;
    // Without a second factor, the password below confirms the user's identity.
    if account.second_factor {
        step_up(&current, &account, &credential).await.map_err(keep)?;
    }
    let closed = current.service().accounts().close_account(&account, &password, &references).await;
    closed.map_err(|error| keep(error.into()))?;
    current.sign_out().await.map_err(Problem::after_change)?;
    leptos_axum::redirect("/login?closed=1");
    Ok(())
}

#[component]
pub fn ClosePage() -> impl IntoView {
    let data = PageData::new(|| LoadClosing {});
    view! { <Loaded data render=|closing| view! { <Close closing/> }/> }
}

#[component]
fn Close(closing: Closing) -> impl IntoView {
    let form = FormState::new::<CloseAccount>("close-alert").loading_next();
    let Closing { applications, currency, staff } = closing;
    let with_references = !applications.is_empty();
    let listed = with_references.then(|| {
        Table::narrow(&applications)
            .styled("key", "Reference", |application| application.reference.to_string())
            .column("Category", |application| application.category.as_str())
            .money("Balance", &currency, |application| application.balance.shown())
            .in_region("Your applications")
    });
    view! {
        <Page title="Close your account">
            <p class="lead">"Closing an account can't be undone. From then on:"</p>
            <ul>
                <li>
                    "the keys of your applications are refused with the code 504, and nothing is \
                     sent;"
                </li>
                <li>
                    "messages that are queued are not sent any more: they expire within 48 hours, and \
                     their price is released to the balance;"
                </li>
                <li>"balances are not paid out;"</li>
                <li>
                    "deposits that arrive later are not credited to an application: support has \
                     to return them;"
                </li>
                <li>
                    "all your devices are signed out, nobody can sign in any more, and your email \
                     can't be used for a new account."
                </li>
            </ul>
            <p>
                "Records of messages and payments are kept, as accounting rules require. "
                <a href="/account">"Download your data"</a> " first, if you want to keep it."
            </p>
            {listed}
            {if staff {
                view! {
                    <p>
                        "The account of a member of staff can't be closed. Ask another member of \
                         staff to make it the account of a customer first."
                    </p>
                }
                .into_any()
            } else {
                view! {
                    <PostForm form>
                        {with_references
                            .then(|| {
                                view! {
                                    <Field
                                        label="References"
                                        name="references"
                                        required=true
                                        hint="Type the reference of each application above, with a \
                                              space between them."
                                        form
                                    />
                                }
                            })}
                        <PasswordField form/>
                        <StepUpField form/>
                        <SubmitButton label="Close account" form/>
                    </PostForm>
                }
                .into_any()
            }}
        </Page>
    }
}
