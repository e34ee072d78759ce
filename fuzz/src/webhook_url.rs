//! The URLs of webhooks.

use service::EndpointRules;

/// A URL that is accepted is accepted again as it is stored, and stays within the rules.
pub fn webhook_url(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let strict = EndpointRules::default();
    let networks = ["0.0.0.0/0", "::/0"].iter().filter_map(|network| network.parse().ok());
    let open = EndpointRules { allow_http: true, networks: networks.collect() };
    let opened = open.check_url(text);
    if let Ok(url) = &opened {
        assert_eq!(open.check_url(url.as_str()).as_ref(), Ok(url));
        assert!(url.as_str().len() <= service::URL_CHARS_MAX && url.as_str().is_ascii());
    }
    let Ok(url) = strict.check_url(text) else {
        return;
    };
    assert_eq!(opened.as_ref(), Ok(&url));
    assert_eq!(strict.check_url(url.as_str()).as_ref(), Ok(&url));
    let url = url.into_url();
    assert_eq!(url.scheme(), "https");
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
    // An address in any form is public.
    let host = url.host_str().unwrap_or_default();
    assert!(!host.is_empty());
    assert_ne!(host.trim_end_matches('.').rsplit('.').next(), Some("localhost"));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    assert!(host.parse().map_or(true, |ip| strict.allows(ip)));
}
