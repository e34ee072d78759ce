//! The table of settings: their names, defaults and meanings. `heliograph config` and the errors
//! about unknown names read it too.

/// One setting. In the file it is `name`, in the environment `HELIOGRAPH_NAME`.
#[derive(Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    /// What holds when nobody sets it; `None` for a setting that may be absent.
    pub default: Option<&'static str>,
    /// A secret is masked wherever settings are shown, and `NAME_FILE` may name a file that holds
    /// it.
    pub secret: bool,
}

const fn plain(name: &'static str, default: &'static str) -> Key {
    Key {
        name,
        default: Some(default),
        secret: false,
    }
}

const fn optional(name: &'static str) -> Key {
    Key {
        default: None,
        ..plain(name, "")
    }
}

const fn secret(key: Key) -> Key {
    Key {
        secret: true,
        ..key
    }
}

/// Every setting there is.
pub const KEYS: [Key; 44] = [
    plain("addr", "127.0.0.1:3000"),
    plain("ops_addr", "127.0.0.1:3002"),
    optional("base_url"),
    // May carry the password of a database server.
    secret(plain("database_url", "sqlite:data/heliograph.db")),
    plain("data_dir", "data"),
    plain("currency", "USD"),
    plain("price_local", "0.05"),
    plain("price_international", "0.25"),
    // Whom customers pay, and how: lines of text on the pages of their applications.
    optional("payment_instructions"),
    plain("country_code", "266"),
    optional("tls_cert"),
    optional("tls_key"),
    plain("behind_proxy", "false"),
    // What may cross a network in the clear: ops, postgres, http_carriers, smpp_carriers, base_url.
    optional("allow_cleartext"),
    // May carry the password of a mail server.
    secret(optional("smtp_url")),
    optional("mail_from"),
    plain("default_sender", "Heliograph"),
    plain("trusted_proxies", "127.0.0.0/8,::1"),
    // Of clients, at a time: all, of an address (IPv6: a /64), of a network (/24; IPv6: a /48).
    // Trusted proxies have the first limit alone.
    plain("connections_max", "10000"),
    plain("connections_per_address", "1024"),
    plain("connections_per_network", "4096"),
    plain("allow_sandbox", "false"),
    plain("sandbox_delay_ms", "500"),
    plain("message_pages_max", "10"),
    plain("bulk_rows_max", "1000000"),
    plain("bulk_bytes_max", "268435456"),
    plain("uploads_per_application", "8"),
    optional("requests_per_second"),
    plain("sign_in_failures_max", "10"),
    plain("registrations_max", "20"),
    // Of what a signed-in account changes in the portal: at once, and from then on. Staff may change
    // ten times as much.
    plain("changes_at_once", "30"),
    plain("changes_per_second", "1"),
    // Messages a day of a test key, while its account never had a deposit.
    plain("unpaid_test_messages", "5000"),
    // How many bytes such messages of all accounts may take before staff and the log are warned.
    plain("unpaid_bytes_max", "1073741824"),
    // Whether staff may approve and credit applications of their own, and accept their sender names.
    plain("own_applications", "false"),
    // Whether money, second factors and new members of staff take two members of staff.
    plain("four_eyes", "false"),
    // Who must have a second factor.
    plain("require_second_factor", "staff"),
    // How long a claimed message is one node's; after that node's crash, others wait so long.
    plain("lease_seconds", "60"),
    // How long to go on after a stop is asked for, for a proxy to notice that this node isn't ready
    // any more.
    plain("stop_delay_seconds", "0"),
    plain("history_days", "400"),
    plain("test_history_days", "7"),
    // On PostgreSQL: whether a new table has the messages of a day or of a week.
    plain("message_tables", "day"),
    plain("site_root", "target/site"),
    plain("log", "info"),
];

/// The setting of this name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}
