//! Rules for the URLs of webhooks, and for the addresses that the server connects to.
//!
//! A customer chooses the URL, and the server sends the request from inside its own network.
//! Without these rules, a customer could reach services that trust this network (server-side
//! request forgery). A URL is checked when it is stored and before each attempt. The addresses of
//! its host are checked for each connection, because a name can resolve to another address at any
//! time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, ParseError, Url};

/// The maximum length of a URL, as given and as stored.
pub const URL_CHARS_MAX: usize = 2000;

/// IPv4 networks that aren't part of the public internet: the IANA registry of special-purpose
/// addresses (RFC 6890), except the few entries in it that are globally reachable services.
const SPECIAL_V4: [Ipv4Net; 16] = [
    v4([0, 0, 0, 0], 8),       // this network, and the unspecified address
    v4([10, 0, 0, 0], 8),      // private
    v4([100, 64, 0, 0], 10),   // shared by the customers of a carrier (RFC 6598)
    v4([127, 0, 0, 0], 8),     // loopback
    v4([169, 254, 0, 0], 16),  // link-local, has the metadata services of clouds
    v4([172, 16, 0, 0], 12),   // private
    v4([192, 0, 0, 0], 24),    // IETF protocols, and Oracle Cloud's metadata service
    v4([192, 0, 2, 0], 24),    // documentation
    v4([192, 88, 99, 0], 24),  // relays of 6to4, deprecated
    v4([192, 168, 0, 0], 16),  // private
    v4([198, 18, 0, 0], 15),   // benchmarks
    v4([198, 51, 100, 0], 24), // documentation
    v4([203, 0, 113, 0], 24),  // documentation
    v4([224, 0, 0, 0], 4),     // multicast
    v4([240, 0, 0, 0], 4),     // reserved, and broadcast
    // Looks public, but every virtual machine in Azure reaches its host's control service there.
    v4([168, 63, 129, 16], 32),
];

/// The only public IPv6 unicast addresses. Outside are loopback, unspecified, IPv4-compatible,
/// discard-only, unique local, link-local, site-local and multicast addresses, and what IANA hasn't
/// assigned.
const PUBLIC_V6: Ipv6Net = v6([0x2000, 0, 0, 0], 3);
/// The networks in [`PUBLIC_V6`] that aren't part of the public internet.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0, 0, 0], 23),     // IETF protocols: Teredo, benchmarks, ORCHID
    v6([0x2001, 0xdb8, 0, 0], 32), // documentation
    // 6to4 is deprecated (RFC 7526), so it is refused whatever IPv4 address is embedded.
    v6([0x2002, 0, 0, 0], 16),
    v6([0x3fff, 0, 0, 0], 20), // documentation
];
/// A NAT64 gateway translates these addresses to the IPv4 address in the last 32 bits (RFC 6052).
/// On a network with only IPv6, DNS64 returns such an address for each host that has only IPv4.
///
/// The prefix for local use, 64:ff9b:1::/48, is refused, because each gateway chooses where in it
/// the IPv4 address is. An operator who uses it lists it.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0], 96);

/// The operator's rules for the URLs of webhooks.
#[derive(Clone, Debug, Default)]
pub struct EndpointRules {
    /// Whether `http` is allowed besides `https`. The setting `webhook_allow_http`.
    pub allow_http: bool,
    /// Networks that are allowed although they aren't public. The setting `webhook_networks`. An
    /// IPv4 network is written as IPv4, because mapped addresses are compared in that form.
    pub networks: Vec<IpNet>,
}

/// A URL that satisfies the rules, as the WHATWG URL standard normalizes it. So the stored text
/// shows where requests go, whatever the customer wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointUrl(Url);

/// Why a URL is refused. The sentence is for the customer and says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    #[error("The URL is longer than 2,000 characters. Use a shorter one.")]
    TooLong,
    #[error("The URL contains spaces or control characters. Remove them.")]
    Characters,
    #[error("This isn't a URL. Write it like https://example.com/webhook.")]
    Malformed,
    #[error("The URL has no host. Write it like https://example.com/webhook.")]
    NoHost,
    #[error("The URL starts with http. Use https.")]
    HttpNotAllowed,
    #[error("A webhook can't use this scheme. Use a URL that starts with https.")]
    Scheme,
    #[error(
        "The URL contains a user name or a password. Remove them, and check the signature of each \
         request instead."
    )]
    Credentials,
    #[error("The URL has a fragment. Remove # and everything after it.")]
    Fragment,
    #[error("The host is a private or reserved address. Use a host on the public internet.")]
    Address,
}

impl EndpointUrl {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the parsed URL, so that the sender uses exactly what was checked.
    pub fn into_url(self) -> Url {
        self.0
    }
}

impl EndpointRules {
    /// Parses a URL and checks everything that is known without resolving the host name.
    ///
    /// A URL with a fragment is refused: HTTP never sends the fragment, so the customer's program
    /// would miss it.
    pub fn check_url(&self, url: &str) -> Result<EndpointUrl, UrlFault> {
        // The parser would remove line ends and tabs, and blanks at both ends.
        if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(UrlFault::Characters);
        }
        if url.chars().nth(URL_CHARS_MAX).is_some() {
            return Err(UrlFault::TooLong);
        }
        let url = Url::parse(url).map_err(|error| match error {
            ParseError::EmptyHost => UrlFault::NoHost,
            _ => UrlFault::Malformed,
        })?;
        match url.scheme() {
            "https" => {}
            "http" if self.allow_http => {}
            "http" => return Err(UrlFault::HttpNotAllowed),
            _ => return Err(UrlFault::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlFault::Credentials);
        }
        if url.fragment().is_some() {
            return Err(UrlFault::Fragment);
        }
        let is_allowed = match url.host().ok_or(UrlFault::NoHost)? {
            Host::Ipv4(ip) => self.allows(ip.into()),
            Host::Ipv6(ip) => self.allows(ip.into()),
            Host::Domain(name) => self.allows_name(name)?,
        };
        if !is_allowed {
            return Err(UrlFault::Address);
        }
        // Normalizing makes a URL longer, for example by percent-encoding. The result is ASCII.
        if url.as_str().len() > URL_CHARS_MAX {
            return Err(UrlFault::TooLong);
        }
        Ok(EndpointUrl(url))
    }

    /// Whether the server may connect to this address: it is public, or in one of the listed
    /// networks.
    ///
    /// An IPv4-mapped address counts as its IPv4 address, and so does a NAT64 address
    /// (64:ff9b::/96). Other addresses that embed an IPv4 address are refused, whatever it is:
    /// 6to4, Teredo, IPv4-compatible, and the local NAT64 prefix.
    pub fn allows(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        if self.networks.iter().any(|network| network.contains(&ip)) {
            return true;
        }
        match ip {
            IpAddr::V4(ip) => !SPECIAL_V4.iter().any(|network| network.contains(&ip)),
            IpAddr::V6(ip) if NAT64.contains(&ip) => {
                let [.., a, b, c, d] = ip.octets();
                self.allows(Ipv4Addr::new(a, b, c, d).into())
            }
            IpAddr::V6(ip) => {
                PUBLIC_V6.contains(&ip) && !SPECIAL_V6.iter().any(|network| network.contains(&ip))
            }
        }
    }

    /// Whether a URL may have this host name. `localhost` and the names below it always stand for
    /// the loopback addresses (RFC 6761). They may resolve to either, so both must be allowed.
    fn allows_name(&self, name: &str) -> Result<bool, UrlFault> {
        let name = name.trim_end_matches('.');
        if name.is_empty() {
            return Err(UrlFault::NoHost);
        }
        let is_loopback = name.rsplit('.').next() == Some("localhost");
        Ok(!is_loopback
            || self.allows(Ipv4Addr::LOCALHOST.into()) && self.allows(Ipv6Addr::LOCALHOST.into()))
    }
}

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6([a, b, c, d]: [u16; 4], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), prefix)
}

#[cfg(test)]
mod tests;
