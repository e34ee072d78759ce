//! Second factors: authenticator apps (TOTP, RFC 6238), recovery codes, and passkeys (in
//! [`crate::accounts::passkeys`]).
//!
//! Also step-up authentication: before a sensitive action, people who are signed in confirm who
//! they are.

use domain::Timestamp;
use domain::records::AccountRecord;
use domain::security_event::SecurityEventKind;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use totp_rs::{Algorithm, Builder, Secret, Totp};

use crate::Accounts;
use crate::accounts::audit_owner;
use crate::accounts::security_events::Event;
use crate::accounts::throttle::{Attempt, Counted};
use crate::limits::FactorRule;
use crate::mail::{self, texts};
use crate::token::token_hash;
use crate::transactions::work;
use store::audit::{self, Actor, Change};
use store::error::{Error, Fault, Refusal, Result};
use store::query::Conn;
use store::{Tx, accounts, second_factors, sessions};

/// The name under which authenticator apps list the service.
pub(super) const ISSUER: &str = "Heliograph";
/// RFC 4226 requires at least 128 bits and recommends 160.
const SECRET_BYTES: usize = 20;
const DIGITS: u8 = 6;
const STEP_S: u64 = 30;
/// A code is accepted this many steps before and after its own step, because clocks differ and
/// typing takes time.
const STEPS_AROUND: u16 = 1;
/// The number of recovery codes that an account gets.
pub const RECOVERY_CODES: usize = 10;
/// 120 bits, so a stored hash doesn't reveal its code to a brute-force search.
const RECOVERY_CODE_CHARS: usize = 24;
/// Letters and digits that are easy to tell apart. There are 32, so a random byte selects each with
/// the same probability.
const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz234567890";
/// After this many wrong codes in a row, the owner gets a mail. Each further attempt has to wait,
/// except on a known device.
const WRONG_CODES_FREE: i64 = 10;
/// The first wait. Each wrong code doubles it.
const WRONG_CODE_WAIT_MS: i64 = 60_000;
/// The maximum wait. At 24 codes a day, guessing a code takes years.
const WRONG_CODE_WAIT_MAX_MS: i64 = 60 * 60 * 1000;
/// How long a step-up authentication is valid. A sign-in also waits this long for its code.
const STEP_UP_VALID_MS: i64 = 10 * 60 * 1000;

/// The state of an account's second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactorState {
    pub since: Timestamp,
    /// The number of unused recovery codes.
    pub recovery_codes: i64,
}

/// A credential for the second step of a sign-in. It has no `Debug`, so it can't be logged.
#[derive(Clone)]
pub enum SecondStep {
    /// A code of the authenticator app, as typed.
    Code(String),
    /// A recovery code, as typed.
    RecoveryCode(String),
    /// A passkey's answer to [`Accounts::request_passkey`], as JSON.
    Passkey(String),
}

impl SecondStep {
    /// Parses a credential, which is a passkey's answer, a recovery code or a code.
    fn of_credential(credential: &str) -> Self {
        let kept = credential.chars().filter(char::is_ascii_alphanumeric);
        if credential.starts_with('{') {
            Self::Passkey(credential.to_owned())
        } else if kept.count() == RECOVERY_CODE_CHARS {
            Self::RecoveryCode(credential.to_owned())
        } else {
            Self::Code(credential.to_owned())
        }
    }
}

/// The secret that the server shares with an authenticator app. `Debug` doesn't show it.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret([u8; SECRET_BYTES]);

impl std::fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TotpSecret(hidden)")
    }
}

impl TotpSecret {
    /// Parses a secret that [`TotpSecret::base32`] returned.
    pub fn parse(base32: &str) -> Option<Self> {
        let secret = Secret::try_from_base32(base32).ok()?;
        Some(Self(secret.as_bytes().try_into().ok()?))
    }

    /// Returns the secret as people type it into an app.
    pub fn base32(&self) -> String {
        Secret::new_stack(self.0).to_base32()
    }

    /// Returns the URL that an app reads from a QR code.
    pub fn address(&self, email: &str) -> String {
        let email = utf8_percent_encode(email, NON_ALPHANUMERIC);
        let secret = self.base32();
        format!(
            "otpauth://totp/{ISSUER}:{email}?secret={secret}&issuer={ISSUER}&algorithm=SHA1\
             &digits={DIGITS}&period={STEP_S}"
        )
    }

    /// Returns the code that an app shows at a time.
    pub fn code(&self, at: Timestamp) -> String {
        self.totp().generate(seconds(at)).to_string()
    }

    /// Returns the step of a code, if the code is accepted at this time.
    fn step_of(&self, code: &str, now: Timestamp) -> Option<i64> {
        let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
        let digits = code.len() == usize::from(DIGITS) && code.bytes().all(|b| b.is_ascii_digit());
        let step = self.totp().check(&code, seconds(now)).filter(|_| digits)?;
        i64::try_from(step).ok()
    }

    fn totp(&self) -> Totp {
        Builder::new()
            .with_algorithm(Algorithm::SHA1)
            .with_digits(DIGITS)
            .with_skew(STEPS_AROUND)
            .with_step_duration(STEP_S)
            .with_secret(Secret::new_stack(self.0))
            .build_noncompliant()
    }
}

fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.unix_ms() / 1000).unwrap_or_default()
}

/// Returns what [`Accounts::seal`] binds a secret to. It names the account, so the sealed secret
/// can't be moved to another account.
pub(super) fn sealed_for(account_id: i64) -> String {
    format!("second factor of account {account_id}")
}

/// Returns the hash that is stored in place of a recovery code. Ignores case, spaces and hyphens.
fn recovery_hash(account_id: i64, code: &str) -> String {
    let kept = code.chars().filter(char::is_ascii_alphanumeric);
    let code: String = kept.map(|c| c.to_ascii_lowercase()).collect();
    token_hash(&format!("recovery {account_id} {code}"))
}

impl Accounts<'_> {
    /// True if the account must set up a second factor before it may do anything else.
    pub fn must_set_up_factor(&self, account: &AccountRecord) -> bool {
        !account.second_factor && self.needs_factor(account)
    }

    /// True if the account must have a second factor.
    pub fn needs_factor(&self, account: &AccountRecord) -> bool {
        match self.inner.limits.require_second_factor {
            FactorRule::Staff => account.staff,
            FactorRule::All => true,
        }
    }

    pub fn new_totp_secret(&self) -> TotpSecret {
        TotpSecret(self.entropy().bytes())
    }

    /// Returns the state of an account's second factor. `None` if it has none.
    pub async fn factor(&self, account_id: i64) -> Result<Option<FactorState>> {
        let stored = second_factors::of(&mut self.store().read().await?, account_id).await?;
        Ok(stored
            .map(|stored| FactorState { since: stored.created_at, recovery_codes: stored.codes }))
    }

    /// Returns whether this is the current secret of an account's second factor. Used by the demo,
    /// which prints the secret at every start.
    pub async fn factor_in_force(&self, account_id: i64, secret: &TotpSecret) -> Result<bool> {
        let stored = second_factors::of(&mut self.store().read().await?, account_id).await?;
        let Some(stored) = stored else {
            return Ok(false);
        };
        let opened = self.unseal(&sealed_for(account_id), &stored.secret).await?;
        Ok(opened == secret.0)
    }

    /// Sets up a second factor, once a code shows that the app has the secret. Replaces an existing
    /// one. Signs out every device except the current one. Returns the recovery codes, which are
    /// never shown again.
    ///
    /// # Errors
    /// `WrongCode`, `Throttled`.
    pub async fn set_up_factor(
        &self,
        account_id: i64,
        secret: &TotpSecret,
        code: &str,
        current_token: &str,
    ) -> Result<Vec<String>> {
        let counted = self.count_code(account_id)?;
        let step = secret.step_of(code, self.now()).ok_or(Refusal::WrongCode)?;
        let actor = Actor::Account(account_id);
        let keep = token_hash(current_token);
        let codes = self.store_factor(actor, account_id, secret, step, keep).await?;
        self.inner.throttle.succeed(&counted);
        Ok(codes)
    }

    /// Sets up a second factor whose secret the owner already has. Used by the demo.
    pub async fn give_factor(
        &self,
        actor: &Actor,
        account_id: i64,
        secret: &TotpSecret,
    ) -> Result<()> {
        let stored = self.store_factor(*actor, account_id, secret, 0, String::new());
        stored.await.map(drop)
    }

    async fn store_factor(
        &self,
        actor: Actor,
        account_id: i64,
        secret: &TotpSecret,
        step: i64,
        keep: String,
    ) -> Result<Vec<String>> {
        let sealed = self.seal(&sealed_for(account_id), &secret.0).await?;
        let codes = self.recovery_codes();
        let hashes: Vec<_> = (codes.iter()).map(|code| recovery_hash(account_id, code)).collect();
        let set_up = self.factor_changed(account_id, FactorChange::SetUp);
        self.in_transaction(work!(|tx, now| {
            second_factors::set(tx, account_id, &sealed, step, now).await?;
            second_factors::set_codes(tx, account_id, &hashes).await?;
            sessions::delete_others(tx, account_id, &keep).await?;
            sessions::set_stepped_up(tx, &keep, account_id, now).await?;
            let subject = Actor::Account(account_id).to_string();
            let action = "account.second_factor";
            audit::insert(tx, now, &actor, action, &subject, None).await?;
            set_up.store(tx, now).await
        }))
        .await?;
        Ok(codes)
    }

    /// Creates new recovery codes. The old ones stop working.
    ///
    /// # Errors
    /// `NoSecondFactor`.
    pub async fn renew_recovery_codes(&self, account_id: i64) -> Result<Vec<String>> {
        let codes = self.recovery_codes();
        let hashes: Vec<_> = (codes.iter()).map(|code| recovery_hash(account_id, code)).collect();
        let renewed = self.factor_changed(account_id, FactorChange::NewCodes);
        self.in_transaction(work!(|tx, now| {
            let stored = second_factors::of(tx, account_id).await?;
            stored.ok_or(Refusal::NoSecondFactor)?;
            second_factors::set_codes(tx, account_id, &hashes).await?;
            audit_owner(tx, now, account_id, "account.recovery_codes", Change::default()).await?;
            renewed.store(tx, now).await
        }))
        .await?;
        Ok(codes)
    }

    /// Removes the second factor of an account that isn't required to have one.
    ///
    /// # Errors
    /// `SecondFactorRequired`, `NoSecondFactor`.
    pub async fn remove_factor(&self, account_id: i64) -> Result<()> {
        let service = self.0.clone();
        let removed = self.factor_changed(account_id, FactorChange::Removed);
        self.in_transaction(work!(|tx, now| {
            let row = accounts::by_id(tx, account_id).await?;
            let account = row.ok_or(Refusal::NoSuchAccount)?.record;
            if service.accounts().needs_factor(&account) {
                return Err(Refusal::SecondFactorRequired.into());
            }
            if !second_factors::remove(tx, account_id).await? {
                return Err(Refusal::NoSecondFactor.into());
            }
            audit_owner(tx, now, account_id, "account.remove_factor", Change::default()).await?;
            removed.store(tx, now).await
        }))
        .await
    }

    /// Removes the second factor, with its recovery codes and passkeys, if the account has one.
    /// Called when the owner confirms the email for the first time: until then, a stranger may have
    /// registered the email and set up the factor.
    pub(crate) async fn remove_strangers_factor(
        &self,
        tx: &mut Tx<'_>,
        account_id: i64,
        now: Timestamp,
    ) -> Result<()> {
        if !second_factors::remove(tx, account_id).await? {
            return Ok(());
        }
        audit_owner(tx, now, account_id, "account.remove_factor", Change::default()).await?;
        let removed = self.factor_changed(account_id, FactorChange::Removed);
        removed.store(tx, now).await
    }

    /// Returns the account whose password was verified in this session and whose code is pending.
    pub async fn awaited_account(&self, token: &str) -> Result<Option<AccountRecord>> {
        let made_after = self.now().plus_ms(-STEP_UP_VALID_MS);
        sessions::awaited(&mut self.store().read().await?, &token_hash(token), made_after).await
    }

    /// Performs the second step of a sign-in. Each code and each answer of a passkey works once.
    ///
    /// # Errors
    /// `SignInOver`, `WrongCode`, `WrongRecoveryCode`, `PasskeyRefused`, `PasskeyCopied`,
    /// `PasskeyOver`, `Throttled`.
    pub async fn sign_in_step(&self, token: &str, step: &SecondStep) -> Result<AccountRecord> {
        let awaited = self.awaited_account(token).await?;
        let account = awaited.ok_or(Refusal::SignInOver)?;
        self.use_second_step(token, account.id, step).await?;
        Ok(account)
    }

    /// Returns the refusal that asks for a credential, if this session needs step-up authentication
    /// before a sensitive action: `CodeNeeded`, `CodeOrPasskeyNeeded` or `PasswordNeeded`. Returns
    /// `None` if step-up authentication succeeded within the last 10 minutes.
    pub async fn missing_step_up(
        &self,
        token: &str,
        account: &AccountRecord,
    ) -> Result<Option<Refusal>> {
        let hash = token_hash(token);
        let stepped_up_at =
            sessions::stepped_up_at(&mut self.store().read().await?, &hash, account.id).await?;
        if stepped_up_at.is_some_and(|at| self.now().ms_since(at) < STEP_UP_VALID_MS) {
            return Ok(None);
        }
        Ok(Some(if !account.second_factor {
            Refusal::PasswordNeeded
        } else if self.has_passkeys(account.id).await? {
            Refusal::CodeOrPasskeyNeeded
        } else {
            Refusal::CodeNeeded
        }))
    }

    /// Performs step-up authentication in a session. Does nothing if it succeeded in this session
    /// within the last 10 minutes. `credential` is a code of the authenticator app, a recovery code,
    /// a passkey's answer, or the password of an account without a second factor. It is empty if the
    /// user hasn't entered one yet.
    ///
    /// # Errors
    /// Those of [`Accounts::missing_step_up`] if `credential` is empty. `StepUpCodeWrong`,
    /// `StepUpPasswordWrong`, `PasskeyRefused`, `PasskeyCopied`, `PasskeyOver`, `Throttled`.
    pub async fn step_up(
        &self,
        token: &str,
        account: &AccountRecord,
        credential: &str,
    ) -> Result<()> {
        let (hash, account_id) = (token_hash(token), account.id);
        let Some(missing) = self.missing_step_up(token, account).await? else {
            return Ok(());
        };
        if credential.trim().is_empty() {
            return Err(missing.into());
        }
        let verified = if account.second_factor {
            let step = SecondStep::of_credential(credential);
            self.use_second_step(token, account_id, &step).await.map_err(as_step_up)?;
            None
        } else {
            let verified = self.verify_password(account_id, credential).await;
            Some(verified.map_err(as_step_up)?)
        };
        self.in_transaction(work!(|tx, now| {
            if let Some(verified) = verified {
                accounts::still_in_force(tx, account_id, &verified).await?;
            }
            sessions::set_stepped_up(tx, &hash, account_id, now).await
        }))
        .await
    }

    /// Uses up a code, a recovery code or a passkey's answer.
    async fn use_second_step(&self, token: &str, account_id: i64, step: &SecondStep) -> Result<()> {
        let (counted, number) = self.count_attempt(account_id).await?;
        let used = match step {
            SecondStep::Code(code) => self.use_code(account_id, code).await,
            SecondStep::RecoveryCode(code) => self.use_recovery_code(account_id, code).await,
            SecondStep::Passkey(answer) => self.use_passkey(token, account_id, answer).await,
        };
        match used {
            Ok(()) => {
                if let Some(counted) = counted {
                    self.inner.throttle.succeed(&counted);
                }
                self.in_transaction(work!(|tx, _| second_factors::end_wrong(tx, account_id).await))
                    .await?;
            }
            Err(error) => {
                let Some(refusal) = error.refusal() else {
                    if let Some(counted) = counted {
                        self.inner.throttle.uncount(&counted);
                    }
                    return Err(error);
                };
                let wrong = match step {
                    SecondStep::Passkey(_) => self.passkey_refused(account_id, refusal),
                    _ => self.event(SecurityEventKind::CodeWrong, Some(account_id)),
                };
                self.in_transaction(work!(|tx, now| {
                    notify_of_wrong_codes(tx, account_id, number, now).await?;
                    wrong.store(tx, now).await
                }))
                .await?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Counts an attempt as wrong before it is judged. Returns the device's count, if the device is
    /// known, and the number of wrong attempts in a row. A known device is limited only by its own
    /// attempts. All other browsers share one growing wait across all processes.
    async fn count_attempt(&self, account_id: i64) -> Result<(Option<Counted>, i64)> {
        let device = self.known_device_of(account_id).await?;
        let is_known = device.is_some();
        let counted = device.map(|device| {
            let name = format!("{account_id} {device}");
            self.count(Attempt::Code, &self.client.address, &name)
        });
        let counted = counted.transpose()?;
        let number = self.in_transaction(work!(|tx, now| {
            let Some((before, at)) = second_factors::wrong(tx, account_id).await? else {
                return Ok(0);
            };
            let next = at.plus_ms(wait_ms(before));
            if !is_known && now < next {
                let retry_after_s = (next.ms_since(now) / 1000).max(1);
                return Err(Refusal::Throttled { retry_after_s }.into());
            }
            if !second_factors::count_wrong(tx, account_id, before, now).await? {
                return Err(Refusal::Throttled { retry_after_s: 1 }.into());
            }
            Ok(before + 1)
        }));
        let number = number.await.inspect_err(|_| {
            self.inner.throttle.note_refused(Attempt::Code);
        })?;
        Ok((counted, number))
    }

    async fn use_code(&self, account_id: i64, code: &str) -> Result<()> {
        let stored = second_factors::of(&mut self.store().read().await?, account_id).await?;
        let sealed = stored.ok_or(Refusal::WrongCode)?.secret;
        let opened = self.unseal(&sealed_for(account_id), &sealed).await?;
        let secret = opened.try_into().map(TotpSecret);
        let secret = secret.map_err(|_| Error::Failed(Fault::Sealed))?;
        let step = secret.step_of(code, self.now()).ok_or(Refusal::WrongCode)?;
        self.in_transaction(work!(|tx, _| {
            if !second_factors::use_step(tx, account_id, &sealed, step).await? {
                return Err(Refusal::WrongCode.into());
            }
            Ok(())
        }))
        .await
    }

    async fn use_recovery_code(&self, account_id: i64, code: &str) -> Result<()> {
        let hash = recovery_hash(account_id, code);
        let used = self.factor_changed(account_id, FactorChange::CodeUsed);
        self.in_transaction(work!(|tx, now| {
            if !second_factors::use_code(tx, account_id, &hash).await? {
                return Err(Refusal::WrongRecoveryCode.into());
            }
            audit_owner(tx, now, account_id, "account.recovery_code", Change::default()).await?;
            used.store(tx, now).await
        }))
        .await
    }

    /// Counts an attempt to enter a code. Refuses it if there were too many.
    pub(super) fn count_code(&self, account_id: i64) -> Result<Counted> {
        let account = account_id.to_string();
        self.count(Attempt::Code, &self.client.address, &account)
    }

    fn recovery_codes(&self) -> Vec<String> {
        let code = |_| {
            let bytes: [u8; RECOVERY_CODE_CHARS] = self.entropy().bytes();
            let letter = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]);
            let groups = bytes.chunks(4).map(|four| four.iter().map(letter).collect());
            groups.collect::<Vec<String>>().join("-")
        };
        (0..RECOVERY_CODES).map(code).collect()
    }
}

/// How a second factor was changed or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactorChange {
    SetUp,
    Removed,
    NewCodes,
    CodeUsed,
    PasskeyAdded,
    PasskeyRemoved,
}

impl FactorChange {
    /// Returns the sentence that describes the change to the account's owner.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::SetUp => "An authenticator app was set up.",
            Self::Removed => {
                "The authenticator app, all passkeys and all recovery codes were removed. Signing in \
                 now needs only the password."
            }
            Self::NewCodes => "New recovery codes were created. The old ones no longer work.",
            Self::CodeUsed => {
                "A recovery code was used to sign in or to confirm an action. It no longer works."
            }
            Self::PasskeyAdded => {
                "A passkey was added. It can be used in place of a code from the authenticator app."
            }
            Self::PasskeyRemoved => "A passkey was removed. It no longer works.",
        }
    }

    const fn subject(self) -> &'static str {
        match self {
            Self::CodeUsed => "A recovery code of your account was used",
            _ => "The second factor of your account changed",
        }
    }

    const fn event(self) -> SecurityEventKind {
        match self {
            Self::CodeUsed => SecurityEventKind::RecoveryCodeUsed,
            Self::PasskeyAdded => SecurityEventKind::PasskeyAdded,
            Self::PasskeyRemoved => SecurityEventKind::PasskeyRemoved,
            Self::SetUp | Self::Removed | Self::NewCodes => SecurityEventKind::SecondFactorChanged,
        }
    }
}

/// The security event and the mail about a change to a second factor. The transaction of the change
/// stores both.
pub(crate) struct FactorChanged {
    account_id: i64,
    change: FactorChange,
    event: Event,
}

impl FactorChanged {
    /// Sets the detail of the event.
    pub(crate) fn about(mut self, detail: &str) -> Self {
        self.event.detail = Some(detail.to_owned());
        self
    }

    pub(crate) async fn store(&self, conn: Conn<'_>, now: Timestamp) -> Result<()> {
        if let Some(row) = accounts::by_id(conn, self.account_id).await? {
            let mail = texts::second_factor(self.change.subject(), self.change.sentence());
            mail::put(conn, &row.record, &mail, now).await?;
        }
        self.event.store(conn, now).await
    }
}

impl Accounts<'_> {
    pub(crate) fn factor_changed(&self, account_id: i64, change: FactorChange) -> FactorChanged {
        let mut event = self.event(change.event(), Some(account_id));
        event.detail = (change != FactorChange::CodeUsed).then(|| change.sentence().to_owned());
        FactorChanged { account_id, change, event }
    }
}

/// Returns how long the next attempt must wait after this many wrong codes in a row.
fn wait_ms(wrong: i64) -> i64 {
    if wrong < WRONG_CODES_FREE {
        return 0;
    }
    let doublings = u32::try_from(wrong - WRONG_CODES_FREE).unwrap_or(u32::MAX);
    (WRONG_CODE_WAIT_MS << doublings.min(10)).min(WRONG_CODE_WAIT_MAX_MS)
}

/// Mails the owner about the 10th, 20th, 40th, … wrong code in a row.
async fn notify_of_wrong_codes(
    conn: Conn<'_>,
    account_id: i64,
    number: i64,
    now: Timestamp,
) -> Result<()> {
    let tens = u64::try_from(number / WRONG_CODES_FREE).unwrap_or_default();
    if number % WRONG_CODES_FREE != 0 || !tens.is_power_of_two() {
        return Ok(());
    }
    if let Some(row) = accounts::by_id(conn, account_id).await? {
        mail::put(conn, &row.record, &texts::wrong_codes(number), now).await?;
    }
    Ok(())
}

/// Converts the refusal of a wrong code or password to that of a step-up authentication. A form can
/// have another field for a code or password, and its refusal must not appear there.
fn as_step_up(error: Error) -> Error {
    match error.refusal() {
        Some(Refusal::WrongCode | Refusal::WrongRecoveryCode) => Refusal::StepUpCodeWrong.into(),
        Some(Refusal::WrongPassword) => Refusal::StepUpPasswordWrong.into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests;
