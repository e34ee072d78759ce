//! `/account`: the account, its password and its settings.

use domain::records::AccountSettings;
use leptos::either::Either;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use super::billing::BILLING_PATH;
use super::codes_left;
use super::email::{EmailForms, EmailSection};
use super::fields::{NewPasswordField, PasswordField};
use super::mails::{MailsSection, SetMails};
use super::theme::{SetTheme, ThemeForm};
use super::time_zone::TimeZoneSection;
use super::{EXPORT_PATH, NUMBER_PATH};
use crate::page_data::PageData;
use crate::problem::{Problem, TWO_FACTOR_PATH};
use crate::ui::{AcceptedNotice, Fact, FormState, Loaded, Page, Parts, PostForm, SubmitButton};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{redirect_to, signed_in},
    domain::Password,
};

/// The page's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccountData {
    settings: AccountSettings,
    /// Whether the service can send mail.
    sends_mail: bool,
    /// The names of the available time zones.
    time_zones: Vec<String>,
    /// The number of unused recovery codes, if the account has a second factor.
    recovery_codes_left: Option<i64>,
}

/// Loads the signed-in account.
#[server(prefix = "/fn", endpoint = "account", input = GetUrl)]
pub async fn load_account() -> Result<AccountData, Problem> {
    let (current, account) = signed_in().await?;
    let service = current.service();
    let factor = service.accounts().factor(account.id).await?;
    Ok(AccountData {
        recovery_codes_left: factor.map(|factor| factor.recovery_codes),
        settings: service.accounts().account_settings(account.id).await?,
        sends_mail: service.operations().sends_mail(),
        time_zones: service::zones::names().map(str::to_owned).collect(),
    })
}

/// Changes the password and signs out all other devices.
#[server(prefix = "/fn", endpoint = "change-password")]
pub async fn change_password(password: String, new_password: String) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    let new = Password::parse(&new_password)?;
    let keep = current.token().unwrap_or_default();
    current.service().accounts().change_password(&account, &password, &new, &keep).await?;
    let renewed = current.renew(&account).await;
    renewed.map_err(Problem::after_change)?;
    redirect_to("/account?changed=1")
}

#[component]
pub fn AccountPage() -> impl IntoView {
    let theme = FormState::new::<SetTheme>("theme-alert");
    let mails = FormState::new::<SetMails>("mails-alert");
    let email = EmailForms::new();
    let data = PageData::after([theme, mails, email.request, email.cancel], || LoadAccount {});
    view! { <Loaded data render=move |data| view! { <Settings data email mails theme/> }/> }
}

fn two_factor(set_up: bool) -> impl IntoView {
    if set_up {
        Either::Left(view! {
            <p>
                "To sign in, you need your password and a code from your authenticator app or a \
                 passkey. "
                <a href=TWO_FACTOR_PATH>"Change two-factor"</a>
            </p>
        })
    } else {
        Either::Right(view! {
            <p>
                "Only your password protects your account. "
                <a href=TWO_FACTOR_PATH>"Set up two-factor"</a>
            </p>
        })
    }
}

#[component]
fn Settings(
    data: AccountData,
    email: EmailForms,
    mails: FormState,
    theme: FormState,
) -> impl IntoView {
    let AccountData { settings, sends_mail, time_zones, recovery_codes_left } = data;
    let account = settings.account.clone();
    let form = FormState::new::<ChangePassword>("account-alert");
    let unwanted = settings.unwanted_mails.clone();
    let address = account.email.clone();
    let weighed_against = RwSignal::new(account.email.clone());

    view! {
        <Page title="Account">
            <AcceptedNotice
                parameter="changed"
                sentence="The password is changed, and all other devices are signed out."
            />
            <AcceptedNotice
                parameter="removed-factor"
                sentence="Two-factor is removed. Only your password protects your account now."
            />
            <AcceptedNotice
                parameter="email-asked"
                sentence="A link is mailed to the new email. Open it to make the change."
            />
            <AcceptedNotice
                parameter="email-canceled"
                sentence="The email of your account stays as it is."
            />
            <AcceptedNotice parameter="mails" sentence="The notifications are saved."/>
            <AcceptedNotice parameter="theme" sentence="The theme is saved."/>
            <AcceptedNotice parameter="time-zone" sentence="The time zone is saved."/>
            <Parts
                label="Account"
                parts=vec![
                    ("profile", "Profile"),
                    ("security", "Security"),
                    ("notifications", "Notifications"),
                    ("appearance", "Appearance"),
                    ("data", "Data"),
                ]
            >
                <section id="profile">
                    <dl class="facts"><Fact term="Email">{address}</Fact></dl>
                    <EmailSection settings sends_mail forms=email/>
                    <h2>"Details on receipts"</h2>
                    <p>
                        "Receipts and statements show your name, address and tax number. "
                        <a href=BILLING_PATH>"Change the details"</a>
                    </p>
                </section>
                <section id="security">
                    <h2>"Two-factor"</h2>
                    {two_factor(account.second_factor)}
                    {recovery_codes_left.and_then(codes_left)}
                    <h2>"Password"</h2>
                    <p>
                        "Changing the password signs out all other devices. The keys of your \
                         applications stay as they are."
                    </p>
                    <PostForm form>
                        // Password managers store the new password under this name.
                        <input
                            type="hidden"
                            name="username"
                            autocomplete="username"
                            value=account.email
                            disabled=true
                        />
                        <PasswordField label="Current password" form/>
                        <NewPasswordField email=weighed_against form/>
                        <SubmitButton label="Change password" form primary=true/>
                    </PostForm>
                </section>
                <section id="notifications">
                    <MailsSection unwanted sends_mail staff=account.staff form=mails/>
                </section>
                <section id="appearance">
                    <h2>"Appearance"</h2>
                    <ThemeForm chosen=account.theme form=theme/>
                    <TimeZoneSection names=time_zones chosen=account.time_zone/>
                </section>
                <section id="data">
                    <h2>"Your data"</h2>
                    <p>
                        "A JSON file with your account, its details on receipts, its devices and \
                         security events, and your applications with their statements. It contains \
                         no passwords, keys or messages. You can download your messages from \
                         Reports."
                    </p>
                    <p>
                        <a
                            class="button"
                            href=EXPORT_PATH
                            download="heliograph-account.json"
                            rel="external"
                        >
                            "Download your data"
                        </a>
                    </p>
                    <h2>"Data of a phone number"</h2>
                    <p>
                        <a href=NUMBER_PATH>"Download or erase the data of a phone number"</a>
                    </p>
                    <h2>"Closing the account"</h2>
                    <p><a href="/account/close">"Close your account"</a></p>
                </section>
            </Parts>
        </Page>
    }
}
