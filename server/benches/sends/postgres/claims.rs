//! Claims of a full queue, by the verb that connections claim by.

use std::time::{Duration, Instant};

use service::{SANDBOX_CARRIER, Service};

use super::cluster::Cluster;
use super::verbs::{Verbs, record_taken};
use super::{block_on, distribution};
use crate::rounds::ROUNDS;
use crate::row;

/// Rows of a claim.
const ROWS: usize = 200;
/// Claims of a run.
const CLAIMS: usize = 200;

struct Way {
    what: &'static str,
    services: usize,
    /// Whether each claim is followed by the results of its messages; they aren't part of its time.
    recorded: bool,
}

const WAYS: [Way; 3] = [
    Way {
        what: "one service",
        services: 1,
        recorded: false,
    },
    Way {
        what: "two services at once",
        services: 2,
        recorded: false,
    },
    Way {
        what: "one service, results stored in between",
        services: 1,
        recorded: true,
    },
];

pub fn measure() {
    println!(
        "\nPostgreSQL: claims of {ROWS} rows, by `Service::claim`, the time of claims alone; medians of {ROUNDS} \
         alternating runs of {CLAIMS} claims"
    );
    let cluster = Cluster::start();
    block_on(async {
        let verbs = Verbs::on(&cluster).await;
        let services = [verbs.service.clone(), verbs.another(&cluster).await];
        let mut runs = WAYS.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            // For all ways of a round: what a claim looks through is as long for each run of a way.
            verbs.queue(ROWS * CLAIMS * WAYS.len()).await;
            for (way, runs) in WAYS.iter().zip(&mut runs) {
                runs.push(Run::of(way, &services).await);
            }
        }
        for (way, mut runs) in WAYS.iter().zip(runs) {
            runs.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
            let run = &runs[runs.len() / 2];
            let (p50, p99) = (run.p50, run.p99);
            let figure = format!(
                "{:.0} rows/s, a claim p50 {p50:.1?} p99 {p99:.1?}",
                run.per_second
            );
            row(way.what, figure, "≥ 20000 rows/s");
        }
        for service in services {
            service.close().await;
        }
    });
}

struct Run {
    per_second: f64,
    p50: Duration,
    p99: Duration,
}

impl Run {
    /// So many services share the claims.
    async fn of(way: &Way, services: &[Service]) -> Self {
        let recorded = way.recorded;
        let claiming: Vec<_> = services[..way.services]
            .iter()
            .map(|service| tokio::spawn(claim(service.clone(), CLAIMS / way.services, recorded)))
            .collect();
        let (mut times, mut longest) = (Vec::new(), Duration::ZERO);
        for claims in claiming {
            let claims = claims.await.unwrap();
            longest = longest.max(claims.iter().sum());
            times.extend(claims);
        }
        let (p50, p99, claims) = distribution(times);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let per_second = (claims * ROWS) as f64 / longest.as_secs_f64();
        Self {
            per_second,
            p50,
            p99,
        }
    }
}

/// The times of so many claims.
async fn claim(service: Service, count: usize, recorded: bool) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..count {
        let started = Instant::now();
        let claimed = service
            .claim(SANDBOX_CARRIER, i64::try_from(ROWS).unwrap_or(i64::MAX))
            .await;
        times.push(started.elapsed());
        let (lease, messages) = claimed.unwrap();
        assert_eq!(messages.len(), ROWS, "the queue holds enough");
        if recorded {
            record_taken(&service, lease, &messages).await;
        }
    }
    times
}
