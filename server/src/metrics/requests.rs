//! The time to respond to requests, by method, route and status.
//!
//! Each thread counts for itself. With the library's `Family` of `Histogram`s, every send would
//! wait for two locks that all sends share: that of the family, and that of the histogram of
//! accepted sends.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;

use super::striped::Striped;
use super::values::{ByLabels, ConstHistogram};

/// The upper bounds of the buckets, in seconds. The last bucket has no bound.
const BOUNDS_S: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, f64::INFINITY];

#[derive(Default)]
pub(super) struct Requests(Striped<BTreeMap<Labels, Latencies>>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub(super) struct Labels {
    method: &'static str,
    route: Cow<'static, str>,
    status: u16,
}

#[derive(Default)]
struct Latencies {
    sum_s: f64,
    count: u64,
    /// The requests of each bucket, without those of lower buckets.
    buckets: [u64; BOUNDS_S.len()],
}

impl Requests {
    pub(super) fn count(
        &self,
        method: &'static str,
        route: Cow<'static, str>,
        status: u16,
        latency: Duration,
    ) {
        let seconds = latency.as_secs_f64();
        let labels = Labels { method, route, status };
        let mut requests = self.0.own();
        let latencies = requests.entry(labels).or_default();
        latencies.sum_s += seconds;
        latencies.count += 1;
        if let Some(bucket) = BOUNDS_S.iter().position(|bound| seconds <= *bound) {
            latencies.buckets[bucket] += 1;
        }
    }

    /// Returns the sum of all threads' counts.
    pub(super) fn read(&self) -> ByLabels<Labels, ConstHistogram> {
        let mut sum = BTreeMap::<Labels, Latencies>::new();
        for part in self.0.all() {
            for (labels, latencies) in part.iter() {
                sum.entry(labels.clone()).or_default().add(latencies);
            }
        }
        let histograms = sum.into_iter().map(|(labels, latencies)| {
            let histogram = ConstHistogram {
                sum: latencies.sum_s,
                count: latencies.count,
                buckets: BOUNDS_S.into_iter().zip(latencies.buckets).collect(),
            };
            (labels, histogram)
        });
        ByLabels(histograms.collect())
    }
}

impl Latencies {
    fn add(&mut self, other: &Self) {
        self.sum_s += other.sum_s;
        self.count += other.count;
        for (bucket, more) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn requests_of_several_threads_are_added_up() {
        let metrics = Metrics::default();
        let serve = || {
            let latency = Duration::from_millis(2);
            metrics.request("GET", Cow::Borrowed("/x"), 200, latency);
        };
        std::thread::scope(|scope| {
            scope.spawn(serve);
            scope.spawn(serve);
        });
        let labels = "method=\"GET\",route=\"/x\",status=\"200\"";
        let rendered = metrics.render(None);
        for line in [
            "# TYPE heliograph_request_seconds histogram".to_owned(),
            format!("heliograph_request_seconds_bucket{{le=\"0.001\",{labels}}} 0"),
            format!("heliograph_request_seconds_bucket{{le=\"0.005\",{labels}}} 2"),
            format!("heliograph_request_seconds_bucket{{le=\"+Inf\",{labels}}} 2"),
            format!("heliograph_request_seconds_sum{{{labels}}} 0.004"),
            format!("heliograph_request_seconds_count{{{labels}}} 2"),
        ] {
            assert!(rendered.lines().any(|other| other == line), "{rendered}");
        }
    }
}
