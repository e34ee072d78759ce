//! Destination numbers and prefixes.

use domain::{Kind, Number, Prefix};

/// Country codes that the number may begin with.
const CODES: [&str; 3] = ["1", "27", "266"];

/// All ways to write a number agree, and so do its forms in its home country.
pub fn number(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    if let Ok(prefix) = Prefix::parse(text) {
        assert_eq!(Prefix::parse(&prefix.to_string()), Ok(prefix));
    }
    let typed = Number::parse_typed(text);
    if let Ok(number) = &typed {
        agree(number);
    }
    let Ok(number) = Number::parse(text) else {
        return;
    };
    assert_eq!(typed, Ok(number.clone()));
    assert_eq!(Number::parse_url_decoded(text), Ok(number.clone()));
    let in_a_form = text.replace('+', " ");
    assert_eq!(Number::parse_url_decoded(&in_a_form), Ok(number));
}

fn agree(number: &Number) {
    let (digits, kind) = (number.digits(), number.kind());
    let with_plus = Number::parse(&format!("+{digits}"));
    match kind {
        Kind::Local => assert_eq!(Number::parse(digits).as_ref(), Ok(number)),
        Kind::International => assert_eq!(with_plus.as_ref(), Ok(number)),
    }
    let masked = number.masked();
    assert_eq!(masked.chars().count(), digits.len());
    assert!(masked.ends_with(&digits[digits.len() - 3..]));
    for code in CODES {
        let forms = number.forms(code);
        assert_eq!(forms.first(), Some(number));
        for form in &forms {
            assert_eq!(form.for_carrier(code), number.for_carrier(code));
            let others = form.forms(code);
            assert_eq!(others.len(), forms.len());
            assert!(others.iter().all(|other| forms.contains(other)));
        }
        // A warning is about the number as it is, never about a local one.
        assert!(kind == Kind::International || number.warnings(code).next().is_none());
    }
}
