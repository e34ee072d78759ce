//! `/account/two-factor`: setting up, replacing and removing a second factor, its recovery codes
//! and its passkeys.

use domain::{Refusal, Timestamp};
use leptos::either::{Either, EitherOf3};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::fields::CodeField;
#[cfg(feature = "ssr")]
use super::passkeys::passkeys_of;
use super::passkeys::{PasskeyForms, PasskeyList, Passkeys};
use crate::page_data::PageData;
use crate::problem::{Problem, TWO_FACTOR_PATH};
use crate::ui::{
    Confirmation, ConfirmationForm, Copying, DateTime, Fact, FormState, Loaded, Page, PostForm,
    StepUpField, SubmitButton, in_zone, parameter,
};
#[cfg(feature = "ssr")]
use {
    crate::portal_request::{
        CurrentRequest, is_shown, missing_step_up, redirect_to, setting_up, signed_in, step_up,
    },
    crate::problem::Cause,
    domain::records::AccountRecord,
    fast_qr::convert::svg::SvgBuilder,
    fast_qr::qr::QRBuilder,
    service::TotpSecret,
};

/// The names under which a session stores texts for this page.
#[cfg(feature = "ssr")]
const NEW_SECRET: &str = "two-factor-secret";
#[cfg(feature = "ssr")]
const NEW_CODES: &str = "recovery-codes";

/// The page's data.
#[derive(Clone, Serialize, Deserialize)]
pub struct TwoFactor {
    /// The time at which the second factor was set up.
    since: Option<Timestamp>,
    recovery_codes_left: i64,
    passkeys: Passkeys,
    /// Whether the account must have a second factor.
    required: bool,
    /// New recovery codes, which are shown only once.
    new_codes: Vec<String>,
    offer: Option<Offer>,
    /// Step-up authentication comes before a new secret is shown, so that nobody sets up a phone in
    /// vain. The refusal says which credential is needed.
    missing: Option<Refusal>,
}

/// A new secret for an authenticator app.
#[derive(Clone, Serialize, Deserialize)]
struct Offer {
    /// The secret in groups, for typing.
    secret: String,
    /// The QR code, as SVG.
    picture: String,
}

/// Loads the account's second factor, or a new secret to set one up. Uses POST, because it returns
/// new recovery codes once and deletes them. `confirm` is true if the page asks for a confirmation.
#[server(prefix = "/fn", endpoint = "two-factor")]
pub async fn load_two_factor(
    replace: bool,
    #[server(default)] confirm: bool,
) -> Result<TwoFactor, Problem> {
    let (current, account) = setting_up().await?;
    let service = current.service();
    let factor = service.accounts().factor(account.id).await?;
    let new_codes = if is_shown() { current.take_text(NEW_CODES).await? } else { None };
    let wants_offer = factor.is_none() || replace && new_codes.is_none();
    let confirms = wants_offer || confirm;
    let missing = if confirms { missing_step_up(&current, &account).await? } else { None };
    let wants_offer = wants_offer && missing.is_none();
    let offer = if wants_offer { Some(offer(&current, &account).await?) } else { None };
    Ok(TwoFactor {
        since: factor.map(|factor| factor.since),
        recovery_codes_left: factor.map_or(0, |factor| factor.recovery_codes),
        passkeys: passkeys_of(service, account.id).await?,
        required: service.accounts().needs_factor(&account),
        new_codes: lines(&new_codes.unwrap_or_default()),
        offer,
        missing,
    })
}

/// Performs step-up authentication before the page shows a new secret.
#[server(prefix = "/fn", endpoint = "confirm-it-is-you")]
pub async fn confirm_it_is_you(#[server(default)] credential: String) -> Result<(), Problem> {
    let (current, account) = setting_up().await?;
    step_up(&current, &account, &credential).await
}

#[cfg(feature = "ssr")]
fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Returns the secret that the session offers. It stays the same until it is used.
#[cfg(feature = "ssr")]
async fn offer(current: &CurrentRequest, account: &AccountRecord) -> Result<Offer, Problem> {
    let kept = current.take_text(NEW_SECRET).await?;
    let kept = kept.and_then(|text| TotpSecret::parse(&text));
    let secret = kept.unwrap_or_else(|| current.service().accounts().new_totp_secret());
    let text = secret.base32();
    if is_shown() {
        current.keep_text(NEW_SECRET, &text).await?;
    }
    let groups: Vec<_> = text.as_bytes().chunks(4).map(String::from_utf8_lossy).collect();
    Ok(Offer { secret: groups.join(" "), picture: picture(&secret.address(&account.email)) })
}

/// Returns the QR code of a text, or nothing if the text is too long. The secret can still be
/// typed.
#[cfg(feature = "ssr")]
fn picture(text: &str) -> String {
    let code = QRBuilder::new(text).build();
    code.map(|code| SvgBuilder::default().to_str(&code)).unwrap_or_default()
}

/// Sets up the offered secret, replacing the one in use if there is one. Signs out all other
/// devices.
#[server(prefix = "/fn", endpoint = "set-up-two-factor")]
pub async fn set_up_two_factor(
    code: String,
    #[server(default)] credential: String,
) -> Result<(), Problem> {
    let (current, account) = setting_up().await?;
    // A session's stored texts are encrypted with its ID, which step-up authentication changes.
    let kept = current.take_text(NEW_SECRET).await?;
    let text = kept.unwrap_or_default();
    // Without an offered secret, every code is wrong. The page then offers a secret.
    let secret = TotpSecret::parse(&text).ok_or(Cause::Refused(Refusal::WrongCode))?;
    let codes = match confirmed(&current, &account, &secret, &code, &credential).await {
        Ok(codes) => codes,
        Err(problem) => {
            // The app already has this secret, so keep offering it.
            current.keep_text(NEW_SECRET, &text).await?;
            return Err(problem);
        }
    };
    let renewed = current.renew(&account).await;
    renewed.map_err(Problem::after_change)?;
    show_codes(&current, &codes).await
}

/// Sets up the secret after step-up authentication and a code. Returns the recovery codes.
#[cfg(feature = "ssr")]
async fn confirmed(
    current: &CurrentRequest,
    account: &AccountRecord,
    secret: &TotpSecret,
    code: &str,
    credential: &str,
) -> Result<Vec<String>, Problem> {
    step_up(current, account, credential).await?;
    let token = current.token().unwrap_or_default();
    let service = current.service();
    let accounts = service.accounts();
    let set_up = accounts.set_up_factor(account.id, secret, code, &token);
    Ok(set_up.await?)
}

/// Creates new recovery codes. The old ones stop working.
#[server(prefix = "/fn", endpoint = "renew-recovery-codes")]
pub async fn renew_recovery_codes(#[server(default)] credential: String) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    step_up(&current, &account, &credential).await?;
    let codes = current.service().accounts().renew_recovery_codes(account.id).await?;
    show_codes(&current, &codes).await
}

/// Stores the codes until the page shows them. Doesn't redirect: with scripts, the page would load
/// twice and the codes would be gone before anybody sees them.
#[cfg(feature = "ssr")]
async fn show_codes(current: &CurrentRequest, codes: &[String]) -> Result<(), Problem> {
    let kept = current.keep_text(NEW_CODES, &codes.join("\n")).await;
    kept.map_err(Problem::after_change)
}

/// Removes the second factor.
#[server(prefix = "/fn", endpoint = "remove-two-factor")]
pub async fn remove_two_factor(#[server(default)] credential: String) -> Result<(), Problem> {
    let (current, account) = signed_in().await?;
    step_up(&current, &account, &credential).await?;
    current.service().accounts().remove_factor(account.id).await?;
    redirect_to("/account?removed-factor=1")
}

/// The page's forms.
#[derive(Clone, Copy)]
struct Forms {
    confirm: FormState,
    set_up: FormState,
    renew: FormState,
    remove: FormState,
    passkeys: PasskeyForms,
}

#[component]
pub fn TwoFactorPage() -> impl IntoView {
    let (replace, confirm) = (parameter("replace"), parameter("confirm"));
    let forms = Forms {
        confirm: FormState::new::<ConfirmItIsYou>("confirm-it-is-you-alert"),
        set_up: FormState::new::<SetUpTwoFactor>("set-up-alert"),
        renew: FormState::new::<RenewRecoveryCodes>("renew-alert"),
        remove: FormState::new::<RemoveTwoFactor>("remove-alert"),
        passkeys: PasskeyForms::new(),
    };
    let data =
        PageData::after([forms.confirm, forms.set_up, forms.renew, forms.remove], move || {
            forms.passkeys.track();
            LoadTwoFactor { replace: replace.get().is_some(), confirm: confirm.get().is_some() }
        });
    let render = move |data| view! { <Contents data confirm=confirm.get_untracked() forms/> };
    view! { <Loaded data render/> }
}

#[component]
fn Contents(data: TwoFactor, confirm: Option<String>, forms: Forms) -> impl IntoView {
    let TwoFactor { since, recovery_codes_left, passkeys, required, new_codes, offer, missing } =
        data;
    let codes = (!new_codes.is_empty()).then(|| view! { <NewCodes codes=new_codes/> });
    let replaces = since.is_some();
    // New codes are shown at the address of the confirmation that made them.
    let confirm = confirm.filter(|_| replaces && codes.is_none());
    if let Some(confirmed) =
        confirm.and_then(|name| confirmation(&name, required, missing.as_ref(), &forms))
    {
        return confirmed;
    }
    let body = match (offer, missing) {
        (Some(offer), _) => {
            EitherOf3::A(view! { <SetUp offer required replaces form=forms.set_up/> })
        }
        (None, Some(missing)) => EitherOf3::B(view! { <ConfirmFirst missing form=forms.confirm/> }),
        (None, None) => EitherOf3::C(view! {
            {codes_left(recovery_codes_left).filter(|_| codes.is_none())}
            <dl class="facts">
                {since
                    .map(|at| view! { <Fact term=in_zone("Set up (UTC)")><DateTime at/></Fact> })}
                <Fact term="Recovery codes left">{recovery_codes_left.to_string()}</Fact>
            </dl>
            <SetUpOnes passkeys required forms/>
        }),
    };
    view! {
        <Page title="Two-factor" back=("/account", "Account")>
            {codes}
            {body}
        </Page>
    }
    .into_any()
}

/// The value of the parameter `confirm` that asks for new recovery codes.
const RENEW: &str = "codes";
/// The value that asks for the removal of the second factor.
const REMOVE: &str = "remove";

/// Returns the page that asks for a confirmation. `None` if there is nothing of this name.
fn confirmation(
    name: &str,
    required: bool,
    missing: Option<&Refusal>,
    forms: &Forms,
) -> Option<AnyView> {
    let (title, effect, undo, form) = match name {
        RENEW => (
            "Make new recovery codes",
            "You get ten new codes. The old ones stop working, also those that you have printed.",
            "You can't undo this.",
            forms.renew,
        ),
        REMOVE if !required => (
            "Remove two-factor",
            "From then on, your password alone signs you in. Your recovery codes and passkeys stop \
             working.",
            "You can set up two-factor again at any time.",
            forms.remove,
        ),
        _ => return None,
    };
    let step_up = missing.cloned();
    let confirmation = Confirmation { step_up, ..Confirmation::of(effect.to_owned(), undo) };
    let danger = name == REMOVE;
    let back = TWO_FACTOR_PATH.to_owned();
    Some(
        view! {
            <Page title back=(TWO_FACTOR_PATH, "Two-factor")>
                <ConfirmationForm confirmation label=title danger back form>
                    ""
                </ConfirmationForm>
            </Page>
        }
        .into_any(),
    )
}

/// Asks for step-up authentication before the page shows a new secret.
#[component]
fn ConfirmFirst(missing: Refusal, form: FormState) -> impl IntoView {
    view! {
        <p class="lead">"Confirm it's you. Then we show what your authenticator app needs."</p>
        <PostForm form>
            <StepUpField form code_label="Code of the app in use, or a recovery code" missing=Some(missing)/>
            <SubmitButton label="Confirm it's you" form primary=true/>
        </PostForm>
    }
}

/// Warns about a used recovery code, because its owner has probably lost the phone. `left` is the
/// number of unused codes.
pub fn codes_left(left: i64) -> Option<AnyView> {
    (left < RECOVERY_CODES_MADE).then(|| {
        view! {
            <p class="notice">
                {format!("You used a recovery code: {left} left. ")}
                <a href="/account/two-factor?replace=1">"Set up your new phone now"</a>
                ". You then get new codes."
            </p>
        }
        .into_any()
    })
}

/// The number of recovery codes that an account gets.
const RECOVERY_CODES_MADE: i64 = 10;

/// The new recovery codes, which are shown only once.
#[component]
fn NewCodes(codes: Vec<String>) -> impl IntoView {
    let text = codes.join("\n");
    let file = format!("data:text/plain;charset=utf-8,{}", text.replace('\n', "%0A"));
    let codes = codes.into_iter().map(|code| view! { <li><code>{code}</code></li> }).collect_view();
    view! {
        <section class="once">
            <h2>"Your recovery codes"</h2>
            <p>
                <strong>"Save these codes now. They are shown only once."</strong>
                " Each code signs you in once when you don't have your phone. Print them, or store \
                 them in your password manager."
            </p>
            <ul class="codes">{codes}</ul>
            <div class="buttons">
                <Copying text label="Copy codes"/>
                <a class="button" href=file download="heliograph-recovery-codes.txt" rel="external">
                    "Download codes"
                </a>
                // The page has to load anew: the router ignores links to the page's own address.
                <a class="button button-primary" href="/account/two-factor" rel="external">
                    "I have saved them"
                </a>
            </div>
        </section>
    }
}

/// The new secret, and the form for a code that proves that the app has it.
#[component]
fn SetUp(offer: Offer, required: bool, replaces: bool, form: FormState) -> impl IntoView {
    let why = if required && !replaces {
        "Your account can't be used without a second factor. Set one up to continue. From then on, \
         your password alone isn't enough to sign in."
    } else if replaces {
        "The current app works until you confirm the new one. You get new recovery codes."
    } else {
        "With a second factor, your password alone isn't enough to sign in."
    };
    view! {
        <p class="lead">{why}</p>
        <ol>
            <li>"Open an authenticator app on your phone, and let it scan this picture."</li>
            <li>"Enter the code that the app shows. All other devices are then signed out."</li>
        </ol>
        <div
            class="qr"
            role="img"
            aria-label="QR code for the authenticator app"
            inner_html=offer.picture
        ></div>
        <p>
            "Without a camera, type this secret into the app: "
            <code class="key">{offer.secret}</code>
        </p>
        <PostForm form>
            <CodeField form/>
            <StepUpField form code_label="Code of the app in use, or a recovery code"/>
            <SubmitButton label="Confirm" form primary=true/>
        </PostForm>
    }
}

/// The passkeys, and the forms to replace or remove the second factor and to renew its recovery
/// codes.
#[component]
fn SetUpOnes(passkeys: Passkeys, required: bool, forms: Forms) -> impl IntoView {
    let removal = if required {
        Either::Left(view! { <p>"Your account must have a second factor."</p> })
    } else {
        let href = format!("{TWO_FACTOR_PATH}?confirm={REMOVE}");
        Either::Right(view! { <a class="button button-danger" href=href>"Remove two-factor"</a> })
    };
    let renew = format!("{TWO_FACTOR_PATH}?confirm={RENEW}");
    view! {
        <PasskeyList passkeys forms=forms.passkeys/>
        <h2>"New phone"</h2>
        <p>
            <a href="/account/two-factor?replace=1">"Set up another app"</a>
            " in place of the one in use."
        </p>
        <h2>"Recovery codes"</h2>
        <p>"New recovery codes replace all old ones."</p>
        <p><a class="button" href=renew>"Make new recovery codes"</a></p>
        <h2>"Remove"</h2>
        {removal}
    }
}
