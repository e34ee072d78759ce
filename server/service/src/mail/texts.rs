//! The texts of all mails.

use domain::application::StatusAction;
use domain::browser::browser_name;
use domain::decision::Work;
use domain::readiness::Blocker;
use domain::records::{ApplicationRecord, CarrierRecord};
use domain::webhook::DisabledReason;
use domain::{AlarmKind, BatchId, KeyKind, MailKind, Money, Reference, Timestamp};

use super::{Mail, PER_KIND_MAX};
use store::alarms::NewAlarm;
use store::notices::Done;

/// The advice for an action that somebody else may have performed.
const NOT_YOU: &str = "If it wasn't you, set a new password at once. This signs out all other \
                       devices. Then check your devices under \"Security\".";

fn of_application(kind: MailKind, reference: Reference, subject: &str, body: String) -> Mail {
    Mail {
        kind,
        subject: format!("{subject}: application {reference}"),
        body,
        path: Some(format!("/applications/{reference}")),
    }
}

/// The link is created when the mail is sent.
pub(crate) fn confirm() -> Mail {
    Mail {
        kind: MailKind::Confirm,
        subject: "Confirm your email".to_owned(),
        body: "An account was created with this email. Open the link below and press \"Confirm\" \
               to say that the address is yours. Until then the account can't create \
               applications. The link works for three days.\n\n\
               If you didn't create an account, ignore this mail."
            .to_owned(),
        path: None,
    }
}

/// Goes to the new address. The link is created when the mail is sent.
pub(crate) fn change_email() -> Mail {
    Mail {
        kind: MailKind::EmailChange,
        subject: "Confirm your new email".to_owned(),
        body: "This address was entered as the new email of an account. Open the link below and \
               press \"Use this email\" to say that the address is yours. The change takes \
               effect 24 hours later, or at once if it was confirmed with a second factor. The \
               link works for three days.\n\n\
               If you have no account here, ignore this mail."
            .to_owned(),
        path: None,
    }
}

/// The advice for a change of the email that somebody else requested.
const STOP_IT: &str = "If you didn't ask for this, open the link below and press \"Stop the \
                       change\". Then set a new password, which signs out all devices.";

/// Goes to the current address. The link is created when the mail is sent.
pub(crate) fn email_change_asked(new: &str) -> Mail {
    Mail {
        kind: MailKind::EmailStop,
        subject: "A new email was asked for your account".to_owned(),
        body: format!(
            "Somebody who is signed in to your account and knows its password asked for the new \
             email {new}. Your account keeps this address until the owner of the new one confirms \
             the change. The change takes effect 24 hours later, or at once if it was confirmed \
             with a second factor.\n\n{STOP_IT}"
        ),
        path: None,
    }
}

/// Goes to the current address. The link is created when the mail is sent.
pub(crate) fn email_change_waits(new: &str, at: Timestamp) -> Mail {
    Mail {
        kind: MailKind::EmailStop,
        subject: "The email of your account will change tomorrow".to_owned(),
        body: format!(
            "The new email {new} was confirmed. It becomes the email of your account at {} \
             UTC.\n\n{STOP_IT}",
            at.to_table()
        ),
        path: None,
    }
}

/// Goes to the new address, before the change.
pub(crate) fn email_change_confirmed(at: Timestamp) -> Mail {
    Mail {
        kind: MailKind::EmailChanged,
        subject: "Your new email is confirmed".to_owned(),
        body: format!(
            "This address becomes the email of your account at {} UTC. Until then, sign in with \
             the old one. You can cancel the change on the account page.",
            at.to_table()
        ),
        path: Some("/account".to_owned()),
    }
}

/// Goes to the old address.
pub(crate) fn email_changed(new: &str) -> Mail {
    Mail {
        kind: MailKind::EmailChanged,
        subject: "The email of your account was changed".to_owned(),
        body: format!(
            "The email of your account is now {new}. Sign in with it. Mails about your account \
             now go only to that address.\n\nIf it wasn't you, contact support at once."
        ),
        path: None,
    }
}

/// Goes to the new address, after the change.
pub(crate) fn email_in_use() -> Mail {
    Mail {
        kind: MailKind::EmailChanged,
        subject: "The email of your account was changed".to_owned(),
        body: "This address is now the email of your account. Sign in with it.".to_owned(),
        path: Some("/account".to_owned()),
    }
}

/// Goes to the address that the account keeps.
pub(crate) fn email_taken(new: &str) -> Mail {
    Mail {
        kind: MailKind::EmailChanged,
        subject: "The email of your account stays as it is".to_owned(),
        body: format!(
            "The new email {new} couldn't become the email of your account, because another \
             account now has it."
        ),
        path: Some("/account".to_owned()),
    }
}

/// The link is created when the mail is sent.
pub(crate) fn reset() -> Mail {
    Mail {
        kind: MailKind::Reset,
        subject: "Reset your password".to_owned(),
        body: "Somebody asked for a new password for your account. The link below lets you set \
               one. It works once, within an hour.\n\n\
               If it wasn't you, ignore this mail. Your password stays as it is."
            .to_owned(),
        path: None,
    }
}

pub(crate) fn password_changed() -> Mail {
    Mail {
        kind: MailKind::PasswordChanged,
        subject: "Your password was changed".to_owned(),
        body: "The password of your account was changed, and all other devices were signed out. \
               The keys of your applications stay as they are.\n\n\
               If it wasn't you, set a new password at once: choose \"Forgot your password?\" on \
               the sign-in page."
            .to_owned(),
        path: Some("/forgot".to_owned()),
    }
}

pub(crate) fn account_closed() -> Mail {
    Mail {
        kind: MailKind::AccountClosed,
        subject: "Your account is closed".to_owned(),
        body: "Somebody who was signed in to your account and knew its password closed it. \
               Nobody can sign in any more, and the keys of its applications no longer work. \
               Queued messages are not sent, and nothing is paid out.\n\n\
               If it wasn't you, contact support at once."
            .to_owned(),
        path: None,
    }
}

/// Reports that a person became staff or no longer is.
pub(crate) fn role_changed(staff: bool) -> Mail {
    let (subject, body) = if staff {
        (
            "You are a member of staff now",
            "A member of staff made your account a staff account. You can see and change the \
             accounts of all customers. All your devices were signed out. Sign in again with your \
             second factor; without one, you can only set one up.\n\n\
             If you didn't expect this, contact support at once.",
        )
    } else {
        (
            "You are no longer a member of staff",
            "A member of staff made your account a customer's account. You can no longer open the \
             support pages. All your devices were signed out. Your own applications stay as they \
             are.",
        )
    };
    Mail {
        kind: MailKind::Role,
        subject: subject.to_owned(),
        body: body.to_owned(),
        path: Some(if staff { "/support" } else { "/applications" }.to_owned()),
    }
}

/// Shows only the browser's family, because the client controls the whole `User-Agent` header.
pub(crate) fn new_device(user_agent: &str, address: &str, at: Timestamp) -> Mail {
    Mail {
        kind: MailKind::NewDevice,
        subject: "New sign-in to your account".to_owned(),
        body: format!(
            "Somebody signed in to your account from a new browser or network.\n\nTime: {} UTC\n\
             Address: {address}\nBrowser: {}\n\n{NOT_YOU}\n\nYou get at most {PER_KIND_MAX} mails \
             of this kind in an hour. Every sign-in is listed under \"Security\".",
            at.to_table(),
            browser_name(user_agent)
        ),
        path: Some("/devices".to_owned()),
    }
}

/// `event` is the sentence that describes what happened.
pub(crate) fn second_factor(subject: &str, event: &str) -> Mail {
    Mail {
        kind: MailKind::SecondFactor,
        subject: subject.to_owned(),
        body: format!("{event}\n\n{NOT_YOU}"),
        path: Some("/account/two-factor".to_owned()),
    }
}

/// `count` is the number of wrong codes in a row.
pub(crate) fn wrong_codes(count: i64) -> Mail {
    Mail {
        kind: MailKind::WrongCodes,
        subject: "Wrong sign-in codes for your account".to_owned(),
        body: format!(
            "Somebody entered {count} wrong codes in a row for the second factor of your account. \
             The code comes after the password, so this person knows your password or uses a \
             device where you are signed in. Nobody got in with these codes.\n\nIf it wasn't you, set \
             a new password at once: choose \"Forgot your password?\" on the sign-in page."
        ),
        path: Some("/forgot".to_owned()),
    }
}

pub(crate) fn key_replaced(reference: Reference, kind: KeyKind) -> Mail {
    let key = match kind {
        KeyKind::Live => "API key",
        KeyKind::Test => "test key",
    };
    let body = format!(
        "The {key} of your application {reference} was replaced. The old key no longer works, \
         and all other devices of your account were signed out.\n\n{NOT_YOU}"
    );
    of_application(MailKind::KeyReplaced, reference, "Key replaced", body)
}

/// Returns the end of the sentence that says that an application is active: whether its API key can
/// send now, or what is missing.
fn what_is_missing(blockers: &[Blocker]) -> String {
    let missing = blockers.iter().filter_map(|blocker| match blocker {
        Blocker::SenderNameWaits => Some("We haven't decided about its sender name yet."),
        Blocker::SenderNameRejected => Some("Its sender name was rejected. Ask for another one."),
        Blocker::Balance => Some("Its balance doesn't cover a message. Make a deposit."),
        Blocker::AccountDisabled => Some("Your account is disabled. Contact support."),
        // Later actions of staff, and states that end by themselves.
        Blocker::Category
        | Blocker::ActivationNotRequested
        | Blocker::ActivationWaits
        | Blocker::Suspended
        | Blocker::SpendCap(_)
        | Blocker::NoCarrier => None,
    });
    let missing: Vec<_> = missing.collect();
    if blockers.contains(&Blocker::Category) {
        ".".to_owned()
    } else if missing.is_empty() {
        ": its API key can send now.".to_owned()
    } else {
        format!(", but its API key can't send yet.\n\n{}", missing.join("\n\n"))
    }
}

/// Reports that staff changed an application's status. `blockers` keep it from sending now.
pub(crate) fn status_changed(
    record: &ApplicationRecord,
    action: StatusAction,
    reason: Option<&str>,
    blockers: &[Blocker],
) -> Mail {
    let (reference, status) = (record.reference, record.status);
    let (subject, body) = match action {
        StatusAction::Approve => (
            "Approved",
            format!("Your application {reference} is {status}{}", what_is_missing(blockers)),
        ),
        StatusAction::Suspend => (
            "Suspended",
            format!(
                "Your application {reference} is suspended: its API key can't send, and queued \
                 messages wait.\n\nReason: {}",
                reason.unwrap_or("none given")
            ),
        ),
        StatusAction::Reinstate => (
            "Reinstated",
            format!("Your application {reference} is no longer suspended: it is {status}."),
        ),
    };
    of_application(MailKind::Application, reference, subject, body)
}

/// Reports that staff paused a batch.
pub(crate) fn batch_paused(reference: Reference, id: BatchId, reason: &str) -> Mail {
    let body = format!(
        "Support paused the batch {id} of your application {reference}: no more of its messages \
         are sent until support resumes it. They expire as they would otherwise. You can cancel \
         the batch on its page.\n\nReason: {reason}"
    );
    let mail = of_application(MailKind::Application, reference, "Batch paused", body);
    Mail { path: Some(format!("/reports/{id}")), ..mail }
}

/// Reports that staff ended their pause of a batch.
pub(crate) fn batch_resumed(reference: Reference, id: BatchId) -> Mail {
    let body = format!(
        "Support resumed the batch {id} of your application {reference}. If you paused it too, it \
         waits until you resume it."
    );
    let mail = of_application(MailKind::Application, reference, "Batch resumed", body);
    Mail { path: Some(format!("/reports/{id}")), ..mail }
}

pub(crate) fn sender_accepted(reference: Reference, name: &str) -> Mail {
    let body = format!(
        "The sender name {name} is accepted: messages of your application {reference} are sent as \
         {name} from now on."
    );
    of_application(MailKind::SenderName, reference, "Sender name accepted", body)
}

pub(crate) fn sender_rejected(reference: Reference, name: &str, reason: &str) -> Mail {
    let body = format!(
        "The sender name {name}, which you requested for your application {reference}, was not \
         accepted.\n\nReason: {reason}"
    );
    of_application(MailKind::SenderName, reference, "Sender name rejected", body)
}

pub(crate) fn deposit(reference: Reference, amount: Money, balance: Money, currency: &str) -> Mail {
    let body = format!(
        "A deposit of {} {currency} was added to your application {reference}. Its balance is {} \
         {currency} now.",
        amount.shown(),
        balance.shown()
    );
    of_application(MailKind::Deposit, reference, "Deposit received", body)
}

/// The advice for an endpoint that somebody else may have set up.
const NOT_YOUR_WEBHOOK: &str = "If it wasn't you or your program, somebody else has the API key: \
                                remove the endpoint on the page \"Webhooks\", and replace the key.";

fn of_webhooks(reference: Reference, subject: &str, body: String) -> Mail {
    Mail {
        path: Some(format!("/applications/{reference}/webhooks")),
        ..of_application(MailKind::Webhook, reference, subject, body)
    }
}

pub(crate) fn webhook_created(reference: Reference, url: &str) -> Mail {
    let body = format!(
        "An endpoint was added to your application {reference}. It gets the application's events, \
         with the numbers of recipients:\n\n{url}\n\n{NOT_YOUR_WEBHOOK}"
    );
    of_webhooks(reference, "Endpoint added", body)
}

pub(crate) fn webhook_moved(reference: Reference, from: &str, to: &str) -> Mail {
    let body = format!(
        "The address of an endpoint of your application {reference} was changed.\n\nFrom: {from}\n\n\
         To: {to}\n\n{NOT_YOUR_WEBHOOK}"
    );
    of_webhooks(reference, "Endpoint changed", body)
}

pub(crate) fn webhook_disabled(reference: Reference, url: &str, reason: DisabledReason) -> Mail {
    let why = match reason {
        DisabledReason::Gone => "It answered 410 (Gone), which means that it wants no more events.",
        DisabledReason::Failing => "Every attempt of the last three days failed.",
    };
    let body = format!(
        "An endpoint of your application {reference} is disabled and gets no more events:\n\n{url}\n\n\
         {why} The page \"Webhooks\" shows its last attempts. When it works again, enable it \
         there. It then gets the events of the last three days that it missed."
    );
    of_webhooks(reference, "Endpoint disabled", body)
}

pub(crate) fn low_balance(
    reference: Reference,
    balance: Money,
    threshold: Money,
    currency: &str,
) -> Mail {
    let body = format!(
        "The balance of your application {reference} is {} {currency}, which is below the {} \
         {currency} that you set. Messages that cost more than the balance are refused.\n\nMake a \
         deposit by bank transfer, and give the reference {reference} as the reason for payment.",
        balance.shown(),
        threshold.shown()
    );
    of_application(MailKind::LowBalance, reference, "Low balance", body)
}

/// `detail` says what happened, and `examples` are masked numbers.
pub(crate) fn alarm(reference: Reference, alarm: &NewAlarm<'_>, at: Timestamp) -> Mail {
    let kind = alarm.kind;
    let detail = alarm.detail.unwrap_or_default();
    let examples = alarm.example.map(|numbers| format!(" For example: {numbers}."));
    let body = format!(
        "{detail}{} Noticed at {} UTC.\n\n{}",
        examples.unwrap_or_default(),
        at.to_table(),
        kind.advice()
    );
    let page = match kind {
        AlarmKind::LeakedKey => "keys",
        AlarmKind::TrafficPumping | AlarmKind::SpendPerDay | AlarmKind::FirstInternational => {
            "settings"
        }
    };
    Mail {
        path: Some(format!("/applications/{reference}/{page}")),
        ..of_application(MailKind::LimitAlarm, reference, kind.heading(), body)
    }
}

pub(crate) fn batch_done(done: &Done) -> Mail {
    let (id, reference) = (done.id, done.owner.reference);
    let (rows, delivered) = (done.rows, done.delivered);
    Mail {
        kind: MailKind::BatchDone,
        subject: format!("Batch done: application {reference}"),
        body: format!(
            "The batch {id} of your application {reference} is done: {delivered} of {rows} \
             messages were delivered."
        ),
        path: Some(format!("/reports/{id}")),
    }
}

/// Goes to staff when a carrier has been down or degraded for some minutes.
pub(crate) fn carrier_fails(carrier: &CarrierRecord) -> Mail {
    let CarrierRecord { name, state, reason, waiting, .. } = carrier;
    let since =
        carrier.since.map_or_else(String::new, |at| format!(" since {} UTC", at.to_table()));
    let reason = reason.as_deref().unwrap_or("No connection has reported an error.");
    Mail {
        kind: MailKind::Carrier,
        subject: format!("Carrier {name} is {state}"),
        body: format!(
            "The carrier {name} is {state}{since}. Last error: {reason}\n\n{waiting} messages wait \
             for it. Messages take other routes if there are any. The page \"Carriers\" shows its \
             connections and lets you drain it."
        ),
        path: Some("/support/carriers".to_owned()),
    }
}

/// Goes to staff when a carrier works again.
pub(crate) fn carrier_is_back(carrier: &CarrierRecord) -> Mail {
    let CarrierRecord { name, since, .. } = carrier;
    let since = since.map_or_else(String::new, |at| format!(" since {} UTC", at.to_table()));
    Mail {
        kind: MailKind::Carrier,
        subject: format!("Carrier {name} is back"),
        body: format!("The carrier {name} accepts messages again{since}."),
        path: Some("/support/carriers".to_owned()),
    }
}

/// Goes to staff. `count` is the amount of work that has waited for an hour.
pub(crate) fn waiting(work: Work, count: i64) -> Mail {
    let ([one, many], what, path) = match work {
        Work::Activations => (
            ["application waits for activation", "applications wait for activation"],
            "The page \"Applications\" lists them, the longest wait first.",
            "/support/applications",
        ),
        Work::SenderNames => (
            ["sender name waits for a decision", "sender names wait for a decision"],
            "The page \"Sender names\" lists them, the longest wait first.",
            "/support/senders",
        ),
        Work::Deposits => (
            [
                "deposit has the reference of no application",
                "deposits have the reference of no application",
            ],
            "The page \"Deposits\" lists them, with applications that may match.",
            "/support/deposits",
        ),
        Work::Mails => (
            ["mail couldn't be sent", "mails couldn't be sent"],
            "The page \"Mail\" shows why. You can retry them there.",
            "/support/mail",
        ),
        Work::Inbound => (
            ["inbound message has no application", "inbound messages have no application"],
            "The page \"Unassigned messages\" lists them. Give their numbers to applications.",
            "/support/inbound",
        ),
        Work::Resets => (
            ["person waits for a reset link", "people wait for a reset link"],
            "The page \"Mail\" lists them. Make the link on the page of the account.",
            "/support/mail",
        ),
        Work::BankLines => (
            [
                "line of a bank statement couldn't be credited",
                "lines of bank statements couldn't be credited",
            ],
            "The page \"Import\" lists them next to the stored deposits.",
            "/support/import",
        ),
    };
    let (noun, each) = if count == 1 { (one, "It") } else { (many, "Each") };
    let subject = format!("{count} {noun}");
    Mail {
        kind: MailKind::Waiting,
        body: format!("{subject}. {each} has waited for more than an hour.\n\n{what}"),
        subject,
        path: Some(path.to_owned()),
    }
}
