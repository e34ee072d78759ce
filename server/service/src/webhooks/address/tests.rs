use super::*;

fn rules(allow_http: bool, networks: &[&str]) -> EndpointRules {
    let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
    EndpointRules { allow_http, networks }
}

fn check(rules: &EndpointRules, url: &str) -> Result<String, UrlFault> {
    rules.check_url(url).map(|url| url.as_str().to_owned())
}

#[test]
fn public_urls_are_accepted_and_normalized() {
    let rules = rules(true, &[]);
    let cases = [
        ("https://example.com", "https://example.com/"),
        ("https://example.com/hook?a=b%20c", "https://example.com/hook?a=b%20c"),
        ("HTTPS://EXAMPLE.com:443/Hook", "https://example.com/Hook"),
        ("http://example.com:80/", "http://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://example.com:8443/", "https://example.com:8443/"),
        ("https://example.com./", "https://example.com./"),
        ("https://example.com/a/../b", "https://example.com/b"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("https://mylocalhost/", "https://mylocalhost/"),
        ("https://localhost.example.com/", "https://localhost.example.com/"),
        ("https://93.184.216.34/", "https://93.184.216.34/"),
        ("https://0x5db8d822/", "https://93.184.216.34/"),
        ("https://[2606:2800:220:1::1]/", "https://[2606:2800:220:1::1]/"),
        ("https://[64:ff9b::93.184.216.34]/", "https://[64:ff9b::5db8:d822]/"),
        // A browser reads these the same way. The stored text shows the host.
        (r"https:\\example.com\@127.0.0.1", "https://example.com/@127.0.0.1"),
        ("https:example.com", "https://example.com/"),
        ("https://@example.com/", "https://example.com/"),
    ];
    for (url, expected) in cases {
        assert_eq!(check(&rules, url).as_deref(), Ok(expected), "{url}");
    }
}

#[test]
fn urls_that_no_webhook_can_have_are_refused() {
    let rules = rules(true, &["0.0.0.0/0", "::/0"]);
    let cases = [
        ("", UrlFault::Malformed),
        ("example.com/hook", UrlFault::Malformed),
        ("//example.com/hook", UrlFault::Malformed),
        ("/hook", UrlFault::Malformed),
        ("https://", UrlFault::NoHost),
        ("https:///", UrlFault::NoHost),
        ("https://?a", UrlFault::NoHost),
        ("https://:443/", UrlFault::NoHost),
        ("https://./", UrlFault::NoHost),
        ("https://../", UrlFault::NoHost),
        ("https://example.com:99999/", UrlFault::Malformed),
        ("https://example.com:port/", UrlFault::Malformed),
        ("https://exa%00mple.com/", UrlFault::Malformed),
        ("https://exa<mple.com/", UrlFault::Malformed),
        ("https://256.0.0.1/", UrlFault::Malformed),
        ("https://1.2.3.4.5/", UrlFault::Malformed),
        ("https://4294967296/", UrlFault::Malformed),
        ("https://[::1", UrlFault::Malformed),
        ("https://[fe80::1%25eth0]/", UrlFault::Malformed),
        ("ftp://example.com/", UrlFault::Scheme),
        ("ws://example.com/", UrlFault::Scheme),
        ("gopher://example.com/_x", UrlFault::Scheme),
        ("file:///etc/passwd", UrlFault::Scheme),
        ("data:text/plain,x", UrlFault::Scheme),
        ("unix:/run/docker.sock", UrlFault::Scheme),
        ("javascript:alert(1)", UrlFault::Scheme),
        ("httpss://example.com/", UrlFault::Scheme),
        ("example.com:443/hook", UrlFault::Scheme),
        ("https://user@example.com/", UrlFault::Credentials),
        ("https://user:password@example.com/", UrlFault::Credentials),
        ("https://:password@example.com/", UrlFault::Credentials),
        ("https://example.com@127.0.0.1/", UrlFault::Credentials),
        ("https://example.com%2f@127.0.0.1/", UrlFault::Credentials),
        ("https://example.com/#a", UrlFault::Fragment),
        ("https://example.com/#", UrlFault::Fragment),
        (" https://example.com/", UrlFault::Characters),
        ("https://example.com/\n", UrlFault::Characters),
        ("https://exam\tple.com/", UrlFault::Characters),
        ("https://example.com/a b", UrlFault::Characters),
        ("https://example.com/\r\nX-A: b", UrlFault::Characters),
        ("https://example.com/\0", UrlFault::Characters),
        ("https://example.com/\u{7f}", UrlFault::Characters),
        ("https://example.com/\u{85}", UrlFault::Characters),
        ("https://example.com/\u{a0}", UrlFault::Characters),
        ("https://example.com/\u{3000}", UrlFault::Characters),
    ];
    for (url, fault) in cases {
        assert_eq!(check(&rules, url), Err(fault), "{url:?}");
    }
}

#[test]
fn http_needs_the_operators_permission() {
    assert_eq!(check(&rules(false, &[]), "http://example.com/"), Err(UrlFault::HttpNotAllowed));
    assert!(check(&rules(true, &[]), "http://example.com/").is_ok());
    assert!(check(&rules(false, &[]), "https://example.com/").is_ok());
}

#[test]
fn a_url_has_at_most_2000_characters() {
    let rules = EndpointRules::default();
    let url = |filler: &str, count| format!("https://example.com/{}", filler.repeat(count));
    assert!(check(&rules, &url("a", 1980)).is_ok());
    assert_eq!(check(&rules, &url("a", 1981)), Err(UrlFault::TooLong));
    assert_eq!(check(&rules, &url("a", 10_240)), Err(UrlFault::TooLong));
    // Each of these is stored as six characters.
    assert!(check(&rules, &url("ü", 330)).is_ok());
    assert_eq!(check(&rules, &url("ü", 331)), Err(UrlFault::TooLong));
}

/// Each of these hosts is one of our own addresses, or only looks public.
const SPECIAL_HOSTS: [&str; 63] = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.255.255.254",
    "127.1",
    "127.0.1",
    "2130706433",
    "0177.0.0.1",
    "0x7f.1",
    "0x7f000001",
    "0X7F.0.0.0x1",
    "017700000001",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "１２７.０.０.１",
    "127。0。0。1",
    "①②⑦.0.0.1",
    "127.0.0.1\u{ad}",
    "localhost",
    "localhost.",
    "localhost..",
    "LOCALHOST",
    "ｌｏｃａｌｈｏｓｔ",
    "ⓛocalhost",
    "local%68ost",
    "api.localhost",
    "a.b.localhost.",
    "0",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.1",
    "012.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.19.255.255",
    "203.0.113.1",
    "224.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:a9fe:a9fe]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::8.8.8.8]",
    "[2002:7f00:1::]",
    "[2001:0:5ef5:79fd::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[ff02::1]",
];

#[test]
fn hosts_that_are_special_addresses_are_refused() {
    let closed = rules(true, &[]);
    let open = rules(true, &["0.0.0.0/0", "::/0"]);
    for host in SPECIAL_HOSTS {
        for url in [
            format!("http://{host}/"),
            format!("https://{host}:8443/x?y"),
            format!("https:{host}"),
            format!(r"http:\\{host}\x"),
        ] {
            assert_eq!(check(&closed, &url), Err(UrlFault::Address), "{url}");
            assert!(check(&open, &url).is_ok(), "{url}");
        }
    }
}

#[test]
fn a_listed_network_allows_its_hosts_only() {
    let rules = rules(true, &["127.0.0.0/8", "10.1.0.0/16", "fd00::/8"]);
    let allowed = [
        "127.0.0.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "10.1.2.3",
        "[64:ff9b::10.1.2.3]",
        "[fd12::1]",
        "93.184.216.34",
        "example.com",
    ];
    for host in allowed {
        assert!(check(&rules, &format!("http://{host}/")).is_ok(), "{host}");
    }
    // `localhost` may also be ::1, which isn't listed.
    let refused = ["10.2.0.1", "[::1]", "[fe80::1]", "[::ffff:10.2.0.1]", "localhost"];
    for host in refused {
        let fault = check(&rules, &format!("http://{host}/"));
        assert_eq!(fault, Err(UrlFault::Address), "{host}");
    }
    let both = self::rules(true, &["127.0.0.0/8", "::1/128"]);
    assert!(check(&both, "http://localhost:3000/").is_ok());
}

#[test]
fn special_networks_end_where_they_should() {
    let rules = EndpointRules::default();
    // The first and the last address of each, and the public ones before and after it.
    let cases = [
        ("", "0.0.0.0", "0.255.255.255", "1.0.0.0"),
        ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
        ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"),
        ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"),
        ("168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"),
        ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"),
        ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"),
        ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
        ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"),
        ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"),
        ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"),
        ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"),
        ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"),
        ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"),
        ("223.255.255.255", "224.0.0.0", "255.255.255.255", ""),
        ("", "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"),
        ("2000:ffff::", "2001::", "2001:1ff:ffff::", "2001:200::"),
        ("2001:db7:ffff::", "2001:db8::", "2001:db8:ffff::", "2001:db9::"),
        ("2001:ffff::", "2002::", "2002:ffff::", "2003::"),
        ("3ffe:ffff::", "3fff::", "3fff:fff::", "3fff:1000::"),
        ("3fff:ffff::", "4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""),
    ];
    for (before, first, last, after) in cases {
        for special in [first, last] {
            assert!(!rules.allows(special.parse().unwrap()), "{special}");
        }
        for public in [before, after].into_iter().filter(|text| !text.is_empty()) {
            assert!(rules.allows(public.parse().unwrap()), "{public}");
        }
    }
}

#[test]
fn every_special_ipv4_address_is_special_in_every_ipv6_form() {
    let rules = EndpointRules::default();
    for network in SPECIAL_V4 {
        for ip in [network.network(), network.broadcast()] {
            let [a, b, c, d] = ip.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let forms = [
                ip.to_ipv6_mapped(),
                Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low), // IPv4-compatible
                Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low), // IPv4-translated
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low), // NAT64
                Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low), // local NAT64
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1), // 6to4
                Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !high, !low), // Teredo
                Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0x5efe, high, low), // ISATAP
            ];
            for form in forms {
                assert!(!rules.allows(form.into()), "{form} for {ip}");
            }
        }
    }
}

#[test]
fn a_listed_ipv6_network_allows_no_mapped_ipv4_address() {
    let rules = rules(true, &["::/0"]);
    assert!(rules.allows("::1".parse().unwrap()));
    assert!(!rules.allows("::ffff:127.0.0.1".parse().unwrap()));
    assert!(!rules.allows("127.0.0.1".parse().unwrap()));
}
