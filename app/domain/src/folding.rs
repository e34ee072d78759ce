//! Folds texts, so that words that people type alike compare equal: case, accents, punctuation and
//! white space don't matter.
//!
//! The accents of Latin letters are in a table. A library with all decompositions of Unicode would
//! be many times larger, and in other scripts a mark can make another letter, such as й.

/// Latin letters with accents or strokes, by the letter without them. These are all capital letters
/// up to U+024F and from U+1E00 to U+1EFF that Unicode decomposes into an ASCII letter and marks,
/// and the letters with a stroke that European languages use.
const ACCENTED: [(char, &str); 25] = [
    ('A', "ÀÁÂÃÄÅĀĂĄǍǞǠǺȀȂȦḀẠẢẤẦẨẪẬẮẰẲẴẶ"),
    ('B', "ḂḄḆ"),
    ('C', "ÇĆĈĊČḈ"),
    ('D', "ĎĐḊḌḎḐḒ"),
    ('E', "ÈÉÊËĒĔĖĘĚȄȆȨḔḖḘḚḜẸẺẼẾỀỂỄỆ"),
    ('F', "Ḟ"),
    ('G', "ĜĞĠĢǦǴḠ"),
    ('H', "ĤĦȞḢḤḦḨḪ"),
    ('I', "ÌÍÎÏĨĪĬĮİǏȈȊḬḮỈỊ"),
    ('J', "Ĵ"),
    ('K', "ĶǨḰḲḴ"),
    ('L', "ĹĻĽŁḶḸḺḼ"),
    ('M', "ḾṀṂ"),
    ('N', "ÑŃŅŇǸṄṆṈṊ"),
    ('O', "ÒÓÔÕÖØŌŎŐƠǑǪǬǾȌȎȪȬȮȰṌṎṐṒỌỎỐỒỔỖỘỚỜỞỠỢ"),
    ('P', "ṔṖ"),
    ('R', "ŔŖŘȐȒṘṚṜṞ"),
    ('S', "ŚŜŞŠȘṠṢṤṦṨ"),
    ('T', "ŢŤŦȚṪṬṮṰ"),
    ('U', "ÙÚÛÜŨŪŬŮŰŲƯǓǕǗǙǛȔȖṲṴṶṸṺỤỦỨỪỬỮỰ"),
    ('V', "ṼṾ"),
    ('W', "ŴẀẂẄẆẈ"),
    ('X', "ẊẌ"),
    ('Y', "ÝŶŸȲẎỲỴỶỸ"),
    ('Z', "ŹŻŽẐẒẔ"),
];

/// Combining accents. After decomposition, they follow their letter.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c)
}

/// Whether a text consists of letters and digits only.
pub(crate) fn is_word(text: &str) -> bool {
    text.chars().all(is_part_of_word)
}

/// Returns the words of a text in capital letters without accents. A word consists of letters and
/// digits.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c| !is_part_of_word(c));
    words.map(fold_word).filter(|word| !word.is_empty())
}

/// Returns the words of a text, each separated by a space.
pub(crate) fn fold(text: &str) -> String {
    words(text).collect::<Vec<_>>().join(" ")
}

fn fold_word(word: &str) -> String {
    let capitals = word.chars().flat_map(char::to_uppercase);
    capitals.filter(|c| !is_mark(*c)).map(without_accent).collect()
}

fn without_accent(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    let found = ACCENTED.iter().find(|(_, accented)| accented.contains(c));
    found.map_or(c, |(letter, _)| *letter)
}
