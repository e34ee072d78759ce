//! `/support/confirm`: the confirmation of every action of staff that affects others or can't be
//! undone.
//!
//! The page's address carries the action, its subject, and the page to return to. The form adds the
//! state that the page showed, so that an action is done only on what the person has seen.

use domain::decision::{REASON_CHARS_MAX, StaffList};
use domain::price_history::LARGE_FACTOR;
use domain::{DeskAct, PriceRequest, Reference, Refusal};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use leptos_router::hooks::use_location;
use serde::{Deserialize, Serialize};

use super::desk::is_change;
use super::links::application_path;
use super::lists::OfferedReasons;
use super::marked_email::LetterWarning;
use super::queues::Queue;
use crate::page_data::PageData;
use crate::problem::Problem;
use crate::ui::{
    Confirmation, ConfirmationForm, Field, FormState, Loaded, Notice, NoticeSlot, Page, about_text,
    address, confirmed_facts, parameter,
};
#[cfg(feature = "ssr")]
use {
    super::consequences::{
        Consequences, last_mark, parsed_batch, parsed_incident, parsed_line, parsed_number,
    },
    super::desk::APPROVALS_PATH,
    super::reset_link::keep_reset_link,
    crate::portal_request::{
        CurrentRequest, is_local, missing_step_up, redirect_to, staff, step_up,
    },
    crate::problem::Cause,
    domain::approval::StaffAct,
    domain::records::AccountRecord,
    domain::{Money, PriceChange, Timestamp},
    leptos_router::location::Url,
    service::{AccountChange, Actor, CarrierCommand},
};

/// The path of the page.
pub const CONFIRM_PATH: &str = "/support/confirm";
/// The parameters that [`DoneNotice`] reads.
const DONE: &str = "done";
const SUBJECT: &str = "subject";
const REFERENCE: &str = "of";
const NAME: &str = "name";
const ASKED: &str = "asked";
/// The maximum number of characters of a name in a notice.
pub const NAME_CHARS_MAX: usize = 200;
/// The path of the lists of applications. A slash and the reference lead to an application's page.
const APPLICATIONS_PATH: &str = "/support/applications";

/// The data of the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConfirmationView {
    act: DeskAct,
    heading: String,
    subject: String,
    confirmation: Confirmation,
    /// The email of the account that the action affects.
    email: Option<String>,
    seen: String,
    refused: Option<Refusal>,
    /// Suggested reasons.
    reasons: Vec<String>,
    /// The numbers whose new prices have to be typed again.
    repeat: Vec<String>,
}

/// Loads the confirmation of an action.
#[server(prefix = "/fn", endpoint = "confirmation", input = GetUrl)]
pub async fn load_confirmation(
    #[server(default)] act: String,
    #[server(default)] subject: String,
) -> Result<ConfirmationView, Problem> {
    let (current, account) = staff().await?;
    let act = DeskAct::parse(&act).ok_or(Cause::NotFound)?;
    let found = Consequences::of(&current, &account, act, &subject).await?;
    let may_be_shown = match act {
        DeskAct::Approve => false,
        // If it was decided meanwhile, the page says so.
        DeskAct::Accept => found.is_doubtful || found.refused.is_some(),
        _ => true,
    };
    if !may_be_shown {
        return Err(Cause::NotFound.into());
    }
    let mut confirmation = found.confirmation;
    confirmation.step_up = missing_step_up(&current, &account).await?;
    let reasons = match reasons_of(act) {
        Some(list) => current.service().applications().staff_list(list).await?,
        None => Vec::new(),
    };
    Ok(ConfirmationView {
        heading: heading(act, &found.name),
        act,
        subject,
        confirmation,
        email: found.email,
        seen: found.seen,
        refused: found.refused,
        reasons,
        repeat: found.large.into_iter().map(|(numbers, _)| numbers).collect(),
    })
}

/// Returns the heading of a confirmation. `name` is that of the subject.
#[cfg(feature = "ssr")]
fn heading(act: DeskAct, name: &str) -> String {
    let label = act.label();
    match act {
        DeskAct::PauseBatch => format!("Pause {name}"),
        DeskAct::ResumeBatch => format!("Resume {name}"),
        DeskAct::ResetFactor => format!("{label} of {name}"),
        DeskAct::MakeResetLink => format!("{label} for {name}"),
        DeskAct::MarkLine => format!("Mark {name} as done"),
        DeskAct::OpenIncident
        | DeskAct::Reload
        | DeskAct::SetBasePrices
        | DeskAct::SetPrice
        | DeskAct::RemovePrice
        | DeskAct::CancelPrice => label.to_owned(),
        _ => format!("{label} {name}"),
    }
}

/// Returns the list of reasons that the page suggests for an action.
const fn reasons_of(act: DeskAct) -> Option<StaffList> {
    match act {
        DeskAct::Suspend | DeskAct::PauseBatch => Some(StaffList::SuspendReasons),
        DeskAct::Reject => Some(StaffList::RejectReasons),
        _ => None,
    }
}

/// Does an action of staff and returns to the page `next`, which then says what was done. After a
/// decision that began on the application's own page, the next case of the same queue opens
/// instead. `seen` is the state that the confirmation showed. `repeated` has the new prices, typed
/// a second time.
#[server(prefix = "/fn", endpoint = "act")]
pub async fn act_on(
    act: String,
    subject: String,
    #[server(default)] seen: String,
    #[server(default)] reason: String,
    #[server(default)] repeated: String,
    #[server(default)] credential: String,
    #[server(default)] next: String,
) -> Result<(), Problem> {
    let keep = |problem: Problem| problem.typed("reason", &reason).typed("repeated", &repeated);
    let (current, account) = staff().await.map_err(keep)?;
    let act = DeskAct::parse(&act).ok_or(Cause::Unreadable)?;
    let found = Consequences::of(&current, &account, act, &subject).await.map_err(keep)?;
    if found.refused == Some(Refusal::AccountClosed) {
        return Err(keep(Cause::Refused(Refusal::AccountClosed).into()));
    }
    if found.is_doubtful && seen.is_empty() {
        // Its page had no warning, or the button is older than the warning.
        let parameters = [("act", act.as_str()), ("subject", &subject), ("next", &next)];
        leptos_axum::redirect(&address(CONFIRM_PATH, parameters));
        return Ok(());
    }
    if act.is_confirmed() || found.is_doubtful {
        step_up(&current, &account, &credential).await.map_err(keep)?;
        refuse(&found, &seen, &repeated).map_err(|refusal| keep(Cause::from(refusal).into()))?;
    }
    let (reference, name) = (found.reference.clone().unwrap_or_default(), found.name.clone());
    let done = perform(&current, &account, (act, &subject, &reason), found).await;
    let Some(subject) = done.map_err(keep)? else {
        leptos_axum::redirect(&format!("{APPROVALS_PATH}?{ASKED}=1"));
        return Ok(());
    };
    let is_on_its_page = next == format!("{APPLICATIONS_PATH}/{reference}");
    let next = match Queue::of(act).filter(|_| is_on_its_page) {
        Some(queue) => queue.next_case(current.service()).await.map_err(Problem::after_change)?,
        None => next,
    };
    let notice =
        [(DONE, act.as_str()), (SUBJECT, subject.as_str()), (REFERENCE, &reference), (NAME, &name)];
    redirect_to(&with_notice(&next, notice))
}

/// Refuses an action if its subject isn't as the confirmation showed it, or if large price changes
/// weren't typed again.
#[cfg(feature = "ssr")]
fn refuse(found: &Consequences, seen: &str, repeated: &str) -> Result<(), Refusal> {
    if let Some(refusal) = &found.refused {
        return Err(refusal.clone());
    }
    if found.seen != seen {
        return Err(Refusal::ChangedMeanwhile { decided: found.decided.clone() });
    }
    let typed: Vec<_> = repeated.split_whitespace().map(|text| Money::parse(text).ok()).collect();
    let new: Vec<_> = found.large.iter().map(|(_, new)| Some(*new)).collect();
    if typed != new {
        return Err(Refusal::PriceRepeatDiffers);
    }
    Ok(())
}

/// Does an action. Returns the subject for the notice, which the action that undoes it needs. The
/// subject is empty after a price change that can't be cancelled. Returns `None` if a second member
/// of staff has to approve the action first.
#[cfg(feature = "ssr")]
async fn perform(
    current: &CurrentRequest,
    account: &AccountRecord,
    (act, subject, reason): (DeskAct, &str, &str),
    found: Consequences,
) -> Result<Option<String>, Problem> {
    let (service, actor) = (current.service(), Actor::Account(account.id));
    let (applications, accounts) = (service.applications(), service.accounts());
    let email = found.email.unwrap_or_default();
    let reference = || Reference::parse(subject);
    let id = || subject.parse::<i64>().map_err(|_| Cause::NotFound);
    match act {
        DeskAct::Approve => drop(applications.approve(&actor, reference()?).await?),
        DeskAct::Suspend => drop(applications.suspend(&actor, reference()?, reason).await?),
        DeskAct::Reinstate => drop(applications.reinstate(&actor, reference()?).await?),
        DeskAct::Accept => drop(applications.accept_sender(&actor, id()?).await?),
        DeskAct::Reject => drop(applications.reject_sender(&actor, id()?, reason).await?),
        DeskAct::Disable => accounts.disable_account(&actor, &email, reason).await?,
        DeskAct::Enable => accounts.enable_account(&actor, &email).await?,
        DeskAct::SignOut => {
            accounts.change_account(&actor, &email, AccountChange::SignOut).await?;
        }
        DeskAct::Demote => accounts.change_account(&actor, &email, AccountChange::Demote).await?,
        DeskAct::PauseBatch => {
            let (reference, batch) = parsed_batch(subject).ok_or(Cause::NotFound)?;
            service.support().pause_batch(&actor, reference, batch, reason).await?;
        }
        DeskAct::ResumeBatch => {
            let (reference, batch) = parsed_batch(subject).ok_or(Cause::NotFound)?;
            service.support().resume_batch(&actor, reference, batch).await?;
        }
        DeskAct::Drain => {
            let even_the_last = found.seen.ends_with(last_mark(true));
            service.delivery().drain_carrier(&actor, subject, even_the_last).await?;
        }
        DeskAct::Resume => {
            service.delivery().resume_carrier(&actor, subject).await?;
        }
        DeskAct::Rebind => {
            let command = CarrierCommand::Rebind(subject.to_owned());
            service.delivery().give_command(&actor, command).await?;
        }
        DeskAct::OpenIncident => {
            let (carrier, text) = parsed_incident(subject).ok_or(Cause::NotFound)?;
            let note = service.delivery().open_incident(&actor, text, carrier).await?;
            return Ok(Some(note.id.to_string()));
        }
        DeskAct::EndIncident => drop(service.delivery().end_incident(&actor, id()?).await?),
        DeskAct::Reload => {
            service.delivery().give_command(&actor, CarrierCommand::Reload).await?;
        }
        DeskAct::MakeResetLink => keep_reset_link(current, &actor, &email).await?,
        DeskAct::AddNumber => {
            let (number, keyword, reference) = parsed_number(subject).ok_or(Cause::NotFound)?;
            service.support().add_inbound_number(&actor, &number, keyword, reference).await?;
        }
        DeskAct::RemoveNumber => {
            let (number, keyword, _) = parsed_number(subject).ok_or(Cause::NotFound)?;
            service.support().remove_inbound_number(&actor, &number, keyword).await?;
        }
        DeskAct::MarkLine => {
            let (statement, line) = parsed_line(subject).ok_or(Cause::NotFound)?;
            service.money().handle_bank_line(&actor, statement, line).await?;
        }
        DeskAct::Promote => {
            return act_of_two(current, account.id, StaffAct::Promote { email }, subject).await;
        }
        DeskAct::ResetFactor => {
            return act_of_two(current, account.id, StaffAct::ResetFactor { email }, subject).await;
        }
        DeskAct::SetBasePrices
        | DeskAct::SetPrice
        | DeskAct::RemovePrice
        | DeskAct::CancelPrice => {
            let (change, from) = found.price.ok_or(Cause::Unreadable)?;
            let done = set_price(current, account.id, change, from).await?;
            return Ok(done.map(|id| found.again.map_or(id, |again| again.to_string())));
        }
    }
    Ok(Some(subject.to_owned()))
}

/// Does an act that may need two members of staff. Returns the subject once it is done.
#[cfg(feature = "ssr")]
async fn act_of_two(
    current: &CurrentRequest,
    account_id: i64,
    act: StaffAct,
    subject: &str,
) -> Result<Option<String>, Problem> {
    let done = current.service().support().act(account_id, act).await?;
    Ok(done.then(|| subject.to_owned()))
}

/// Changes prices. Returns the ID of the change for the notice, or an empty text if the change
/// can't be cancelled. Returns `None` if a second member of staff has to approve it first.
#[cfg(feature = "ssr")]
async fn set_price(
    current: &CurrentRequest,
    account_id: i64,
    change: PriceChange,
    from: Option<Timestamp>,
) -> Result<Option<String>, Problem> {
    let money = current.service().money();
    let act = StaffAct::SetPrice { change: change.clone(), from };
    let done = act_of_two(current, account_id, act, "").await?;
    if done.is_none() || from.is_none() {
        return Ok(done);
    }
    let changes =
        money.price_changes().await.map_err(|error| Problem::from(error).after_change())?;
    let set = changes.iter().find(|set| set.change == change && Some(set.from) == from);
    Ok(set.map(|set| set.id.to_string()).or(done))
}

/// Whether an address is that of a page of staff.
fn is_of_staff(address: &str) -> bool {
    let rest = address.strip_prefix("/support");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
}

/// Returns the address of a page of staff with the parameters of a new notice. They replace those
/// of an earlier notice.
#[cfg(feature = "ssr")]
fn with_notice(next: &str, notice: [(&str, &str); 4]) -> String {
    let next = if is_local(next) && is_of_staff(next) { next } else { "/support" };
    let (path, query) = next.split_once('?').unwrap_or((next, ""));
    let query = query.split('#').next().unwrap_or_default();
    let kept = query.split('&').filter_map(|pair| pair.split_once('='));
    let kept: Vec<_> = kept
        .filter(|(name, _)| notice.iter().all(|(of_notice, _)| name != of_notice))
        .map(|(name, text)| (name, Url::unescape(text)))
        .collect();
    let kept = kept.iter().map(|(name, text)| (*name, text.as_str()));
    address(path, kept.chain(notice))
}

#[component]
pub fn ConfirmActPage() -> impl IntoView {
    let form = FormState::new::<ActOn>("act-alert");
    let (act, subject) = (parameter("act"), parameter("subject"));
    // If the subject has changed meanwhile, the page shows it as it is now.
    let changed = form.refused_with(is_change);
    let data = PageData::new(move || {
        // `track` wouldn't compute the memo, and a memo that isn't computed notifies nobody.
        drop(changed.get());
        LoadConfirmation {
            act: act.get().unwrap_or_default(),
            subject: subject.get().unwrap_or_default(),
        }
    });
    let next = parameter("next");
    let render = move |data| {
        let next = next.get_untracked().filter(|next| is_of_staff(next));
        view! { <Contents data next=next.unwrap_or_else(|| "/support".to_owned()) form/> }
    };
    view! { <Loaded data render/> }
}

#[component]
fn Contents(data: ConfirmationView, next: String, form: FormState) -> impl IntoView {
    let ConfirmationView { act, heading, subject, confirmation, email, seen, refused, .. } = data;
    let (reasons, repeat) = (data.reasons, data.repeat);
    let warning = email.map(|email| view! { <LetterWarning email/> });
    let contents = if let Some(refusal) = refused {
        view! {
            <p class="alert" role="alert">{refusal.to_string()}</p>
            {confirmed_facts(confirmation.facts)}
            <p><a class="button" href=next>"Back"</a></p>
        }
        .into_any()
    } else {
        let back = next.clone();
        view! {
            <ConfirmationForm confirmation label=act.label() danger=act.takes_away() back form>
                <input type="hidden" name="act" value=act.as_str()/>
                <input type="hidden" name="subject" value=subject/>
                <input type="hidden" name="seen" value=seen/>
                <input type="hidden" name="next" value=next/>
                {act.needs_reason().then(|| view! { <Reason act reasons form/> })}
                {(!repeat.is_empty()).then(|| view! { <RepeatedPrice numbers=repeat form/> })}
            </ConfirmationForm>
        }
        .into_any()
    };
    view! {
        <Page title=heading focused=true>
            {warning}
            {contents}
        </Page>
    }
}

#[component]
fn Reason(act: DeskAct, reasons: Vec<String>, form: FormState) -> impl IntoView {
    let list = reasons_of(act);
    let reader = match list {
        Some(_) => "The customer reads it.",
        None => "Only staff can read it.",
    };
    let hint = format!("{reader} At most {REASON_CHARS_MAX} characters.");
    view! {
        {list.map(|list| view! { <OfferedReasons list reasons/> })}
        <Field
            label="Reason"
            name="reason"
            hint=hint
            required=true
            maxlength=500
            list=list.map(StaffList::as_str)
            form
        />
    }
}

#[component]
fn RepeatedPrice(numbers: Vec<String>, form: FormState) -> impl IntoView {
    let what = match &numbers[..] {
        [] | [_] => "Type the new price again.",
        _ => "Type both new prices again, the local one first, with a space between them.",
    };
    let hint = format!(
        "This changes the price of {} by more than a factor of {LARGE_FACTOR}. {what}",
        numbers.join(" and of ")
    );
    view! {
        <Field
            label="New price again"
            name="repeated"
            hint=hint
            required=true
            form
        />
    }
}

/// Renders the button that opens the confirmation of an action. `about` tells the rows of a table
/// apart. `next` is the page to return to.
pub fn confirm_button(
    act: DeskAct,
    about: &str,
    subject: String,
    next: String,
) -> impl IntoView + use<> {
    let class = if act.takes_away() { "button button-danger" } else { "button" };
    let about = about.to_owned();
    view! {
        <form class="form-inline" method="get" action=CONFIRM_PATH>
            <input type="hidden" name="act" value=act.as_str()/>
            <input type="hidden" name="subject" value=subject/>
            <input type="hidden" name="next" value=next/>
            <button type="submit" class=class>
                {act.label()}
                {about_text(about)}
            </button>
        </form>
    }
}

/// Says what a member of staff has just done, with a link to it and one that undoes it. Reads the
/// page's address.
#[component]
pub fn DoneNotice() -> impl IntoView {
    let parameters = [DONE, SUBJECT, REFERENCE, NAME, ASKED].map(parameter);
    let path = use_location().pathname;
    let notice = Signal::derive(move || {
        let [done, subject, reference, name, asked] = parameters.map(|it| it.get());
        if asked.is_some() {
            return Some(Notice::of("Your request waits for another member of staff."));
        }
        let act = DeskAct::parse(&done?)?;
        let name = name.unwrap_or_default().chars().take(NAME_CHARS_MAX).collect::<String>();
        let subject = subject.unwrap_or_default();
        Some(notice_of(act, (&subject, &name), reference, &path.get()))
    });
    view! { <NoticeSlot notice parameters=vec![DONE, SUBJECT, REFERENCE, NAME, ASKED]/> }
}

fn notice_of(
    act: DeskAct,
    (subject, name): (&str, &str),
    reference: Option<String>,
    path: &str,
) -> Notice {
    let application = reference.and_then(|reference| Reference::parse(&reference).ok());
    // After a decision, the page may be that of the next case.
    let shown = path.strip_prefix(APPLICATIONS_PATH).and_then(|rest| rest.strip_prefix('/'));
    let is_next = Queue::of(act).is_some()
        && application.zip(shown).is_some_and(|(decided, shown)| decided.to_string() != shown);
    let of_application = application.map(|reference| {
        let before = if is_next { "Back to" } else { "Application" };
        (application_path(reference), format!("{before} {reference}"))
    });
    let of_account = act
        .is_on_account()
        .then(|| (format!("/support/accounts/{subject}"), "Open the account".to_owned()));
    // A cancelled price change is undone by setting the same price again.
    let reverse = match act {
        DeskAct::CancelPrice => {
            PriceRequest::parse(subject).map(|request| DeskAct::of_price(&request.change))
        }
        _ => act.reverse(),
    };
    let undo = reverse.filter(|_| !subject.is_empty()).map(|reverse| {
        let parameters = [("act", reverse.as_str()), ("subject", subject), ("next", path)];
        (address(CONFIRM_PATH, parameters), "Undo".to_owned())
    });
    // The page itself needs no link.
    let of_subject = of_application.into_iter().chain(of_account);
    let of_subject = of_subject.filter(|(href, _)| href != path);
    let mut sentence = act.done(name);
    if is_next {
        sentence.push_str(" Below is the next request, which has waited longest.");
    }
    Notice { sentence: sentence.into(), links: of_subject.chain(undo).collect() }
}
