//! The settings about opt-outs.

use domain::MessageText;
use domain::opt_out::{Command, CommandWords, InvalidCommandWords};

use crate::limits::DEFAULT_SETTINGS;

/// The maximum number of pages of a reply. Nobody pays for replies.
const REPLY_PAGES_MAX: usize = 3;

/// The commands that handsets send, and the replies.
#[derive(Clone, Debug)]
pub struct OptOutSettings {
    pub(crate) words: CommandWords,
    stop_reply: String,
    help_reply: String,
}

/// The maximum number of digits in a short number.
const SHORT_DIGITS_MAX: usize = 6;
/// Stands for the number that the command was sent to.
const NUMBER: &str = "{number}";

/// The settings can't be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidOptOutSettings {
    #[error("stop_words, start_words and help_words: {0}")]
    Words(#[from] InvalidCommandWords),
    #[error("{0} must be a text of at most {REPLY_PAGES_MAX} pages")]
    Reply(&'static str),
}

impl OptOutSettings {
    /// Parses the settings. `text` returns the value of the setting with a name.
    ///
    /// # Errors
    /// Returns an error if a list of words is invalid, or if a reply is empty or too long.
    pub fn parse<'a>(text: impl Fn(&str) -> &'a str) -> Result<Self, InvalidOptOutSettings> {
        let reply = |name| {
            let text = text(name).to_owned();
            match MessageText::parse(text.clone(), REPLY_PAGES_MAX) {
                Ok(_) => Ok(text),
                Err(_) => Err(InvalidOptOutSettings::Reply(name)),
            }
        };
        let [stop, start, help] = ["stop_words", "start_words", "help_words"].map(&text);
        Ok(Self {
            words: CommandWords::parse(stop, start, help)?,
            stop_reply: reply("stop_reply")?,
            help_reply: reply("help_reply")?,
        })
    }

    /// Returns the reply to a command that a number got. START needs none.
    pub(crate) fn reply(&self, command: Command, number: &str) -> Option<MessageText> {
        let reply = match command {
            Command::Stop => &self.stop_reply,
            Command::Help => &self.help_reply,
            Command::Start => return None,
        };
        // Short numbers belong to one network and have no country code.
        let plus = if number.len() > SHORT_DIGITS_MAX { "+" } else { "" };
        Some(MessageText::from_stored(reply.replace(NUMBER, &format!("{plus}{number}"))))
    }
}

impl Default for OptOutSettings {
    #[expect(clippy::expect_used, reason = "the file is compiled in, and tests read it")]
    fn default() -> Self {
        let defaults: toml::Table = DEFAULT_SETTINGS.parse().expect("the defaults are TOML");
        let text = |name: &str| defaults.get(name).and_then(toml::Value::as_str);
        Self::parse(|name| text(name).unwrap_or_default()).expect("the defaults are valid")
    }
}
