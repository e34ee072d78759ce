//! The results of the load generator's runs.

use std::fmt;
use std::time::{Duration, Instant};

use crate::load::Answers;
use crate::table::float;
use crate::usage::Cost;

#[derive(Clone, Debug)]
pub struct Measured {
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
    /// The cost per message, if it was measured.
    pub cost: Option<Cost>,
    /// Messages that still waited for a carrier some time after the run.
    pub waiting: u64,
    /// The load generator's CPU time per request, in µs.
    pub generator_us: f64,
    /// The time of an fsync just before the run, if it was measured.
    pub sync: Option<Duration>,
}

impl Measured {
    pub fn of(answers: &Answers) -> Self {
        assert!(!answers.times.is_empty(), "the run has no answers");
        let rate = float(answers.times.len() as u64) / answers.duration.as_secs_f64();
        let times = answers.times.iter().map(|answer| answer.took).collect();
        let (p50, p99) = p50_p99(times);
        Self {
            per_second: rate,
            p50,
            p99,
            cost: None,
            waiting: 0,
            generator_us: answers.cpu.as_secs_f64() * 1e6 / float(answers.count.max(1)),
            sync: None,
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let (p50, p99) = (ms(self.p50), ms(self.p99));
        write!(f, "{:.0}/s, p50 {p50:.2} p99 {p99:.2} ms", self.per_second)?;
        if let Some(cost) = &self.cost {
            write!(f, "; {cost}")?;
        }
        match self.sync {
            Some(sync) => write!(f, "; fsync {:.2} ms", ms(sync)),
            None => Ok(()),
        }
    }
}

/// Runs of one kind.
#[derive(Clone, Debug, Default)]
pub struct Runs(Vec<Measured>);

impl Runs {
    pub fn push(&mut self, run: Measured) {
        self.0.push(run);
    }

    /// Returns the run with the median rate.
    pub fn median(&self) -> Measured {
        self.middle(|run| run.per_second)
    }

    /// Returns the run with the median p99.
    pub fn median_by_p99(&self) -> Measured {
        self.middle(|run| run.p99.as_secs_f64())
    }

    fn middle(&self, figure: impl Fn(&Measured) -> f64) -> Measured {
        let mut runs = self.0.clone();
        runs.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
        runs.swap_remove(runs.len() / 2)
    }

    /// Returns the highest number of waiting messages of any run.
    pub fn most_waiting(&self) -> u64 {
        self.0.iter().map(|run| run.waiting).max().unwrap_or(0)
    }
}

impl Answers {
    /// Returns only the answers to requests sent between these times.
    pub fn within(&self, from: Instant, until: Instant) -> Self {
        let within = |asked: Instant| from <= asked && asked <= until;
        let times = self.times.iter().filter(|answer| within(answer.asked));
        Self {
            times: times.copied().collect(),
            count: self.count,
            duration: until - from,
            cpu: self.cpu,
        }
    }
}

/// Returns the 50th and the 99th percentile.
pub fn p50_p99(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    let at = |percent: usize| {
        let last = times.len().saturating_sub(1);
        let index = (times.len() * percent / 100).min(last);
        times.get(index).copied().unwrap_or_default()
    };
    (at(50), at(99))
}
