//! API keys, and where a request has them.

use domain::api_key::ENTROPY_BYTES;
use domain::{ApiKey, KeyKind};
use heliograph::fuzzing::key_and_id;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::upload::run;

/// A key is the same in the path, escaped in the path, and in the header. Any other text in the
/// path is found unchanged.
pub fn key(data: &[u8]) {
    if let Some((entropy, rest)) = data.split_first_chunk::<ENTROPY_BYTES>() {
        make(*entropy, rest);
    }
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    if let Ok(key) = ApiKey::parse(text) {
        assert_eq!(key.expose(), text);
        assert!(!format!("{key:?}").contains(&text[9..]));
    }
    // The text may be any path, or any header.
    run(key_and_id(text, Some(text)));
    let segment = utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let found = run(key_and_id(&format!("/sms/send/{segment}"), None));
    let key = (!text.is_empty()).then(|| text.to_owned());
    assert_eq!(found, Some((key, None)));
}

fn make(entropy: [u8; ENTROPY_BYTES], rest: &[u8]) {
    let Some(reference) = rest.first_chunk::<6>().and_then(|digits| {
        let digits: String = digits.iter().map(|byte| char::from(b'0' + byte % 10)).collect();
        domain::Reference::parse(&digits).ok()
    }) else {
        return;
    };
    for kind in KeyKind::ALL {
        let made = ApiKey::from_entropy(reference, kind, entropy);
        let text = made.expose();
        assert_eq!(ApiKey::parse(text), Ok(made.clone()));
        let found = Some((Some(text.to_owned()), None));
        let path = format!("/sms/send/{text}");
        assert_eq!(run(key_and_id(&path, None)), found);
        let header = format!("bearer {text}");
        assert_eq!(run(key_and_id("/sms/send", Some(&header))), found);
        assert_eq!(run(key_and_id(&path, Some(&header))), found);
        // One wrong character is always noticed.
        let place = usize::from(rest[0]) % text.len();
        let other = if &text[place..=place] == "0" { "1" } else { "0" };
        let mistyped = format!("{}{other}{}", &text[..place], &text[place + 1..]);
        assert!(ApiKey::parse(&mistyped).is_err());
    }
}
