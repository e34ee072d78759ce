use super::*;

const TEXT: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The example in Svix's documentation. Python's hmac module computes the same.
#[test]
fn signatures_match_the_published_example() {
    let secret: WebhookSecret = TEXT.parse().unwrap();
    let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    let signature = secret.sign(id, 1_614_265_330, br#"{"test": 2432232314}"#);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn the_signature_covers_id_timestamp_and_body() {
    let sign = |secret: u8, id, timestamp, body: &[u8]| {
        WebhookSecret::new([secret; WEBHOOK_SECRET_BYTES]).sign(id, timestamp, body)
    };
    let signature = sign(1, "e_1", 1, b"a");
    assert_eq!(signature, sign(1, "e_1", 1, b"a"));
    for other in [
        sign(2, "e_1", 1, b"a"),
        sign(1, "e_2", 1, b"a"),
        sign(1, "e_1", 2, b"a"),
        sign(1, "e_1", 1, b"b"),
        sign(1, "e_1", 1, b""),
    ] {
        assert_ne!(signature, other);
    }
}

#[test]
fn a_secret_survives_its_text() {
    for byte in [0, 1, 0xfb, 0xff] {
        let secret = WebhookSecret::new([byte; WEBHOOK_SECRET_BYTES]);
        let text = secret.expose();
        assert_eq!(text.len(), 38);
        let parsed: WebhookSecret = text.parse().unwrap();
        assert_eq!(parsed.as_bytes(), secret.as_bytes());
    }
}

#[test]
fn other_texts_are_no_secrets() {
    let texts = [
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw ",
    ];
    for text in texts {
        assert_eq!(text.parse::<WebhookSecret>().err(), Some(BadWebhookSecret), "{text}");
    }
}

#[test]
fn debug_output_hides_the_secret() {
    let secret: WebhookSecret = TEXT.parse().unwrap();
    assert_eq!(format!("{secret:?}"), "WebhookSecret(hidden)");
}
