//! `/account/close`: closing the account.

use domain::Refusal;
use domain::records::ApplicationRecord;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::fields::PasswordField;
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::{missing_step_up, redirect_to, signed_in, step_up};
use crate::problem::Problem;
use crate::ui::{Confirmation, ConfirmationForm, Field, FormState, Loaded, Page};

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Closing {
    applications: Vec<ApplicationRecord>,
    currency: String,
    email: String,
    /// Whether the account is staff. Members of staff can't close their accounts.
    staff: bool,
    /// The refusal that asks for step-up authentication, if it is needed.
    step_up: Option<Refusal>,
}

/// Loads the page's data.
#[server(prefix = "/fn", endpoint = "closing", input = GetUrl)]
pub async fn load_closing() -> Result<Closing, Problem> {
    let (current, account) = signed_in().await?;
    // Without a second factor, the form's password confirms the user's identity.
    let step_up =
        if account.second_factor { missing_step_up(&current, &account).await? } else { None };
    Ok(Closing {
        applications: current.service().applications().of_account(account.id).await?,
        currency: current.site().currency.clone(),
        email: account.email,
        staff: account.staff,
        step_up,
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
    redirect_to("/login?closed=1")
}

#[component]
pub fn ClosePage() -> impl IntoView {
    let data = PageData::new(|| LoadClosing {});
    view! { <Loaded data render=|closing| view! { <Close closing/> }/> }
}

#[component]
fn Close(closing: Closing) -> impl IntoView {
    let form = FormState::new::<CloseAccount>("close-alert").loading_next();
    let (is_staff, with_references) = (closing.staff, !closing.applications.is_empty());
    let references = with_references.then(|| {
        view! {
            <Field
                label="References"
                name="references"
                required=true
                hint="Type the reference of each application above, with a space between them."
                form
            />
        }
    });
    let contents = if is_staff {
        view! {
            <p>
                "The account of a member of staff can't be closed. Ask another member of staff to \
                 make it the account of a customer first."
            </p>
        }
        .into_any()
    } else {
        let (confirmation, back) = (confirmation(closing), "/account".to_owned());
        view! {
            <ConfirmationForm confirmation label="Close account" danger=true back form>
                {references}
                <PasswordField form/>
            </ConfirmationForm>
        }
        .into_any()
    };
    view! {
        <Page title="Close your account">
            <p>
                "Records of messages and payments are kept, as accounting rules require. "
                <a href="/account">"Download your data"</a> " first, if you want to keep it."
            </p>
            {contents}
        </Page>
    }
}

fn confirmation(closing: Closing) -> Confirmation {
    let Closing { applications, currency, email, step_up, .. } = closing;
    let application = |application: ApplicationRecord| {
        let ApplicationRecord { reference, category, balance, .. } = application;
        let text = format!("{reference} ({category}), {} {currency}", balance.shown());
        ("Application".to_owned(), text)
    };
    let account = ("Account".to_owned(), email);
    Confirmation {
        facts: [account].into_iter().chain(applications.into_iter().map(application)).collect(),
        effects: [
            "The keys of your applications are refused with the code 504, and nothing is sent.",
            "Messages that are queued are not sent any more: they expire within 48 hours, and \
             their price is released to the balance.",
            "Open requests, for an activation or a sender name, are withdrawn.",
            "Balances are not paid out.",
            "Deposits that arrive later are not credited to an application: support has to return \
             them.",
            "All your devices are signed out, nobody can sign in any more, and your email can't be \
             used for a new account.",
        ]
        .map(str::to_owned)
        .to_vec(),
        undo: "Closing an account can't be undone.".to_owned(),
        step_up,
    }
}
