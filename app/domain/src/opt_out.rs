//! Opt-outs: numbers that an application may not send to, and the commands that change them.

use serde::{Deserialize, Serialize};

use crate::folding::{self, fold};
use crate::verify::{SECRET_BYTES, mac};
use crate::words::words;
use crate::{Keyword, Timestamp};

words! {
    /// Who added an opt-out.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum OptOutSource {
        /// The handset, with a message.
        Reply = "reply",
        /// The customer's program.
        Api = "api",
        /// The customer, in the portal.
        Portal = "portal",
    }
}

words! {
    /// A message that is a command about opt-outs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Command {
        /// Adds an opt-out.
        Stop = "stop",
        /// Removes the opt-out.
        Start = "start",
        /// Asks for the operator's text.
        Help = "help",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandWords {
    /// Folded words of the commands, in the order of [`Command::ALL`].
    lists: [Vec<String>; Command::ALL.len()],
}

/// The settings can't be the words of commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCommandWords {
    #[error("The words for {0} must be a comma-separated list, and each needs a letter or digit.")]
    Blank(Command),
    #[error("{word} can't mean both {first} and {second}.")]
    Ambiguous { word: String, first: Command, second: Command },
}

impl CommandWords {
    /// Parses the comma-separated words of each command. Case, accents, punctuation and white space
    /// around a word don't matter.
    ///
    /// # Errors
    /// Returns an error if a list is empty, if a word has neither letter nor digit, or if two
    /// commands have the same word.
    pub fn parse(stop: &str, start: &str, help: &str) -> Result<Self, InvalidCommandWords> {
        let lists = [stop, start, help].map(|list| list.split(',').map(fold).collect());
        let all = Self { lists };
        for (command, list) in all.by_command() {
            for word in list {
                if word.is_empty() {
                    return Err(InvalidCommandWords::Blank(command));
                }
                if let Some(first) = all.command(word).filter(|first| *first != command) {
                    let word = word.clone();
                    return Err(InvalidCommandWords::Ambiguous { word, first, second: command });
                }
            }
        }
        Ok(all)
    }

    /// Returns the command that a message is. The message must consist of one of the words. Case,
    /// accents, punctuation and white space around it don't matter. A keyword for which this
    /// returns a command would hide the command.
    pub fn command(&self, message: &str) -> Option<Command> {
        self.command_of(&fold(message))
    }

    /// Returns the command that a message is after a keyword, like `NEWS STOP`. `None` if the
    /// message starts with another word.
    pub fn command_after(&self, keyword: &Keyword, message: &str) -> Option<Command> {
        let mut words = folding::words(message);
        words.next().filter(|first| first == keyword.as_str())?;
        self.command_of(&words.collect::<Vec<_>>().join(" "))
    }

    fn command_of(&self, folded: &str) -> Option<Command> {
        let mut found = self.by_command().filter(|(_, list)| list.iter().any(|it| it == folded));
        found.next().map(|(command, _)| command)
    }

    fn by_command(&self) -> impl Iterator<Item = (Command, &[String])> {
        Command::ALL.into_iter().zip(self.lists.iter().map(Vec::as_slice))
    }
}

/// The first letter of the text that is stored instead of an erased number. Digits sort before it.
pub const ERASED: char = 'x';
/// Keeps hashes of numbers apart from everything else that is derived from the same secret.
const PURPOSE: &[u8] = b"heliograph erased opt-out";
/// Half of the hash suffices, because nobody can choose numbers that collide without the key.
const HASH_BYTES: usize = 16;

/// Returns the text that is stored instead of an erased number. Without the key, nobody can find
/// the number by hashing all numbers. `number` is as carriers get it.
pub fn erased(key: &[u8; SECRET_BYTES], number: &str) -> String {
    let hash = mac(key, &[PURPOSE, number.as_bytes()]);
    let hex = hash[..HASH_BYTES].iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let hex = hex.filter_map(|digit| char::from_digit(digit.into(), 16));
    [ERASED].into_iter().chain(hex).collect()
}

/// An opt-out as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptOutRecord {
    /// As carriers get it. `None` if the number was erased.
    pub number: Option<String>,
    pub source: OptOutSource,
    pub created_at: Timestamp,
}
