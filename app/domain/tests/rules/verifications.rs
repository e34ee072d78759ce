//! One-time codes: their digits, their texts, and what becomes of a verification.

use domain::message::{Encoding, encoding, segments};
use domain::verify::{
    CODE_DIGITS, CheckAnswer, Code, CodeText, Ended, Locale, MASK, ResendRefusal, SECRET_BYTES,
    TypedCode, Verification, WebOtpDomain, longest_text,
};
use domain::{SenderName, Timestamp};
use proptest::prelude::*;

use crate::seeded;

/// The bytes 0 to 31.
const SECRET: [u8; SECRET_BYTES] =
    *b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\
    \x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f";
const NAMES: [&str; 3] = ["A", "Heliograph", "WWWWWWWWWWW"];

#[test]
fn each_text_is_one_segment_at_every_length() {
    assert!(NAMES.iter().all(|name| SenderName::parse(name).is_ok()));
    for locale in Locale::ALL {
        for digits in CODE_DIGITS {
            for name in NAMES {
                let code = "8".repeat(digits);
                let text = CodeText { locale, name, domain: None }.with(&code);
                assert_eq!(segments(&text), 1, "{text}");
                assert!(text.matches(&code).count() == 1 && text.matches(name).count() == 1);
                assert!(!text.contains(['{', '}', '\n']), "{text}");
                let domain = WebOtpDomain::parse("shop24.co.ls").unwrap();
                let text = CodeText { locale, name, domain: Some(&domain) }.with(&code);
                assert_eq!(segments(&text), 1, "{text}");
                // The stored text counts as the text that was sent.
                let masked = CodeText { locale, name, domain: None }.with(MASK);
                assert_eq!(segments(&masked), 1, "{masked}");
            }
        }
    }
}

#[test]
fn a_longer_website_costs_a_segment() {
    let segments_of = |domain: &str| {
        let domain = WebOtpDomain::parse(domain).unwrap();
        Locale::ALL.map(|locale| segments(&longest_text(locale, &domain)))
    };
    assert_eq!(segments_of("shop24.co.ls"), [1; 9]);
    assert_eq!(segments_of("shop245.co.ls"), [2, 1, 1, 1, 1, 1, 1, 1, 1]);
    let part = "a".repeat(41);
    assert_eq!(segments_of(&format!("{part}.{part}.ls")), [3, 2, 2, 2, 2, 2, 2, 2, 2]);
}

#[test]
fn only_the_languages_that_need_it_cost_ucs2() {
    for locale in Locale::ALL {
        let text = CodeText { locale, name: "Shop", domain: None }.with("123456");
        assert_eq!(encoding(&text) == Encoding::Ucs2, locale == Locale::Arabic, "{text}");
    }
}

#[test]
fn a_text_from_right_to_left_isolates_name_and_code() {
    let text = CodeText { locale: Locale::Arabic, name: "Shop24", domain: None }.with("0123456");
    for part in ["\u{2066}Shop24\u{2069}", "\u{2066}0123456\u{2069}"] {
        assert!(text.contains(part), "{text}");
    }
    let text = CodeText { locale: Locale::English, name: "Shop24", domain: None }.with("0123456");
    assert_eq!(text, "0123456 is your Shop24 code. Do not share it with anyone.");
    let masked = CodeText { locale: Locale::French, name: "Shop", domain: None }.with(MASK);
    assert_eq!(masked, "•••••• est votre code Shop. Ne le communiquez à personne.");
}

#[test]
fn the_last_line_hands_the_code_to_a_website() {
    let domain = WebOtpDomain::parse("Shop.Example.com").unwrap();
    for locale in Locale::ALL {
        let text = CodeText { locale, name: "Shop", domain: Some(&domain) }.with("123456");
        let lines: Vec<_> = text.split('\n').collect();
        assert_eq!(lines[1..], ["", "@shop.example.com #123456"], "{text}");
        let masked = CodeText { locale, name: "Shop", domain: Some(&domain) }.with(MASK);
        assert!(masked.ends_with("@shop.example.com #••••••") && !masked.contains('1'));
    }
    let long = format!("{}.com", "a".repeat(64));
    for text in ["", "com", "a..com", "-a.com", "a-.com", "a.com/", "https://a.com", "ä.com", &long]
    {
        assert!(WebOtpDomain::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_language_is_found_by_its_tag() {
    let tags = ["ar", "en", "fr", "de", "pt", "st", "es", "sw", "zu"];
    assert_eq!(Locale::ALL.map(Locale::as_str), tags);
    for (tag, locale) in [
        ("en", Some(Locale::English)),
        ("pt-BR", Some(Locale::Portuguese)),
        ("ST_ls", Some(Locale::Sesotho)),
        ("eng", None),
        ("", None),
        ("-en", None),
    ] {
        assert_eq!(Locale::of_tag(tag), locale, "{tag}");
    }
}

#[test]
fn a_code_follows_from_secret_and_nonce_alone() {
    let code = |secret: &[u8; SECRET_BYTES], nonce: &[u8], digits| {
        Code::derive(secret, nonce, digits).expose().to_owned()
    };
    // Python: hmac.digest(bytes(range(32)), purpose + bytes(4) + b'nonce', 'sha256'), where purpose
    // is b'heliograph one-time code', and of that the bytes below 250, modulo 10.
    assert_eq!(code(&SECRET, b"nonce", 10), "6436732320");
    assert_eq!(code(&SECRET, b"nonce", 6), code(&SECRET, b"nonce", 10)[..6]);
    assert_ne!(code(&[0; 32], b"nonce", 10), code(&SECRET, b"nonce", 10));
    assert_ne!(code(&SECRET, b"other", 10), code(&SECRET, b"nonce", 10));
    assert!(!format!("{:?}", Code::derive(&SECRET, b"nonce", 10)).contains(char::is_numeric));
}

#[test]
fn all_digits_are_equally_likely_at_every_place() {
    let mut counts = [[0_u32; 10]; 10];
    for n in 0..20_000_u32 {
        let code = Code::derive(&SECRET, &n.to_be_bytes(), 10);
        for (place, digit) in code.expose().bytes().enumerate() {
            counts[place][usize::from(digit - b'0')] += 1;
        }
    }
    // The standard deviation is 42. With a modulo of whole bytes, 0 to 5 would occur 2031 times and
    // 6 to 9 1953 times, which a sum over the places shows: its deviation is 134.
    for (place, counts) in counts.iter().enumerate() {
        assert!(counts.iter().all(|count| (1_800..2_200).contains(count)), "{place}: {counts:?}");
    }
    let of_digit = |digit: usize| counts.iter().map(|counts| counts[digit]).sum::<u32>();
    for digit in 0..10 {
        let sum = of_digit(digit);
        assert!((19_600..20_400).contains(&sum), "{digit}: {sum}");
    }
    let high: u32 = (6..10).map(of_digit).sum();
    assert!((79_300..80_700).contains(&high), "{high}");
}

#[test]
fn codes_are_read_as_people_type_them() {
    for (typed, digits) in [
        ("123456", Some("123456")),
        ("007 123", Some("007123")),
        (" 12-34\u{2011}56\n", Some("123456")),
        ("\u{2066}123456\u{2069}", Some("123456")),
        ("１２３４５６", Some("123456")),
        ("٠١٢٣٤٥", Some("012345")),
        ("۰۱۲۳۴۵", Some("012345")),
        ("1234", Some("1234")),
        ("1234567890", Some("1234567890")),
        ("123", None),
        ("12345678901", None),
        ("", None),
        ("12345a", None),
        ("1234.5", None),
        ("१२३४५६", None),
        ("½½½½", None),
    ] {
        let parsed = TypedCode::parse(typed);
        assert_eq!(parsed.as_ref().map(TypedCode::digits), digits, "{typed:?}");
    }
}

#[test]
fn a_code_is_only_itself() {
    let code = Code::derive(&SECRET, b"nonce", 6);
    let is = |typed: &str| TypedCode::parse(typed).is_some_and(|typed| code.is(&typed));
    assert!(is(code.expose()));
    assert!(!is(&code.expose()[..5]) && !is(&format!("{}0", code.expose())));
    for place in 0..6 {
        let mut other = code.expose().as_bytes().to_vec();
        other[place] = b'0' + (other[place] - b'0' + 1) % 10;
        assert!(!is(std::str::from_utf8(&other).unwrap()), "{place}");
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ms(seconds * 1000)
}

#[test]
fn five_attempts_are_allowed_and_one_success() {
    let mut state = Verification::start(at(0), 600);
    for tries_left in (0..5).rev() {
        let (answer, next) = state.check(false, at(1));
        assert_eq!(answer, CheckAnswer::Wrong { tries_left });
        state = next;
    }
    let none = (CheckAnswer::Ended(Ended::NoTriesLeft), state);
    assert_eq!(state.check(true, at(1)), none);
    assert_eq!(state.check(true, at(600)), none);

    let start = Verification::start(at(0), 600);
    let (answer, state) = start.check(true, at(599));
    assert_eq!((answer, state.tries_left()), (CheckAnswer::Verified, 4));
    for seconds in [599, 601] {
        let again = (CheckAnswer::Ended(Ended::AlreadyVerified), state);
        assert_eq!(state.check(true, at(seconds)), again);
    }
    assert_eq!(start.check(true, at(600)), (CheckAnswer::Ended(Ended::Expired), start));
}

#[test]
fn a_code_is_sent_again_three_times() {
    let mut state = Verification::start(at(0), 600);
    for (early, in_time) in [(29, 30), (89, 90), (209, 210)] {
        assert_eq!(state.resend(at(early)), Err(ResendRefusal::TooEarly(at(in_time))));
        state = state.resend(at(in_time)).unwrap();
    }
    assert_eq!((state.resends, state.expires_at), (3, at(600)));
    assert_eq!(state.resend(at(590)), Err(ResendRefusal::Ended));
    let start = Verification::start(at(0), 60);
    assert_eq!(start.resend(at(60)), Err(ResendRefusal::Ended));
    let (_, verified) = start.check(true, at(1));
    assert_eq!(verified.resend(at(40)), Err(ResendRefusal::Ended));
}

proptest! {
    #![proptest_config(seeded(500))]

    #[test]
    fn no_order_of_events_allows_more_than_the_rules(
        steps in prop::collection::vec((0..3_u8, 0..60_i64), 1..60),
    ) {
        let mut state = Verification::start(at(0), 600);
        let (mut now, mut decided, mut verified, mut resends) = (0, 0, 0, 0);
        for (event, seconds) in steps {
            now += seconds;
            if event == 0 {
                if let Ok(next) = state.resend(at(now)) {
                    resends += 1;
                    state = next;
                }
                continue;
            }
            let (answer, next) = state.check(event == 1, at(now));
            decided += u32::from(!matches!(answer, CheckAnswer::Ended(_)));
            verified += u32::from(answer == CheckAnswer::Verified);
            prop_assert!(answer != CheckAnswer::Verified || now < 600);
            state = next;
        }
        prop_assert!(decided <= 5 && verified <= 1 && resends <= 3);
        prop_assert_eq!(state.attempts, decided);
    }
}
