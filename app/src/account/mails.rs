//! The notification mails of an account.

use domain::MailKind;
use leptos::prelude::*;

#[cfg(feature = "ssr")]
use crate::portal_request::{redirect_to, signed_in};
use crate::problem::Problem;
use crate::ui::{FormState, PostForm, SubmitButton};

/// Sets which optional mails the account gets: those whose field isn't empty.
#[server(prefix = "/fn", endpoint = "set-mails")]
pub async fn set_mails(
    #[server(default)] application: String,
    #[server(default)] sender_name: String,
    #[server(default)] deposit: String,
    #[server(default)] low_balance: String,
    #[server(default)] batch_done: String,
    #[server(default)] waiting: String,
    #[server(default)] carrier: String,
) -> Result<(), Problem> {
    let typed = [application, sender_name, deposit, low_balance, batch_done, waiting, carrier];
    let wanted = || MailKind::OPTIONAL.into_iter().zip(&typed);
    let keep = |problem: Problem| {
        wanted().fold(problem, |problem, (kind, text)| problem.typed(name_and_label(kind).0, text))
    };
    let (current, account) = signed_in().await.map_err(keep)?;
    let unwanted: Vec<_> = wanted()
        .filter(|(kind, wanted)| wanted.is_empty() && is_for(*kind, account.staff))
        .map(|(kind, _)| kind)
        .collect();
    let service = current.service();
    service.accounts().set_unwanted_mails(account.id, &unwanted).await?;
    redirect_to("/account?mails=1")
}

/// The section for the account's notifications.
#[component]
pub fn MailsSection(
    unwanted: Vec<MailKind>,
    /// Whether the service can send mail.
    sends_mail: bool,
    staff: bool,
    form: FormState,
) -> impl IntoView {
    let always = if sends_mail {
        "We always mail you about the security of your account: sign-ins from a new browser or \
         network, and changes to the password, the email, the second factor and keys."
    } else {
        "This site sends no mail, so you get none of these. Security lists the sign-ins and changes \
         of your account. Your choices apply once mail is set up."
    };
    let boxes: Vec<_> = MailKind::OPTIONAL
        .into_iter()
        .filter(|kind| is_for(*kind, staff))
        .map(|kind| {
            let (name, label) = name_and_label(kind);
            let wanted = form
                .typed(name)
                .map_or_else(|| !unwanted.contains(&kind), |typed| !typed.is_empty());
            view! {
                <label class="choice">
                    <input type="checkbox" name=name value="on" checked=wanted/>
                    {label}
                </label>
            }
        })
        .collect();
    view! {
        <h2>"Notifications"</h2>
        <p>{always}</p>
        <PostForm form>
            <fieldset class="choices">
                <legend>"Mail me about"</legend>
                {boxes}
            </fieldset>
            <SubmitButton label="Save notifications" form/>
        </PostForm>
    }
}

/// Whether an account can get mails of this kind.
const fn is_for(kind: MailKind, staff: bool) -> bool {
    staff || !matches!(kind, MailKind::Waiting | MailKind::Carrier)
}

/// Returns the field name and the label of an optional kind of mail.
const fn name_and_label(kind: MailKind) -> (&'static str, &'static str) {
    match kind {
        MailKind::SenderName => ("sender_name", "Decisions about sender names"),
        MailKind::Deposit => ("deposit", "Deposits"),
        MailKind::LowBalance => {
            ("low_balance", "Low balances, for applications that have a limit set")
        }
        MailKind::BatchDone => {
            ("batch_done", "Completed batches, for applications with this mail turned on")
        }
        MailKind::Waiting => ("waiting", "Support requests that have waited for an hour"),
        MailKind::Carrier => ("carrier", "Carriers that are down, degraded or back"),
        _ => ("application", "Activation, suspension and reinstatement"),
    }
}
