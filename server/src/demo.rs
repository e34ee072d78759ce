//! `serve --demo`: a customer, a staff member and an Active, funded application, the same at every
//! start.
//!
//! A file in the data folder keeps the demo's passwords and keys, because the database has only
//! their hashes. The file is written before the database. Its field `settled` tells whether
//! everything was done. Until then, each start does everything again, so that the start after a
//! crash completes the demo.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use domain::records::{AccountRecord, ApplicationRecord};
use domain::{
    ApiKey, ApplicationStatus, Category, Email, KeyKind, Money, Password, Reference, Timestamp,
};
use serde::{Deserialize, Serialize};
use service::{Actor, DepositRequest, Refusal, Service, TotpSecret};

const FILE: &str = "demo.json";
const CUSTOMER: &str = "customer@example.org";
const STAFF: &str = "staff@example.org";
/// The client address that the sign-in throttle sees for the demo.
const CLIENT: &str = "demo";
/// The deposit to the application. It is repeated when the balance is too low.
const DEPOSIT: Money = Money::from_micros(10_000_000);
/// The balance below which another deposit is made, so that the printed curl line works.
const BALANCE_MIN: Money = Money::from_micros(1_000_000);
const PASSWORD_CHARS: usize = 20;
/// Letters and digits that can't be confused with one another. There are 32, so that a random byte
/// chooses each with the same probability.
const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz234567890";

/// Why the demo can't be prepared.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error(
        "--demo is refused: the database holds accounts that aren't the demo's; use another one"
    )]
    OtherAccounts,
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: std::io::Error },
    #[error("{} can't be read: {error}; delete it to make new sign-ins", path.display())]
    Unreadable { path: PathBuf, error: serde_json::Error },
    #[error(
        "{} belongs to another database: its application {reference} isn't in this one. Start with \
         the database it was made for or with another data_dir, or delete it to make new sign-ins",
        path.display()
    )]
    OtherDatabase { path: PathBuf, reference: String },
    #[error("{}", .0.for_operator())]
    Service(#[from] service::Error),
    #[error("the demo's data can't be created: {0}")]
    Impossible(&'static str),
    #[error("the system provides no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
}

/// The sign-ins and keys that are printed. A value that has been replaced since is `None`.
#[derive(Debug, Serialize)]
pub struct Demo {
    reference: Reference,
    api_key: Option<String>,
    test_key: Option<String>,
    customer: SignIn<Option<String>>,
    staff: StaffSignIn<Option<String>>,
}

/// A member of staff, who has a second factor.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StaffSignIn<P> {
    #[serde(flatten)]
    sign_in: SignIn<P>,
    /// In base32.
    totp_secret: P,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SignIn<P> {
    email: String,
    password: P,
}

/// The content of `demo.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    settled: bool,
    reference: Option<Reference>,
    api_key: Option<String>,
    test_key: Option<String>,
    customer: SignIn<String>,
    staff: StaffSignIn<String>,
}

/// Creates the missing parts of the demo, and returns its sign-ins and keys.
pub async fn prepare(service: &Service, data_dir: &Path) -> Result<Demo, DemoError> {
    refuse_others(service).await?;
    let path = data_dir.join(FILE);
    let mut kept = match read(&path)? {
        Some(kept) => kept,
        None => Kept::new(service)?,
    };
    if kept.settled {
        refuse_other_database(service, &path, &kept).await?;
    } else {
        write(&path, &kept)?;
        settle(service, &mut kept).await?;
        kept.settled = true;
        write(&path, &kept)?;
    }
    let application =
        application(service).await?.ok_or(DemoError::Impossible("the application is gone"))?;
    fund(service, &application).await?;
    shown(service, &application, kept).await
}

async fn refuse_others(service: &Service) -> Result<(), DemoError> {
    let mut others = service.accounts().account_count().await?;
    for email in [CUSTOMER, STAFF] {
        others -= i64::from(service.accounts().find_account(email).await?.is_some());
    }
    if others == 0 { Ok(()) } else { Err(DemoError::OtherAccounts) }
}

/// Refuses a settled file whose demo isn't in the database. Only the file has that demo's keys, and
/// the keys of a new demo would overwrite them.
async fn refuse_other_database(
    service: &Service,
    path: &Path,
    kept: &Kept,
) -> Result<(), DemoError> {
    let here = application(service).await?.map(|here| here.reference);
    if here.is_some() && here == kept.reference {
        return Ok(());
    }
    let path = path.to_owned();
    let reference = kept.reference.map(|known| known.to_string());
    let reference = reference.unwrap_or_default();
    Err(DemoError::OtherDatabase { path, reference })
}

async fn application(service: &Service) -> Result<Option<ApplicationRecord>, DemoError> {
    let applications = service.applications().all_applications().await?;
    Ok(applications
        .into_iter()
        .find(|application| application.email == CUSTOMER && application.category == Category::Sms))
}

/// Creates everything that is in the file but not in the database.
async fn settle(service: &Service, kept: &mut Kept) -> Result<(), DemoError> {
    let customer = account(service, &kept.customer, false).await?;
    let staff = account(service, &kept.staff.sign_in, true).await?;
    let secret = TotpSecret::parse(&kept.staff.totp_secret)
        .ok_or(DemoError::Impossible("demo.json has no usable totp_secret"))?;
    service.accounts().give_factor(&Actor::System, staff.id, &secret).await?;
    let (reference, live, test) = match application(service).await? {
        None => {
            let new =
                service.applications().create_application(customer.id, Category::Sms, None).await?;
            (new.reference, new.live_key, new.test_key)
        }
        Some(ApplicationRecord { reference, .. }) => {
            // An earlier start created the application and then ended before it wrote the keys to
            // the file, or the file was deleted.
            let password = &kept.customer.password;
            let renew = async |kind| {
                service
                    .applications()
                    .replace_key(customer.id, reference, kind, password, "", None)
                    .await
            };
            let (live, test) = (renew(KeyKind::Live).await?, renew(KeyKind::Test).await?);
            (reference, live, test)
        }
    };
    kept.reference = Some(reference);
    kept.api_key = Some(live.expose().to_owned());
    kept.test_key = Some(test.expose().to_owned());
    Ok(())
}

/// Returns the account with this email. Creates it if it is missing, else resets its password.
async fn account(
    service: &Service,
    sign_in: &SignIn<String>,
    staff: bool,
) -> Result<AccountRecord, DemoError> {
    let email = Email::parse(&sign_in.email)
        .map_err(|_| DemoError::Impossible("demo.json has no email address"))?;
    let password = Password::parse(&sign_in.password)
        .map_err(|_| DemoError::Impossible("demo.json has no usable password"))?;
    if let Some(account) = service.accounts().find_account(email.as_str()).await? {
        let token = service.accounts().issue_reset(&Actor::System, email.as_str()).await?;
        service.accounts().reset_password(&token, &password).await?;
        return Ok(account);
    }
    Ok(service.accounts().add_account(&Actor::System, &email, &password, staff).await?)
}

/// Approves a pending application, and makes a deposit if the balance is low. A suspended
/// application stays suspended, because a person decided that.
async fn fund(service: &Service, application: &ApplicationRecord) -> Result<(), DemoError> {
    if application.status == ApplicationStatus::Pending {
        match service.applications().approve(&Actor::System, application.reference).await {
            Ok(_) => {}
            Err(error) if matches!(error.refusal(), Some(Refusal::StatusConflict { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if application.balance >= BALANCE_MIN {
        return Ok(());
    }
    let request = DepositRequest {
        bank_id: format!("demo-{}", service.clock().now().unix_ms()),
        reference: application.reference.to_string(),
        amount: DEPOSIT,
    };
    service.money().add_deposit(&Actor::System, &request).await?;
    Ok(())
}

/// Returns the passwords and keys that still work, without those that have been replaced.
async fn shown(
    service: &Service,
    application: &ApplicationRecord,
    kept: Kept,
) -> Result<Demo, DemoError> {
    Ok(Demo {
        reference: application.reference,
        api_key: working_key(service, kept.api_key).await?,
        test_key: working_key(service, kept.test_key).await?,
        customer: working_sign_in(service, kept.customer).await?,
        staff: StaffSignIn {
            totp_secret: working_secret(service, kept.staff.totp_secret).await?,
            sign_in: working_sign_in(service, kept.staff.sign_in).await?,
        },
    })
}

async fn working_secret(service: &Service, text: String) -> Result<Option<String>, DemoError> {
    let staff = service.accounts().find_account(STAFF).await?;
    let in_force = match (staff, TotpSecret::parse(&text)) {
        (Some(staff), Some(secret)) => {
            service.accounts().factor_in_force(staff.id, &secret).await?
        }
        _ => false,
    };
    Ok(in_force.then_some(text))
}

async fn working_key(service: &Service, key: Option<String>) -> Result<Option<String>, DemoError> {
    let Some(key) = key else {
        return Ok(None);
    };
    let in_force = match ApiKey::parse(&key) {
        Ok(key) => service.applications().key_in_force(&key).await?,
        Err(_) => false,
    };
    Ok(in_force.then_some(key))
}

async fn working_sign_in(
    service: &Service,
    sign_in: SignIn<String>,
) -> Result<SignIn<Option<String>>, DemoError> {
    let SignIn { email, password } = sign_in;
    let password = match service.accounts().sign_in(&email, &password, CLIENT).await {
        Ok(_) => Some(password),
        Err(error) if error.refusal().is_some() => None,
        Err(error) => return Err(error.into()),
    };
    Ok(SignIn { email, password })
}

impl Kept {
    fn new(service: &Service) -> Result<Self, DemoError> {
        let sign_in = |email: &str| -> Result<_, DemoError> {
            Ok(SignIn { email: email.to_owned(), password: password()? })
        };
        Ok(Self {
            settled: false,
            reference: None,
            api_key: None,
            test_key: None,
            customer: sign_in(CUSTOMER)?,
            staff: StaffSignIn {
                sign_in: sign_in(STAFF)?,
                totp_secret: service.accounts().new_totp_secret().base32(),
            },
        })
    }
}

fn password() -> Result<String, DemoError> {
    let mut bytes = [0_u8; PASSWORD_CHARS];
    getrandom::fill(&mut bytes)?;
    let letter = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]);
    Ok(bytes.iter().map(letter).collect())
}

fn read(path: &Path) -> Result<Option<Kept>, DemoError> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error(path, error)),
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| DemoError::Unreadable { path: path.to_owned(), error })
}

/// Writes a temporary file and renames it, so that a crash leaves either the old file or the new
/// one. Only the owner can read the file, because it contains passwords and keys.
fn write(path: &Path, kept: &Kept) -> Result<(), DemoError> {
    let beside = path.with_extension("json.new");
    let done = (|| {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // The temporary file of a start that crashed may have another mode.
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        serde_json::to_writer_pretty(&mut file, kept)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    })();
    done.map_err(|error| file_error(path, error))
}

fn file_error(path: &Path, error: std::io::Error) -> DemoError {
    DemoError::File { path: path.to_owned(), error }
}

impl Demo {
    /// Returns the code that the staff member's authenticator app shows now, and the secret for
    /// later codes.
    fn code(&self, now: Timestamp) -> String {
        let text = self.staff.totp_secret.as_deref();
        match text.and_then(|text| Some((text, TotpSecret::parse(text)?))) {
            Some((text, secret)) => {
                format!("code {} (secret for later codes: {text})", secret.code(now))
            }
            None => "(second factor changed since)".to_owned(),
        }
    }

    /// Returns the sign-ins and a curl line as text for people.
    pub fn words(&self, url: &str, now: Timestamp) -> String {
        let password = |sign_in: &SignIn<Option<String>>| match &sign_in.password {
            Some(password) => format!("password {password}"),
            None => "(password changed since)".to_owned(),
        };
        let mut lines = vec![
            format!("customer  {}  {}", self.customer.email, password(&self.customer)),
            format!(
                "staff     {}  {}  {}",
                self.staff.sign_in.email,
                password(&self.staff.sign_in),
                self.code(now)
            ),
            format!("mails     {url}/support/mail, for staff"),
            String::new(),
        ];
        match &self.api_key {
            Some(key) => lines.push(format!(
                "curl --get '{url}/sms/send/{key}' --data-urlencode 'number=57000001' \
                 --data-urlencode 'message=Hello from Heliograph'"
            )),
            None => lines.push(format!(
                "The key of application {} was replaced since; send with the new one.",
                self.reference
            )),
        }
        lines.join("\n")
    }
}
