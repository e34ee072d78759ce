use domain::Timestamp;

use super::TotpSecret;

/// The secret of the test vectors in RFC 6238, appendix B.
const SECRET: TotpSecret = TotpSecret(*b"12345678901234567890");

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ms(seconds * 1000)
}

#[test]
fn codes_are_those_of_the_standard() {
    // The last six of the vector's eight digits.
    for (seconds, code) in [
        (59, "287082"),
        (1_111_111_109, "081804"),
        (1_111_111_111, "050471"),
        (1_234_567_890, "005924"),
        (2_000_000_000, "279037"),
        (20_000_000_000, "353130"),
    ] {
        assert_eq!(SECRET.code(at(seconds)), code);
    }
}

#[test]
fn a_code_is_taken_one_step_before_and_after_its_own() {
    let code = SECRET.code(at(3000));
    for (seconds, taken) in [(2969, false), (2970, true), (3000, true), (3059, true), (3060, false)]
    {
        let step = SECRET.step_of(&code, at(seconds));
        assert_eq!(step, taken.then_some(100), "{seconds}");
    }
    let (first, second) = code.split_at(3);
    assert!(SECRET.step_of(&format!(" {first} {second}"), at(3000)).is_some());
    for wrong in ["", "1", "+12345", "1234567", "abcdef", "１２３４５６"] {
        assert_eq!(SECRET.step_of(wrong, at(3000)), None, "{wrong}");
    }
}

#[test]
fn a_secret_is_read_as_it_is_written() {
    let text = SECRET.base32();
    assert_eq!(text, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    assert_eq!(TotpSecret::parse(&text), Some(SECRET));
    assert_eq!(TotpSecret::parse("GEZDGNBV"), None);
    let address = SECRET.address("a+b@example.org");
    let begins = "otpauth://totp/Heliograph:a%2Bb%40example%2Eorg?secret=GEZDGNBV";
    assert!(address.starts_with(begins), "{address}");
}
