//! The programs of the quick start, one per language, from the folder `programs`.

use domain::TestNumber;

/// A program that sends a message.
pub struct Program {
    /// The language in the page's address.
    pub language: &'static str,
    /// The file name and the command that runs the file. `None` for a shell command.
    pub file: Option<(&'static str, &'static str)>,
    text: &'static str,
}

const fn program(
    language: &'static str,
    file: Option<(&'static str, &'static str)>,
    text: &'static str,
) -> Program {
    Program { language, file, text }
}

const PROGRAMS: [Program; 5] = [
    program("curl", None, include_str!("programs/send.sh")),
    program("javascript", Some(("send.mjs", "node send.mjs")), include_str!("programs/send.mjs")),
    program("python", Some(("send.py", "python3 send.py")), include_str!("programs/send.py")),
    program("php", Some(("send.php", "php send.php")), include_str!("programs/send.php")),
    program("java", Some(("Send.java", "java Send.java")), include_str!("programs/Send.java")),
];

impl Program {
    /// Returns the program in a language, if there is one.
    pub fn find(language: &str) -> Option<Self> {
        PROGRAMS.into_iter().find(|one| one.language == language)
    }

    /// Returns the default program.
    pub fn first() -> Self {
        let [first, ..] = PROGRAMS;
        first
    }

    /// Returns the program's text with this service's address and a test number.
    pub fn text(&self, base_url: &str) -> String {
        self.text.replace("BASE_URL", base_url).replace("NUMBER", &TestNumber::Delivered.digits())
    }
}
