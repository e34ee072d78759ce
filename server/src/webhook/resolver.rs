//! Resolves the hosts of endpoints and checks their addresses. The connection goes to the checked
//! addresses, so a later change of the DNS records can't lead it elsewhere.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::read_system_conf;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use service::EndpointRules;

/// The maximum number of unanswered queries on one TCP connection to a DNS server. Further queries
/// fail at once. With a low limit, names whose servers are dead would make others fail.
const QUERIES_MAX: usize = 10_000;

/// Queries the DNS servers in `/etc/resolv.conf`, and reads `/etc/hosts`. The system's own lookup
/// would block a thread for each name, so names whose servers are dead would delay all others.
pub struct DnsResolver(TokioResolver);

/// Passes on only addresses that the rules allow.
pub struct CheckedResolver<R> {
    rules: Arc<EndpointRules>,
    resolver: Arc<R>,
}

/// Why there is no address to connect to. The sentences don't contain the addresses, because they
/// would tell a customer about our network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveFault {
    #[error("The host resolves to an address that isn't allowed: it is private or reserved.")]
    NotAllowed,
    #[error("The host name can't be resolved. Check its DNS records.")]
    NotFound,
}

impl DnsResolver {
    /// Reads the system's settings. Without any, the DNS server is on this machine
    /// (`resolv.conf(5)`).
    pub fn new() -> Result<Self, NetError> {
        let (config, mut options) = read_system_conf().unwrap_or_else(|error| {
            tracing::warn!(%error, "/etc/resolv.conf has no DNS server: using 127.0.0.1");
            let local = NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into());
            (ResolverConfig::from_parts(None, Vec::new(), vec![local]), ResolverOpts::default())
        });
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.max_active_requests = QUERIES_MAX;
        let provider = TokioRuntimeProvider::default();
        let builder = TokioResolver::builder_with_config(config, provider).with_options(options);
        Ok(Self(builder.build()?))
    }
}

impl Resolve for DnsResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.0.clone();
        Box::pin(async move {
            let found = resolver.lookup_ip(name.as_str()).await?;
            // reqwest replaces port 0 by that of the URL.
            let found: Vec<_> = found.iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

impl<R> CheckedResolver<R> {
    pub fn new(rules: Arc<EndpointRules>, resolver: R) -> Self {
        Self { rules, resolver: Arc::new(resolver) }
    }
}

impl<R: Resolve + 'static> Resolve for CheckedResolver<R> {
    fn resolve(&self, name: Name) -> Resolving {
        let (rules, resolver) = (Arc::clone(&self.rules), Arc::clone(&self.resolver));
        Box::pin(async move {
            let found = resolver.resolve(name).await.map_err(|_| ResolveFault::NotFound)?;
            let checked = checked(&rules, found.collect())?;
            Ok(Box::new(checked.into_iter()) as Addrs)
        })
    }
}

/// Returns the addresses if all are allowed. A host with both public and special addresses is
/// refused: it is misconfigured or an attack, and would work only sometimes.
fn checked(
    rules: &EndpointRules,
    addresses: Vec<SocketAddr>,
) -> Result<Vec<SocketAddr>, ResolveFault> {
    if addresses.is_empty() {
        return Err(ResolveFault::NotFound);
    }
    if !addresses.iter().all(|address| rules.allows(address.ip())) {
        return Err(ResolveFault::NotAllowed);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_must_be_allowed() {
        let rules =
            EndpointRules { allow_http: false, networks: vec!["10.1.0.0/16".parse().unwrap()] };
        let cases: &[(&[&str], Option<ResolveFault>)] = &[
            (&["93.184.216.34"], None),
            (&["93.184.216.34", "2606:2800:220:1::1"], None),
            (&["93.184.216.34", "10.1.2.3"], None),
            (&[], Some(ResolveFault::NotFound)),
            (&["127.0.0.1"], Some(ResolveFault::NotAllowed)),
            (&["93.184.216.34", "127.0.0.1"], Some(ResolveFault::NotAllowed)),
            (&["10.2.0.1", "93.184.216.34"], Some(ResolveFault::NotAllowed)),
            (&["::ffff:169.254.169.254"], Some(ResolveFault::NotAllowed)),
            (&["93.184.216.34", "fe80::1"], Some(ResolveFault::NotAllowed)),
        ];
        for (texts, fault) in cases {
            let addresses: Vec<_> =
                texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect();
            let expected = fault.map_or_else(|| Ok(addresses.clone()), Err);
            assert_eq!(checked(&rules, addresses), expected, "{texts:?}");
        }
    }

    #[tokio::test]
    async fn localhost_is_on_this_machine() {
        let name = || "localhost".parse().unwrap();
        let networks = ["127.0.0.0/8", "::1/128"].map(|network| network.parse().unwrap());
        let rules = EndpointRules { allow_http: false, networks: networks.into() };
        let resolver = CheckedResolver::new(Arc::new(rules), DnsResolver::new().unwrap());
        let mut found = resolver.resolve(name()).await.unwrap();
        assert!(found.all(|address| address.ip().is_loopback()));
        let resolver = CheckedResolver::new(Arc::default(), DnsResolver::new().unwrap());
        let error = resolver.resolve(name()).await.err().unwrap();
        assert_eq!(error.downcast_ref(), Some(&ResolveFault::NotAllowed));
    }
}
