//! Periodic jobs: a table of all jobs, and the loop that runs each one.

mod clocks;
mod connections;
mod expansion;
mod mails;
mod nodes;
mod raw_receipts;
mod rerouting;
mod upkeep;
mod webhooks;
mod work;

use std::sync::Arc;
use std::time::Duration;

use service::Service;
use tokio::sync::Notify;

use super::context::{Context, RETRY};
use super::ended::Sandboxes;
use super::watched::WatchedCarriers;
use crate::mail::Mailer;
use crate::metrics::Metrics;
use crate::webhook::Sender;
use clocks::Clocks;
use connections::Watch;
use expansion::Expansion;
use mails::Mails;
use nodes::Nodes;
use raw_receipts::StoreRawReceipts;
use rerouting::Rerouting;
use webhooks::Webhooks;
use work::{Next, Stateless, Work};

/// A job and its schedule.
pub(super) struct Job {
    /// The job's name in log lines.
    pub(super) name: &'static str,
    pub(super) processes: Processes,
    /// The pause between two runs. The first run starts with the process.
    interval: Duration,
    /// A notification that starts the next run before the pause is over.
    wake: Option<fn(&Service) -> &Notify>,
    /// Creates the work with its initial state, at startup and again after a panic.
    work: Box<dyn Fn() -> Box<dyn Work> + Send + Sync>,
}

/// The processes that run a job.
#[derive(PartialEq, Eq)]
pub(super) enum Processes {
    /// All processes, including those that only accept messages.
    All,
    /// The processes that submit messages to carriers.
    Delivering,
    /// All processes, if the database is PostgreSQL, which several processes can share.
    Sharing,
}

/// Creates work that only calls a method of the service.
macro_rules! verb {
    ($subject:ident.$verb:ident) => {
        || Stateless(|service: Service| async move { service.$subject().$verb().await })
    };
}

pub(super) fn table(
    metrics: Arc<Metrics>,
    carriers: WatchedCarriers,
    sandboxes: Sandboxes,
    mailer: Option<Arc<Mailer>>,
    sender: Arc<Sender>,
) -> Vec<Job> {
    use Processes::{All, Delivering, Sharing};
    let seconds = Duration::from_secs;
    let watch = move || Watch::new(Arc::clone(&metrics), carriers.clone());
    let clocks = {
        let sandboxes = sandboxes.clone();
        move || Clocks::new(sandboxes.clone())
    };
    let nodes = move || Nodes::new(sandboxes.clone());
    let mails = move || Mails::new(mailer.clone());
    let webhooks = move || Webhooks::new(Arc::clone(&sender));
    vec![
        every(Duration::from_millis(500), All, "watch connections", watch)
            .woken_by(Service::drained),
        every(seconds(1), Delivering, "reroute messages", Rerouting::default)
            .woken_by(Service::routes_changed),
        every(seconds(2), Delivering, "expand uploads", Expansion::default)
            .woken_by(Service::batch_accepted),
        // Runs every 2 seconds, because on SQLite a command that reinstates an application can't
        // wake this process.
        every(
            seconds(2),
            Delivering,
            "resume reinstated applications",
            verb!(delivery.resume_deferred),
        )
        .woken_by(Service::reinstated),
        // A lease lasts for a minute by default. Compared with this, a delay of up to 5 seconds
        // doesn't matter.
        every(seconds(5), Delivering, "end leases", || Stateless(upkeep::end_leases)),
        // After staff have corrected a carrier's settings, a run may take minutes.
        every(seconds(5), Delivering, "match unmatched receipts", || {
            Stateless(upkeep::match_waiting)
        }),
        // A message must be final ten minutes after it has expired: `heliograph check` reports
        // later ones.
        every(seconds(60), Delivering, "expire and delete", || {
            Stateless(upkeep::expire_and_delete)
        }),
        // Parts may be missing for ten minutes. Compared with this, a delay of up to 5 seconds
        // doesn't matter.
        every(seconds(5), Delivering, "join inbound messages", verb!(delivery.join_inbound)),
        every(seconds(60), Delivering, "forget inbound messages", verb!(operations.forget_inbound)),
        every(seconds(60), Delivering, "forget commands", verb!(delivery.forget_commands)),
        every(seconds(3600), Delivering, "forget alarms", verb!(applications.forget_alarms)),
        every(seconds(60), All, "store throttled attempts", verb!(accounts.store_throttled)),
        every(seconds(10), All, "store figures of carriers", verb!(delivery.store_carrier_figures)),
        // Runs in every process, because every process chooses carriers.
        every(seconds(10), All, "update qualities of carriers", verb!(delivery.update_qualities)),
        every(seconds(60), All, "store uses of keys", verb!(applications.store_key_uses)),
        every(seconds(1), Delivering, "store raw receipts", || StoreRawReceipts),
        // Runs often, because customers open the call log right after they have called the API.
        every(seconds(5), All, "store calls", verb!(applications.store_calls)),
        every(seconds(5), All, "store alarms", verb!(applications.store_alarms)),
        // Runs often, because a process that hasn't renewed its row for half a minute counts as
        // ended.
        every(seconds(5), Sharing, "renew node", nodes),
        every(seconds(60), Delivering, "recount ledgers", verb!(operations.recount)),
        // Runs in every process, because each one shows the size to staff and in its metrics.
        every(seconds(3600), All, "measure unpaid messages", || Stateless(upkeep::measure_unpaid)),
        every(seconds(60), Sharing, "look for old transactions", || {
            Stateless(upkeep::look_for_old_transactions)
        }),
        // Counts a day after its end, again once all its messages but the scheduled ones are final,
        // and again whenever a scheduled one becomes final.
        every(seconds(3600), Delivering, "count margins", verb!(messages.count_margins)),
        every(seconds(2), Delivering, "follow test clocks", clocks).woken_by(Service::clock_moved),
        // Runs often, because nothing wakes this job when an event is stored.
        every(Duration::from_millis(250), Delivering, "deliver events", webhooks)
            .woken_by(Service::clock_moved),
        every(seconds(600), Delivering, "forget events", verb!(webhooks.forget_events)),
        // Runs often, because nothing wakes this job when a mail is written.
        every(seconds(2), Delivering, "send mails", mails),
        every(seconds(60), Delivering, "mail customers", verb!(operations.mail_notices)),
        every(seconds(60), Delivering, "change emails", verb!(accounts.apply_email_changes)),
        // Runs often, because nothing wakes this job when staff confirm a statement.
        every(seconds(2), Delivering, "credit bank statements", verb!(money.credit_statements)),
        every(
            seconds(600),
            Delivering,
            "forget abandoned bank statements",
            verb!(money.forget_abandoned_statements),
        ),
        every(seconds(30), Delivering, "mail staff about carriers", || {
            Stateless(upkeep::mail_carrier_states)
        }),
        every(seconds(300), Delivering, "mail staff", || Stateless(upkeep::remind_staff)),
    ]
}

fn every<W: Work + 'static>(
    interval: Duration,
    processes: Processes,
    name: &'static str,
    work: impl Fn() -> W + Send + Sync + 'static,
) -> Job {
    Job { name, processes, interval, wake: None, work: Box::new(move || Box::new(work())) }
}

impl Job {
    fn woken_by(self, wake: fn(&Service) -> &Notify) -> Self {
        Self { wake: Some(wake), ..self }
    }

    /// Runs the job repeatedly until the token is cancelled. After a panic, the job starts again.
    pub(super) async fn run(self, context: Context) {
        let job = Arc::new(self);
        context.supervise(|context| Arc::clone(&job).repeat(context)).await;
    }

    /// Runs the work repeatedly until the token is cancelled. A run that has begun is finished
    /// first.
    async fn repeat(self: Arc<Self>, context: Context) {
        let mut work = (self.work)();
        let mut woken = false;
        while !context.shutdown.is_cancelled() {
            // Subscribes before the run, so that a notification during the run starts the next run.
            let wake = self.wake.map(|wake| wake(&context.service).notified());
            let wait = match work.run(&context, woken).await {
                Ok(Next::AtOnce) => {
                    woken = false;
                    continue;
                }
                Ok(Next::Soon) => RETRY,
                Ok(Next::AfterInterval) => self.interval,
                Ok(Next::Within(wait)) => wait.min(self.interval),
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
