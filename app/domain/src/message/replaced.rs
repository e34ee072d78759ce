//! Replaces characters outside GSM-7, so that a text takes fewer segments.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::decompose_canonical;

use super::{Encoding, encoding, gsm7_septets, pages};

/// Replacements for characters that Unicode doesn't decompose into a letter and its accents. `œ` is
/// the only one that isn't punctuation or a letter with a stroke.
const REPLACEMENTS: [(&str, &str); 15] = [
    ("\u{2018}\u{2019}\u{201A}\u{201B}\u{2032}\u{2039}\u{203A}`\u{B4}", "'"),
    ("\u{201C}\u{201D}\u{201E}\u{201F}\u{2033}\u{AB}\u{BB}", "\""),
    ("\u{2010}\u{2011}\u{2012}\u{2013}\u{2014}\u{2015}\u{2212}", "-"),
    ("\u{2026}", "..."),
    ("\u{A0}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200A}\u{202F}", " "),
    ("ł", "l"),
    ("Ł", "L"),
    ("đ", "d"),
    ("Đ", "D"),
    ("ħ", "h"),
    ("Ħ", "H"),
    ("ı", "i"),
    ("œ", "oe"),
    ("Œ", "OE"),
    ("ŧ", "t"),
];

/// Returns a text that fits GSM-7, with common replacements for the characters outside of it:
/// quotes, dashes, spaces, and letters with accents. Returns `None` if the text fits already, if
/// one of its characters has no replacement, or if the result would have more pages.
pub(super) fn to_gsm7(text: &str) -> Option<String> {
    if encoding(text) == Encoding::Gsm7 {
        return None;
    }
    let mut replaced = String::with_capacity(text.len());
    for c in text.nfc() {
        push(c, &mut replaced)?;
    }
    (pages(&replaced) <= pages(text)).then_some(replaced)
}

fn push(c: char, to: &mut String) -> Option<()> {
    if gsm7_septets(c).is_some() {
        to.push(c);
    } else if let Some((_, replacement)) = REPLACEMENTS.iter().find(|(of, _)| of.contains(c)) {
        to.push_str(replacement);
    } else if !is_accent(c) || to.is_empty() {
        to.push(base_letter(c)?);
    }
    Some(())
}

/// Returns the letter of a letter with accents, if GSM-7 has it.
fn base_letter(c: char) -> Option<char> {
    let (mut letter, mut has_more) = (None, false);
    decompose_canonical(c, |part| match letter {
        None => letter = Some(part),
        Some(_) => has_more |= !is_accent(part),
    });
    letter.filter(|letter| !has_more && gsm7_septets(*letter).is_some())
}

/// The block of combining diacritical marks. An accent follows its letter.
fn is_accent(c: char) -> bool {
    ('\u{300}'..='\u{36F}').contains(&c)
}
