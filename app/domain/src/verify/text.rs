//! The texts of messages with codes.

use super::code::CODE_DIGITS;
use crate::sender_name::SENDER_NAME_CHARS_MAX;
use crate::words::words;

/// Stands for the code wherever a text is stored or shown.
pub const MASK: &str = "••••••";

/// The maximum number of bytes in a host name (RFC 1035 §2.3.4).
const DOMAIN_BYTES_MAX: usize = 253;

/// Starts a part of a text that is read from left to right, whatever is around it.
const LEFT_TO_RIGHT: char = '\u{2066}';
/// Ends such a part.
const END: char = '\u{2069}';

words! {
    /// The language of a text, by its ISO 639-1 code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Locale [
        /// The text. With a name of 11 characters, a code of 10 digits and a website of 12
        /// characters, each text fits into one segment. For this reason, only Arabic has characters
        /// that GSM-7 lacks, and its text is short.
        template: &'static str,
        /// The language's name in English.
        pub name: &'static str,
    ] {
        Arabic = "ar", "رمز {name}: {code}. لا تشاركه.", "Arabic";
        English = "en", "{code} is your {name} code. Do not share it with anyone.", "English";
        French = "fr", "{code} est votre code {name}. Ne le communiquez à personne.", "French";
        German = "de", "{code} ist Ihr Code für {name}. Geben Sie ihn nicht weiter.", "German";
        Portuguese = "pt", "{code} é a sua chave de acesso {name}. Nunca a revele a ninguém.",
            "Portuguese";
        Sesotho = "st", "{code} ke khoutu ea hau ea {name}. U se ke ua e bolella motho.", "Sesotho";
        Spanish = "es", "{code} es su clave de {name}. No la comparta con nadie.", "Spanish";
        Swahili = "sw", "{code} ni msimbo wako wa {name}. Usimpe mtu yeyote.", "Swahili";
        Zulu = "zu", "{code} yikhodi yakho ye-{name}. Ungabelani ngayo nanoma ubani.", "Zulu";
    }
}

impl Locale {
    /// Finds the language of a tag such as `pt` or `pt-BR`. Returns `None` if there is no text in
    /// it.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let language = tag.split(['-', '_']).next()?;
        Self::parse(&language.to_ascii_lowercase())
    }

    const fn is_right_to_left(self) -> bool {
        matches!(self, Self::Arabic)
    }
}

/// The website into which a phone's browser may fill the code (WebOTP), for example `example.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOtpDomain(String);

/// The text isn't a host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The domain must be a host name such as example.com, without https:// and without a path.")]
pub struct InvalidWebOtpDomain;

impl WebOtpDomain {
    /// Parses a host name. Changes it to lower case.
    ///
    /// # Errors
    /// Returns an error unless the text is a host name with at least two parts.
    pub fn parse(text: &str) -> Result<Self, InvalidWebOtpDomain> {
        let is_part = |part: &str| {
            (1..=63).contains(&part.len())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        let is_host =
            text.len() <= DOMAIN_BYTES_MAX && text.contains('.') && text.split('.').all(is_part);
        if is_host { Ok(Self(text.to_ascii_lowercase())) } else { Err(InvalidWebOtpDomain) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The parts of a text, except for the code.
#[derive(Clone, Copy, Debug)]
pub struct CodeText<'a> {
    pub locale: Locale,
    /// Who sends the code: up to 11 ASCII letters and digits.
    pub name: &'a str,
    /// Adds a last line that lets browsers fill the code into this website.
    pub domain: Option<&'a WebOtpDomain>,
}

/// Returns a stored text with the code instead of [`MASK`].
pub fn unmasked(stored: &str, code: &super::Code) -> String {
    stored.replace(MASK, code.expose())
}

/// Returns the longest text in a language that has a code for this website.
pub fn longest_text(locale: Locale, domain: &WebOtpDomain) -> String {
    let name = "W".repeat(SENDER_NAME_CHARS_MAX);
    let code = "8".repeat(*CODE_DIGITS.end());
    CodeText { locale, name: &name, domain: Some(domain) }.with(&code)
}

impl CodeText<'_> {
    /// Returns the text with a code, or with [`MASK`].
    pub fn with(self, code: &str) -> String {
        let is_isolated = self.locale.is_right_to_left();
        let part = |text: &str| {
            if is_isolated { format!("{LEFT_TO_RIGHT}{text}{END}") } else { text.to_owned() }
        };
        // The name goes in first: it has no braces, and a code has only digits.
        let text = self.locale.template();
        let text = text.replace("{name}", &part(self.name));
        let text = text.replace("{code}", &part(code));
        match self.domain {
            // The WICG's format for codes bound to origins: it is the last line.
            Some(WebOtpDomain(domain)) => format!("{text}\n\n@{domain} #{code}"),
            None => text,
        }
    }
}
