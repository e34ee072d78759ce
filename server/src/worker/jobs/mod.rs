//! Periodic jobs: a table of all jobs, and the loop that runs each one.

mod connections;
mod expansion;
mod mails;
mod nodes;
mod rerouting;
mod upkeep;
mod work;

use std::sync::Arc;
use std::time::Duration;

use service::Service;
use tokio::sync::Notify;

use super::context::{Context, RETRY};
use super::ended::Sandboxes;
use super::watched::WatchedCarrier;
use crate::mail::Mailer;
use crate::metrics::Metrics;
use connections::Watch;
use expansion::Expansion;
use mails::Mails;
use nodes::Nodes;
use rerouting::Rerouting;
use work::{Next, Work, stateless};

/// A periodic job.
pub(super) struct Job {
    /// The job's name in log lines.
    pub(super) name: &'static str,
    pub(super) processes: Processes,
    /// The pause between two runs. The first run is at startup.
    interval: Duration,
    /// The notification that starts the next run early.
    wake: Option<fn(&Service) -> &Notify>,
    /// Creates the work with its initial state. Called at startup and after a panic.
    work: Box<dyn Fn() -> Box<dyn Work> + Send + Sync>,
}

/// The processes that run a job.
#[derive(PartialEq, Eq)]
pub(super) enum Processes {
    /// All processes, including those that only accept messages.
    All,
    /// The processes that submit messages to carriers.
    Delivering,
    /// All processes, but only if several can share the database.
    Sharing,
}

/// Returns all jobs.
pub(super) fn table(
    metrics: Arc<Metrics>,
    carriers: Arc<Vec<WatchedCarrier>>,
    sandboxes: Sandboxes,
    mailer: Option<Arc<Mailer>>,
) -> Vec<Job> {
    let mut jobs = vec![
        Job {
            name: "watch connections",
            processes: Processes::All,
            interval: Duration::from_millis(500),
            wake: Some(Service::drained),
            work: Box::new(move || {
                Box::new(Watch::new(Arc::clone(&metrics), Arc::clone(&carriers)))
            }),
        },
        Job {
            name: "reroute messages",
            processes: Processes::Delivering,
            interval: Duration::from_secs(1),
            wake: Some(Service::routes_changed),
            work: Box::new(|| Box::new(Rerouting::default())),
        },
        Job {
            name: "expand uploads",
            processes: Processes::Delivering,
            interval: Duration::from_secs(2),
            wake: Some(Service::batch_accepted),
            work: Box::new(|| Box::new(Expansion::default())),
        },
        Job {
            name: "resume reinstated applications",
            processes: Processes::Delivering,
            interval: Duration::from_secs(2),
            // The command line reinstates applications without waking this process.
            wake: Some(Service::reinstated),
            work: stateless(upkeep::resume_reinstated),
        },
        Job {
            name: "end leases",
            processes: Processes::Delivering,
            // By default, a lease lasts for a minute.
            interval: Duration::from_secs(5),
            wake: None,
            work: stateless(upkeep::end_leases),
        },
        Job {
            name: "expire and delete",
            processes: Processes::Delivering,
            // A message must be final at most ten minutes after it expires.
            interval: Duration::from_mins(1),
            wake: None,
            work: stateless(upkeep::expire_and_delete),
        },
        Job {
            name: "store throttled attempts",
            processes: Processes::All,
            interval: Duration::from_mins(1),
            wake: None,
            work: stateless(upkeep::store_throttled),
        },
        Job {
            name: "store uses of keys",
            processes: Processes::All,
            interval: Duration::from_mins(1),
            wake: None,
            work: stateless(upkeep::store_key_uses),
        },
        Job {
            name: "store calls",
            processes: Processes::All,
            // Owners look at a call right after they made it.
            interval: Duration::from_secs(5),
            wake: None,
            work: stateless(upkeep::store_calls),
        },
        Job {
            name: "renew node",
            processes: Processes::Sharing,
            // A process that isn't seen for half a minute counts as ended.
            interval: Duration::from_secs(5),
            wake: None,
            work: Box::new(move || Box::new(Nodes::new(Arc::clone(&sandboxes)))),
        },
        Job {
            name: "measure unpaid messages",
            // Each process shows the result to staff and in its metrics.
            processes: Processes::All,
            interval: Duration::from_hours(1),
            wake: None,
            work: stateless(upkeep::measure_unpaid),
        },
        Job {
            name: "look for old transactions",
            processes: Processes::Sharing,
            interval: Duration::from_mins(1),
            wake: None,
            work: stateless(upkeep::look_for_old_transactions),
        },
    ];
    jobs.extend(office(mailer));
    jobs
}

/// Returns the jobs for money and mails.
fn office(mailer: Option<Arc<Mailer>>) -> Vec<Job> {
    vec![
        Job {
            name: "count margins",
            processes: Processes::Delivering,
            // A day is counted after its end.
            interval: Duration::from_hours(1),
            wake: None,
            work: stateless(upkeep::count_margins),
        },
        Job {
            name: "send mails",
            processes: Processes::Delivering,
            interval: Duration::from_secs(2),
            // The command line writes mails without waking this process.
            wake: None,
            work: Box::new(move || Box::new(Mails::new(mailer.clone()))),
        },
        Job {
            name: "mail customers",
            processes: Processes::Delivering,
            interval: Duration::from_mins(1),
            wake: None,
            work: stateless(upkeep::mail_notices),
        },
        Job {
            name: "change emails",
            processes: Processes::Delivering,
            interval: Duration::from_mins(1),
            wake: None,
            work: stateless(upkeep::apply_email_changes),
        },
        Job {
            name: "credit bank statements",
            processes: Processes::Delivering,
            // Staff may confirm a statement in any process.
            interval: Duration::from_secs(2),
            wake: None,
            work: stateless(upkeep::credit_statements),
        },
        Job {
            name: "forget abandoned bank statements",
            processes: Processes::Delivering,
            interval: Duration::from_mins(10),
            wake: None,
            work: stateless(upkeep::forget_abandoned_statements),
        },
        Job {
            name: "mail staff",
            processes: Processes::Delivering,
            interval: Duration::from_mins(5),
            wake: None,
            work: stateless(upkeep::remind_staff),
        },
    ]
}

impl Job {
    /// Runs repeatedly until the token is cancelled, even after a panic.
    pub(super) async fn run(self, context: Context) {
        let job = Arc::new(self);
        context.supervise(|context| Arc::clone(&job).repeat(context)).await;
    }

    /// Runs repeatedly until the token is cancelled. Finishes a run that has begun.
    async fn repeat(self: Arc<Self>, context: Context) {
        let mut work = (self.work)();
        let mut woken = false;
        while !context.shutdown.is_cancelled() {
            // Subscribes before the run, so that an event during the run starts the next one.
            let wake = self.wake.map(|wake| wake(&context.service).notified());
            let wait = match work.run(&context, woken).await {
                Ok(Next::AtOnce) => {
                    woken = false;
                    continue;
                }
                Ok(Next::Soon) => RETRY,
                Ok(Next::AfterInterval) => self.interval,
                Err(error) => {
                    tracing::error!(detail = ?error, "a job failed; it runs again in a second");
                    context.pause(RETRY).await;
                    woken = false;
                    continue;
                }
            };
            let wake = async {
                match wake {
                    Some(wake) => wake.await,
                    None => std::future::pending().await,
                }
            };
            woken = tokio::select! {
                () = wake => true,
                () = tokio::time::sleep(wait) => false,
                () = context.shutdown.cancelled() => return,
            };
        }
    }
}
