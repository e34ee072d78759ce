//! A server with one carrier, which is a scripted SMSC.

use crate::scripted::{Act, Scripted, Submit};
use crate::started::Started;

pub fn settings(smsc: &Scripted, more: &str) -> String {
    format!(
        "[[carrier]]\nname = \"acme\"\nkind = \"smpp\"\naddress = \"{}\"\n\
         system_id = \"heliograph\"\npassword = \"secret\"\n{more}\n",
        smsc.address
    )
}

pub fn start(script: impl FnMut(&Submit) -> Vec<Act> + Send + 'static) -> (Scripted, Started) {
    let smsc = Scripted::start(script);
    let started = Started::start(&settings(&smsc, ""));
    smsc.until_bound();
    (smsc, started)
}

/// Accepts every submit. The carrier message ID is the number.
pub fn accept(submit: &Submit) -> Vec<Act> {
    vec![Act::Accept(submit.number.clone())]
}

pub fn numbers(range: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    range.map(|number| format!("266{number}"))
}

/// Converts an RFC 3339 time to the form in receipts, YYMMDDhhmm.
pub fn smsc_date(at: &str) -> String {
    let digits = at.bytes().filter(u8::is_ascii_digit).map(char::from);
    digits.skip(2).take(10).collect()
}
