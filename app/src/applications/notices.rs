//! Mails to the owner of an application about low balances and completed batches.

#[cfg(feature = "ssr")]
use domain::Money;
use domain::Reference;
use domain::records::ApplicationRecord;
use leptos::prelude::*;

use crate::problem::Problem;
use crate::ui::{Choice, Field, FormState, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use crate::{
    portal_request::{redirect_to, signed_in},
    problem::Cause,
};

/// Saves which mails the owner gets. An empty threshold turns off the mail about low balances.
#[server(prefix = "/fn", endpoint = "set-notices")]
pub async fn set_notices(
    reference: Reference,
    #[server(default)] low_balance: String,
    #[server(default)] batches: String,
) -> Result<(), Problem> {
    let keep =
        |problem: Problem| problem.typed("low_balance", &low_balance).typed("batches", &batches);
    let (current, account) = signed_in().await.map_err(keep)?;
    let threshold = threshold(&low_balance).map_err(keep)?;
    let service = current.service();
    let wants_batches = batches == MAIL;
    service.applications().set_notices(account.id, reference, threshold, wants_batches).await?;
    redirect_to(&format!("/applications/{reference}/settings?mails=1"))
}

/// Parses the threshold. Returns `None` for an empty field.
#[cfg(feature = "ssr")]
fn threshold(text: &str) -> std::result::Result<Option<Money>, Problem> {
    let typed = text.trim();
    if typed.is_empty() {
        return Ok(None);
    }
    let amount = Money::parse(typed).ok();
    let amount = amount.filter(|amount| *amount > Money::ZERO);
    amount.map(Some).ok_or_else(|| Cause::Amount.into())
}

const MAIL: &str = "mail";
const NO_MAIL: &str = "none";

/// The form for the owner's mails.
#[component]
pub fn NoticesSection(
    application: ApplicationRecord,
    currency: String,
    sends_mail: bool,
    form: FormState,
) -> impl IntoView {
    let reference = application.reference.to_string();
    let threshold = application.low_balance;
    let chosen = application.batch_mails_since.map_or(NO_MAIL, |_| MAIL);
    let chosen = form.typed("batches").unwrap_or_else(|| chosen.to_owned());
    let options = vec![
        (NO_MAIL.to_owned(), "No mail".to_owned()),
        (MAIL.to_owned(), "A mail for each batch".to_owned()),
    ];
    view! {
        <section>
            <h2 id="mails">"Mails"</h2>
            {(!sends_mail)
                .then(|| {
                    view! { <p class="notice">"This site sends no mail. The choices are kept."</p> }
                })}
            <PostForm form>
                <input type="hidden" name="reference" value=reference/>
                <Field
                    label="Low balance"
                    name="low_balance"
                    hint=format!(
                        "An amount in {currency}: you get a mail when you set it, if the balance is \
                         below it, and each time that the balance falls below it. Leave the field \
                         empty for none.",
                    )
                    value=threshold.map(|amount| amount.to_string()).unwrap_or_default()
                    form
                />
                <Choice label="When a batch is done" name="batches" options chosen/>
                <SubmitButton label="Save mails" form/>
            </PostForm>
        </section>
    }
}
