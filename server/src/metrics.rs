//! Counters in Prometheus' text format, kept by hand: there are few, and each is read from one
//! place.

pub mod carriers;
mod shards;
pub mod turns;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shards::Shards;

/// Upper bounds of the latency histogram in seconds.
const LATENCY_BOUNDS_S: [f64; 8] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

/// What the process counted since it started.
#[derive(Default)]
pub struct Metrics {
    requests: Shards<BTreeMap<Labels, Served>>,
    sends_accepted: AtomicU64,
    pub refused: carriers::Refusals,
}

/// What waits for a carrier.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    pub waiting: i64,
    /// Age of the oldest, 0 when none waits.
    pub oldest_ms: i64,
}

/// How long the database's oldest transaction has been open, in Prometheus' text format.
pub fn oldest_transaction(age_ms: i64) -> String {
    format!(
        "# HELP heliograph_database_oldest_transaction_seconds Age of the oldest transaction open in the database.\n\
         # TYPE heliograph_database_oldest_transaction_seconds gauge\n\
         heliograph_database_oldest_transaction_seconds {}.{:03}\n",
        age_ms / 1000,
        age_ms % 1000
    )
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    method: &'static str,
    route: Cow<'static, str>,
    status: u16,
}

#[derive(Clone, Default)]
struct Served {
    count: u64,
    seconds: f64,
    /// Requests per bound, not yet summed up as the format wants them.
    buckets: [u64; LATENCY_BOUNDS_S.len()],
}

impl Served {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.seconds += other.seconds;
        for (bucket, more) in self.buckets.iter_mut().zip(other.buckets) {
            *bucket += more;
        }
    }
}

impl Metrics {
    /// Counts a request; its status is 0 when the connection was closed without an answer.
    pub fn request(
        &self,
        method: &'static str,
        route: Cow<'static, str>,
        status: u16,
        latency: Duration,
    ) {
        let seconds = latency.as_secs_f64();
        let labels = Labels {
            method,
            route,
            status,
        };
        let mut requests = self.requests.own();
        let served = requests.entry(labels).or_default();
        served.count += 1;
        served.seconds += seconds;
        if let Some(bucket) = LATENCY_BOUNDS_S.iter().position(|bound| seconds <= *bound) {
            served.buckets[bucket] += 1;
        }
    }

    /// Counts a send that was answered with 200.
    pub fn send_accepted(&self) {
        self.sends_accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// What all threads counted.
    fn requests(&self) -> BTreeMap<Labels, Served> {
        let mut sum = BTreeMap::<Labels, Served>::new();
        for part in self.requests.all() {
            for (labels, served) in part.iter() {
                sum.entry(labels.clone()).or_default().add(served);
            }
        }
        sum
    }

    /// Everything counted, and how much waits, in Prometheus' text format.
    pub fn render(&self, queue: Option<Queue>) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = self.render_into(&mut text, queue);
        text
    }

    fn render_into(&self, text: &mut String, queue: Option<Queue>) -> std::fmt::Result {
        if let Some(queue) = queue {
            writeln!(
                text,
                "# HELP heliograph_queue_messages Messages that wait for a carrier."
            )?;
            writeln!(text, "# TYPE heliograph_queue_messages gauge")?;
            writeln!(text, "heliograph_queue_messages {}", queue.waiting)?;
            writeln!(
                text,
                "# HELP heliograph_queue_oldest_seconds Age of the oldest of them."
            )?;
            writeln!(text, "# TYPE heliograph_queue_oldest_seconds gauge")?;
            let ms = queue.oldest_ms;
            writeln!(
                text,
                "heliograph_queue_oldest_seconds {}.{:03}",
                ms / 1000,
                ms % 1000
            )?;
        }
        let sends = self.sends_accepted.load(Ordering::Relaxed);
        writeln!(
            text,
            "# HELP heliograph_sends_accepted_total Single sends answered with 200."
        )?;
        writeln!(text, "# TYPE heliograph_sends_accepted_total counter")?;
        writeln!(text, "heliograph_sends_accepted_total {sends}")?;
        writeln!(
            text,
            "# HELP heliograph_request_seconds Time to answer a request; status 0: closed without an answer."
        )?;
        writeln!(text, "# TYPE heliograph_request_seconds histogram")?;
        for (labels, served) in self.requests() {
            let Labels {
                method,
                route,
                status,
            } = labels;
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            let mut below = 0;
            for (bound, count) in LATENCY_BOUNDS_S.iter().zip(served.buckets) {
                below += count;
                writeln!(
                    text,
                    "heliograph_request_seconds_bucket{{{labels},le=\"{bound}\"}} {below}"
                )?;
            }
            let Served { count, seconds, .. } = served;
            writeln!(
                text,
                "heliograph_request_seconds_bucket{{{labels},le=\"+Inf\"}} {count}"
            )?;
            writeln!(text, "heliograph_request_seconds_sum{{{labels}}} {seconds}")?;
            writeln!(text, "heliograph_request_seconds_count{{{labels}}} {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_several_threads_served_are_added_up() {
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
            format!("heliograph_request_seconds_bucket{{{labels},le=\"0.001\"}} 0"),
            format!("heliograph_request_seconds_bucket{{{labels},le=\"0.005\"}} 2"),
            format!("heliograph_request_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            format!("heliograph_request_seconds_sum{{{labels}}} 0.004"),
            format!("heliograph_request_seconds_count{{{labels}}} 2"),
        ] {
            assert!(rendered.lines().any(|other| other == line), "{rendered}");
        }
    }
}
