//! The programs of the quick start: one for each language, as they stand in the folder `programs`.

use domain::TestNumber;

/// A program that sends a message.
pub struct Program {
    /// The word in the page's address.
    pub language: &'static str,
    /// The file to save it as, and the command that runs it; neither for a command of the shell.
    pub file: Option<(&'static str, &'static str)>,
    text: &'static str,
}

const fn program(
    language: &'static str,
    file: Option<(&'static str, &'static str)>,
    text: &'static str,
) -> Program {
    Program {
        language,
        file,
        text,
    }
}

const PROGRAMS: [Program; 5] = [
    program("curl", None, include_str!("programs/send.sh")),
    program(
        "javascript",
        Some(("send.mjs", "node send.mjs")),
        include_str!("programs/send.mjs"),
    ),
    program(
        "python",
        Some(("send.py", "python3 send.py")),
        include_str!("programs/send.py"),
    ),
    program(
        "php",
        Some(("send.php", "php send.php")),
        include_str!("programs/send.php"),
    ),
    program(
        "java",
        Some(("Send.java", "java Send.java")),
        include_str!("programs/Send.java"),
    ),
];

impl Program {
    /// The program in a language, if there is one.
    pub fn find(language: &str) -> Option<Self> {
        PROGRAMS.into_iter().find(|one| one.language == language)
    }

    /// The program for callers that know no language of their own.
    pub fn first() -> Self {
        let [first, ..] = PROGRAMS;
        first
    }

    /// The text of the program for this service.
    pub fn text(&self, base_url: &str) -> String {
        self.text
            .replace("BASE_URL", base_url)
            .replace("NUMBER", &TestNumber::Delivered.digits())
    }
}
