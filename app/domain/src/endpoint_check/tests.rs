use super::*;

fn answer(status: u16) -> CheckAnswer {
    let error = match status {
        200..300 => None,
        300..400 => Some(format!("A redirect (status {status}). Redirects aren't followed.")),
        _ => Some(format!("The endpoint answered with status {status}.")),
    };
    CheckAnswer { status: Some(status), latency_ms: 35, error }
}

fn no_answer(error: &str) -> CheckAnswer {
    CheckAnswer { status: None, latency_ms: 15_000, error: Some(error.to_owned()) }
}

/// Returns the verdicts on four statuses.
fn verdicts(statuses: [u16; 4]) -> Vec<Verdict> {
    findings(&statuses.map(answer)).into_iter().map(|finding| finding.verdict).collect()
}

#[test]
fn four_answers_give_four_verdicts() {
    use Verdict::{Advice, Bad, Good};
    for (statuses, expected) in [
        ([200, 401, 200, 400], [Good, Good, Good, Good]),
        ([204, 403, 202, 422], [Good, Good, Good, Good]),
        // It verifies nothing.
        ([200, 200, 200, 200], [Good, Bad, Good, Advice]),
        // It accepts each event only once.
        ([200, 401, 409, 401], [Good, Good, Bad, Good]),
        // It fails instead of refusing.
        ([200, 500, 200, 500], [Good, Advice, Good, Advice]),
        // It accepts nothing, so its other answers say nothing.
        ([401, 401, 401, 401], [Bad, Advice, Advice, Advice]),
        ([500, 500, 500, 500], [Bad, Advice, Advice, Advice]),
        ([301, 301, 301, 301], [Bad, Advice, Advice, Advice]),
        // A forged event must be refused whatever the first answer was.
        ([500, 200, 200, 200], [Bad, Bad, Good, Advice]),
    ] {
        assert_eq!(verdicts(statuses), expected, "{statuses:?}");
    }
}

#[test]
fn the_words_say_what_to_do() {
    let first = |answer: CheckAnswer| findings(&[answer]).remove(0).words;
    for (answer, says) in [
        (no_answer("The TLS connection failed: certificate expired."), "certificate is valid"),
        (no_answer("The connection failed: refused."), "Check that the server runs"),
        (answer(401), "secret of this endpoint"),
        (answer(404), "Check the path"),
        (answer(405), "accept POST"),
        (answer(302), "Redirects aren't followed."),
        (answer(503), "2xx"),
        (CheckAnswer { latency_ms: 7240, ..answer(200) }, "it took 7.2 s"),
    ] {
        let words = first(answer);
        assert!(words.contains(says), "{words}");
    }
    let all = findings(&[200, 200, 409, 200].map(answer));
    assert!(all[1].words.contains("anyone who knows the URL"), "{all:?}");
    assert!(all[2].words.contains("repeated event with a 2xx status"), "{all:?}");
    assert!(all[3].words.contains("10 minutes old"), "{all:?}");
}

#[test]
fn an_endpoint_that_cant_be_reached_has_one_finding() {
    let found = findings(&[no_answer("The connection failed: refused.")]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].verdict, found[0].status), (Verdict::Bad, None));
}
