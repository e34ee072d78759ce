//! `/support/deposits/assign`: shows the application that an unmatched deposit would be credited
//! to, and asks for confirmation.

use domain::Reference;
use domain::records::{ApplicationRecord, DepositRecord};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::marked_email::MarkedEmail;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    Fact, FormState, Loaded, Page, PostForm, StateMark, StepUpField, SubmitButton, parameter,
};
#[cfg(feature = "ssr")]
use {
    super::desk::APPROVALS_PATH,
    crate::portal_request::{staff, step_up},
    crate::problem::Cause,
    domain::approval::StaffAct,
};

/// The path of the page.
pub const ASSIGN_PATH: &str = "/support/deposits/assign";

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AssignmentView {
    deposit: DepositRecord,
    /// `None` if no application has the reference that staff typed.
    application: Option<ApplicationRecord>,
    currency: String,
}

/// Loads a deposit and the application that it would be assigned to.
#[server(prefix = "/fn", endpoint = "assignment", input = GetUrl)]
pub async fn load_assignment(
    bank_id: String,
    #[server(default)] reference: String,
) -> Result<AssignmentView, Problem> {
    let (current, _) = staff().await?;
    let service = current.service();
    let deposit = service.money().deposit(&bank_id).await?.ok_or(Cause::NotFound)?;
    let application = match Reference::parse(reference.trim()) {
        Ok(reference) => service.applications().find_application(reference).await?,
        Err(_) => None,
    };
    Ok(AssignmentView { deposit, application, currency: current.site().currency.clone() })
}

/// Assigns an unmatched deposit to an application.
#[server(prefix = "/fn", endpoint = "assign-deposit")]
pub async fn assign_deposit(
    bank_id: String,
    reference: Reference,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    step_up(&current, &account, &credential).await?;
    let act = StaffAct::AssignDeposit { bank_id, reference };
    let done = current.service().support().act(account.id, act).await?;
    leptos_axum::redirect(if done { "/support/deposits?assigned=1" } else { APPROVALS_PATH });
    Ok(())
}

#[component]
pub fn AssignPage() -> impl IntoView {
    let form = FormState::new::<AssignDeposit>("assign-alert");
    let (bank_id, reference) = (parameter("bank_id"), parameter("reference"));
    let data = PageData::new(move || LoadAssignment {
        bank_id: bank_id.get().unwrap_or_default(),
        reference: reference.get().unwrap_or_default(),
    });
    view! { <Loaded data render=move |data| view! { <Assignment data form/> }/> }
}

#[component]
fn Assignment(data: AssignmentView, form: FormState) -> impl IntoView {
    let AssignmentView { deposit, application, currency } = data;
    let action = match (deposit.assigned_to, &application) {
        (Some(reference), _) => {
            let told = format!("This deposit was credited to {reference} before.");
            view! { <p class="notice">{told}</p> }.into_any()
        }
        (None, None) => view! {
            <p class="notice">
                "No application has this reference. Go back, and type the 6 digits of another one."
            </p>
        }
        .into_any(),
        (None, Some(application)) => {
            confirmation(deposit.bank_id.clone(), application.reference, form).into_any()
        }
    };
    view! {
        <Page title="Assign a deposit" back=("/support/deposits", "Deposits")>
            <dl class="facts">
                <Fact term="Amount" class="figures">
                    {format!("{} {currency}", deposit.amount.shown())}
                </Fact>
                <Fact term="Bank id" class="key">{deposit.bank_id.clone()}</Fact>
                <Fact term="Reference as written">{deposit.reference.clone()}</Fact>
                {application.map(receiver)}
            </dl>
            {action}
        </Page>
    }
}

/// Renders the application that gets the money, and its owner.
fn receiver(application: ApplicationRecord) -> impl IntoView {
    let name = format!("{} ({})", application.reference, application.category);
    let status = application.status;
    view! {
        <Fact term="Account"><MarkedEmail email=application.email/></Fact>
        <Fact term="Application" class="key">{name}</Fact>
        <Fact term="Status"><StateMark state=status/></Fact>
    }
}

fn confirmation(bank_id: String, reference: Reference, form: FormState) -> impl IntoView {
    view! {
        <p>"The amount is added to the balance at once. You can't undo this."</p>
        <PostForm form>
            <input type="hidden" name="bank_id" value=bank_id/>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <StepUpField form/>
            <SubmitButton label="Assign" form primary=true/>
        </PostForm>
    }
}
