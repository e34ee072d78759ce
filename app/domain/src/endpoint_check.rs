//! Judges how an endpoint answers four requests that check it.

use serde::{Deserialize, Serialize};

/// An endpoint should answer faster than this, in milliseconds. It has 15 seconds at most.
const FAST_MS: i64 = 1000;
/// How old the timestamp of [`CheckRequest::Old`] is, in minutes.
pub const OLD_MINUTES: i64 = 10;

/// The requests of a check, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckRequest {
    /// A test event with a correct signature.
    Valid,
    /// A test event with a wrong signature.
    Forged,
    /// The valid event again, with the same ID.
    Repeated,
    /// A correctly signed event whose timestamp is [`OLD_MINUTES`] old.
    Old,
}

impl CheckRequest {
    pub const ALL: [Self; 4] = [Self::Valid, Self::Forged, Self::Repeated, Self::Old];

    /// Returns the request's name for pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "A test event",
            Self::Forged => "A forged event, with a wrong signature",
            Self::Repeated => "The test event again",
            Self::Old => "An event with an old timestamp",
        }
    }
}

/// An endpoint's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckAnswer {
    /// The HTTP status. `None` if there was no answer.
    pub status: Option<u16>,
    pub latency_ms: i64,
    /// Why the request counts as failed, in sentences. `None` exactly if the status is 2xx.
    pub error: Option<String>,
}

/// How good an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Verdict {
    Good,
    /// The endpoint works, but could be better. Or the answer says nothing about it.
    Advice,
    Bad,
}

/// The meaning of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub request: CheckRequest,
    pub status: Option<u16>,
    pub latency_ms: i64,
    pub verdict: Verdict,
    /// Says what is wrong and what to do, or that all is well.
    pub words: String,
}

/// Judges the answers to the requests in the order of [`CheckRequest::ALL`]. There may be fewer
/// answers than requests: if the first request gets no answer, the others needn't be sent.
pub fn findings(answers: &[CheckAnswer]) -> Vec<Finding> {
    let is_valid_accepted = answers.first().is_some_and(CheckAnswer::is_accepted);
    let judged = CheckRequest::ALL.into_iter().zip(answers).map(|(request, answer)| {
        let (verdict, words) = match request {
            CheckRequest::Valid => valid(answer),
            _ if answer.status.is_none() => (Verdict::Advice, answer.words()),
            CheckRequest::Forged => forged(answer, is_valid_accepted),
            CheckRequest::Repeated => repeated(answer, is_valid_accepted),
            CheckRequest::Old => old(answer, is_valid_accepted),
        };
        let (status, latency_ms) = (answer.status, answer.latency_ms);
        Finding { request, status, latency_ms, verdict, words }
    });
    judged.collect()
}

impl CheckAnswer {
    const fn is_accepted(&self) -> bool {
        self.error.is_none()
    }

    /// Whether the endpoint refused the request itself, and didn't fail.
    fn is_refused(&self) -> bool {
        self.status.is_some_and(|status| (400..500).contains(&status))
    }

    fn words(&self) -> String {
        self.error.clone().unwrap_or_default()
    }
}

fn valid(answer: &CheckAnswer) -> (Verdict, String) {
    let Some(error) = &answer.error else {
        let took = seconds(answer.latency_ms);
        return if answer.latency_ms > FAST_MS {
            let words = format!(
                "The endpoint accepted the event, but answered slowly: it took {took}. Answer \
                 within 15 s, best within 1 s: store the event first and process it later."
            );
            (Verdict::Advice, words)
        } else {
            (Verdict::Good, "The endpoint accepted the event.".to_owned())
        };
    };
    let advice = match answer.status {
        None if error.contains("TLS") => {
            "Check that the certificate is valid for this host name, hasn't expired, and is sent \
             together with its intermediate certificates."
        }
        None => "Check that the server runs and can be reached from the internet.",
        Some(401 | 403) => {
            "It refused a correct signature. Verify the signature with the secret of this endpoint \
             and over the bytes of the body as they arrived."
        }
        Some(404) => "Check the path of the URL.",
        Some(405) => "Make the URL accept POST.",
        Some(410) => "This status disables the endpoint when it answers an event with it.",
        // The error of a redirect says what to do.
        Some(300..=399) => "",
        Some(_) => "Answer with a 2xx status once you have stored the event.",
    };
    (Verdict::Bad, format!("{error} {advice}").trim_end().to_owned())
}

fn forged(answer: &CheckAnswer, is_valid_accepted: bool) -> (Verdict, String) {
    if answer.is_accepted() {
        let words = "The endpoint accepted a forged event: anyone who knows the URL could send you \
                     events. Verify the header webhook-signature, and answer 401 if it is wrong.";
        return (Verdict::Bad, words.to_owned());
    }
    refusal(answer, is_valid_accepted, "The endpoint refused the forged event.")
}

fn old(answer: &CheckAnswer, is_valid_accepted: bool) -> (Verdict, String) {
    if answer.is_accepted() {
        let words = format!(
            "The endpoint accepted an event whose timestamp is {OLD_MINUTES} minutes old: someone \
             who recorded a delivery could send it again later. Refuse an event if \
             webhook-timestamp differs from your clock by more than 5 minutes."
        );
        return (Verdict::Advice, words);
    }
    refusal(answer, is_valid_accepted, "The endpoint refused the old event.")
}

/// Judges the answer to a request that an endpoint should refuse.
fn refusal(answer: &CheckAnswer, is_valid_accepted: bool, words: &str) -> (Verdict, String) {
    if !is_valid_accepted {
        let words = "This answer says nothing, because the endpoint didn't accept the first test \
                     event either.";
        (Verdict::Advice, words.to_owned())
    } else if answer.is_refused() {
        (Verdict::Good, words.to_owned())
    } else {
        let words = format!("{} Refuse such an event with status 400 or 401.", answer.words());
        (Verdict::Advice, words)
    }
}

fn repeated(answer: &CheckAnswer, is_valid_accepted: bool) -> (Verdict, String) {
    if answer.is_accepted() {
        let words = "The endpoint accepted an event that it already had. Make sure that your \
                     program processes it only once: compare webhook-id.";
        (Verdict::Good, words.to_owned())
    } else if is_valid_accepted {
        let words = format!(
            "{} It had this event already. Answer a repeated event with a 2xx status, or it is \
             delivered again and again.",
            answer.words()
        );
        (Verdict::Bad, words)
    } else {
        (Verdict::Advice, answer.words())
    }
}

/// Formats a duration like `7.2 s`.
fn seconds(ms: i64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

#[cfg(test)]
mod tests;
