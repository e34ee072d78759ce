//! Counts of the answers that attackers got.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::load::status_in;
use crate::measured::p50_p99;

#[derive(Default)]
pub struct Tally {
    /// The number of rounds in which attackers sent requests.
    pub asked: u32,
    answers: BTreeMap<String, u64>,
    /// The answers to the other customer, which the attack shouldn't affect.
    others: BTreeMap<String, Vec<Duration>>,
}

impl Tally {
    /// Counts an answer, or its absence. A throttled form gets a page with status 200 that says so.
    pub fn answer(&mut self, answer: Option<&[u8]>) {
        let name = match answer {
            Some(answer) => {
                let status = status_in(answer).unwrap_or_default();
                let throttled = answer.windows(9).any(|word| word == b"Throttled");
                format!("{status}{}", if throttled { " throttled" } else { "" })
            }
            None => "none".to_owned(),
        };
        self.note(name);
    }

    pub fn note(&mut self, answer: String) {
        *self.answers.entry(answer).or_default() += 1;
    }

    /// Counts an answer to the other customer, and how long it took.
    pub fn other(&mut self, answer: &str, took: Duration) {
        self.others.entry(answer.to_owned()).or_default().push(took);
    }

    /// Returns how many requests of the other customer got an answer other than 200. `None` if
    /// there was no other customer.
    pub fn others_refused(&self) -> Option<usize> {
        let refused = self.others.iter().filter(|(answer, _)| *answer != "200");
        let refused = refused.map(|(_, times)| times.len()).sum();
        (!self.others.is_empty()).then_some(refused)
    }

    pub fn add(&mut self, other: Self) {
        self.asked += other.asked;
        for (answer, count) in other.answers {
            *self.answers.entry(answer).or_default() += count;
        }
        for (answer, times) in other.others {
            self.others.entry(answer).or_default().extend(times);
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = (self.answers.iter()).map(|(answer, count)| format!("{answer} × {count}"));
        f.write_str(&answers.collect::<Vec<_>>().join(", "))?;
        for (answer, times) in &self.others {
            let (count, (p50, p99)) = (times.len(), p50_p99(times.clone()));
            write!(f, "; to the other customer {answer} × {count} (p50 {p50:.1?}, p99 {p99:.1?})")?;
        }
        Ok(())
    }
}
