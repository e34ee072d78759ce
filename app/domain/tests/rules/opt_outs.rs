//! Commands about opt-outs, and the words for them.

use domain::opt_out::{Command, InvalidCommandWords};
use domain::{CommandWords, Keyword, OptOutSource};
use proptest::prelude::*;

use crate::seeded;

fn defaults() -> CommandWords {
    let stop = "STOP,UNSUBSCRIBE,CANCEL,END,QUIT,ARRET,ALTO,PARAR,STOPP";
    CommandWords::parse(stop, "START", "HELP").unwrap()
}

#[test]
fn sources_and_commands_have_the_words_of_the_contract() {
    assert_eq!(OptOutSource::ALL.map(OptOutSource::as_str), ["reply", "api", "portal"]);
    assert_eq!(Command::ALL.map(Command::as_str), ["stop", "start", "help"]);
    for source in OptOutSource::ALL {
        assert_eq!(OptOutSource::parse(source.as_str()), Some(source));
        assert_eq!(serde_json::to_value(source).unwrap(), source.as_str());
    }
    for command in Command::ALL {
        assert_eq!(Command::parse(command.as_str()), Some(command));
        assert_eq!(serde_json::to_value(command).unwrap(), command.as_str());
    }
}

#[test]
fn a_command_is_the_whole_message() {
    let words = defaults();
    for word in "STOP UNSUBSCRIBE CANCEL END QUIT ARRET ALTO PARAR STOPP".split(' ') {
        assert_eq!(words.command(word), Some(Command::Stop), "{word}");
        assert_eq!(words.command(&word.to_lowercase()), Some(Command::Stop), "{word}");
    }
    for (message, expected) in [
        ("START", Some(Command::Start)),
        ("start!", Some(Command::Start)),
        ("HELP", Some(Command::Help)),
        ("Help??", Some(Command::Help)),
        ("sToP", Some(Command::Stop)),
        (" Stop.\r\n", Some(Command::Stop)),
        ("“STOP”", Some(Command::Stop)),
        ("«Arrêt»", Some(Command::Stop)),
        ("ARRE\u{302}T", Some(Command::Stop)),
        ("¡ALTO!", Some(Command::Stop)),
        ("…parar…", Some(Command::Stop)),
        ("STOP\u{3002}", Some(Command::Stop)),
        ("\u{feff}STOP\u{200b}", Some(Command::Stop)),
        ("STOP\u{a0}", Some(Command::Stop)),
        ("STOP 🛑", Some(Command::Stop)),
        ("*stop*", Some(Command::Stop)),
        ("Please stop", None),
        ("STOP it", None),
        ("STOP STOP", None),
        ("STOP 1", None),
        ("S.T.O.P", None),
        ("STOPS", None),
        ("nonstop", None),
        ("help me", None),
        ("СТОП", None),
        ("", None),
        ("!!!", None),
    ] {
        assert_eq!(words.command(message), expected, "{message:?}");
    }
}

#[test]
fn a_command_may_follow_the_keyword() {
    let words = defaults();
    let keyword = Keyword::parse("néws").unwrap();
    for (message, expected) in [
        ("NEWS STOP", Some(Command::Stop)),
        ("news: stop!", Some(Command::Stop)),
        ("\"News\" Arrêt.", Some(Command::Stop)),
        ("news\nstart", Some(Command::Start)),
        ("NEWS-HELP", Some(Command::Help)),
        ("NEWS", None),
        ("STOP", None),
        ("STOP NEWS", None),
        ("NEWS STOP it", None),
        ("NEWS NEWS STOP", None),
        ("SPORT STOP", None),
        ("NEWSSTOP", None),
        ("", None),
    ] {
        assert_eq!(words.command_after(&keyword, message), expected, "{message:?}");
    }
}

#[test]
fn the_words_are_a_setting() {
    let words = CommandWords::parse("stop, Stop All ,отписка", " join,Oui!", "help").unwrap();
    for (message, expected) in [
        ("STOP", Some(Command::Stop)),
        ("stop   all.", Some(Command::Stop)),
        ("stop-all", Some(Command::Stop)),
        ("ОТПИСКА", Some(Command::Stop)),
        ("oui", Some(Command::Start)),
        ("JOIN", Some(Command::Start)),
        ("help", Some(Command::Help)),
        ("all", None),
        ("END", None),
        ("START", None),
    ] {
        assert_eq!(words.command(message), expected, "{message}");
    }
    let blank = InvalidCommandWords::Blank;
    for (stop, start, help, command) in [
        ("", "start", "help", Command::Stop),
        ("stop,", "start", "help", Command::Stop),
        ("stop", "start,,go", "help", Command::Start),
        ("stop", "start", " ?! ", Command::Help),
    ] {
        assert_eq!(CommandWords::parse(stop, start, help), Err(blank(command)));
    }
    let ambiguous = CommandWords::parse("stop,arrêt", "start", "help,ARRET").unwrap_err();
    assert_eq!(ambiguous.to_string(), "ARRET can't mean both stop and help.");
    assert!(CommandWords::parse("stop,STOP", "start", "help").is_ok());
}

proptest! {
    #![proptest_config(seeded(1_000))]

    #[test]
    fn punctuation_and_white_space_around_a_command_do_not_matter(
        before in r"[\p{P}\p{Z}\p{Cc}]{0,5}",
        after in r"[\p{P}\p{Z}\p{Cc}]{0,5}",
    ) {
        let message = format!("{before}Stop{after}");
        prop_assert_eq!(defaults().command(&message), Some(Command::Stop));
    }

    #[test]
    fn another_word_makes_it_no_command(word in "[a-z0-9]{1,9}") {
        let words = defaults();
        prop_assert_eq!(words.command(&format!("stop {word}")), None);
        prop_assert_eq!(words.command(&format!("{word} stop")), None);
    }
}
