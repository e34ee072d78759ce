//! The texts that staff read before they confirm an action: the subject, the consequences, and
//! whether the action can be undone.

use domain::application::StatusAction;
use domain::decision::Decided;
use domain::incident::parse_incident;
use domain::records::{
    AccountRecord, ApplicationRecord, BatchStatus, CarrierRecord, SenderCase, SenderRequestRecord,
};
use domain::support::AccountFile;
use domain::{
    ApplicationStatus, BatchId, DeskAct, Keyword, Kind, Money, Number, PriceChange, PriceRequest,
    PriceStep, Reference, Refusal, SenderStatus, Timestamp,
};
use service::AuditFilter;

use super::desk::{decided, is_own};
use crate::applications::sender_for_staff;
use crate::portal_request::CurrentRequest;
use crate::problem::{Cause, Problem};
use crate::reports::grouped;
use crate::ui::Confirmation;

/// The actions of the audit log that may change what an open confirmation shows.
const CHANGES: [&str; 18] = [
    "application.approve",
    "application.suspend",
    "application.reinstate",
    "sender.accept",
    "sender.reject",
    "account.disable",
    "account.enable",
    "account.promote",
    "account.demote",
    "account.reset_factor",
    "account.close",
    "number.add",
    "number.remove",
    "batch.pause",
    "batch.resume",
    "carrier.drain",
    "carrier.resume",
    "price.set",
];
/// How many entries of the audit log are searched for such a change.
const ENTRIES: i64 = 50;
const CANT_UNDO: &str = "You can't undo this.";
const MAILED: &str = "The owner gets a mail about this.";
const REASON_MAILED: &str = "The owner reads your reason in the portal and in a mail.";
const NOT_MAILED: &str = "The owner gets no mail about this.";

/// An action and its consequences for a subject in its current state.
#[derive(Default)]
pub struct Consequences {
    /// The subject's name, for the heading and the notice: "the sender name acme". Empty if the
    /// action is on no particular subject.
    pub name: String,
    pub confirmation: Confirmation,
    /// The email of the account that the action affects.
    pub email: Option<String>,
    /// The reference of the application that the action affects.
    pub reference: Option<String>,
    /// The state that the action changes. The form sends it back. If the state has changed since
    /// the page was opened, the action is refused.
    pub seen: String,
    /// Whether the action needs a confirmation in this case, although it normally takes one click.
    pub is_doubtful: bool,
    /// Why the action isn't possible now.
    pub refused: Option<Refusal>,
    /// The last change of the state in `seen`.
    pub decided: Option<Decided>,
    /// The price change, and the time from which it is in force. `None` for the time means at once.
    pub price: Option<(PriceChange, Option<Timestamp>)>,
    /// The new prices that differ by such a large factor that staff have to type them again, each
    /// with its numbers.
    pub large: Vec<(String, Money)>,
    /// The change that undoes the action, if it cancels a price change.
    pub again: Option<PriceRequest>,
}

impl Consequences {
    /// Returns the consequences of an action by `reader` now.
    ///
    /// # Errors
    /// `Cause::NotFound` if there is no such subject.
    pub async fn of(
        current: &CurrentRequest,
        reader: &AccountRecord,
        act: DeskAct,
        subject: &str,
    ) -> Result<Self, Problem> {
        let mut found = match act {
            DeskAct::Approve | DeskAct::Suspend | DeskAct::Reinstate => {
                of_application(current, reader, act, subject).await
            }
            DeskAct::Accept | DeskAct::Reject => {
                of_sender_name(current, reader, act, subject).await
            }
            DeskAct::Disable
            | DeskAct::Enable
            | DeskAct::SignOut
            | DeskAct::Promote
            | DeskAct::Demote
            | DeskAct::ResetFactor
            | DeskAct::MakeResetLink => of_account(current, reader, act, subject).await,
            DeskAct::AddNumber | DeskAct::RemoveNumber => of_number(current, act, subject).await,
            DeskAct::PauseBatch | DeskAct::ResumeBatch => {
                of_batch(current, reader, act, subject).await
            }
            DeskAct::Drain | DeskAct::Resume | DeskAct::Rebind => {
                of_carrier(current, act, subject).await
            }
            DeskAct::OpenIncident => of_new_incident(current, subject).await,
            DeskAct::EndIncident => of_open_incident(current, subject).await,
            DeskAct::Reload => of_reload(current, subject).await,
            DeskAct::SetBasePrices
            | DeskAct::SetPrice
            | DeskAct::RemovePrice
            | DeskAct::CancelPrice => of_price(current, act, subject).await,
            DeskAct::MarkLine => of_bank_line(current, subject).await,
        }?;
        let four_eyes =
            matches!(act, DeskAct::Promote | DeskAct::ResetFactor) || found.price.is_some();
        if four_eyes && current.service().limits().four_eyes {
            let effect = "Nothing happens until another member of staff has approved this.";
            found.confirmation.effects.insert(0, effect.to_owned());
        }
        if !current.service().operations().sends_mail() {
            without_mail(&mut found.confirmation.effects);
        }
        Ok(found)
    }
}

/// Replaces the effects that are mails, where no mail server is set up.
fn without_mail(effects: &mut [String]) {
    for effect in effects {
        let replaced = match effect.as_str() {
            MAILED => {
                "The owner gets no mail, because no mail server is set up. Tell the owner yourself."
            }
            REASON_MAILED => {
                "The owner reads your reason in the portal. The owner gets no mail, because no \
                 mail server is set up."
            }
            _ => continue,
        };
        replaced.clone_into(effect);
    }
}

/// Returns the newest change that a confirmation about this subject shows, among the subject's last
/// audit entries.
async fn last_change(current: &CurrentRequest, subject: &str) -> Result<Option<Decided>, Problem> {
    let subject = Some(subject.to_owned());
    let filter = AuditFilter { subject, limit: ENTRIES, ..AuditFilter::default() };
    let entries = current.service().support().audit(&filter).await?.items;
    let change = entries.into_iter().find(|entry| CHANGES.contains(&entry.action.as_str()));
    Ok(change.map(decided))
}

fn fact(term: &str, text: impl Into<String>) -> (String, String) {
    (term.to_owned(), text.into())
}

fn sentences<const N: usize>(sentences: [&str; N]) -> Vec<String> {
    sentences.map(str::to_owned).to_vec()
}

fn confirmation(
    facts: Vec<(String, String)>,
    effects: Vec<String>,
    undo: impl Into<String>,
) -> Confirmation {
    Confirmation { facts, effects, undo: undo.into(), step_up: None }
}

/// Returns the account, the application and its balance as facts.
fn facts_of(application: &ApplicationRecord, currency: &str) -> Vec<(String, String)> {
    let ApplicationRecord { reference, category, status, balance, .. } = application;
    vec![
        fact("Account", application.email.clone()),
        fact("Application", format!("{reference} ({category})")),
        fact("Name", application.display_name()),
        fact("Sender name", sender_for_staff(application)),
        fact("Status", status.as_str()),
        fact("Balance", format!("{} {currency}", balance.shown())),
    ]
}

async fn of_application(
    current: &CurrentRequest,
    reader: &AccountRecord,
    act: DeskAct,
    subject: &str,
) -> Result<Consequences, Problem> {
    let reference = Reference::parse(subject)?;
    let found = current.service().applications().find_application(reference).await?;
    let application = found.ok_or(Cause::NotFound)?;
    let (action, effects, undo) = match act {
        DeskAct::Suspend => (
            StatusAction::Suspend,
            sentences([
                "From now on, sends with the application's keys are refused with the code 503.",
                "The application's queued messages wait. They expire when their validity ends, \
                 usually 48 hours after they were accepted.",
                REASON_MAILED,
            ]),
            "You can undo this: reinstate the application. Messages that expire meanwhile stay \
             expired.",
        ),
        DeskAct::Reinstate => (
            StatusAction::Reinstate,
            sentences([
                "The application gets back the status that it had before it was suspended.",
                "Its test key works again. If the status was Active, its API key works, too, and \
                 queued messages are sent.",
                MAILED,
            ]),
            "You can undo this: suspend the application again. Messages that are sent meanwhile \
             stay sent.",
        ),
        _ => (StatusAction::Approve, Vec::new(), ""),
    };
    let decided = last_change(current, subject).await?;
    let status = application.status;
    let is_possible = status.after(action, ApplicationStatus::Pending).is_some();
    let conflict = Refusal::StatusConflict { status, action, decided: decided.clone() };
    let refused = if application.account_closed {
        Some(Refusal::AccountClosed)
    } else if act != DeskAct::Suspend && is_own(current, reader, &application.email) {
        Some(Refusal::OwnApplication)
    } else {
        (!is_possible).then_some(conflict)
    };
    Ok(Consequences {
        confirmation: confirmation(facts_of(&application, &current.site().currency), effects, undo),
        name: format!("application {reference}"),
        email: Some(application.email),
        reference: Some(reference.to_string()),
        seen: status.as_str().to_owned(),
        refused,
        decided,
        ..Consequences::default()
    })
}

async fn of_sender_name(
    current: &CurrentRequest,
    reader: &AccountRecord,
    act: DeskAct,
    subject: &str,
) -> Result<Consequences, Problem> {
    let applications = current.service().applications();
    let id = subject.parse::<i64>().map_err(|_| Cause::NotFound)?;
    let request = match applications.sender_request(id).await {
        Err(error) if error.refusal() == Some(&Refusal::NoSuchSenderRequest) => {
            return Err(Cause::NotFound.into());
        }
        request => request?,
    };
    let found = applications.find_application(request.reference).await?;
    let application = found.ok_or(Cause::NotFound)?;
    let case = if act == DeskAct::Accept { applications.sender_case(id).await? } else { None };
    let warnings = case.as_ref().map(SenderCase::warnings).unwrap_or_default();
    let reference = request.reference.to_string();
    let decided = last_change(current, &reference).await?;
    let status = request.status;
    let refused = if status == SenderStatus::Pending {
        let is_own = act == DeskAct::Accept && is_own(current, reader, &application.email);
        is_own.then_some(Refusal::OwnApplication)
    } else {
        Some(Refusal::SenderDecided { status, decided: decided.clone() })
    };
    Ok(Consequences {
        seen: format!("{status} {}", warnings.join(" ")).trim_end().to_owned(),
        is_doubtful: !warnings.is_empty(),
        confirmation: name_confirmation(current, act, (&application, &request), warnings),
        name: format!("the sender name {}", request.name),
        email: Some(application.email),
        reference: Some(reference),
        refused,
        decided,
        ..Consequences::default()
    })
}

/// Returns the confirmation of a decision about a sender name.
fn name_confirmation(
    current: &CurrentRequest,
    act: DeskAct,
    (application, request): (&ApplicationRecord, &SenderRequestRecord),
    warnings: Vec<String>,
) -> Confirmation {
    let mut facts = facts_of(application, &current.site().currency);
    facts.insert(0, fact("Requested name", request.name.clone()));
    let (effects, undo) = if act == DeskAct::Accept {
        facts.extend(warnings.into_iter().map(|warning| fact("Warning", warning)));
        let effects = sentences([
            "Recipients see this name as the sender of the application's messages from now on.",
            "The name belongs to the account. No other account can get it.",
            MAILED,
        ]);
        let undo =
            "You can't take back an accepted name. If it is misused, suspend the application.";
        (effects, undo.to_owned())
    } else {
        let effects = sentences([
            REASON_MAILED,
            "A name that was accepted earlier stays in use.",
            "An application that was created with this name can't send until another name is \
             accepted or the request is withdrawn.",
        ]);
        (effects, format!("{CANT_UNDO} The owner can request the name again."))
    };
    confirmation(facts, effects, undo)
}

async fn of_account(
    current: &CurrentRequest,
    reader: &AccountRecord,
    act: DeskAct,
    subject: &str,
) -> Result<Consequences, Problem> {
    let id = subject.parse::<i64>().map_err(|_| Cause::NotFound)?;
    let file = match current.service().support().account_file(id).await {
        Err(error) if error.refusal() == Some(&Refusal::NoSuchAccount) => {
            return Err(Cause::NotFound.into());
        }
        file => file?,
    };
    let (effects, undo) = of_account_act(act, file.devices);
    let email = file.account.email.clone();
    let state = match (file.account.closed, file.disabled_at.is_some()) {
        (true, _) => "closed",
        (false, true) => "disabled",
        (false, false) => "enabled",
    };
    let role = if file.account.staff { "staff" } else { "customer" };
    let factor = if file.account.second_factor { "yes" } else { "no" };
    let mut facts = vec![
        fact("Account", email.clone()),
        fact("State", state),
        fact("Role", role),
        fact("Second factor", factor),
    ];
    let currency = &current.site().currency;
    for ApplicationRecord { reference, category, status, balance, .. } in &file.applications {
        let balance = balance.shown();
        let text = format!("{reference} ({category}), {status}, {balance} {currency}");
        facts.push(fact("Application", text));
    }
    let decided = last_change(current, &email).await?;
    let refused = if id == reader.id {
        Some(Refusal::OwnAccount)
    } else {
        refused_account_act(act, &file, decided.as_ref())
    };
    Ok(Consequences {
        confirmation: confirmation(facts, effects, undo),
        name: format!("account {email}"),
        email: Some(email),
        seen: format!("{state} {role} {factor}"),
        refused,
        decided,
        ..Consequences::default()
    })
}

/// Returns the consequences of an action on an account, and whether it can be undone.
fn of_account_act(act: DeskAct, devices: usize) -> (Vec<String>, String) {
    let (effects, undo) = match act {
        DeskAct::Disable => (
            sentences([
                "Nobody can sign in to the account, and all its devices are signed out.",
                "The keys of the account's applications are refused with the code 503.",
                "Queued messages wait. They expire when their validity ends, usually 48 hours \
                 after they were accepted.",
                NOT_MAILED,
            ]),
            "You can undo this: enable the account. Messages that expire meanwhile stay expired.",
        ),
        DeskAct::Enable => (
            sentences([
                "The owner can sign in again.",
                "The keys of the account's applications work again, and queued messages are sent, \
                 except for suspended applications.",
                NOT_MAILED,
            ]),
            "You can undo this: disable the account.",
        ),
        DeskAct::Promote => (
            sentences([
                "The person can see and change all accounts, applications, deposits and prices.",
                "Their devices are signed out. They need their second factor to sign in again.",
                MAILED,
            ]),
            "You can undo this: demote the account. That doesn't reverse what the person has \
             changed.",
        ),
        DeskAct::Demote => (
            sentences([
                "The person can no longer open the pages of staff, and their devices are signed \
                 out.",
                MAILED,
            ]),
            "You can undo this: promote the account.",
        ),
        DeskAct::ResetFactor => (
            sentences([
                "The account's authenticator app, recovery codes and passkeys no longer work, and \
                 its devices are signed out.",
                "Only the password protects the account then, until its owner sets up a new \
                 second factor. An owner who is staff must do so at the next sign-in.",
                MAILED,
            ]),
            "You can't undo this. The owner can set up a new second factor.",
        ),
        DeskAct::MakeResetLink => (
            sentences([
                "The link works once, for 1 hour. Anybody who has it can set a new password. \
                 First check that the person you are talking to owns the account.",
                "Earlier reset links of the account no longer work.",
                "If the account has a second factor, the person still needs it. If the person has \
                 lost it, reset the second factor, too.",
                "The account's devices stay signed in until the link is used.",
                NOT_MAILED,
            ]),
            "You can't withdraw the link, but it stops working when you make another one.",
        ),
        _ => (
            vec![
                format!("All signed-in devices ({devices}) are signed out."),
                "The keys of the account's applications continue to work.".to_owned(),
                NOT_MAILED.to_owned(),
            ],
            "You can't undo this. The owner can sign in again.",
        ),
    };
    (effects, undo.to_owned())
}

fn refused_account_act(
    act: DeskAct,
    file: &AccountFile,
    decided: Option<&Decided>,
) -> Option<Refusal> {
    let (account, disabled) = (&file.account, file.disabled_at.is_some());
    let is_done = match act {
        DeskAct::Enable | DeskAct::Promote | DeskAct::MakeResetLink if account.closed => {
            return Some(Refusal::AccountClosed);
        }
        DeskAct::Promote if !account.staff && !account.second_factor => {
            return Some(Refusal::FactorBeforeStaff);
        }
        DeskAct::Disable => disabled,
        DeskAct::Enable => !disabled,
        DeskAct::Promote => account.staff,
        DeskAct::Demote => !account.staff,
        DeskAct::ResetFactor => !account.second_factor,
        _ => false,
    };
    is_done.then(|| Refusal::NothingToDo { decided: decided.cloned() })
}

async fn of_number(
    current: &CurrentRequest,
    act: DeskAct,
    subject: &str,
) -> Result<Consequences, Problem> {
    let (_, keyword, reference) = parsed_number(subject).ok_or(Cause::NotFound)?;
    // The number and its keyword, as the list of numbers and the audit log write them.
    let (written, _) = subject.rsplit_once(' ').unwrap_or_default();
    let digits = written.split(' ').next().unwrap_or_default();
    let application = current.service().applications().find_application(reference).await?;
    let application = application.ok_or(Cause::NotFound)?;
    let numbers = current.service().support().inbound_numbers().await?;
    let has = numbers
        .into_iter()
        .any(|one| one.number == digits && one.keyword == keyword && one.reference == reference);
    let decided = last_change(current, written).await?;
    let messages = keyword.as_ref().map_or_else(
        || "messages to this number".to_owned(),
        |word| format!("messages to this number that begin with {word}"),
    );
    let (effects, undo) = if act == DeskAct::RemoveNumber {
        (
            vec![
                format!(
                    "The application gets no more {messages}. It keeps the messages that it has \
                     already received."
                ),
                "Messages that no application gets are listed under Unassigned messages."
                    .to_owned(),
            ],
            "You can undo this: add the number again, and assign the messages that came meanwhile.",
        )
    } else {
        (
            vec![format!("From now on, the application gets {messages}.")],
            "You can undo this: remove the number.",
        )
    };
    let mut facts = facts_of(&application, &current.site().currency);
    facts.insert(0, fact("Keyword", keyword.map_or("none".to_owned(), |word| word.to_string())));
    facts.insert(0, fact("Number", digits));
    let is_done = has == (act == DeskAct::AddNumber);
    Ok(Consequences {
        name: format!("number {written}"),
        confirmation: confirmation(facts, effects, undo),
        email: Some(application.email),
        reference: Some(reference.to_string()),
        seen: if has { "assigned" } else { "not assigned" }.to_owned(),
        refused: is_done.then(|| Refusal::NothingToDo { decided: decided.clone() }),
        decided,
        ..Consequences::default()
    })
}

/// Parses the subject of an action on a number for inbound messages.
pub fn parsed_number(subject: &str) -> Option<(Number, Option<Keyword>, Reference)> {
    let parts: Vec<_> = subject.split(' ').collect();
    let (digits, keyword, reference) = match parts[..] {
        [digits, reference] => (digits, None, reference),
        [digits, keyword, reference] => (digits, Some(keyword), reference),
        _ => return None,
    };
    // The digits have their country code already, so they mustn't be read as a local number.
    let number = Number::parse_typed(&format!("+{digits}")).ok()?;
    let keyword = keyword.map(Keyword::parse).transpose().ok()?;
    Some((number, keyword, Reference::parse(reference).ok()?))
}

async fn of_batch(
    current: &CurrentRequest,
    reader: &AccountRecord,
    act: DeskAct,
    subject: &str,
) -> Result<Consequences, Problem> {
    let (reference, id) = parsed_batch(subject).ok_or(Cause::NotFound)?;
    let service = current.service();
    let application = service.applications().find_application(reference).await?;
    let application = application.ok_or(Cause::NotFound)?;
    let owner =
        service.accounts().find_account(&application.email).await?.ok_or(Cause::NotFound)?;
    let found = service.messages().account_batch(owner.id, id).await?;
    let (_, batch) = found.filter(|(of, _)| *of == reference).ok_or(Cause::NotFound)?;
    let (effects, undo) = if act == DeskAct::PauseBatch {
        (
            sentences([
                "The messages of the batch wait, except for those that a carrier already has. A \
                 waiting message expires when its validity ends, usually after 48 hours.",
                REASON_MAILED,
            ]),
            "You can undo this: resume the batch. Messages that expire meanwhile stay expired.",
        )
    } else {
        (
            sentences([
                "The waiting messages of the batch are sent, unless the owner has paused it, too.",
                MAILED,
            ]),
            "You can undo this: pause the batch again. Messages that are sent meanwhile stay sent.",
        )
    };
    let mut facts = facts_of(&application, &current.site().currency);
    facts.insert(0, fact("Rows", grouped(batch.rows)));
    facts.insert(0, fact("Batch", format!("{id}, {}", batch.status.as_str())));
    let decided = last_change(current, &id.to_string()).await?;
    let is_over = matches!(batch.status, BatchStatus::Done | BatchStatus::Cancelled);
    let is_done = batch.pause_reason.is_some() == (act == DeskAct::PauseBatch);
    let refused = if act == DeskAct::ResumeBatch && is_own(current, reader, &application.email) {
        Some(Refusal::OwnApplication)
    } else if is_over {
        Some(Refusal::BatchEnded)
    } else {
        is_done.then(|| Refusal::NothingToDo { decided: decided.clone() })
    };
    Ok(Consequences {
        name: format!("batch {id}"),
        confirmation: confirmation(facts, effects, undo),
        email: Some(application.email),
        reference: Some(reference.to_string()),
        seen: if batch.pause_reason.is_some() { "paused" } else { "not paused" }.to_owned(),
        refused,
        decided,
        ..Consequences::default()
    })
}

/// Parses the subject of an action on a batch.
pub fn parsed_batch(subject: &str) -> Option<(Reference, BatchId)> {
    let (reference, id) = subject.split_once(' ')?;
    Some((Reference::parse(reference).ok()?, BatchId::parse(id)?))
}

async fn of_carrier(
    current: &CurrentRequest,
    act: DeskAct,
    subject: &str,
) -> Result<Consequences, Problem> {
    let delivery = current.service().delivery();
    let carriers = delivery.carriers().await?;
    let found = carriers.into_iter().find(|carrier| carrier.name == subject);
    let CarrierRecord { name, state, waiting, drained_at, held_since, binds, .. } =
        found.ok_or(Cause::NotFound)?;
    if act == DeskAct::Rebind && binds != Some(true) {
        return Err(Cause::NotFound.into());
    }
    let is_last = act == DeskAct::Drain && delivery.is_last_carrier(&name).await?;
    let (effects, undo) = match act {
        DeskAct::Drain => {
            let waiting = if is_last {
                "No other carrier takes messages now. All messages wait until a carrier can take \
                 them. They expire when their validity ends, usually after 48 hours."
            } else {
                "Waiting messages take another route if there is one."
            };
            let stops = "We submit no more messages to the carrier. It still delivers the messages \
                 that it has.";
            (sentences([stops, waiting]), "You can undo this: resume the carrier.")
        }
        DeskAct::Rebind => (
            sentences([
                "Every running process waits for the answers to submitted messages. Then it closes \
                 its connections to the carrier and opens them again.",
                "Meanwhile, new messages take another route or wait.",
            ]),
            "There is nothing to undo.",
        ),
        _ => {
            let again = if held_since.is_some() {
                "All messages are held, because a backup was restored. When the hold ends, we \
                 submit messages to the carrier again."
            } else {
                "We submit messages to the carrier again."
            };
            (sentences([again]), "You can undo this: drain the carrier.")
        }
    };
    let decided = last_change(current, &name).await?;
    let facts = vec![
        fact("Carrier", name),
        fact("State", state.as_str()),
        fact("Waiting messages", waiting.to_string()),
    ];
    let is_done = match act {
        DeskAct::Drain => drained_at.is_some(),
        DeskAct::Resume => drained_at.is_none(),
        _ => false,
    };
    Ok(Consequences {
        confirmation: confirmation(facts, effects, undo),
        name: format!("carrier {subject}"),
        seen: format!("{}{}", drained_at.map_or("in use", |_| "drained"), last_mark(is_last)),
        refused: is_done.then(|| Refusal::NothingToDo { decided: decided.clone() }),
        decided,
        ..Consequences::default()
    })
}

async fn of_reload(current: &CurrentRequest, subject: &str) -> Result<Consequences, Problem> {
    if !subject.is_empty() {
        return Err(Cause::NotFound.into());
    }
    let delivery = current.service().delivery();
    let carriers = delivery.carriers().await?.into_iter();
    let names: Vec<_> = carriers.map(|carrier| carrier.name).collect();
    let refused = delivery.refused_reloads().await?.into_iter();
    let refused = refused.map(|last| fact("Refused last time", last.error));
    let facts = std::iter::once(fact("Carriers now", names.join(", "))).chain(refused).collect();
    let effects = sentences([
        "Every running process reads carriers and routes from the settings file again.",
        "Heliograph connects again to each carrier whose settings have changed. The others keep their \
         connections.",
        "If the file has an error, nothing changes, and the page \"Carriers\" says why.",
    ]);
    let undo = "To undo this, the operator restores the file, and you reload it again.";
    let confirmation = confirmation(facts, effects, undo);
    Ok(Consequences { confirmation, ..Consequences::default() })
}

/// Returns the text to append to a carrier's state if no other carrier is usable.
pub const fn last_mark(is_last: bool) -> &'static str {
    if is_last { ", the last one" } else { "" }
}

/// Returns the carrier and the text of a note, from the subject of the action that opens it.
pub fn parsed_incident(subject: &str) -> Option<(Option<&str>, &str)> {
    let (carrier, text) = subject.split_once(' ')?;
    Some((Some(carrier).filter(|name| !name.is_empty()), text))
}

/// Returns the consequences of opening a note.
async fn of_new_incident(current: &CurrentRequest, subject: &str) -> Result<Consequences, Problem> {
    let (carrier, text) = parsed_incident(subject).ok_or(Cause::NotFound)?;
    let text = &parse_incident(text).map_err(|error| Cause::from(Refusal::from(error)))?;
    let open = current.service().delivery().incidents().await?;
    let is_open = open.iter().any(|note| note.text == *text && note.carrier.as_deref() == carrier);
    let name = format!("the note “{text}”");
    let effects = sentences([
        "Every customer sees this note on the pages of applications and reports, with the time.",
        "It stays there until staff end it.",
    ]);
    let facts = facts_of_incident(text, carrier);
    let confirmation = confirmation(facts, effects, "You can undo this: end the note.");
    let refused = is_open.then_some(Refusal::NothingToDo { decided: None });
    Ok(Consequences { name, confirmation, refused, ..Consequences::default() })
}

/// Returns the consequences of ending a note.
async fn of_open_incident(
    current: &CurrentRequest,
    subject: &str,
) -> Result<Consequences, Problem> {
    let id: i64 = subject.parse().map_err(|_| Cause::NotFound)?;
    let open = current.service().delivery().incidents().await?;
    let name = format!("note {id}");
    let Some(note) = open.into_iter().find(|note| note.id == id) else {
        let refused = Some(Refusal::NothingToDo { decided: None });
        return Ok(Consequences { name, refused, ..Consequences::default() });
    };
    let facts = facts_of_incident(&note.text, note.carrier.as_deref());
    let effects = sentences(["Customers no longer see this note."]);
    let confirmation = confirmation(facts, effects, CANT_UNDO);
    Ok(Consequences { name, confirmation, ..Consequences::default() })
}

fn facts_of_incident(text: &str, carrier: Option<&str>) -> Vec<(String, String)> {
    vec![fact("Note", text), fact("Carrier (only for staff)", carrier.unwrap_or("none"))]
}

async fn of_bank_line(current: &CurrentRequest, subject: &str) -> Result<Consequences, Problem> {
    let (statement, number) = parsed_line(subject).ok_or(Cause::NotFound)?;
    let name = format!("line {number} of statement {statement}");
    let found = current.service().money().open_bank_line(statement, number).await?;
    let Some(open) = found else {
        let decided = marked(current, statement, number).await?.ok_or(Cause::NotFound)?;
        let refused = Some(Refusal::NothingToDo { decided: Some(decided) });
        return Ok(Consequences { name, refused, ..Consequences::default() });
    };
    let stored = open.stored_deposit();
    let line = open.line;
    let currency = line.currency.as_deref().unwrap_or(&current.site().currency);
    let amount = format!("{} {currency}", line.amount.shown());
    let mut facts = vec![
        fact("Bank ID", line.bank_id),
        fact("Reference as written", line.reference),
        fact("Amount", amount),
        fact("Outcome", line.outcome.label()),
    ];
    let more = [
        ("Payer", line.payer),
        ("Purpose", line.purpose),
        ("Paid on", line.paid_on),
        ("Stored deposit", stored),
    ];
    facts.extend(more.into_iter().filter_map(|(term, text)| Some(fact(term, text?))));
    let effects = sentences([
        "The line is no longer pending work. The statement still shows it.",
        "No money is credited or moved. First check that the payment was credited to the right \
         application, or returned.",
    ]);
    Ok(Consequences {
        name,
        confirmation: confirmation(facts, effects, CANT_UNDO),
        seen: "open".to_owned(),
        ..Consequences::default()
    })
}

/// Returns who marked a line of a bank statement as done, and when.
async fn marked(
    current: &CurrentRequest,
    statement: i64,
    line: i64,
) -> Result<Option<Decided>, Problem> {
    let filter = AuditFilter {
        subject: Some(statement.to_string()),
        action: Some("statement.line".to_owned()),
        limit: 1000,
        ..AuditFilter::default()
    };
    let detail = format!("line {line}");
    let entries = current.service().support().audit(&filter).await?.items;
    let entry = entries.into_iter().find(|entry| entry.detail.as_ref() == Some(&detail));
    Ok(entry.map(decided))
}

/// Parses the subject of an action on a line of a bank statement.
pub fn parsed_line(subject: &str) -> Option<(i64, i64)> {
    let (statement, line) = subject.split_once(' ')?;
    Some((statement.parse().ok()?, line.parse().ok()?))
}

async fn of_price(
    current: &CurrentRequest,
    act: DeskAct,
    subject: &str,
) -> Result<Consequences, Problem> {
    let PriceRequest { change, from } = if act == DeskAct::CancelPrice {
        let id = subject.parse().map_err(|_| Cause::NotFound)?;
        PriceRequest { change: PriceChange::Cancel(id), from: None }
    } else {
        PriceRequest::parse(subject).ok_or(Cause::NotFound)?
    };
    if act != DeskAct::of_price(&change) {
        return Err(Cause::NotFound.into());
    }
    let money = current.service().money();
    let (steps, refused) = match money.price_steps(&change, from).await {
        Ok(steps) => (steps, None),
        Err(error) => match error.refusal() {
            Some(refusal) => (Vec::new(), Some(refusal.clone())),
            None => return Err(error.into()),
        },
    };
    let changes = money.price_changes().await?;
    let decided = changes.first().map(|newest| Decided {
        by: newest.set_by.clone(),
        at: newest.set_at,
        what: Some("changed a price".into()),
    });
    // Prices in the settings count only until staff set prices. So the first prices that staff set
    // are a change, even if they are those of the settings.
    let mut set = changes.iter().filter(|one| one.set_by != "settings");
    let is_set = set.any(|one| matches!(one.change, PriceChange::Base(_)));
    let is_same = is_set && steps.iter().all(|step| step.old == step.new);
    let refused = match change {
        PriceChange::Base(_) if is_same && refused.is_none() => {
            Some(Refusal::NothingToDo { decided: decided.clone() })
        }
        _ => refused,
    };
    let cancelled = match &change {
        PriceChange::Cancel(id) => changes.iter().find(|one| one.id == *id),
        _ => None,
    };
    let from = cancelled.map_or(from, |one| Some(one.from));
    let again = cancelled.map(|one| PriceRequest { change: one.change.clone(), from });
    let of_cancelled = cancelled.map_or(&change, |one| &one.change);
    let seen: Vec<_> = steps.iter().map(|step| step.old.to_string()).collect();
    let cancels = matches!(change, PriceChange::Cancel(_));
    let large = steps.iter().filter(|step| step.is_large() && !cancels);
    let large = large.map(|step| (numbers_of(step, of_cancelled), step.new)).collect();
    let currency = &current.site().currency;
    let confirmation = price_confirmation(&steps, (of_cancelled, cancels), from, currency);
    Ok(Consequences {
        name: name_of_price(&steps, (of_cancelled, cancels), from, currency),
        again,
        confirmation,
        seen: seen.join(" "),
        refused,
        decided,
        price: Some((change, from.filter(|_| !cancels))),
        large,
        ..Consequences::default()
    })
}

/// Returns the numbers whose price a step changes.
fn numbers_of(step: &PriceStep, change: &PriceChange) -> String {
    match (step.kind, change.prefix()) {
        (_, Some(prefix)) => format!("numbers beginning with {prefix}"),
        (Kind::Local, None) => "local numbers".to_owned(),
        (Kind::International, None) => "international numbers".to_owned(),
    }
}

/// Returns the name of a price change, for the notice.
fn name_of_price(
    steps: &[PriceStep],
    (change, cancels): (&PriceChange, bool),
    from: Option<Timestamp>,
    currency: &str,
) -> String {
    let steps: Vec<_> = (steps.iter())
        .map(|step| {
            // The steps of a cancellation lead back.
            let (old, new) = if cancels { (step.new, step.old) } else { (step.old, step.new) };
            format!("{} {} → {}", numbers_of(step, change), old.shown(), new.shown())
        })
        .collect();
    let at = from.map_or("at once".to_owned(), |at| format!("from {} UTC", at.to_table()));
    format!("the price change “{} {currency} per page, {at}”", steps.join(", "))
}

fn price_confirmation(
    steps: &[PriceStep],
    (change, cancels): (&PriceChange, bool),
    from: Option<Timestamp>,
    currency: &str,
) -> Confirmation {
    let mut facts: Vec<_> = (steps.iter())
        .map(|step| {
            let (old, new) = (step.old.shown(), step.new.shown());
            let text = if cancels {
                format!("stays at {new} {currency} per page, doesn't become {old}")
            } else {
                format!("{old} → {new} {currency} per page (factor {})", step.factor())
            };
            (format!("Price of {}", numbers_of(step, change)), text)
        })
        .collect();
    if cancels {
        let at = from.map(|at| format!("set for {} UTC", at.to_table())).unwrap_or_default();
        facts.insert(0, fact("Price change", at));
        let effects = sentences(["The change never comes into force. The current prices stay."]);
        return confirmation(facts, effects, "You can undo this: set the same price again.");
    }
    let at = from.map_or_else(|| "At once".to_owned(), |at| format!("{} UTC", at.to_table()));
    facts.push(fact("In force from", at));
    facts.push(fact("Affected", "All applications"));
    let undo = match from {
        None => {
            "You can't undo this for messages that are accepted from now on. You can set another \
                 price at any time."
        }
        Some(_) => {
            "You can undo this until one minute before the price comes into force: cancel the change \
             on the page Prices."
        }
    };
    let effects = sentences([
        "Every customer pays the new price for messages that are accepted from then on. Messages \
         and batches that were accepted before keep their prices.",
        "As soon as the change is stored, customers see the new price in the portal and in the \
         API.",
    ]);
    confirmation(facts, effects, undo)
}
