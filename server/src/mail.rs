//! Sends mails through a mail server, by SMTP.

use std::net::IpAddr;
use std::time::{Duration, UNIX_EPOCH};

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::AsyncSmtpTransportBuilder;
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use service::OutgoingMail;
use url::{Host, Url};

use crate::config_error::ConfigError;

/// How long the mail server may take for a mail. This is less than a mail's lease.
const MAIL_TIMEOUT: Duration = Duration::from_mins(1);
/// The SMTP codes for a refused sign-in. Such a refusal isn't about the mail, and ends when an
/// operator corrects the settings. So the mail is retried.
const SIGN_IN_REFUSED: [u16; 4] = [530, 534, 535, 538];

/// The mail server, and the address that mails come from.
#[derive(Clone, Debug)]
pub struct MailServer {
    builder: AsyncSmtpTransportBuilder,
    from: Mailbox,
}

impl MailServer {
    /// Reads the settings `smtp_url` and `mail_from`. `smtps://` uses TLS from the first byte.
    /// `smtp://` requires STARTTLS, unless the server is on this machine, so that passwords and
    /// reset links don't leave the machine in the clear.
    pub fn parse(url: &str, from: &str) -> Result<Self, ConfigError> {
        let from: Mailbox = from.parse().map_err(|_| {
            ConfigError::new("mail_from must be an address like Heliograph <sms@example.org>")
        })?;
        // The URL may contain a password, so no error quotes it.
        let refused = || {
            ConfigError::new(
                "smtp_url must be of the form smtps://USER:PASSWORD@HOST:PORT or smtp://… (USER, \
                 PASSWORD and PORT may be left out)",
            )
        };
        let mut url = Url::parse(url).map_err(|_| refused())?;
        let is_bare = url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "smtp" | "smtps") || !is_bare || url.path().len() > 1 {
            return Err(refused());
        }
        let host = url.host().ok_or_else(refused)?;
        if url.scheme() == "smtp" && !is_this_machine(&host) {
            url.set_query(Some("tls=required"));
        }
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str())
            .map_err(|_| refused())?
            .hello_name(ClientId::Domain(from.email.domain().to_owned()));
        Ok(Self { builder, from })
    }
}

/// [`Url`] doesn't know the scheme `smtp`, so it may return an IP address as a name.
fn is_this_machine(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain(name) => {
            let address = name.parse::<IpAddr>();
            *name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
    }
}

/// Why a mail wasn't sent.
#[derive(Debug)]
pub struct NotSent {
    pub why: String,
    /// True if a retry is useless.
    pub for_good: bool,
}

impl NotSent {
    fn for_now(why: impl Into<String>) -> Self {
        Self { why: why.into(), for_good: false }
    }

    fn for_good(why: impl std::fmt::Display) -> Self {
        Self { why: why.to_string(), for_good: true }
    }
}

impl From<lettre::transport::smtp::Error> for NotSent {
    fn from(error: lettre::transport::smtp::Error) -> Self {
        let is_sign_in =
            error.status().is_some_and(|code| SIGN_IN_REFUSED.contains(&u16::from(code)));
        Self { for_good: error.is_permanent() && !is_sign_in, why: error.to_string() }
    }
}

/// Sends mails to the mail server.
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    mail_timeout: Duration,
}

impl Mailer {
    pub fn new(server: &MailServer) -> Self {
        Self::with_timeout(server, MAIL_TIMEOUT)
    }

    /// Creates a mailer with another time limit.
    pub fn with_timeout(server: &MailServer, mail_timeout: Duration) -> Self {
        Self { transport: server.builder.clone().build(), from: server.from.clone(), mail_timeout }
    }

    /// Sends a mail. On success, the mail server has the mail.
    ///
    /// # Errors
    /// If the server doesn't have the mail, or if that isn't known.
    pub async fn send(&self, mail: &OutgoingMail) -> Result<(), NotSent> {
        let message = self.message(mail)?;
        let sending = self.transport.send(message);
        match tokio::time::timeout(self.mail_timeout, sending).await {
            Ok(sent) => Ok(sent.map(drop)?),
            Err(_) => Err(NotSent::for_now("the mail server took too long")),
        }
    }

    /// Connects and signs in as for a mail, but sends none.
    ///
    /// # Errors
    /// If the server wouldn't accept a mail now.
    pub async fn check(&self) -> Result<(), NotSent> {
        let checking = self.transport.test_connection();
        match tokio::time::timeout(self.mail_timeout, checking).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(NotSent::for_now("the mail server closed the connection")),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(NotSent::for_now("the mail server took too long")),
        }
    }

    fn message(&self, mail: &OutgoingMail) -> Result<Message, NotSent> {
        let recipient: Address = mail.recipient.parse().map_err(NotSent::for_good)?;
        // The ID stays the same at each attempt, so that a recipient can recognise a mail that
        // arrives twice.
        let created_ms = mail.created_at.unix_ms();
        let domain = self.from.email.domain();
        let id = format!("<{created_ms}.{}@{domain}>", mail.id);
        let created = Duration::from_millis(created_ms.unsigned_abs());
        let auto = HeaderName::new_from_ascii_str("Auto-Submitted");
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, recipient))
            .subject(&mail.subject)
            .message_id(Some(id))
            .date(UNIX_EPOCH + created)
            // Prevents automatic replies (RFC 3834).
            .raw_header(HeaderValue::new(auto, "auto-generated".to_owned()))
            .multipart(MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone()))
            .map_err(NotSent::for_good)
    }
}

#[cfg(test)]
mod tests;
