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
mod watched;

use std::sync::Arc;
use std::time::Duration;

use service::{SANDBOX_CARRIER, Service};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::carrier::CarrierConnection;
use crate::carrier::http::connection::HttpConnection;
use crate::carrier::sandbox::Sandbox;
use crate::carrier::smpp::SmppConnection;
use crate::config::carriers::{CarrierKind, CarrierSettings};
use crate::mail::{MailServer, Mailer};
use crate::metrics::Metrics;
use crate::webhook::Sender;
use context::Context;
use ended::Sandboxes;
use jobs::Processes;
use watched::WatchedCarrier;

/// The settings of the worker.
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

/// Starts the worker. It runs until the token is cancelled and all connections are closed.
pub fn spawn(
    service: Service,
    settings: WorkerSettings,
    metrics: Arc<Metrics>,
    sender: Arc<Sender>,
    shutdown: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut worker = Worker {
            context: Context { service, shutdown, deliveries: TaskTracker::new() },
            tasks: JoinSet::new(),
            watched: Vec::new(),
        };
        worker.start(settings, metrics, sender).await;
        while worker.tasks.join_next().await.is_some() {}
        // At shutdown they end after the requests that they have begun.
        worker.context.deliveries.close();
        worker.context.deliveries.wait().await;
    })
}

/// The tasks of a worker.
struct Worker {
    context: Context,
    tasks: JoinSet<()>,
    watched: Vec<WatchedCarrier>,
}

impl Worker {
    async fn start(
        &mut self,
        settings: WorkerSettings,
        metrics: Arc<Metrics>,
        sender: Arc<Sender>,
    ) {
        let mut groups = vec![Processes::All];
        let mut sandboxes = Sandboxes::default();
        if settings.delivers {
            groups.push(Processes::Delivering);
            sandboxes = Arc::new(self.sandboxes(&settings));
        }
        if self.context.service.operations().is_shared() {
            // A job detects processes that ended, and takes over from them.
            groups.push(Processes::Sharing);
        } else {
            // An earlier process left everything that is claimed or outstanding now.
            ended::end_leases(&self.context).await;
            let (context, sandboxes) = (self.context.clone(), Arc::clone(&sandboxes));
            let before = context.service.clock().now();
            self.tasks.spawn(ended::recover(context, sandboxes, before));
        }
        for (name, sandbox) in sandboxes.iter() {
            self.start_connections(name, 1, || sandbox.clone());
        }
        let mailer = settings.mail.as_ref().map(Mailer::new).map(Arc::new);
        for carrier in settings.carriers {
            if settings.delivers {
                self.start_carrier(carrier);
            } else {
                // Other processes have connections to this carrier.
                self.watched.push(WatchedCarrier::new(carrier.name, Vec::new()));
            }
        }
        let watched = Arc::new(std::mem::take(&mut self.watched));
        for job in jobs::table(metrics, watched, sandboxes, mailer, sender) {
            if groups.contains(&job.processes) {
                self.start_job(job);
            }
        }
    }

    /// Returns the configured sandboxes, and the one for test messages, which go to no other
    /// carrier.
    fn sandboxes(&self, settings: &WorkerSettings) -> Vec<(String, Arc<Sandbox>)> {
        let carriers = &settings.carriers;
        let is_named = carriers.iter().any(|carrier| carrier.name == SANDBOX_CARRIER);
        let names = (carriers.iter())
            .filter(|carrier| carrier.kind == CarrierKind::Sandbox)
            .map(|carrier| carrier.name.as_str())
            .chain((!is_named).then_some(SANDBOX_CARRIER));
        let open = |name: &str| {
            let clock = self.context.service.clock().clone();
            let sandbox = Sandbox::new(clock, settings.sandbox_delay_ms);
            (name.to_owned(), Arc::new(sandbox))
        };
        names.map(open).collect()
    }

    fn start_carrier(&mut self, CarrierSettings { name, kind }: CarrierSettings) {
        let service = self.context.service.clone();
        let lease = Duration::from_millis(service.limits().lease_ms.unsigned_abs());
        let clock = || service.clock().clone();
        match kind {
            // `start` has already started the sandboxes.
            CarrierKind::Sandbox => {}
            CarrierKind::Http(http) => match HttpConnection::new(*http, clock(), lease) {
                Ok(connection) => {
                    let connection = Arc::new(connection);
                    self.start_connections(&name, 1, || connection.clone());
                }
                // The settings were checked at startup, so the file of authorities has changed
                // since.
                Err(error) => {
                    tracing::error!(carrier = name, %error, "a carrier can't be used");
                    service.delivery().set_usable(&name, false);
                }
            },
            CarrierKind::Smpp(smpp) => {
                let pace = SmppConnection::shared_pace(&smpp);
                self.start_connections(&name, smpp.connections, || {
                    let seed = service.entropy().number();
                    let pace = pace.clone();
                    Arc::new(SmppConnection::open((*smpp).clone(), pace, clock(), lease, seed))
                });
            }
        }
    }

    /// Opens and serves a carrier's connections.
    fn start_connections(
        &mut self,
        carrier: &str,
        count: usize,
        open: impl Fn() -> Arc<dyn CarrierConnection>,
    ) {
        let mut watched = WatchedCarrier::new(carrier.to_owned(), Vec::new());
        for number in 1..=count {
            // The span has error level, so that every log line about the connection names it.
            let span = tracing::error_span!("connection", carrier, number);
            let connection = span.in_scope(&open);
            let seen = Arc::clone(&connection);
            watched.connections.push(Box::new(move || seen.state()));
            let is_open = watched.open.subscribe();
            let context = self.context.clone();
            let serving = delivery::serve(context, carrier.to_owned(), connection, is_open);
            self.tasks.spawn(serving.instrument(span));
        }
        self.watched.push(watched);
    }

    fn start_job(&mut self, job: jobs::Job) {
        let span = tracing::error_span!("job", name = job.name);
        let running = job.run(self.context.clone());
        self.tasks.spawn(running.instrument(span));
    }
}
