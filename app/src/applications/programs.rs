//! The programs of the quick start, from the folder `programs`.

use domain::TestNumber;

pub struct Programs {
    /// The language in the page's address.
    pub language: &'static str,
    /// Sends a message.
    pub sender: Program,
    /// Receives events. There is none in the shell.
    pub receiver: Option<Program>,
}

pub struct Program {
    /// The file name and the command that runs the file. `None` for a shell command.
    pub file: Option<(&'static str, &'static str)>,
    text: &'static str,
}

const fn program(file: &'static str, command: &'static str, text: &'static str) -> Program {
    Program { file: Some((file, command)), text }
}

const fn shell(text: &'static str) -> Program {
    Program { file: None, text }
}

const PROGRAMS: [Programs; 5] = [
    Programs { language: "curl", sender: shell(include_str!("programs/send.sh")), receiver: None },
    Programs {
        language: "javascript",
        sender: program("send.mjs", "node send.mjs", include_str!("programs/send.mjs")),
        receiver: Some(program(
            "receive.mjs",
            "node receive.mjs",
            include_str!("programs/receive.mjs"),
        )),
    },
    Programs {
        language: "python",
        sender: program("send.py", "python3 send.py", include_str!("programs/send.py")),
        receiver: Some(program(
            "receive.py",
            "python3 receive.py",
            include_str!("programs/receive.py"),
        )),
    },
    Programs {
        language: "php",
        sender: program("send.php", "php send.php", include_str!("programs/send.php")),
        receiver: Some(program(
            "receive.php",
            "php -S 127.0.0.1:8000 receive.php",
            include_str!("programs/receive.php"),
        )),
    },
    Programs {
        language: "java",
        sender: program("Send.java", "java Send.java", include_str!("programs/Send.java")),
        receiver: Some(program(
            "Receive.java",
            "java Receive.java",
            include_str!("programs/Receive.java"),
        )),
    },
];

const CREATE_ENDPOINT: Program = shell(include_str!("programs/create_endpoint.sh"));
const TEST_ENDPOINT: Program = shell(include_str!("programs/test_endpoint.sh"));
/// The address of the receivers. Some servers may deliver to their own machine.
pub const LOCAL_ENDPOINT: &str = "http://127.0.0.1:8000/";
/// The address that customers have to replace by theirs.
const EXAMPLE_ENDPOINT: &str = "https://example.com/sms-events";

/// Returns the command that creates an endpoint.
pub fn create_endpoint(base_url: &str, is_local: bool) -> String {
    let url = if is_local { LOCAL_ENDPOINT } else { EXAMPLE_ENDPOINT };
    CREATE_ENDPOINT.text(base_url).replace("ENDPOINT_URL", url)
}

/// Returns the command that sends a test event to an endpoint.
pub fn test_endpoint(base_url: &str) -> String {
    TEST_ENDPOINT.text(base_url)
}

impl Programs {
    /// Returns the programs in a language, if there are any.
    pub fn find(language: &str) -> Option<Self> {
        PROGRAMS.into_iter().find(|one| one.language == language)
    }

    /// Returns the default programs.
    pub fn first() -> Self {
        let [first, ..] = PROGRAMS;
        first
    }
}

impl Program {
    /// Returns the program's text with this service's address and a test number.
    pub fn text(&self, base_url: &str) -> String {
        self.text.replace("BASE_URL", base_url).replace("NUMBER", &TestNumber::Delivered.digits())
    }
}
