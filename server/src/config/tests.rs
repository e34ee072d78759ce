use std::ffi::OsString;

use domain::AddressRange;
use service::{FactorRule, MessageTables};

use super::Settings;

fn load(environment: &[(&str, &str)]) -> Result<Settings, String> {
    let environment =
        environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Settings::load(None, environment, &[]).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_enough() {
    let settings = load(&[]).unwrap();
    assert_eq!(settings.addr.to_string(), "127.0.0.1:3000");
    assert_eq!(settings.base_url(settings.addr), "http://127.0.0.1:3000");
    assert_eq!(settings.prices.local.to_string(), "0.05");
    // The service reads its limits from the same file.
    let limits = format!("{:?}", service::Limits::default());
    assert_eq!(format!("{:?}", settings.limits), limits);
}

#[test]
fn a_lease_is_set_in_seconds() {
    let settings = load(&[("HELIOGRAPH_LEASE_SECONDS", "10")]).unwrap();
    assert_eq!(settings.limits.lease_ms, 10_000);
}

#[test]
fn a_table_has_the_messages_of_a_day_or_of_a_week() {
    let tables = |environment: &[_]| load(environment).unwrap().limits.message_tables;
    assert_eq!(tables(&[]), MessageTables::Day);
    let weeks = [("HELIOGRAPH_MESSAGE_TABLES", "week")];
    assert_eq!(tables(&weeks), MessageTables::Week);
}

#[test]
fn a_second_factor_is_required_of_staff_or_of_all() {
    let rule = |environment: &[_]| load(environment).unwrap().limits.require_second_factor;
    assert_eq!(rule(&[]), FactorRule::Staff);
    let all = [("HELIOGRAPH_REQUIRE_SECOND_FACTOR", "all")];
    assert_eq!(rule(&all), FactorRule::All);
}

#[test]
fn payment_instructions_are_lines_of_text() {
    let instructions = |text: &str| {
        let settings = load(&[("HELIOGRAPH_PAYMENT_INSTRUCTIONS", text)]);
        settings.map(|settings| settings.payment_instructions)
    };
    assert_eq!(instructions(" \n"), Ok(None));
    let lines = "Acme Ltd\r\nFirst Bank, 12-34 \n".to_owned();
    let shown = "Acme Ltd\nFirst Bank, 12-34".to_owned();
    assert_eq!(instructions(&lines), Ok(Some(shown)));
    assert!(instructions(&"ü".repeat(1000)).is_ok());
    for refused in ["ü".repeat(1001), "a\u{1b}b".to_owned()] {
        let said = instructions(&refused).unwrap_err();
        assert!(said.contains("payment_instructions"), "{said}");
    }
}

#[test]
fn support_hours_are_days_hours_and_a_zone() {
    let hours = |text: &str| load(&[("HELIOGRAPH_SUPPORT_HOURS", text)]).map(|s| s.support_hours);
    assert_eq!(hours(""), Ok(None));
    let set = hours("Mon-Fri 08:00-17:00 Africa/Maseru").unwrap().unwrap();
    assert_eq!((set.zone(), set.day_ms()), ("Africa/Maseru", 9 * 3_600_000));
    for refused in ["Mon-Fri 08:00-17:00", "Mon-Fri 08:00-17:00 Africa/Nowhere", "always"] {
        let said = hours(refused).unwrap_err();
        assert!(said.contains("support_hours"), "{said}");
    }
}

#[test]
fn links_below_pages_are_urls_of_pages() {
    let links = |text: &str| load(&[("HELIOGRAPH_TERMS_URL", text)]).map(|s| s.footer.links);
    assert_eq!(links(""), Ok(Vec::new()));
    let terms = "https://example.org/terms";
    assert_eq!(links(terms), Ok(vec![("Terms", terms.to_owned())]));
    for refused in ["example.org/terms", "javascript:alert(1)", "/terms", "mailto:a@b.example"] {
        let said = links(refused).unwrap_err();
        assert!(said.contains("terms_url"), "{said}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (variable, value, named) in [
        ("HELIOGRAPH_ADRR", "127.0.0.1:1", "HELIOGRAPH_ADRR"),
        ("HELIOGRAPH_addr", "127.0.0.1:1", "HELIOGRAPH_addr"),
        ("HELIOGRAPH_ADDR", "here", "addr"),
        ("HELIOGRAPH_ADDR", "0.0.0.0:80", "tls_cert"),
        ("HELIOGRAPH_PRICE_LOCAL", "0.25", "price_international"),
        ("HELIOGRAPH_PRICE_LOCAL", "0", "price_local"),
        ("HELIOGRAPH_PRICE_LOCAL", "1e-2", "price_local"),
        ("HELIOGRAPH_CURRENCY", "usd", "currency"),
        ("HELIOGRAPH_COUNTRY_CODE", "+266", "country_code"),
        ("HELIOGRAPH_TLS_CERT", "a.pem", "tls_key"),
        ("HELIOGRAPH_BEHIND_PROXY", "yes", "behind_proxy"),
        ("HELIOGRAPH_REQUIRE_SECOND_FACTOR", "none", "require_second_factor"),
        ("HELIOGRAPH_DATABASE_URL", "postgres:u", "database_url"),
        ("HELIOGRAPH_DATABASE_URL", "mysql://h/d", "database_url"),
        ("HELIOGRAPH_SMTP_URL", "smtp://h", "mail_from"),
        ("HELIOGRAPH_TRUSTED_PROXIES", "10.0.0.0/33", "trusted_proxies"),
        ("HELIOGRAPH_MESSAGE_PAGES_MAX", "0", "message_pages_max"),
        ("HELIOGRAPH_BULK_ROWS_MAX", "0", "bulk_rows_max"),
        ("HELIOGRAPH_BULK_BYTES_MAX", "256M", "bulk_bytes_max"),
        ("HELIOGRAPH_REQUESTS_PER_SECOND", "-1", "requests_per_second"),
        ("HELIOGRAPH_CONNECTIONS_MAX", "0", "connections_max"),
        ("HELIOGRAPH_CONNECTIONS_PER_ADDRESS", "many", "connections_per_address"),
        ("HELIOGRAPH_LEASE_SECONDS", "9", "lease_seconds"),
        ("HELIOGRAPH_MESSAGE_TABLES", "month", "message_tables"),
        ("HELIOGRAPH_DEFAULT_SENDER", "two words", "default_sender"),
        ("HELIOGRAPH_LOG", "loud", "log"),
        ("HELIOGRAPH_LOG_FORMAT", "xml", "log_format must be text or json"),
        ("HELIOGRAPH_ADDR_FILE", "/dev/null", "HELIOGRAPH_ADDR_FILE"),
    ] {
        let error = load(&[(variable, value)]).unwrap_err();
        assert!(error.contains(named), "{variable}={value}: {error}");
        assert!(!error.contains("u:p"), "{error}");
    }
}

#[test]
fn a_proxy_allows_a_public_address() {
    assert!(
        load(&[
            ("HELIOGRAPH_ADDR", "0.0.0.0:80"),
            ("HELIOGRAPH_BEHIND_PROXY", "true"),
            ("HELIOGRAPH_BASE_URL", "https://sms.example.org"),
        ])
        .is_ok()
    );
}

#[test]
fn networks_hold_their_addresses() {
    for (network, address, inside) in [
        ("10.0.0.0/8", "10.9.8.7", true),
        ("10.0.0.0/8", "11.0.0.1", false),
        ("0.0.0.0/0", "203.0.113.9", true),
        ("::/0", "2001:db8::1", true),
        ("::1", "::1", true),
        ("::1", "::2", false),
        ("127.0.0.0/8", "::ffff:127.0.0.1", true),
        ("10.0.0.0/8", "2001:db8::1", false),
    ] {
        let network: AddressRange = network.parse().unwrap();
        assert_eq!(network.contains(address.parse().unwrap()), inside);
    }
}

#[test]
fn cleartext_leaves_the_machine_only_where_it_is_asked_for() {
    let proxy = [("HELIOGRAPH_ADDR", "10.0.0.11:3000"), ("HELIOGRAPH_BEHIND_PROXY", "true")];
    for (way, settings) in [
        ("ops", &[("HELIOGRAPH_OPS_ADDR", "10.0.0.11:3002")][..]),
        ("ops", &[("HELIOGRAPH_OPS_ADDR", "[::]:3002")]),
        ("base_url", &proxy),
        ("base_url", &[proxy[0], proxy[1], ("HELIOGRAPH_BASE_URL", "http://sms.example.org")]),
        ("base_url", &[("HELIOGRAPH_BASE_URL", "http://192.0.2.1")]),
        ("postgres", &[("HELIOGRAPH_DATABASE_URL", "postgres://u:hidden@db.example/d")]),
        (
            "postgres",
            &[("HELIOGRAPH_DATABASE_URL", "postgres://u:hidden@10.0.0.5/d?sslmode=require")],
        ),
    ] {
        let error = load(settings).unwrap_err();
        assert!(error.contains(&format!("allow_cleartext={way}")), "{error}");
        assert!(!error.contains("hidden"), "{error}");
        let others = ["ops", "postgres", "http_carriers", "smpp_carriers", "base_url"];
        let others: Vec<_> = others.into_iter().filter(|other| *other != way).collect();
        let with = |ways: &str| load(&[settings, &[("HELIOGRAPH_ALLOW_CLEARTEXT", ways)]].concat());
        assert!(with(&others.join(",")).is_err(), "{settings:?}");
        assert!(with(&format!(" {way}, {}", others[0])).is_ok(), "{settings:?}");
    }
    for settings in [
        &[("HELIOGRAPH_OPS_ADDR", "[::1]:3002")][..],
        &[proxy[0], proxy[1], ("HELIOGRAPH_BASE_URL", "https://sms.example.org")],
        &[("HELIOGRAPH_BASE_URL", "http://localhost:8080")],
        &[("HELIOGRAPH_BASE_URL", "http://[::1]:8080")],
        &[("HELIOGRAPH_DATABASE_URL", "postgres://u:p@localhost/d")],
        &[("HELIOGRAPH_DATABASE_URL", "postgres://u:p@x/d?host=/run/postgresql")],
        &[("HELIOGRAPH_DATABASE_URL", "postgres://u:p@db.example/d?sslmode=verify-full")],
    ] {
        assert!(load(settings).is_ok(), "{settings:?}");
    }
    let error = load(&[("HELIOGRAPH_ALLOW_CLEARTEXT", "ops,everything")]).unwrap_err();
    assert!(error.contains("allow_cleartext"), "{error}");
}
