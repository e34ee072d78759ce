//! What would cross a network in the clear is refused, unless the settings ask for it.

use std::net::SocketAddr;
use std::str::FromStr;

use reqwest::Url;

use super::ConfigError;
use super::carriers::{CarrierKind, CarrierSettings};

/// A way off the machine on which somebody in between could read along.
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
    const ALL: [Self; 5] = [
        Self::Ops,
        Self::Postgres,
        Self::HttpCarriers,
        Self::SmppCarriers,
        Self::BaseUrl,
    ];

    const fn word(self) -> &'static str {
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
        all.find(|way| way.word() == text).ok_or(())
    }
}

/// The ways that the settings ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed(Vec<Cleartext>);

impl Allowed {
    /// Reads words that are separated by commas.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let words = text.split(',').map(str::trim);
        let ways = words.filter(|word| !word.is_empty()).map(str::parse);
        let ways: Result<_, ()> = ways.collect();
        ways.map(Self).map_err(|()| {
            let words = Cleartext::ALL.map(Cleartext::word).join(", ");
            ConfigError::new(format!("allow_cleartext must be a list of {words}"))
        })
    }

    fn unless(&self, way: Cleartext, harmless: bool, fault: &str) -> Result<(), ConfigError> {
        if harmless || self.0.contains(&way) {
            return Ok(());
        }
        let word = way.word();
        Err(ConfigError::new(format!(
            "{fault}; where the network between is yours alone, allow_cleartext={word} lets it pass"
        )))
    }

    pub fn check_ops(&self, addr: SocketAddr) -> Result<(), ConfigError> {
        let harmless = addr.ip().to_canonical().is_loopback();
        let fault = format!(
            "ops_addr {addr} can be reached from outside, in the clear and without a sign-in: take \
             a loopback address"
        );
        self.unless(Cleartext::Ops, harmless, &fault)
    }

    /// The database of a setting or an argument, which the error calls by its name.
    pub fn check_database(&self, name: &str, url: &str) -> Result<(), ConfigError> {
        let host = service::unprotected_host(url);
        let fault = format!(
            "{name}: between here and {} passwords and messages could be read and changed on the \
             way: end the URL with ?sslmode=verify-full (sslrootcert=FILE names an authority of \
             your own)",
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
                    "its url is http://, so that its password and all messages could be read on \
                     the way: take https://",
                ),
                CarrierKind::Smpp(smpp) => (
                    Cleartext::SmppCarriers,
                    smpp.tls.is_some() || is_loopback(smpp.address.host()),
                    "it has no tls = true, so that its password and all messages could be read on \
                     the way: take TLS, for which carriers mostly have a port of its own",
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
            "customers would use {base_url}, where passwords and keys could be read on the way: \
             set base_url to the https:// address that they use"
        );
        self.unless(Cleartext::BaseUrl, harmless, &fault)
    }
}

/// Whether nobody between can read what is sent to a URL.
fn is_harmless(url: &Url) -> bool {
    // An IPv6 address stands in brackets.
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    url.scheme() == "https" || is_loopback(host)
}

/// Whether a host, an IPv6 address without brackets, is this machine.
fn is_loopback(host: &str) -> bool {
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}
