//! Refuses settings that would send data unencrypted over a network, unless `allow_cleartext`
//! permits it.

use std::net::SocketAddr;
use std::str::FromStr;

use reqwest::Url;

use super::carriers::{CarrierKind, CarrierSettings};
use crate::config_error::ConfigError;

/// A connection that others could read if it leaves the machine unencrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleartext {
    /// Health and metrics.
    Ops,
    Postgres,
    HttpCarriers,
    SmppCarriers,
    /// The address that customers use.
    BaseUrl,
}

impl Cleartext {
    const ALL: [Self; 5] =
        [Self::Ops, Self::Postgres, Self::HttpCarriers, Self::SmppCarriers, Self::BaseUrl];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Ops => "ops",
            Self::Postgres => "postgres",
            Self::HttpCarriers => "http_carriers",
            Self::SmppCarriers => "smpp_carriers",
            Self::BaseUrl => "base_url",
        }
    }
}

impl FromStr for Cleartext {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut all = Self::ALL.into_iter();
        all.find(|way| way.as_str() == text).ok_or(())
    }
}

/// The connections that the settings allow to be unencrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed(Vec<Cleartext>);

impl Allowed {
    /// Parses codes that are separated by commas.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let words = text.split(',').map(str::trim);
        let ways = words.filter(|word| !word.is_empty()).map(str::parse);
        let ways: Result<_, ()> = ways.collect();
        ways.map(Self).map_err(|()| {
            let codes = Cleartext::ALL.map(Cleartext::as_str).join(", ");
            ConfigError::new(format!("allow_cleartext must be a list of any of {codes}"))
        })
    }

    fn unless(&self, way: Cleartext, harmless: bool, fault: &str) -> Result<(), ConfigError> {
        if harmless || self.0.contains(&way) {
            return Ok(());
        }
        let code = way.as_str();
        Err(ConfigError::new(format!(
            "{fault}. If nobody else has access to that network, set allow_cleartext={code} instead"
        )))
    }

    pub fn check_ops(&self, addr: SocketAddr) -> Result<(), ConfigError> {
        let harmless = addr.ip().to_canonical().is_loopback();
        let fault = format!(
            "ops_addr {addr} can be reached from outside, unencrypted and without a sign-in: use a \
             loopback address"
        );
        self.unless(Cleartext::Ops, harmless, &fault)
    }

    /// Checks the database URL of a setting or an argument. `name` is that setting or argument, for
    /// the error.
    pub fn check_database(&self, name: &str, url: &str) -> Result<(), ConfigError> {
        let host = service::unprotected_host(url);
        let fault = format!(
            "{name}: passwords and messages could be read and changed on the way to {}: end the \
             URL with ?sslmode=verify-full (and add &sslrootcert=FILE if the certificate authority \
             is your own)",
            host.as_deref().unwrap_or_default()
        );
        self.unless(Cleartext::Postgres, host.is_none(), &fault)
    }

    pub fn check_carriers(&self, carriers: &[CarrierSettings]) -> Result<(), ConfigError> {
        for carrier in carriers {
            let (way, harmless, why) = match &carrier.kind {
                CarrierKind::Sandbox => continue,
                CarrierKind::Http(http) => (
                    Cleartext::HttpCarriers,
                    http.example_url().is_none_or(|url| is_harmless(&url)),
                    "its url is http://, so its password and all messages could be read in \
                     transit: use https://",
                ),
                CarrierKind::Smpp(smpp) => (
                    Cleartext::SmppCarriers,
                    smpp.tls.is_some()
                        || [Some(&smpp.address), smpp.backup_address.as_ref()]
                            .into_iter()
                            .flatten()
                            .all(|address| is_loopback(address.host())),
                    "it has no tls = true, so its password and all messages could be read in \
                     transit: set tls = true, for which most carriers have a separate port",
                ),
            };
            let fault = format!("[[carrier]] {}: {why}", carrier.name);
            self.unless(way, harmless, &fault)?;
        }
        Ok(())
    }

    pub fn check_base_url(&self, base_url: &str) -> Result<(), ConfigError> {
        let harmless = Url::parse(base_url).is_ok_and(|url| is_harmless(&url));
        let fault = format!(
            "customers would use {base_url}, where passwords and keys could be read in transit: \
             set base_url to the https:// address that they use"
        );
        self.unless(Cleartext::BaseUrl, harmless, &fault)
    }
}

/// Returns whether nobody else can read the requests to a URL.
fn is_harmless(url: &Url) -> bool {
    // `host_str` returns an IPv6 address in brackets.
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    url.scheme() == "https" || is_loopback(host)
}

/// Returns whether a host is this machine. An IPv6 address must be without brackets.
fn is_loopback(host: &str) -> bool {
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}
