//! `/support/deposits/assign`: shows the application that an unmatched deposit would be credited
//! to, and asks for confirmation.

use domain::decision::Decided;
use domain::records::{ApplicationRecord, DepositRecord};
use domain::{Reference, Refusal};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::desk::by;
use super::links::{ASSIGN_PATH, application_link, deposit_path};
use super::marked_email::MarkedEmail;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    Confirmation, ConfirmationForm, DateTime, Fact, Field, FormState, Loaded, Notice, NoticeSlot,
    Page, StateMark, about_text, optional_fact, parameter,
};
#[cfg(feature = "ssr")]
use {
    super::desk::{APPROVALS_PATH, is_own, last_decision},
    super::queues::Queue,
    crate::portal_request::{CurrentRequest, missing_step_up, redirect_to, staff, step_up},
    crate::problem::Cause,
    crate::ui::address,
    domain::approval::StaffAct,
};

/// The parameter with the bank ID of the deposit that was just assigned or returned.
pub const DECIDED: &str = "decided";

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AssignmentView {
    deposit: DepositRecord,
    /// Who assigned or returned the deposit, and when. `None` if nobody had to.
    decided: Option<Decided>,
    /// The reference that staff typed. Empty if they only look at the deposit.
    reference: String,
    /// `None` if no application has the reference that staff typed.
    application: Option<ApplicationRecord>,
    /// Why the deposit can't be assigned to that application.
    refused: Option<Refusal>,
    currency: String,
    /// The refusal that asks for step-up authentication, if it is needed.
    step_up: Option<Refusal>,
    /// The applications that the payer of an unmatched deposit may have meant.
    suggestions: Vec<Reference>,
    /// The deposit that was just assigned or returned.
    done: Option<DepositDone>,
}

/// A deposit that was just assigned or returned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DepositDone {
    bank_id: String,
    /// What happened to it.
    sentence: String,
}

#[cfg(feature = "ssr")]
impl DepositDone {
    /// Returns what happened to the deposit that was just decided. `None` if there is none.
    pub async fn load(current: &CurrentRequest, bank_id: String) -> Result<Option<Self>, Problem> {
        if bank_id.is_empty() {
            return Ok(None);
        }
        let Some(deposit) = current.service().money().deposit(&bank_id).await? else {
            return Ok(None);
        };
        let amount = format!("{} {} ({bank_id})", deposit.amount.shown(), current.site().currency);
        let sentence = match (deposit.assigned_to, deposit.returned) {
            (Some(reference), _) => format!("{amount} is assigned to {reference}."),
            (None, Some(_)) => format!("{amount} is marked as returned to the bank."),
            (None, None) => return Ok(None),
        };
        Ok(Some(Self { bank_id, sentence }))
    }
}

/// Says what happened to the deposit that was just decided, with a link to it. `is_next` says that
/// the page shows the next deposit.
#[component]
pub fn DepositNotice(done: Option<DepositDone>, is_next: bool) -> impl IntoView {
    let notice = done.map(|DepositDone { bank_id, mut sentence }| {
        if is_next {
            sentence.push_str(" Below is the next deposit, which has waited longest.");
        }
        let link = (deposit_path(&bank_id), "Open the deposit".to_owned());
        Notice { sentence: sentence.into(), links: vec![link] }
    });
    let notice = Signal::derive(move || notice.clone());
    view! { <NoticeSlot notice parameters=vec![DECIDED]/> }
}

/// Loads a deposit and the application that it would be assigned to.
#[server(prefix = "/fn", endpoint = "assignment", input = GetUrl)]
pub async fn load_assignment(
    bank_id: String,
    #[server(default)] reference: String,
    #[server(default)] decided: String,
) -> Result<AssignmentView, Problem> {
    let (current, account) = staff().await?;
    let service = current.service();
    let deposit = service.money().deposit(&bank_id).await?.ok_or(Cause::NotFound)?;
    let application = match Reference::parse(reference.trim()) {
        Ok(reference) => service.applications().find_application(reference).await?,
        Err(_) => None,
    };
    let reference = reference.trim().to_owned();
    let step_up = missing_step_up(&current, &account).await?;
    let currency = current.site().currency.clone();
    let suggestions = if deposit.is_unmatched() && application.is_none() {
        service.money().deposit_suggestions(&deposit).await?
    } else {
        Vec::new()
    };
    let refused = application.as_ref().and_then(|found| {
        if found.account_closed {
            return Some(Refusal::AccountClosed);
        }
        is_own(&current, &account, &found.email).then_some(Refusal::OwnApplication)
    });
    Ok(AssignmentView {
        decided: decision_about(&current, &deposit).await?,
        deposit,
        reference,
        application,
        refused,
        currency,
        step_up,
        suggestions,
        done: DepositDone::load(&current, decided).await?,
    })
}

/// Returns who assigned or returned a deposit, and when.
#[cfg(feature = "ssr")]
async fn decision_about(
    current: &CurrentRequest,
    deposit: &DepositRecord,
) -> Result<Option<Decided>, Problem> {
    let action = match (deposit.assigned_to, &deposit.returned) {
        (Some(_), _) => "deposit.assign",
        (None, Some(_)) => "deposit.return",
        (None, None) => return Ok(None),
    };
    last_decision(current, action, &deposit.bank_id).await
}

/// Marks an unmatched deposit as returned to the bank.
#[server(prefix = "/fn", endpoint = "return-deposit")]
pub async fn return_deposit(
    bank_id: String,
    reason: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = staff().await?;
    let keep = |problem: Problem| problem.typed("reason", &reason);
    step_up(&current, &account, &credential).await.map_err(keep)?;
    let act = StaffAct::ReturnDeposit { bank_id: bank_id.clone(), note: reason.clone() };
    let done = current.service().support().act(account.id, act).await;
    let done = done.map_err(Problem::from).map_err(keep)?;
    open_next_case(&current, done.then_some(&bank_id)).await
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
    let act = StaffAct::AssignDeposit { bank_id: bank_id.clone(), reference };
    let done = current.service().support().act(account.id, act).await?;
    open_next_case(&current, done.then_some(&bank_id)).await
}

/// Opens the unmatched deposit that has waited longest, or the list if none waits. `decided` is the
/// bank ID of the deposit that was decided, or `None` if a second member of staff has to approve it
/// first.
#[cfg(feature = "ssr")]
async fn open_next_case(current: &CurrentRequest, decided: Option<&String>) -> Result<(), Problem> {
    let Some(decided) = decided else {
        leptos_axum::redirect(APPROVALS_PATH);
        return Ok(());
    };
    let next = Queue::Deposits.next_case(current.service()).await;
    let next = next.map_err(Problem::after_change)?;
    let mark = address("", [(DECIDED, decided.as_str())]);
    let mark = if next.contains('?') { mark.replacen('?', "&", 1) } else { mark };
    redirect_to(&format!("{next}{mark}"))
}

#[derive(Clone, Copy)]
struct Forms {
    assign: FormState,
    give_back: FormState,
}

#[component]
pub fn AssignPage() -> impl IntoView {
    let forms = Forms {
        assign: FormState::new::<AssignDeposit>("assign-alert"),
        give_back: FormState::new::<ReturnDeposit>("return-alert"),
    };
    let (bank_id, reference) = (parameter("bank_id"), parameter("reference"));
    let decided = parameter(DECIDED);
    // If somebody else was faster, the page says who.
    let is_late =
        |refusal: &Refusal| matches!(refusal, Refusal::DepositAssigned | Refusal::DepositReturned);
    let late = [forms.assign, forms.give_back].map(|form| form.refused_with(is_late));
    let data = PageData::new(move || {
        for late in late {
            // `track` wouldn't compute the memo, and it would notify nobody.
            drop(late.get());
        }
        LoadAssignment {
            bank_id: bank_id.get().unwrap_or_default(),
            reference: reference.get().unwrap_or_default(),
            decided: decided.get().unwrap_or_default(),
        }
    });
    view! { <Loaded data render=move |data| view! { <Assignment data forms/> }/> }
}

#[component]
fn Assignment(data: AssignmentView, forms: Forms) -> impl IntoView {
    let AssignmentView { deposit, reference, application, currency, step_up, .. } = data;
    let (suggestions, refused, decided) = (data.suggestions, data.refused, data.decided);
    // The confirmation of one action doesn't offer another one.
    let may_return = deposit.is_unmatched() && (application.is_none() || refused.is_some());
    let bank_id = deposit.bank_id.clone();
    let returned = deposit.returned.clone().map(|(at, note)| {
        view! {
            <Fact term="Returned to the bank (UTC)" class="figures"><DateTime at/></Fact>
            <Fact term="Reason">{note}</Fact>
        }
    });
    let suggested = suggestions.into_iter().map(|reference| suggestion(&bank_id, reference));
    let suggested = suggested.collect_view();
    let suggested = view! { <div class="buttons">{suggested}</div> };
    let receiving = application.clone().map(|application| (application, refused));
    let action =
        action((&deposit, decided), &reference, receiving, (step_up.clone(), forms.assign));
    let title = if reference.is_empty() { "Deposit" } else { "Assign a deposit" };
    view! {
        <Page title back=("/support/deposits", "Deposits")>
            <DepositNotice done=data.done is_next=true/>
            <dl class="facts">
                <Fact term="Amount" class="figures">
                    {format!("{} {currency}", deposit.amount.shown())}
                </Fact>
                <Fact term="Bank ID" class="key">{deposit.bank_id.clone()}</Fact>
                <Fact term="Reference as written">{deposit.reference.clone()}</Fact>
                {optional_fact("Payer", "", deposit.payer.clone())}
                {optional_fact("Purpose", "", deposit.purpose.clone())}
                {optional_fact("Paid on", "figures", deposit.paid_on.clone())}
                <Fact term="Received (UTC)" class="figures"><DateTime at=deposit.received_at/></Fact>
                {returned}
                {application.map(receiver)}
            </dl>
            {suggested}
            {action}
            {may_return.then(|| view! { <ReturnForm bank_id step_up form=forms.give_back/> })}
        </Page>
    }
}

/// Renders the ways to assign the deposit, or why it can't be assigned.
fn action(
    (deposit, decided): (&DepositRecord, Option<Decided>),
    typed: &str,
    receiver: Option<(ApplicationRecord, Option<Refusal>)>,
    (step_up, form): (Option<Refusal>, FormState),
) -> AnyView {
    let by = decided.as_ref().map_or_else(|| " before.".to_owned(), by);
    match (deposit.assigned_to, receiver) {
        (Some(reference), _) => view! {
            <p class="notice">
                "This deposit was credited to " {application_link(reference)} {by}
            </p>
        }
        .into_any(),
        (None, _) if deposit.returned.is_some() => {
            view! { <p class="notice">{format!("This deposit was returned to the bank{by}")}</p> }
                .into_any()
        }
        (None, None) => {
            let unknown = (!typed.is_empty()).then(|| {
                view! {
                    <p class="notice">
                        "No application has this reference. Type the 6 digits of another one."
                    </p>
                }
            });
            view! { {unknown} {assign_form(&deposit.bank_id, typed)} }.into_any()
        }
        (None, Some((_, Some(refusal)))) => {
            let alert = view! { <p class="alert" role="alert">{refusal.to_string()}</p> };
            view! { {alert} {assign_form(&deposit.bank_id, "")} }.into_any()
        }
        (None, Some((application, None))) => {
            let effect = "The amount is added to the balance at once.".to_owned();
            let confirmation =
                Confirmation { step_up, ..Confirmation::of(effect, "You can't undo this.") };
            let (bank_id, reference) = (deposit.bank_id.clone(), application.reference.to_string());
            let back = "/support/deposits".to_owned();
            view! {
                <ConfirmationForm confirmation label="Assign" danger=false back form>
                    <input type="hidden" name="bank_id" value=bank_id/>
                    <input type="hidden" name="reference" value=reference/>
                </ConfirmationForm>
            }
            .into_any()
        }
    }
}

/// Renders the button that leads to the confirmation for an application that the payer may have
/// meant.
pub fn suggestion(bank_id: &str, reference: Reference) -> impl IntoView + use<> {
    view! {
        <form class="form-inline" method="get" action=ASSIGN_PATH>
            <input type="hidden" name="bank_id" value=bank_id.to_owned()/>
            <input type="hidden" name="reference" value=reference.to_string()/>
            <button type="submit" class="button">
                {format!("Assign to {reference}")}
                {about_text(bank_id.to_owned())}
            </button>
        </form>
    }
}

/// Renders the form that asks for the reference of the application that gets a deposit, with what
/// was typed before. It leads to the page that asks for confirmation.
pub fn assign_form(bank_id: &str, typed: &str) -> impl IntoView + use<> {
    view! {
        <form class="form-inline" method="get" action=ASSIGN_PATH>
            <input type="hidden" name="bank_id" value=bank_id.to_owned()/>
            <label>
                <span class="visually-hidden">"Reference for " {bank_id.to_owned()}</span>
                <input
                    type="text"
                    name="reference"
                    value=typed.to_owned()
                    required
                    inputmode="numeric"
                    pattern="[0-9]{6}"
                    size="8"
                    placeholder="Reference"
                    autocomplete="off"
                />
            </label>
            <button type="submit" class="button">
                "Assign"
                {about_text(bank_id.to_owned())}
            </button>
        </form>
    }
}

/// The form for a payment that no application gets.
#[component]
fn ReturnForm(bank_id: String, step_up: Option<Refusal>, form: FormState) -> impl IntoView {
    let effect = "This only records it: the deposit leaves the unmatched ones.".to_owned();
    let confirmation = Confirmation { step_up, ..Confirmation::of(effect, "You can't undo this.") };
    let back = "/support/deposits".to_owned();
    view! {
        <details open=form.problem.with_untracked(Option::is_some)>
            <summary>"Return it to the bank"</summary>
            <p>"Transfer the amount back at your bank first."</p>
            <ConfirmationForm confirmation label="Mark as returned" danger=true back form>
                <input type="hidden" name="bank_id" value=bank_id/>
                <Field
                    label="Reason"
                    name="reason"
                    required=true
                    maxlength=500
                    hint="For example who asked for it. Only staff can read it. At most 500 \
                          characters."
                    form
                />
            </ConfirmationForm>
        </details>
    }
}

/// Renders the application that gets the money, and its owner.
fn receiver(application: ApplicationRecord) -> impl IntoView {
    let category = format!(" ({})", application.category);
    let status = application.status;
    view! {
        <Fact term="Account"><MarkedEmail email=application.email/></Fact>
        <Fact term="Application" class="key">
            {application_link(application.reference)} {category}
        </Fact>
        <Fact term="Status"><StateMark state=status/></Fact>
    }
}
