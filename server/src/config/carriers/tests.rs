use std::fs;

use domain::routing::{Choice, RoutingFacts};
use domain::{DefaultAlphabet, DeliveryError, Kind, MessageIdForm, Reference, Segmentation};
use tempfile::TempDir;

use super::smpp::ClientTls;
use super::{
    AddressType, BindMode, CarrierKind, ReceiptState, SmppSettings, SubmitAction, TlvFacts,
};
use crate::config::Settings;

const SMPP: &str = "[[carrier]]\nname = \"acme\"\nkind = \"smpp\"\naddress = \"127.0.0.1:2775\"\n\
    system_id = \"heliograph\"\npassword = \"hidden\"\n";
const SANDBOX: &str = "[[carrier]]\nname = \"play\"\nkind = \"sandbox\"\n";

/// Loads a settings file. The file `password` in its folder contains no certificate.
fn load(text: &str) -> Result<Settings, String> {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("heliograph.toml");
    fs::write(folder.path().join("password"), "filed\n").unwrap();
    let text = text.replace("$FOLDER", folder.path().to_str().unwrap());
    fs::write(&file, text).unwrap();
    Settings::load(Some(&file), std::iter::empty(), &[]).map_err(|error| error.to_string())
}

fn smpp(lines: &str) -> SmppSettings {
    let settings = load(&format!("{SMPP}{lines}")).unwrap();
    match settings.carriers.list.into_iter().next().unwrap().kind {
        CarrierKind::Smpp(smpp) => *smpp,
        kind => panic!("not SMPP: {kind:?}"),
    }
}

fn facts(number: &str) -> RoutingFacts<'_> {
    RoutingFacts {
        kind: Kind::Local,
        number,
        application: Reference::parse("012345").ok(),
        sender: "Acme",
        segments: 1,
        now: domain::Timestamp::from_unix_ms(0),
        qualities: None,
    }
}

#[test]
fn a_carrier_has_the_contracts_defaults() {
    let smpp = smpp("");
    assert_eq!(smpp.address.to_string(), "127.0.0.1:2775");
    assert_eq!(smpp.address.host(), "127.0.0.1");
    assert_eq!(smpp.system_id, "heliograph");
    assert_eq!(smpp.password.expose(), "hidden");
    assert_eq!(smpp.system_type, "");
    assert_eq!(smpp.bind, BindMode::Transceiver);
    assert_eq!((smpp.connections, smpp.window, smpp.rate), (1, 100, 0));
    assert_eq!(smpp.message_id, MessageIdForm::Text);
    assert_eq!(smpp.segmentation, Segmentation::Udh);
    assert_eq!(smpp.default_alphabet, DefaultAlphabet::Gsm7);
    assert_eq!(smpp.tls, None);
    assert_eq!(smpp.destination, AddressType { ton: 1, npi: 1 });
    for (sender, ton, npi) in [
        ("Heliograph", 5, 0),
        ("4u", 5, 0),
        ("1234", 3, 0),
        ("123456", 3, 0),
        ("1234567", 1, 1),
        ("26657000001", 1, 1),
    ] {
        assert_eq!(smpp.source(sender), AddressType { ton, npi }, "{sender}");
    }
}

#[test]
fn a_carrier_may_have_states_and_error_numbers_of_its_own() {
    let smpp = smpp(
        "states = { \"SKIPPED\" = \"failed\", \"BUFFRED\" = \"enroute\" }\n\
         errors = { \"034\" = \"handset_unavailable\" }\n",
    );
    let failed = ReceiptState::Failed(DeliveryError::Undeliverable);
    assert_eq!(smpp.states["SKIPPED"], failed);
    assert_eq!(smpp.states["BUFFRED"], ReceiptState::OnTheWay);
    assert_eq!(smpp.errors["034"], DeliveryError::HandsetUnavailable);
    for (line, named) in [
        ("states = { \"X\" = \"lost\" }", "states.X must be one of delivered, failed"),
        ("errors = { \"1\" = \"no_such_code\" }", "errors.1 must be one of no_route"),
        ("states = \"X\"", "states must be a table"),
    ] {
        let problem = load(&format!("{SMPP}{line}\n")).unwrap_err();
        assert!(problem.contains(named), "{problem}");
    }
}

#[test]
fn every_key_of_a_carrier_is_read() {
    let smpp = smpp(
        "system_type = \"VMA\"\nbind = \"transmitter+receiver\"\nconnections = 4\nwindow = 10\n\
         rate = 50\nmessage_id = \"hex-to-decimal\"\nsegmentation = \"sar\"\n\
         default_alphabet = \"gsm7-packed\"\ntls = true\n\
         source_ton = 0\nsource_npi = 9\ndestination_ton = 2\ndestination_npi = 8\n",
    );
    assert_eq!(smpp.system_type, "VMA");
    assert_eq!(smpp.bind, BindMode::TransmitterAndReceiver);
    assert_eq!((smpp.connections, smpp.window, smpp.rate), (4, 10, 50));
    assert_eq!(smpp.message_id, MessageIdForm::HexToDecimal);
    assert_eq!(smpp.segmentation, Segmentation::Sar);
    assert_eq!(smpp.default_alphabet, DefaultAlphabet::Gsm7Packed);
    assert_eq!(smpp.tls, Some(ClientTls { ca_file: None, client: None }));
    assert_eq!(smpp.destination, AddressType { ton: 2, npi: 8 });
    for sender in ["Heliograph", "1234"] {
        assert_eq!(smpp.source(sender), AddressType { ton: 0, npi: 9 });
    }
}

#[test]
fn a_status_of_the_settings_has_their_action_and_others_the_defaults() {
    let smpp = smpp("[carrier.submit_status]\n\"0x0000000B\" = \"hold\"\n0x401 = \"retry\"\n");
    for (status, action) in [
        (0x0B, SubmitAction::Hold),
        (0x401, SubmitAction::Retry),
        (0x402, SubmitAction::Hold),
        (0x0F, SubmitAction::Hold),
        (0x0A, SubmitAction::NextRoute),
        (0x45, SubmitAction::Retry),
        (0x58, SubmitAction::Throttle),
        (0x500, SubmitAction::NextRoute),
    ] {
        assert_eq!(smpp.submit_status.action(status), action, "{status:#x}");
    }
}

#[test]
fn a_password_may_stand_in_a_file_and_is_never_shown() {
    let text = SMPP.replace("password = \"hidden\"", "password_file = \"$FOLDER/password\"");
    for (text, password) in [(SMPP, "hidden"), (&text, "filed")] {
        let settings = load(text).unwrap();
        let shown = settings.shown();
        let find = |name: &str| shown.iter().find(|(found, ..)| found == name).cloned();
        let (_, value, source) = find("carrier.acme.password").unwrap();
        assert_eq!((value.as_deref(), source.as_str()), (Some("***"), "file"));
        let (_, value, source) = find("carrier.acme.window").unwrap();
        assert_eq!((value.as_deref(), source.as_str()), (Some("100"), "default"));
        let debug = format!("{settings:?} {shown:?}");
        assert!(!debug.contains(password), "{debug}");
        let CarrierKind::Smpp(smpp) = &settings.carriers.list[0].kind else {
            panic!("not SMPP");
        };
        assert_eq!(smpp.password.expose(), password);
    }
}

#[test]
fn texts_by_sender_have_placeholders() {
    let smpp = smpp(
        "tlvs = [{ tag = 0x1400, type = \"c-string\", value = { ACMELS = \"1107{transid}\" } }]\n",
    );
    let of = |sender| {
        let facts =
            TlvFacts { transid: "t_1", number: "26657000001", sender, application: "012345" };
        smpp.tlvs[0].of(facts).map(|tlv| tlv.value)
    };
    assert_eq!(of("AcmeLS").as_deref(), Some(b"1107t_1\0".as_slice()));
    assert_eq!(of("Other"), None);
}

/// TLVs, and what is wrong with each.
const WRONG_TLVS: [(&str, &str); 9] = [
    ("tlvs = [{ tag = 0, type = \"hex\", value = \"00\" }]", "tlvs.1: tag must be"),
    ("tlvs = [{ tag = 0x0204, type = \"hex\", value = \"00\" }]", "tlvs.1: tag must be"),
    ("tlvs = [{ tag = 0x1400, type = \"hex\", value = \"0\" }]", "pairs of hexadecimal"),
    ("tlvs = [{ tag = 0x1400, type = \"text\", value = \"0\" }]", "string, c-string, integer"),
    ("tlvs = [{ tag = 0x1400, type = \"integer\", value = \"a\" }]", "a number below 2^32"),
    (
        "tlvs = [{ tag = 0x1400, type = \"string\", value = \"{message}\" }]",
        "no placeholders but {transid}",
    ),
    (
        "tlvs = [{ tag = 0x1400, type = \"string\", value = { Acme = \"\\u0000\" } }]",
        "tlvs.1: value.Acme must be a text",
    ),
    (
        "tlvs = [{ tag = 0x1400, type = \"string\", value = { Acme = \"{message}\" } }]",
        "tlvs.1: value.Acme must be a text",
    ),
    (
        "tlvs = [{ tag = 0x1400, type = \"string\", value = { Acme = \"1\", ACME = \"2\" } }]",
        "line 7, [[carrier]] acme, tlvs.1: value has Acme twice",
    ),
];

#[test]
fn what_is_wrong_with_a_carrier_is_named() {
    for (lines, named) in [
        ("colour = \"blue\"", "unknown setting colour"),
        ("window = 0", "window must be a whole number from 1 to"),
        ("window = \"many\"", "window"),
        ("window = [1]", "window"),
        ("connections = 0", "connections"),
        ("rate = -1", "rate"),
        ("bind = \"both\"", "transceiver, transmitter+receiver, transmitter or receiver"),
        ("bind = \"receiver\"", "the only carrier has bind = \"receiver\""),
        ("bind = \"receiver\"\n[[route]]\ncarrier = \"acme\"", "it can't send messages"),
        ("message_id = \"octal\"", "hex-to-decimal"),
        ("backup_address = \"127.0.0.1\"", "backup_address must be host and port"),
        ("answer_timeout = 0", "answer_timeout must be a whole number from 1 to 300"),
        ("enquire_link = 3601", "enquire_link must be a whole number from 1 to 3600"),
        ("service_type = \"sixlet\"", "service_type must be at most 5"),
        ("data_coding = 256", "data_coding must be a whole number from 0 to 255"),
        ("carrier_rate = -1", "carrier_rate"),
        ("tls = true\ntls_cert = \"$FOLDER/password\"", "tls_cert and tls_key must be set"),
        (
            "tls = true\ntls_cert = \"$FOLDER/password\"\ntls_key = \"$FOLDER/password\"",
            "tls_cert and tls_key can't be used",
        ),
        ("submit_status = { \"0x0f\" = \"wait\" }", "0x0f must be one of retry, next_route"),
        ("submit_status = { 15 = \"hold\" }", "15 must be a command_status like 0x0000000f"),
        ("submit_status = { 0x0 = \"hold\" }", "0x0 must be a command_status"),
        ("submit_status = { 0x0f = \"hold\", 0x000f = \"retry\" }", "submit_status has 0x0f twice"),
        ("segmentation = \"none\"", "udh, sar or payload"),
        ("default_alphabet = \"gsm\"", "gsm7, gsm7-packed or latin1"),
        ("tls = \"yes\"", "tls must be true or false"),
        ("tls = true\ntls_ca = \"/nowhere.pem\"", "tls_ca"),
        ("tls = true\ntls_ca = \"$FOLDER/password\"", "tls_ca"),
        ("system_type = \"thirteen chars\"", "at most 12"),
        ("source_ton = 5", "source_ton and source_npi"),
        ("destination_npi = 300\ndestination_ton = 1", "destination_npi"),
        ("password_file = \"$FOLDER/password\"", "twice"),
        ("[[route]]\ncarrier = \"other\"", "[[route]] 1: carrier"),
        ("[[route]]\npriority = 1", "carrier is missing"),
        ("[[route]]\ncarrier = \"acme\"\nweight = 0", "weight"),
        ("[[route]]\ncarrier = \"acme\"\npriority = -1", "priority"),
        ("[[route]]\ncarrier = \"acme\"\nkind = \"national\"", "local or international"),
        ("[[route]]\ncarrier = \"acme\"\nprefix = \"+266\"", "prefix"),
        ("[[route]]\ncarrier = \"acme\"\nprefix = \"\"", "prefix"),
        ("[[route]]\ncarrier = \"acme\"\napplication = 12345", "application"),
        ("[[route]]\ncarrier = \"acme\"\nsender = \"two words\"", "sender"),
        ("[[route]]\ncarrier = \"acme\"\ncosts = 1", "unknown setting costs"),
        ("[[route]]\ncarrier = \"acme\"\ncost = -1", "cost"),
        ("[[route]]\ncarrier = \"acme\"\ncost = \"cheap\"", "cost must be an amount"),
        (
            "[[carrier]]\nname = \"acme\"\nkind = \"sandbox\"",
            "[[carrier]] acme: a carrier of this name",
        ),
        ("[[carrier]]\nkind = \"sandbox\"", "[[carrier]] 2: name is missing"),
        ("[[carrier]]\nname = \"a/b\"\nkind = \"sandbox\"", "lower-case letters"),
        ("[[carrier]]\nname = \"b\"", "kind is missing"),
        ("[[carrier]]\nname = \"b\"\nkind = \"pigeon\"", "kind"),
        ("[[carrier]]\nname = \"b\"\nkind = \"sandbox\"\nrate = 1", "unknown setting rate"),
        (SANDBOX, "several carriers and no route"),
    ]
    .into_iter()
    .chain(WRONG_TLVS)
    {
        let error = load(&format!("{SMPP}{lines}\n")).unwrap_err();
        assert!(error.contains(named), "{lines}: {error}");
        assert!(!error.contains("hidden"), "{error}");
    }
    for (from, to, named) in [
        ("address = \"127.0.0.1:2775\"\n", "", "address is missing"),
        ("127.0.0.1:2775", "127.0.0.1", "host and port"),
        ("127.0.0.1:2775", "::1:2775", "host and port"),
        ("127.0.0.1:2775", "smpp://host:2775", "host and port"),
        ("127.0.0.1:2775", "host:0", "host and port"),
        ("127.0.0.1:2775", ":2775", "host and port"),
        ("system_id = \"heliograph\"\n", "", "system_id is missing"),
        ("\"heliograph\"", "\"sixteen-letters-\"", "at most 15"),
        ("password = \"hidden\"", "", "password (or password_file) is missing"),
        ("\"hidden\"", "\"pässword\"", "password must be at most 255 ASCII"),
        ("password =", "password_file =", "can't read hidden"),
        ("\"acme\"", "\"sandbox\"", "may be called sandbox"),
        ("[[carrier]]", "[carrier]", "[[carrier]]"),
        (SMPP, "carrier = [1]", "[[carrier]]"),
        (SMPP, "route = 1", "[[route]]"),
        (SMPP, "[[route]]\ncarrier = \"acme\"", "carrier"),
    ] {
        let error = load(&SMPP.replace(from, to)).unwrap_err();
        assert!(error.contains(named), "{from} -> {to}: {error}");
        assert!(error.contains("heliograph.toml"), "{error}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let text = format!(
        "{SMPP}window = 0\ncolour = 1\n{SANDBOX}shade = 2\n[[route]]\ncarrier = \"nobody\"\n\
         weight = 0\n[[route]]\ncarrier = \"acme\"\ntaste = 3\n"
    );
    let error = load(&text).unwrap_err();
    for named in [
        "[[carrier]] acme: window",
        "[[carrier]] acme: unknown setting colour",
        "[[carrier]] play: unknown setting shade",
        "[[route]] 1: carrier",
        "[[route]] 1: weight",
        "[[route]] 2: unknown setting taste",
    ] {
        assert!(error.contains(named), "{named} is not in {error}");
    }
}

#[test]
fn addresses_have_a_host_that_certificates_name() {
    for (address, host) in [
        ("smpp.example.org:2775", "smpp.example.org"),
        ("10.0.0.1:1", "10.0.0.1"),
        ("[2001:db8::1]:2775", "2001:db8::1"),
    ] {
        let text = SMPP.replace("127.0.0.1:2775", address);
        let settings = load(&format!("{text}tls = true\n")).unwrap();
        let CarrierKind::Smpp(smpp) = &settings.carriers.list[0].kind else {
            panic!("not SMPP");
        };
        assert_eq!(smpp.address.to_string(), address);
        assert_eq!(smpp.address.host(), host);
    }
}

#[test]
fn the_example_of_the_docs_can_be_used() {
    let page = include_str!("../../../../docs/OPERATIONS.md");
    let example = page.split("```toml\n").nth(1).unwrap();
    let (example, _) = example.split_once("```").unwrap();
    assert_eq!(load(example).unwrap().carriers.list.len(), 1);
}

#[test]
fn the_examples_of_every_key_can_be_used() {
    let text = include_str!("../../../../deploy/heliograph.toml")
        .replace("upstream.key", "$FOLDER/password")
        .replace("secret_file = \"upstream.secret\"", "secret = \"0123456789abcdef\"")
        .replace("secret_file = \"upstream-inbound.secret\"", "secret = \"0123456789abcdef\"");
    let carriers = load(&text).unwrap().carriers;
    let [acme, upstream] = &carriers.list[..] else {
        panic!("{carriers:?}");
    };
    // The defaults in the examples are the real ones.
    let plain = SMPP.replace("127.0.0.1:2775", "smpp.example.org:3550").replace("hidden", "secret")
        + "tls = true\n";
    assert_eq!(acme.kind, load(&plain).unwrap().carriers.list[0].kind);
    let lines = text.lines().filter(|line| {
        let name = line.split(' ').next().unwrap_or_default();
        !["method", "connections", "rate", "timeout"].contains(&name)
    });
    let bare: Vec<&str> = lines.collect();
    assert_eq!(upstream.kind, load(&bare.join("\n")).unwrap().carriers.list[1].kind);
}

#[test]
fn without_tables_there_is_no_carrier() {
    let carriers = load("currency = \"LSL\"\n").unwrap().carriers;
    assert!(carriers.list.is_empty() && carriers.routes.as_slice().is_empty());
}

#[test]
fn a_single_carrier_needs_no_route() {
    let routes = load(SMPP).unwrap().carriers.routes;
    let choice = routes.choose(&facts("26657000001"), 0, |_| true, &[]);
    assert_eq!(choice, Choice::Carrier("acme"));
}

#[test]
fn routes_choose_by_their_conditions() {
    let text = format!(
        "{SMPP}{SANDBOX}[[route]]\ncarrier = \"play\"\npriority = 20\n\
         [[route]]\ncarrier = \"acme\"\nkind = \"local\"\nprefix = \"266\"\n\
         application = \"012345\"\nsender = \"Acme\"\ncost = 0.012\n"
    );
    let settings = load(&text).unwrap();
    let routes = &settings.carriers.routes;
    let choose = |number| routes.choose(&facts(number), 0, |_| true, &[]);
    assert_eq!(choose("26657000001"), Choice::Carrier("acme"));
    assert_eq!(choose("2782000000"), Choice::Carrier("play"));
    let first = &routes.as_slice()[0];
    assert_eq!((first.priority, first.weight.get()), (10, 1));
    let cost = |carrier| routes.cost(carrier, &facts("26657000001"));
    assert_eq!(cost("acme").map(|cost| cost.to_string()), Some("0.012".to_owned()));
    assert_eq!(cost("play"), None);
    let shown: Vec<String> = settings.shown().into_iter().map(|(name, ..)| name).collect();
    assert!(shown.contains(&"route.2.prefix".to_owned()), "{shown:?}");
}

#[test]
fn numbers_and_senders_are_rewritten_by_the_route_or_the_carrier() {
    let text = format!(
        "{SMPP}strip = \"266\"\nadd = \"0\"\nsend_as = {{ Acme = \"ACME LS\" }}\n\
         [[route]]\ncarrier = \"acme\"\nprefix = \"27\"\nadd = \"+\"\nsend_as = \"12345\"\n\
         [[route]]\ncarrier = \"acme\"\npattern = \"^2665[0-9]+$\"\n"
    );
    let carriers = load(&text).unwrap().carriers;
    let own = &carriers.list[0].rewriting;
    assert_eq!(
        (&*own.number("26657000001"), &*own.number("2757000001")),
        ("057000001", "2757000001")
    );
    assert_eq!((own.sender("acme"), own.sender("Other")), ("ACME LS", "Other"));
    let first =
        |number| carriers.routes.first_to("acme", &facts(number)).unwrap().rewriting.or(own);
    assert_eq!(first("2757000001").number("2757000001"), "+2757000001");
    assert_eq!(first("2757000001").sender("Other"), "12345");
    assert_eq!(first("26657000001"), *own);
    assert!(carriers.routes.first_to("acme", &facts("26622000001")).is_none());
    for (line, named) in [
        ("strip = \"+266\"", "strip must be digits"),
        ("add = \"0-\"", "add must be digits"),
        ("send_as = \"\"", "send_as must be"),
        ("send_as = { Acme = \"123456789012345678901\" }", "send_as.Acme must be"),
        ("segments_max = 0", "segments_max must be"),
        ("[[route]]\ncarrier = \"acme\"\npattern = \"(\"", "[[route]] 1: pattern must be"),
        (
            "[[route]]\ncarrier = \"acme\"\napplication = \"012345\"\nadd = \"0\"",
            "[[route]] 1: application can't be set together",
        ),
    ] {
        let error = load(&format!("{SMPP}{line}\n")).unwrap_err();
        assert!(error.contains(named), "{line}: {error}");
    }
}

#[test]
fn routes_have_an_order_and_hours() {
    let route = |lines: &str| format!("[[route]]\ncarrier = \"acme\"\n{lines}\n");
    let costs = "order = \"cost\"\ncost = { 2665 = 0.01, \"\" = 0.1 }";
    let open = "days = [\"mon\", \"wed-fri\"]\nhours = \"20:00-06:00\"\nzone = \"Africa/Maseru\"";
    let text = format!("{SMPP}segments_max = 3\n{}", route(&format!("{costs}\n{open}")));
    let routes = load(&text).unwrap().carriers.routes;
    let route_1 = &routes.as_slice()[0];
    assert_eq!(route_1.segments_max, Some(3));
    assert_eq!(route_1.cost.of("26657000001").unwrap().to_string(), "0.01");
    assert_eq!(route_1.cost.of("26622000001").unwrap().to_string(), "0.1");
    for (lines, named) in [
        ("order = \"price\"", "order must be weight, cost or quality"),
        ("order = \"cost\"", "cost is missing"),
        ("cost = { 2x = 0.1 }", "cost.2x: the prefix must be digits"),
        ("cost = { 27 = \"much\" }", "cost.27 must be an amount"),
        ("hours = \"8-20\"\nzone = \"UTC\"", "hours must be a time like"),
        ("hours = \"08:00-08:00\"\nzone = \"UTC\"", "hours must be a time like"),
        ("days = \"montag\"\nzone = \"UTC\"", "days must be days like"),
        ("hours = \"08:00-20:00\"", "zone is missing"),
        ("hours = \"08:00-20:00\"\nzone = \"Maseru\"", "zone must be a time zone like"),
        ("zone = \"UTC\"", "zone is set, so hours or days must be too"),
    ] {
        let error = load(&format!("{SMPP}{}", route(lines))).unwrap_err();
        assert!(error.contains(named), "{lines}: {error}");
    }
    let mixed = route("order = \"quality\"") + &route("");
    let error = load(&format!("{SMPP}{mixed}")).unwrap_err();
    assert!(error.contains("[[route]] 2: order must be the same"), "{error}");
}

#[test]
fn messages_leave_for_http_in_the_clear_only_where_it_is_asked_for() {
    let carrier = |url: &str| {
        format!(
            "[[carrier]]\nname = \"up\"\nkind = \"http\"\nurl = \"{url}\"\n\
             [[carrier.answer]]\nhttp = 200\noutcome = \"accepted\"\n"
        )
    };
    let query = "?to={number}&text={message}";
    for host in ["http://sms.example.org", "http://10.0.0.9:8080", "http://[fd00::9]"] {
        let text = carrier(&format!("{host}/send{query}"));
        let error = load(&text).unwrap_err();
        assert!(error.contains("[[carrier]] up"), "{error}");
        assert!(error.contains("allow_cleartext=http_carriers"), "{error}");
        assert!(load(&format!("allow_cleartext = [\"http_carriers\"]\n{text}")).is_ok());
    }
    for host in ["https://sms.example.org", "http://127.0.0.1:8080", "http://[::1]:8080"] {
        load(&carrier(&format!("{host}/send{query}"))).unwrap();
    }
}

#[test]
fn a_bind_in_the_clear_leaves_the_machine_only_where_it_is_asked_for() {
    for address in ["smpp.example.org:2775", "10.0.0.9:2775", "[fd00::9]:2775"] {
        let text = SMPP.replace("127.0.0.1:2775", address);
        let error = load(&text).unwrap_err();
        assert!(error.contains("[[carrier]] acme"), "{error}");
        assert!(error.contains("allow_cleartext=smpp_carriers"), "{error}");
        assert!(!error.contains("hidden"), "{error}");
        assert!(load(&format!("allow_cleartext = [\"http_carriers\"]\n{text}")).is_err());
        load(&format!("allow_cleartext = [\"smpp_carriers\"]\n{text}")).unwrap();
        load(&format!("{text}tls = true\n")).unwrap();
    }
    for address in ["127.0.0.1:2775", "localhost:2775", "[::1]:2775"] {
        load(&SMPP.replace("127.0.0.1:2775", address)).unwrap();
    }
}
