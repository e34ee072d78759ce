//! Settings: defaults < `heliograph.toml` < environment `HELIOGRAPH_*` < flags.
//!
//! All settings are checked before anything starts. An error names the setting and where it is set.

pub mod carriers;
mod cleartext;
mod file;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod layers;
mod secret;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use app::footer::Footer;
use domain::support_hours::SupportHours;
use domain::{AddressRange, Money, Prices, SenderName, Timestamp};

use crate::config_error::ConfigError;
use crate::mail::MailServer;
use crate::telemetry::LogFormat;
use crate::tls::TlsFiles;
use carriers::Carriers;
pub use cleartext::Allowed;
pub use layers::{Source, read_secret};
use layers::{Tables, Values};
use reqwest::Url;
use service::{EndpointRules, OptOutSettings};

/// The highest `message_pages_max`. A request's body may be as large as the longest message needs,
/// and each request holds its body in memory.
const MESSAGE_PAGES_LIMIT: usize = 100;
/// The highest `bulk_rows_max`. Every 2,048 rows of an upload use up the message IDs of one
/// millisecond.
const BULK_ROWS_LIMIT: u64 = 10_000_000;
/// The highest `bulk_bytes_max`: each upload under way may take 4 GiB of disk.
const BULK_BYTES_LIMIT: u64 = 4 * 1024 * 1024 * 1024;
/// The highest limit of client connections. Each connection costs about 10 KiB and a file
/// descriptor.
const CONNECTIONS_LIMIT: usize = 1_000_000;
/// A network may have as many connections as this many addresses.
const ADDRESSES_PER_NETWORK: usize = 4;
/// The highest `requests_per_second`.
const REQUESTS_LIMIT: u32 = 1_000_000;
/// The limits of `stop_delay_seconds`. A proxy checks the server's health every second or two, so a
/// minute is enough.
const STOP_DELAY_LIMITS_S: RangeInclusive<u64> = 0..=60;
/// The limits of `history_days`. Segments and their carrier message IDs are kept for a week, and a
/// message lives for two days.
const HISTORY_LIMITS_DAYS: RangeInclusive<i64> = 10..=36_500;
/// The limits of `event_days`. An event is attempted for more than two days, and an endpoint that
/// is enabled again gets the events of the last three days.
const EVENT_LIMITS_DAYS: RangeInclusive<i64> = 4..=3650;
const RAW_RECEIPTS_LIMITS_DAYS: RangeInclusive<i64> = 0..=365;
/// The limits of `text_days` and `mask_numbers_days`, if they aren't 0. Each attempt to deliver an
/// event about an inbound message reads the message, which must still be whole then.
const REDACTION_LIMITS_DAYS: RangeInclusive<i64> = 4..=36_500;
/// The limits of `mail_days` and `security_event_days`.
const ACCOUNT_DATA_LIMITS_DAYS: RangeInclusive<i64> = 1..=3650;
const CALL_LOG_LIMITS_DAYS: RangeInclusive<i64> = 0..=3650;
/// The limits of `lease_seconds`. Carriers' timeouts shrink with the lease, but the time to finish
/// a partly written submit doesn't, so the lease can't be very short. After a crash, claimed
/// messages wait until their lease ends, so it can't be very long either.
const LEASE_LIMITS_S: RangeInclusive<i64> = 10..=600;
/// The limits of `changes_at_once`.
const CHANGES_LIMITS: RangeInclusive<u32> = 1..=1_000_000;
/// The maximum length of settings that are lines of text, such as `payment_instructions`.
const LINES_CHARS: usize = 1_000;
/// The longest URL of a link in the footer.
const LINK_BYTES: usize = 1_000;
/// The settings of a demo, unless they are set.
const DEMO_CONTACT: &str = "support@example.org, +266 2231 0000, Monday to Friday 8:00 to 17:00 \
                            (Maseru)";
const DEMO_DEPOSIT_TIME: &str = "1 to 3 working days";
const DEMO_OPERATOR: &str = "Heliograph demo\n1 Example Street\nTax number: 000000";
const DEMO_PAYMENT: &str = "Payee: Example SMS Ltd\nBank: Example Bank, account 000 123 456";
/// The links in the footer, with their settings.
const FOOTER_LINKS: [(&str, &str); 3] =
    [("Terms", "terms_url"), ("Privacy", "privacy_url"), ("Imprint", "imprint_url")];
/// The networks of this machine, where the endpoints of a demo may be.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];
/// The highest `sandbox_delay_ms`: an hour.
const SANDBOX_DELAY_LIMIT_MS: u64 = 3_600_000;

/// The maximum numbers of client connections at a time.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    pub all: usize,
    pub address: usize,
    pub network: usize,
}

/// The settings in force.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Portal and API.
    pub addr: SocketAddr,
    /// Health and metrics. They are never on the public address.
    pub ops_addr: SocketAddr,
    /// For links and snippets, without a slash at its end. If it isn't set, it is derived from the
    /// address.
    pub base_url: Option<String>,
    pub database_url: String,
    pub data_dir: PathBuf,
    /// ISO 4217 code.
    pub currency: String,
    pub prices: Prices,
    /// Whom customers pay, and how. Lines of text.
    pub payment_instructions: Option<String>,
    pub deposit_time: Option<String>,
    pub operator_details: Option<String>,
    pub footer: Footer,
    /// The hours in which staff answer.
    pub support_hours: Option<SupportHours>,
    /// Put before a local number that is submitted to a carrier.
    pub country_code: String,
    pub tls: Option<TlsFiles>,
    /// Whether a proxy in front of us does TLS.
    pub behind_proxy: bool,
    /// What may cross a network unencrypted.
    pub allow_cleartext: Allowed,
    /// If it isn't set, mails are kept for staff.
    pub mail: Option<MailServer>,
    /// The sender name of applications that have none.
    pub default_sender: String,
    /// `X-Forwarded-For` is trusted only from these networks.
    pub trusted_proxies: Vec<AddressRange>,
    endpoints: EndpointRules,
    pub opt_outs: OptOutSettings,
    pub connections: ConnectionLimits,
    /// Whether sending to the sandbox outside a demo is intended.
    pub allow_sandbox: bool,
    pub sandbox_delay_ms: u64,
    pub limits: service::Limits,
    /// How long to keep serving after a stop is requested.
    pub stop_delay: Duration,
    /// The folder of the portal's files.
    pub site_root: PathBuf,
    /// `error`, `warn`, `info` or `debug`.
    pub log: tracing::Level,
    /// `text` or `json`.
    pub log_format: LogFormat,
    pub carriers: Carriers,
    /// The settings file that was read, if there is one.
    pub file: Option<PathBuf>,
    /// The faults because of which carriers and routes, or the whole file, were left out.
    pub fault: Option<String>,
    values: Values,
    tables_shown: carriers::Shown,
    /// The file and the flags of the command line.
    given: (Option<PathBuf>, Vec<(&'static str, String)>),
}

impl Settings {
    /// Reads and checks all settings.
    pub fn load(
        config_flag: Option<&Path>,
        environment: impl Iterator<Item = (OsString, OsString)>,
        flags: &[(&'static str, String)],
    ) -> Result<Self, ConfigError> {
        let (values, tables) = layers::read(config_flag, environment, flags)?;
        let settings = Self::from_values(values, tables)?;
        Ok(Self { given: (config_flag.map(Path::to_owned), flags.to_vec()), ..settings })
    }

    /// Reads the settings for a command that needs no carriers, if a fault keeps [`Self::load`]
    /// from reading the file. Leaves out carriers and routes, and the whole file if `file` is
    /// false.
    pub fn load_rest(
        config_flag: Option<&Path>,
        file: bool,
        flags: &[(&'static str, String)],
        fault: &ConfigError,
    ) -> Result<Self, ConfigError> {
        let config = if file { config_flag } else { Some(Path::new("/dev/null")) };
        let (values, tables) = layers::read(config, std::env::vars_os(), flags)?;
        let tables = Tables { file: tables.file, ..Tables::default() };
        let settings = Self::from_values(values, tables)?;
        let read = settings.file.filter(|_| file);
        Ok(Self { file: read, fault: Some(fault.to_string()), ..settings })
    }

    /// Reads all settings again, from the same places and the process's environment.
    pub fn load_again(&self) -> Result<Self, ConfigError> {
        let (file, flags) = &self.given;
        Self::load(file.as_deref(), std::env::vars_os(), flags)
    }

    /// Returns the names of the settings with another value. Ignores carriers and routes.
    pub fn changed_values(&self, other: &Self) -> String {
        let text = |values: &Values, name: &str| values.get(name).map(|value| value.text.clone());
        let changed = (other.values.keys())
            .filter(|name| text(&self.values, name) != text(&other.values, name));
        changed.map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    fn from_values(values: Values, tables: Tables) -> Result<Self, ConfigError> {
        let read = Reader(&values);
        let base_url = read.base_url()?;
        let file = (!tables.file.is_empty()).then(|| PathBuf::from(&tables.file));
        let (carriers, tables_shown) = carriers::read(tables, base_url.as_deref())?;
        let settings = Self {
            addr: read.parsed("addr", "an address like 127.0.0.1:3000")?,
            ops_addr: read.parsed("ops_addr", "an address like 127.0.0.1:3002")?,
            base_url,
            database_url: read.database_url()?,
            data_dir: PathBuf::from(read.text("data_dir")),
            currency: read.matching("currency", "three capital letters like USD", |text| {
                text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase())
            })?,
            prices: read.prices()?,
            payment_instructions: read.lines("payment_instructions")?,
            deposit_time: read.lines("deposit_time")?,
            operator_details: read.lines("operator_details")?,
            footer: read.footer()?,
            support_hours: read.support_hours()?,
            country_code: read.matching("country_code", "1 to 3 digits like 266", |text| {
                (1..=3).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
            })?,
            tls: read.tls()?,
            behind_proxy: read.parsed("behind_proxy", "true or false")?,
            allow_cleartext: Allowed::parse(read.text("allow_cleartext"))?,
            mail: read.mail()?,
            default_sender: read.matching(
                "default_sender",
                "1 to 11 letters and digits",
                |text| SenderName::parse(text).is_ok(),
            )?,
            trusted_proxies: read.networks("trusted_proxies")?,
            endpoints: EndpointRules {
                allow_http: read.parsed("webhook_allow_http", "true or false")?,
                networks: read.networks("webhook_networks")?,
            },
            opt_outs: OptOutSettings::parse(|name| read.text(name))
                .map_err(|error| ConfigError::new(error.to_string()))?,
            connections: read.connections()?,
            allow_sandbox: read.parsed("allow_sandbox", "true or false")?,
            sandbox_delay_ms: read.within("sandbox_delay_ms", &(0..=SANDBOX_DELAY_LIMIT_MS))?,
            limits: read.limits()?,
            stop_delay: Duration::from_secs(
                read.within("stop_delay_seconds", &STOP_DELAY_LIMITS_S)?,
            ),
            site_root: PathBuf::from(read.text("site_root")),
            log: read.choice(
                "log",
                "error, warn, info or debug",
                &[
                    ("error", tracing::Level::ERROR),
                    ("warn", tracing::Level::WARN),
                    ("info", tracing::Level::INFO),
                    ("debug", tracing::Level::DEBUG),
                ],
            )?,
            log_format: read.choice(
                "log_format",
                "text or json",
                &[("text", LogFormat::Text), ("json", LogFormat::Json)],
            )?,
            carriers,
            fault: None,
            file,
            values: Values::new(),
            tables_shown,
            given: (None, Vec::new()),
        };
        settings.refuse_plain_http()?;
        settings.refuse_cleartext()?;
        Ok(Self { values, ..settings })
    }

    /// Refuses a public address without TLS, because passwords and keys must not cross a network
    /// unencrypted.
    fn refuse_plain_http(&self) -> Result<(), ConfigError> {
        if self.addr.ip().is_loopback() || self.tls.is_some() || self.behind_proxy {
            return Ok(());
        }
        Err(ConfigError::new(format!(
            "addr {} can be reached from outside, and without TLS, keys and passwords could be \
             read in transit: set tls_cert and tls_key, or behind_proxy=true if a proxy does TLS",
            self.addr
        )))
    }

    /// Refuses settings without carriers, unless sending to the sandbox is intended.
    pub fn refuse_sandbox(&self, is_demo: bool) -> Result<(), ConfigError> {
        if self.carriers.list.is_empty() && !is_demo && !self.allow_sandbox {
            return Err(ConfigError::new(
                "there is no carrier, so messages would only go to the sandbox: add a [[carrier]] \
                 to heliograph.toml, set HELIOGRAPH_ALLOW_SANDBOX=true if you want that, or start \
                 with --demo",
            ));
        }
        Ok(())
    }

    /// Refuses other unencrypted connections that leave the machine, unless the settings allow
    /// them.
    fn refuse_cleartext(&self) -> Result<(), ConfigError> {
        let allowed = &self.allow_cleartext;
        allowed.check_base_url(&self.base_url(self.addr))?;
        allowed.check_ops(self.ops_addr)?;
        allowed.check_database("database_url", &self.database_url)?;
        allowed.check_carriers(&self.carriers.list)
    }

    /// Returns the address for links. `bound` is the address that the server really listens on.
    pub fn base_url(&self, bound: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        self.base_url.clone().unwrap_or_else(|| format!("{scheme}://{bound}"))
    }

    /// Returns the settings of a demo, which has examples for the texts that aren't set.
    pub fn of_demo(&self) -> Self {
        let mut settings = self.clone();
        settings.footer.support_contact.get_or_insert_with(|| DEMO_CONTACT.to_owned());
        settings.payment_instructions.get_or_insert_with(|| DEMO_PAYMENT.to_owned());
        settings.deposit_time.get_or_insert_with(|| DEMO_DEPOSIT_TIME.to_owned());
        settings.operator_details.get_or_insert_with(|| DEMO_OPERATOR.to_owned());
        settings
    }

    /// Returns where endpoints may be. Those of a demo may be on this machine, without TLS, unless
    /// the settings say otherwise.
    pub fn endpoint_rules(&self, demo: bool) -> EndpointRules {
        let is_default =
            |name: &str| self.values.get(name).is_none_or(|value| value.source == Source::Default);
        let mut rules = self.endpoints.clone();
        if demo && is_default("webhook_allow_http") {
            rules.allow_http = true;
        }
        if demo && is_default("webhook_networks") {
            rules.networks = LOOPBACK.iter().filter_map(|network| network.parse().ok()).collect();
        }
        rules
    }

    /// Returns each setting with its value (secrets masked) and its source.
    pub fn shown(&self) -> Vec<(String, Option<String>, Source)> {
        let plain = self.values.iter().map(|(name, value)| {
            let is_secret = layers::SECRETS.contains(&name.as_str());
            let text = Some(&value.text).filter(|text| !text.is_empty());
            let text = text.map(|text| if is_secret { masked(text) } else { text.clone() });
            (name.clone(), text, value.source)
        });
        let tables = (self.tables_shown.iter())
            .map(|(name, text, source)| (name.clone(), Some(text.clone()), *source));
        plain.chain(tables).collect()
    }
}

/// Masks the password of a URL. Masks any other secret completely.
fn masked(text: &str) -> String {
    if text.starts_with("sqlite:") {
        text.to_owned()
    } else if text.contains("://") {
        service::without_password(text)
    } else {
        "***".to_owned()
    }
}

/// Parses the texts of settings. Every error names its setting.
struct Reader<'a>(&'a Values);

impl Reader<'_> {
    fn refused(&self, name: &str, wanted: &str) -> ConfigError {
        let origin = self.0.get(name).map_or("", |value| &value.origin);
        ConfigError::new(format!("{origin}: {name} must be {wanted}"))
    }

    /// Returns the text of a setting, or `None` if it isn't set.
    fn optional(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| &value.text)
    }

    fn parsed<T: FromStr>(&self, name: &str, wanted: &str) -> Result<T, ConfigError> {
        self.text(name).parse().map_err(|_| self.refused(name, wanted))
    }

    fn matching(
        &self,
        name: &str,
        wanted: &str,
        fits: impl Fn(&str) -> bool,
    ) -> Result<String, ConfigError> {
        let text = self.text(name);
        if fits(text) { Ok(text.to_owned()) } else { Err(self.refused(name, wanted)) }
    }

    fn within<T>(&self, name: &str, allowed: &RangeInclusive<T>) -> Result<T, ConfigError>
    where
        T: FromStr + PartialOrd + std::fmt::Display,
    {
        let wanted = format!("a whole number from {} to {}", allowed.start(), allowed.end());
        let value: T = self.parsed(name, &wanted)?;
        if allowed.contains(&value) { Ok(value) } else { Err(self.refused(name, &wanted)) }
    }

    /// Returns the days after which something is erased, or 0 if it never is.
    fn redaction_days(&self, name: &str) -> Result<i64, ConfigError> {
        if self.text(name) == "0" {
            return Ok(0);
        }
        let refused = |_| {
            let (first, last) = (REDACTION_LIMITS_DAYS.start(), REDACTION_LIMITS_DAYS.end());
            self.refused(name, &format!("0, or a whole number from {first} to {last}"))
        };
        self.within(name, &REDACTION_LIMITS_DAYS).map_err(refused)
    }

    /// Returns the value that a word stands for.
    fn choice<T: Copy>(
        &self,
        name: &str,
        wanted: &str,
        words: &[(&str, T)],
    ) -> Result<T, ConfigError> {
        let text = self.text(name);
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| self.refused(name, wanted))
    }

    fn base_url(&self) -> Result<Option<String>, ConfigError> {
        let Some(text) = self.optional("base_url") else {
            return Ok(None);
        };
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let plain = |host: &str| {
            !host.is_empty() && !host.contains(['?', '#', '@', ' ', '"', '<', '>', '\'', '\\'])
        };
        if host.is_some_and(plain) {
            Ok(Some(text.trim_end_matches('/').to_owned()))
        } else {
            Err(self.refused("base_url", "a URL like https://sms.example.org"))
        }
    }

    fn database_url(&self) -> Result<String, ConfigError> {
        let text = self.text("database_url");
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(text.to_owned()),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                Ok(text.to_owned())
            }
            _ => Err(self.refused(
                "database_url",
                "of the form sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE",
            )),
        }
    }

    fn prices(&self) -> Result<Prices, ConfigError> {
        let price = |name: &str| {
            Money::parse(self.text(name))
                .map_err(|_| self.refused(name, "a decimal number like 0.05"))
        };
        let (local, international) = (price("price_local")?, price("price_international")?);
        Prices::new(local, international).map_err(|_| {
            ConfigError::new(
                "price_international must be greater than price_local, and price_local greater \
                 than 0",
            )
        })
    }

    /// Reads lines of text.
    fn lines(&self, name: &str) -> Result<Option<String>, ConfigError> {
        let text = self.text(name).replace("\r\n", "\n");
        let text = text.trim();
        let is_plain = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n');
        if text.chars().count() > LINES_CHARS || !is_plain(text) {
            let wanted = "at most 1000 characters in lines, without control characters";
            return Err(self.refused(name, wanted));
        }
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    fn footer(&self) -> Result<Footer, ConfigError> {
        let mut links = Vec::new();
        for (name, key) in FOOTER_LINKS {
            let Some(text) = self.optional(key) else { continue };
            let is_web = |url: &Url| matches!(url.scheme(), "https" | "http");
            let url = Url::parse(text).ok().filter(|url| is_web(url) && text.len() <= LINK_BYTES);
            let url = url.ok_or_else(|| self.refused(key, "a URL like https://example.org/x"))?;
            links.push((name, url.into()));
        }
        Ok(Footer { support_contact: self.lines("support_contact")?, links })
    }

    fn support_hours(&self) -> Result<Option<SupportHours>, ConfigError> {
        let name = "support_hours";
        let Some(text) = self.optional(name) else { return Ok(None) };
        let hours = SupportHours::parse(text);
        let is_known = |hours: &SupportHours| {
            service::zones::zone(hours.zone(), Timestamp::from_unix_ms(0)).is_some()
        };
        let wanted = "days, hours and a time zone, like Mon-Fri 08:00-17:00 Africa/Maseru";
        hours.filter(is_known).map(Some).ok_or_else(|| self.refused(name, wanted))
    }

    fn tls(&self) -> Result<Option<TlsFiles>, ConfigError> {
        match (self.optional("tls_cert"), self.optional("tls_key")) {
            (None, None) => Ok(None),
            (Some(cert), Some(key)) => {
                Ok(Some(TlsFiles { cert: PathBuf::from(cert), key: PathBuf::from(key) }))
            }
            (Some(_), None) => Err(ConfigError::new("tls_cert is set, so tls_key must be too")),
            (None, Some(_)) => Err(ConfigError::new("tls_key is set, so tls_cert must be too")),
        }
    }

    fn networks<T: FromStr>(&self, name: &str) -> Result<Vec<T>, ConfigError> {
        self.text(name)
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(|text| {
                text.parse().map_err(|_| {
                    self.refused(name, "networks like 10.0.0.0/8, separated by commas")
                })
            })
            .collect()
    }

    fn connections(&self) -> Result<ConnectionLimits, ConfigError> {
        let read = |name| self.within(name, &(1..=CONNECTIONS_LIMIT));
        let address = read("connections_per_address")?;
        let network = address * ADDRESSES_PER_NETWORK;
        Ok(ConnectionLimits { all: read("connections_max")?, address, network })
    }

    fn limits(&self) -> Result<service::Limits, ConfigError> {
        Ok(service::Limits {
            message_pages_max: self.within("message_pages_max", &(1..=MESSAGE_PAGES_LIMIT))?,
            bulk_rows_max: self.within("bulk_rows_max", &(1..=BULK_ROWS_LIMIT))?,
            bulk_bytes_max: self.within("bulk_bytes_max", &(1..=BULK_BYTES_LIMIT))?,
            requests_per_second: Some(self.within("requests_per_second", &(0..=REQUESTS_LIMIT))?)
                .filter(|limit| *limit > 0),
            sign_in_failures_max: self.within("sign_in_failures_max", &(1..=i64::MAX))?,
            registrations_max: self.within("registrations_max", &(1..=i64::MAX))?,
            changes_at_once: self.within("changes_at_once", &CHANGES_LIMITS)?,
            unpaid_bytes_max: self.within("unpaid_bytes_max", &(0..=i64::MAX))?,
            unpaid_test_messages: self.within("unpaid_test_messages", &(0..=i64::MAX))?,
            withdrawn_messages_max: self.within("withdrawn_messages_max", &(1..=i64::MAX))?,
            lease_ms: self.within("lease_seconds", &LEASE_LIMITS_S)? * 1000,
            history_days: self.within("history_days", &HISTORY_LIMITS_DAYS)?,
            text_days: self.redaction_days("text_days")?,
            mask_numbers_days: self.redaction_days("mask_numbers_days")?,
            event_days: self.within("event_days", &EVENT_LIMITS_DAYS)?,
            raw_receipts_days: self.within("raw_receipts_days", &RAW_RECEIPTS_LIMITS_DAYS)?,
            mail_days: self.within("mail_days", &ACCOUNT_DATA_LIMITS_DAYS)?,
            security_event_days: self.within("security_event_days", &ACCOUNT_DATA_LIMITS_DAYS)?,
            call_log_days: self.within("call_log_days", &CALL_LOG_LIMITS_DAYS)?,
            message_tables: self.choice(
                "message_tables",
                "day or week",
                &[("day", service::MessageTables::Day), ("week", service::MessageTables::Week)],
            )?,
            own_applications: self.parsed("own_applications", "true or false")?,
            four_eyes: self.parsed("four_eyes", "true or false")?,
            require_second_factor: self.choice(
                "require_second_factor",
                "staff or all",
                &[("staff", service::FactorRule::Staff), ("all", service::FactorRule::All)],
            )?,
            ..service::Limits::default()
        })
    }

    fn mail(&self) -> Result<Option<MailServer>, ConfigError> {
        match (self.optional("smtp_url"), self.optional("mail_from")) {
            (None, _) => Ok(None),
            (Some(_), None) => Err(ConfigError::new(
                "smtp_url is set, so mail_from must be too: the address that mails are sent from",
            )),
            (Some(url), Some(from)) => MailServer::parse(url, from).map(Some),
        }
    }
}

#[cfg(test)]
mod tests;
