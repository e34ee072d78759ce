//! The texts of delivery receipts.

use smpp::Delivery;
use smpp::receipt::{Receipt, parse, without_message};

use crate::pieces::option;

/// The message type of a receipt in `esm_class`.
const RECEIPT: u8 = 0x04;

/// A receipt says the same in ASCII and in UCS-2, and its fields are the start of its text.
pub fn receipt(data: &[u8]) {
    let (options, text) = option(data);
    let delivery = Delivery {
        esm_class: if options & 1 == 0 { RECEIPT } else { 0 },
        message_state: (options & 2 != 0).then_some(options >> 4),
        receipted_message_id: (options & 4 != 0).then(|| "m1".to_owned()),
        text: text.to_vec(),
        ..Delivery::default()
    };
    let found = parse(&delivery);

    let fields = without_message(text);
    assert!(text.starts_with(fields));
    // A byte order mark that nothing follows marks nothing.
    if !text.starts_with(&[0xfe, 0xff]) {
        assert_eq!(without_message(fields), fields);
    }

    // A text that begins with NUL may be read as UCS-2.
    if text.is_ascii() && text.first() != Some(&0) {
        let wide: Vec<u8> = text.iter().flat_map(|octet| [0, *octet]).collect();
        let fields = without_message(&wide).len() / 2;
        assert_eq!(fields, without_message(text).len());
        assert_eq!(parse(&Delivery { text: wide, ..delivery.clone() }), found);
    }
    if let Some(found) = found {
        write_again(&found);
    }
}

/// A receipt that is written in the form of the specification is read as before.
fn write_again(found: &Receipt) {
    let is_word = |text: &&String| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let (Some(id), Some(state), Some(error)) = (
        found.message_id.as_ref().filter(is_word),
        found.state_text.as_ref().filter(is_word),
        found.error.as_ref().filter(is_word),
    ) else {
        return;
    };
    let text = format!(
        "id:{id} sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 stat:{state} \
         err:{error} text:id:0 stat:EXPIRED"
    );
    let delivery = Delivery { esm_class: RECEIPT, text: text.into(), ..Delivery::default() };
    let Some(again) = parse(&delivery) else {
        panic!("a receipt isn't read as one");
    };
    assert_eq!(again.message_id.as_ref(), Some(id));
    assert_eq!(again.state_text.as_ref(), Some(state));
    assert_eq!(again.error.as_ref(), Some(error));
    assert!(again.done_at > again.submitted_at);
}
