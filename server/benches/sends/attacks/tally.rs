//! What strangers were answered.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::load::status_in;
use crate::measured::p50_p99;

#[derive(Default)]
pub struct Tally {
    /// How often all of them asked together.
    pub asked: u32,
    answers: BTreeMap<String, u64>,
    /// Those to somebody else, who isn't to notice.
    others: BTreeMap<String, Vec<Duration>>,
}

impl Tally {
    /// An answer, or none. A form that was throttled says so in a page of status 200.
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

    /// What somebody else was answered, and in what time.
    pub fn other(&mut self, answer: &str, took: Duration) {
        self.others.entry(answer.to_owned()).or_default().push(took);
    }

    /// How many requests of somebody else weren't answered 200, where there is somebody else.
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
            write!(
                f,
                "; to the other {answer} × {count} (p50 {p50:.1?}, p99 {p99:.1?})"
            )?;
        }
        Ok(())
    }
}
