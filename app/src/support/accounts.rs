//! `/support/accounts`: the list of accounts, which staff search by email.

use domain::records::Paged;
use domain::support::AccountLine;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::location::Url;
use serde::{Deserialize, Serialize};

use super::marked_email::MarkedEmail;
use crate::page_data::PageData;
#[cfg(feature = "ssr")]
use crate::portal_request::staff;
use crate::problem::Problem;
use crate::ui::{Field, FormState, Loaded, Page, SearchForm, Table, next_link, parameter};

/// The number of accounts on a page.
#[cfg(feature = "ssr")]
const ACCOUNTS: i64 = 50;

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccountsView {
    /// The part of an email to search for.
    part: String,
    accounts: Paged<AccountLine>,
}

/// Loads a page of accounts for staff.
#[server(prefix = "/fn", endpoint = "support-accounts", input = GetUrl)]
pub async fn load_support_accounts(
    #[server(default)] part: String,
    #[server(default)] cursor: Option<String>,
) -> Result<AccountsView, Problem> {
    let (current, _) = staff().await?;
    let support = current.service().support();
    let found = support.account_list(&part, cursor.as_deref(), ACCOUNTS);
    Ok(AccountsView { accounts: found.await?, part })
}

#[component]
pub fn SupportAccountsPage() -> impl IntoView {
    let (email, cursor) = (parameter("email"), parameter("cursor"));
    let data = PageData::new(move || LoadSupportAccounts {
        part: email.get().unwrap_or_default(),
        cursor: cursor.get(),
    });
    view! { <Loaded data render=|data| view! { <Accounts data/> }/> }
}

#[component]
fn Accounts(data: AccountsView) -> impl IntoView {
    let AccountsView { part, accounts } = data;
    let address = format!("/support/accounts?email={}", Url::escape(&part));
    let form = FormState::plain("accounts-alert", None);
    view! {
        <Page title="Accounts">
            <SearchForm path="/support/accounts" label="Accounts" button="Find" form>
                <Field label="Part of the email" name="email" value=part form/>
            </SearchForm>
            {accounts_table(&accounts.items)
                .in_region_or("Accounts", "There is no such account.")}
            {next_link(&address, accounts.next, "More accounts")}
        </Page>
    }
}

/// Returns a table of accounts with links to their pages.
pub fn accounts_table(accounts: &[AccountLine]) -> Table<'_, AccountLine> {
    Table::wide(accounts)
        .column("Email", |line| {
            view! { <MarkedEmail id=line.account.id email=line.account.email.clone()/> }
        })
        .column("Role", |line| if line.account.staff { "staff" } else { "customer" })
        .column("State", |line| {
            if line.account.closed {
                "closed"
            } else if line.disabled_at.is_some() {
                "disabled"
            } else {
                "enabled"
            }
        })
        .time("Created (UTC)", |line| line.created_at)
}
