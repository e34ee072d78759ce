//! The worker. Submits queued messages to carriers and records the responses and receipts
//! (`delivery`). Runs the periodic jobs (`jobs`).
//!
//! The database, not memory, holds all state. A claim is durable before the submit, an outcome
//! before the queue row is deleted, and a receipt before it is acknowledged. If a process dies, its
//! claimed rows keep their leases. Only a receipt can show whether a carrier has those messages.

mod context;
mod delivery;
mod ended;
mod jobs;
mod trials;
mod watched;

use std::sync::Arc;
use std::time::Duration;

use service::{SANDBOX_CARRIER, Service};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::carrier::CarrierConnection;
use crate::carrier::http::connection::HttpConnection;
use crate::carrier::pace::Paces;
use crate::carrier::sandbox::Sandbox;
use crate::carrier::smpp::SmppConnection;
use crate::config::carriers::{CarrierKind, CarrierSettings, HealthSettings};
use crate::mail::{MailServer, Mailer};
use crate::metrics::Metrics;
use crate::webhook::Sender;
use context::Context;
use ended::Sandboxes;
use jobs::Processes;
pub use trials::Connections;
use trials::Trials;
use watched::{ReadState, WatchedCarrier, WatchedCarriers};

#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// The time that a sandbox takes to deliver.
    pub sandbox_delay_ms: u64,
    pub carriers: Vec<CarrierSettings>,
    /// The mail server. Without one, mails are kept for staff.
    pub mail: Option<MailServer>,
    /// False for a process that only accepts messages. It submits none to carriers, and runs only
    /// the jobs that every process runs.
    pub delivers: bool,
}

pub struct RunningWorker {
    /// Ends once the worker has stopped and all connections are closed.
    pub task: JoinHandle<()>,
    changes: mpsc::UnboundedSender<Change>,
    pub connections: Connections,
}

/// A change to the carriers while the worker runs.
pub enum Change {
    /// Serve these carriers. Those whose settings are the same keep their connections.
    Carriers(Vec<CarrierSettings>),
    /// Close the connections to this carrier, and open them again.
    Rebind(String),
}

impl RunningWorker {
    /// Returns a function that passes changes to the worker.
    pub fn changes(&self) -> impl Fn(Change) + Send + Sync + 'static {
        let changes = self.changes.clone();
        // After the worker has ended, nothing can change.
        move |change| drop(changes.send(change))
    }
}

/// Starts the worker. It runs until the token is cancelled and all connections are closed.
pub fn spawn(
    service: Service,
    settings: WorkerSettings,
    metrics: Arc<Metrics>,
    sender: Arc<Sender>,
    shutdown: CancellationToken,
) -> RunningWorker {
    let (changes, mut received) = mpsc::unbounded_channel();
    let (watched, trials) = (WatchedCarriers::default(), Trials::default());
    let connections = Connections { carriers: watched.clone(), trials: trials.clone() };
    let task = tokio::spawn(async move {
        let mut worker = Worker {
            context: Context { service, shutdown, deliveries: TaskTracker::new(), trials },
            delivers: settings.delivers,
            sandbox_delay_ms: settings.sandbox_delay_ms,
            jobs: JoinSet::new(),
            carriers: Vec::new(),
            watched,
            sandboxes: Sandboxes::default(),
        };
        worker.start(settings, metrics, sender).await;
        let shutdown = worker.context.shutdown.clone();
        while let Some(Some(change)) = shutdown.run_until_cancelled(received.recv()).await {
            worker.change(change).await;
        }
        shutdown.cancelled().await;
        while worker.jobs.join_next().await.is_some() {}
        for carrier in &worker.carriers {
            carrier.closed().await;
        }
        // These tasks end after the requests that they have begun.
        worker.context.deliveries.close();
        worker.context.deliveries.wait().await;
    });
    RunningWorker { task, changes, connections }
}

/// The tasks of a worker.
struct Worker {
    context: Context,
    delivers: bool,
    sandbox_delay_ms: u64,
    jobs: JoinSet<()>,
    carriers: Vec<ServedCarrier>,
    watched: WatchedCarriers,
    sandboxes: Sandboxes,
}

/// A carrier whose connections are open.
struct ServedCarrier {
    settings: CarrierSettings,
    /// Cancelled to close the connections.
    stop: CancellationToken,
    connections: TaskTracker,
}

impl ServedCarrier {
    /// Waits until all connections are closed.
    async fn closed(&self) {
        self.connections.close();
        self.connections.wait().await;
    }
}

impl Worker {
    async fn start(
        &mut self,
        settings: WorkerSettings,
        metrics: Arc<Metrics>,
        sender: Arc<Sender>,
    ) {
        let mut groups = vec![Processes::All];
        if self.delivers {
            groups.push(Processes::Delivering);
        }
        if self.context.service.operations().is_shared() {
            // A job takes over from processes that ended.
            groups.push(Processes::Sharing);
        } else {
            // Everything that is claimed or outstanding now is from an earlier process.
            ended::end_leases(&self.context).await;
        }
        let before = self.context.service.clock().now();
        self.serve(settings.carriers);
        if !self.context.service.operations().is_shared() {
            let (context, sandboxes) = (self.context.clone(), self.sandboxes.clone());
            self.jobs.spawn(ended::recover(context, sandboxes, before));
        }
        let mailer = settings.mail.as_ref().map(Mailer::new).map(Arc::new);
        let (watched, sandboxes) = (self.watched.clone(), self.sandboxes.clone());
        for job in jobs::table(metrics, watched, sandboxes, mailer, sender) {
            if groups.contains(&job.processes) {
                self.start_job(job);
            }
        }
    }

    /// Applies a change of the settings.
    async fn change(&mut self, change: Change) {
        match change {
            Change::Carriers(carriers) => {
                // A sandbox can't be opened again. So it stays, and does no harm without a route.
                let is_replaced = |settings: &CarrierSettings| {
                    settings.kind != CarrierKind::Sandbox
                        || carriers.iter().any(|carrier| carrier.name == settings.name)
                };
                self.stop(|served| {
                    !carriers.contains(&served.settings) && is_replaced(&served.settings)
                })
                .await;
                self.serve(carriers);
            }
            Change::Rebind(name) => {
                let all: Vec<_> =
                    self.carriers.iter().map(|served| served.settings.clone()).collect();
                self.stop(|served| {
                    served.settings.name == name && served.settings.kind != CarrierKind::Sandbox
                })
                .await;
                self.serve(all);
            }
        }
    }

    /// Closes the connections of these carriers. Waits for those over SMPP, because a carrier may
    /// refuse a second bind. Requests over HTTP may take longer, and end by themselves.
    async fn stop(&mut self, stops: impl Fn(&ServedCarrier) -> bool) {
        let (stopped, kept) = std::mem::take(&mut self.carriers).into_iter().partition(stops);
        self.carriers = kept;
        for served in &stopped {
            served.stop.cancel();
            let name = &served.settings.name;
            self.watched.remove(name);
            // New messages take another route until the new connections are watched.
            self.context.service.delivery().set_usable(name, false);
        }
        for served in stopped {
            if matches!(served.settings.kind, CarrierKind::Smpp(_)) {
                served.closed().await;
            } else {
                self.context.deliveries.spawn(async move { served.closed().await });
            }
        }
    }

    /// Opens connections to the carriers that have none yet, and to the sandbox for test messages,
    /// which go to no other carrier.
    fn serve(&mut self, mut carriers: Vec<CarrierSettings>) {
        if self.delivers && !carriers.iter().any(|carrier| carrier.name == SANDBOX_CARRIER) {
            carriers.insert(
                0,
                CarrierSettings {
                    name: SANDBOX_CARRIER.to_owned(),
                    health: HealthSettings::default(),
                    rewriting: domain::Rewriting::default(),
                    segments_max: None,
                    kind: CarrierKind::Sandbox,
                },
            );
        }
        for carrier in carriers {
            if self.carriers.iter().any(|served| served.settings.name == carrier.name) {
                continue;
            }
            let served = ServedCarrier {
                stop: self.context.shutdown.child_token(),
                connections: TaskTracker::new(),
                settings: carrier,
            };
            if self.delivers {
                self.start_carrier(&served);
            } else {
                // Other processes have connections to this carrier.
                self.watched.add(Arc::new(WatchedCarrier {
                    carrier: served.settings.name.clone(),
                    health: served.settings.health,
                    open: watch::Sender::new(false),
                    connections: Vec::new(),
                    links: Vec::new(),
                    paces: Paces::default(),
                }));
            }
            self.carriers.push(served);
        }
    }

    fn start_carrier(&self, served: &ServedCarrier) {
        let service = &self.context.service;
        let lease = Duration::from_millis(service.limits().lease_ms.unsigned_abs());
        let clock = || service.clock().clone();
        let name = served.settings.name.as_str();
        match &served.settings.kind {
            CarrierKind::Sandbox => {
                let delay_ms = self.sandbox_delay_ms;
                let sandbox = self.sandboxes.open(name, || Sandbox::new(clock(), delay_ms));
                self.start_connections(served, 1, Paces::default(), || sandbox.clone());
            }
            CarrierKind::Http(http) => {
                match HttpConnection::new((**http).clone(), clock(), lease) {
                    Ok(connection) => {
                        let connection = Arc::new(connection);
                        let paces = connection.paces();
                        self.start_connections(served, 1, paces, || connection.clone());
                    }
                    // The settings were checked before, so the file of authorities has changed
                    // since.
                    Err(error) => {
                        tracing::error!(carrier = name, %error, "a carrier can't be used");
                        service.delivery().set_usable(name, false);
                    }
                }
            }
            CarrierKind::Smpp(smpp) => {
                let paces = Paces::new(smpp.carrier_rate, smpp.sender_rate);
                self.start_connections(served, smpp.connections, paces.clone(), || {
                    let seed = service.entropy().number();
                    let paces = paces.clone();
                    let silent = served.settings.health.unanswered_max();
                    let smpp = (**smpp).clone();
                    Arc::new(SmppConnection::open(smpp, silent, paces, clock(), lease, seed))
                });
            }
        }
    }

    /// Opens and serves a carrier's connections.
    fn start_connections(
        &self,
        served: &ServedCarrier,
        count: usize,
        paces: Paces,
        open: impl Fn() -> Arc<dyn CarrierConnection>,
    ) {
        let carrier = served.settings.name.as_str();
        let open_for_messages = watch::Sender::new(false);
        let (mut states, mut links): (Vec<ReadState>, Vec<_>) = (Vec::new(), Vec::new());
        for number in 1..=count {
            // The span has error level, so that every log line about the connection names it.
            let span = tracing::error_span!("connection", carrier, number);
            let connection = span.in_scope(&open);
            let seen = Arc::clone(&connection);
            links.push(Arc::clone(&connection));
            states.push(Box::new(move || seen.state()));
            let is_open = open_for_messages.subscribe();
            let (context, stop) = (self.context.clone(), served.stop.clone());
            let serving = delivery::serve(context, stop, carrier.to_owned(), connection, is_open);
            served.connections.spawn(serving.instrument(span));
        }
        let health = served.settings.health;
        let carrier = carrier.to_owned();
        self.watched.add(Arc::new(WatchedCarrier {
            carrier,
            health,
            open: open_for_messages,
            connections: states,
            links,
            paces,
        }));
    }

    fn start_job(&mut self, job: jobs::Job) {
        let span = tracing::error_span!("job", name = job.name);
        let running = job.run(self.context.clone());
        self.jobs.spawn(running.instrument(span));
    }
}
