//! The worker: hands queued messages to carriers and records what these answer and report
//! (`delivery`), and does the work that comes round again and again (`jobs`).
//!
//! Nothing is decided in memory: a claim is durable before the submit, an outcome before the queue
//! row is deleted, a receipt before it is acknowledged. A process that dies leaves rows under a
//! lease: whether a carrier has those messages only a receipt can tell.

mod delivery;
mod jobs;
mod retry;
mod watched;

use std::sync::Arc;
use std::time::Duration;

use service::{SANDBOX_CARRIER, Service};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::carrier::CarrierConnection;
use crate::carrier::http::connection::HttpConnection;
use crate::carrier::sandbox::Sandbox;
use crate::carrier::smpp::SmppConnection;
use crate::config::carriers::{CarrierKind, CarrierSettings};
use crate::metrics::Metrics;
use watched::WatchedCarrier;

/// What the worker needs of the settings.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// How long a sandbox takes to deliver.
    pub sandbox_delay_ms: u64,
    pub carriers: Vec<CarrierSettings>,
    /// False for a process that only takes messages in: it hands none to carriers, and does only
    /// the jobs that every process does.
    pub delivers: bool,
}

/// Works until the token is cancelled and every connection is closed.
pub fn spawn(
    service: Service,
    settings: WorkerSettings,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        // A database that isn't shared has no other process that could hold a claim.
        if !service.is_shared() {
            delivery::end_old_leases(&service, &shutdown).await;
        }
        let mut worker = Worker {
            service,
            shutdown,
            tasks: JoinSet::new(),
            watched: Vec::new(),
            sandboxes: Vec::new(),
        };
        worker.start(settings, &metrics);
        while worker.tasks.join_next().await.is_some() {}
    })
}

/// The tasks of a worker.
struct Worker {
    service: Service,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
    watched: Vec<WatchedCarrier>,
    /// With their names.
    sandboxes: Vec<(String, Arc<Sandbox>)>,
}

impl Worker {
    fn start(&mut self, settings: WorkerSettings, metrics: &Arc<Metrics>) {
        if settings.delivers {
            self.start_carriers(settings.carriers, settings.sandbox_delay_ms);
        } else {
            // Other processes have connections to them.
            let carriers = settings.carriers.into_iter();
            self.watched
                .extend(carriers.map(|carrier| WatchedCarrier::new(carrier.name, Vec::new())));
        }
        let watched = Arc::new(std::mem::take(&mut self.watched));
        let sandboxes = Arc::new(std::mem::take(&mut self.sandboxes));
        for job in jobs::table(metrics, &watched, &sandboxes) {
            if job.runs_in(settings.delivers, self.service.is_shared()) {
                self.start_job(job);
            }
        }
    }

    fn start_carriers(&mut self, carriers: Vec<CarrierSettings>, sandbox_delay_ms: u64) {
        let lease = Duration::from_millis(self.service.limits().lease_ms.unsigned_abs());
        // Test messages go to no other carrier.
        if !(carriers.iter()).any(|carrier| carrier.name == SANDBOX_CARRIER) {
            self.start_sandbox(SANDBOX_CARRIER, sandbox_delay_ms);
        }
        for CarrierSettings { name, kind } in carriers {
            let service = self.service.clone();
            let clock = || service.clock().clone();
            match kind {
                CarrierKind::Sandbox => self.start_sandbox(&name, sandbox_delay_ms),
                CarrierKind::Http(http) => match HttpConnection::new(http, clock(), lease) {
                    Ok(connection) => {
                        let connection = Arc::new(connection);
                        self.start_connections(&name, 1, || connection.clone());
                    }
                    // The settings were checked at the start; the file of authorities was changed
                    // since.
                    Err(error) => {
                        tracing::error!(name, %error, "a carrier can't be used");
                        service.set_usable(&name, false);
                    }
                },
                CarrierKind::Smpp(smpp) => {
                    self.start_connections(&name, smpp.connections, || {
                        let seed = service.entropy().number();
                        Arc::new(SmppConnection::open(smpp.clone(), clock(), lease, seed))
                    });
                }
            }
        }
    }

    fn start_sandbox(&mut self, name: &str, delay_ms: u64) {
        let connection = Arc::new(Sandbox::new(self.service.clock().clone(), delay_ms));
        self.start_connections(name, 1, || connection.clone());
        // Where several processes share the database, a job recovers what one of them left.
        if self.service.is_shared() {
            self.sandboxes.push((name.to_owned(), connection));
            return;
        }
        let before = self.service.clock().now();
        let (service, shutdown) = (self.service.clone(), self.shutdown.clone());
        let name = name.to_owned();
        let recovering = delivery::recover(service, name, connection, before, shutdown);
        self.tasks.spawn(recovering);
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
            // At the level of errors, so that the lines about them always name the connection.
            let span = tracing::error_span!("connection", carrier, number);
            let connection = span.in_scope(&open);
            let seen = Arc::clone(&connection);
            watched.connections.push(Box::new(move || seen.state()));
            let is_open = watched.open.subscribe();
            let (service, shutdown) = (self.service.clone(), self.shutdown.clone());
            let serving =
                delivery::serve(service, carrier.to_owned(), connection, is_open, shutdown);
            self.tasks.spawn(serving.instrument(span));
        }
        self.watched.push(watched);
    }

    fn start_job(&mut self, job: jobs::Job) {
        let span = tracing::error_span!("job", name = job.name);
        let running = job.run(self.service.clone(), self.shutdown.clone());
        self.tasks.spawn(running.instrument(span));
    }
}
