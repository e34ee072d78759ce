//! `/account/billing`: the customer's name, address and tax number on receipts and statements.

use domain::billing::BillingDetails;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{AcceptedNotice, Field, FormState, Loaded, Page, PostForm, SubmitButton, TextArea};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{redirect_to, signed_in},
    crate::problem::Cause,
    domain::Refusal,
};

/// The path of the page.
pub const BILLING_PATH: &str = "/account/billing";

#[server(prefix = "/fn", endpoint = "billing-details", input = GetUrl)]
pub async fn load_billing() -> Result<BillingDetails, Problem> {
    let (current, account) = signed_in().await?;
    Ok(current.service().accounts().billing_details(account.id).await?)
}

/// Sets the details of the account.
#[server(prefix = "/fn", endpoint = "set-billing-details")]
pub async fn set_billing(
    #[server(default)] name: String,
    #[server(default)] address: String,
    #[server(default)] tax_number: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| {
        problem.typed("name", &name).typed("address", &address).typed("tax_number", &tax_number)
    };
    let (current, account) = signed_in().await.map_err(keep)?;
    let details = BillingDetails::parse(&name, &address, &tax_number);
    let details = details.map_err(|_| Cause::Refused(Refusal::BillingDetailsInvalid));
    let details = details.map_err(Problem::from).map_err(keep)?;
    current.service().accounts().set_billing_details(account.id, details).await?;
    redirect_to(&format!("{BILLING_PATH}?saved=1"))
}

#[component]
pub fn BillingPage() -> impl IntoView {
    let form = FormState::new::<SetBilling>("billing-alert");
    let data = PageData::after([form], || LoadBilling {});
    view! { <Loaded data render=move |details| view! { <Billing details form/> }/> }
}

#[component]
fn Billing(details: BillingDetails, form: FormState) -> impl IntoView {
    let address = form.typed("address").unwrap_or(details.address);
    view! {
        <Page title="Details on receipts" back=("/account", "Account")>
            <AcceptedNotice parameter="saved" sentence="The details are saved."/>
            <p class="lead">
                "Receipts and statements show these details. Leave out what you don't need."
            </p>
            <PostForm form>
                <Field label="Name" name="name" value=details.name form/>
                <TextArea label="Address" id="field-address" name="address" rows="4" text=address/>
                <Field label="Tax number" name="tax_number" value=details.tax_number form/>
                <SubmitButton label="Save details" form primary=true/>
            </PostForm>
        </Page>
    }
}
