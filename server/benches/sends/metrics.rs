//! A server's metrics, read from `/metrics`.

use crate::http;
use crate::usage::Work;

/// Counts commit groups. Each is one write transaction, and its commit syncs once.
const GROUPS: &str = "heliograph_commit_group_seconds_count";
const COMMITS: &str = "heliograph_commit_group_commit_seconds_count";
const HASHES: &str = "heliograph_password_hashes_total";
const WAITING: &str = "heliograph_queue_messages";

/// The text of one response.
pub struct Metrics(String);

impl Metrics {
    pub fn of(address: &str) -> Self {
        Self(http::fetch(address, "/metrics"))
    }

    pub fn work(&self) -> Work {
        Work { transactions: self.sum(GROUPS), fsyncs: self.sum(COMMITS) }
    }

    /// Returns the number of passwords hashed.
    pub fn hashes(&self) -> u64 {
        self.sum(HASHES).unwrap()
    }

    /// Returns the number of messages that wait for a carrier.
    pub fn waiting(&self) -> u64 {
        self.sum(WAITING).unwrap()
    }

    /// Returns the sum of an integer metric over all its labels. `None` if the metric is missing.
    fn sum(&self, name: &str) -> Option<u64> {
        let lines = self.0.lines().filter_map(|line| line.strip_prefix(name));
        let values = lines.filter(|rest| rest.starts_with([' ', '{']));
        let values = values.map(|rest| rest.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        values.reduce(|sum, value| sum + value)
    }
}
