//! Multipart bodies.

use arbitrary::Unstructured;

use crate::pieces::{option, pieces};
use crate::upload::upload;

/// The boundary of the bodies that the target writes.
const BOUNDARY: &str = "boundary";

/// A body is read the same in any pieces, and parts that the target writes are read as they were
/// written.
pub fn multipart(data: &[u8]) {
    let (seed, rest) = option(data);
    write_and_read(seed, rest);

    // The first line is the content type.
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (content_type, body) = rest.split_at(end);
    let body = body.get(1..).unwrap_or_default();
    let whole = (!body.is_empty()).then_some(body);
    let read = upload(content_type, None, whole.as_slice());
    assert_eq!(upload(content_type, None, &pieces(body, seed)), read);
}

fn write_and_read(seed: u8, data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let (Ok(message), Ok(numbers), Ok(quote)) =
        (bytes.arbitrary::<&str>(), bytes.arbitrary::<&[u8]>(), bytes.arbitrary::<bool>())
    else {
        return;
    };
    // The longest message that is kept whole.
    if message.chars().count() > 320 || message.contains(BOUNDARY) {
        return;
    }
    if numbers.windows(BOUNDARY.len()).any(|window| window == BOUNDARY.as_bytes()) {
        return;
    }
    let name = |name: &str| if quote { format!("\"{name}\"") } else { name.to_owned() };
    let mut body = Vec::new();
    for (name, value) in [(name("numbers"), numbers), (name("message"), message.as_bytes())] {
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; filename=\"; name=x\"; name={name}\r\n\
             \r\n"
        );
        body.extend(head.as_bytes());
        body.extend(value);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());

    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let read = upload(content_type.as_bytes(), None, &pieces(&body, seed));
    let fields = match read {
        Ok(fields) => fields,
        Err(refusal) => panic!("a written body is refused: {refusal}"),
    };
    assert_eq!(fields.unknown, None);
    assert_eq!(fields.file.and_then(|(_, rows)| rows.ok()).as_deref(), Some(numbers));
    for (name, text) in fields.small {
        let expected = (name == "message").then(|| message.to_owned());
        assert_eq!(text, Ok(expected), "{name}");
    }
}
