//! Turns uploads into messages, hands queued messages to carriers, records what they answer and
//! report, and sweeps what is over.
//!
//! Nothing is decided in memory: a claim is durable before the submit, an outcome before the queue
//! row goes, a receipt before it is acknowledged. A process that dies leaves rows under a lease:
//! whether a carrier has them only a receipt can tell.

mod claiming;
mod ending_leases;
mod expanding;
mod heartbeat;
mod probing;
mod recording;
mod refusals;
mod rerouting;
mod resuming;
mod sweeping;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use service::{Leases, SANDBOX_CARRIER, Service};
use tokio::sync::{Mutex, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::carrier::Line;
use crate::carrier::http::line::HttpLine;
use crate::carrier::sandbox::Sandbox;
use crate::carrier::smpp::SmppLine;
use crate::config::carriers::{CarrierKind, CarrierSettings};
use crate::metrics::Metrics;
use watching::Watched;

/// How long to wait before something that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Messages that are read at once when a start looks for receipts that are still to come.
const OUTSTANDING_CHUNK: i64 = 1000;

/// What the dispatcher needs of the settings.
#[derive(Clone, Debug)]
pub struct DispatcherSettings {
    /// How long a sandbox takes to deliver.
    pub sandbox_delay_ms: u64,
    pub carriers: Vec<CarrierSettings>,
    /// False for a process that only takes messages in: it hands none to carriers, and sweeps
    /// nothing.
    pub works: bool,
}

/// Dispatches until the token is cancelled, and everything that carriers were given is settled as
/// well as a moment allows.
pub fn spawn(
    service: Service,
    settings: DispatcherSettings,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        // Of a database of its own: nobody else can have claimed anything.
        if !service.is_shared() {
            end_old_leases(&service, &shutdown).await;
        }
        let mut parts = Parts {
            service,
            metrics,
            shutdown,
            tasks: JoinSet::new(),
            watched: Vec::new(),
            sandboxes: Vec::new(),
        };
        parts.start(settings);
        while parts.tasks.join_next().await.is_some() {}
    })
}

/// The running parts.
struct Parts {
    service: Service,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
    watched: Vec<Watched>,
    /// With their names.
    sandboxes: Vec<(String, Arc<Sandbox>)>,
}

impl Parts {
    fn start(&mut self, settings: DispatcherSettings) {
        let delay_ms = settings.sandbox_delay_ms;
        let lease = Duration::from_millis(self.service.limits().lease_ms.unsigned_abs());
        let carriers = settings.carriers;
        if !settings.works {
            return self.only_look(carriers);
        }
        // Test messages go nowhere else.
        if !carriers
            .iter()
            .any(|carrier| carrier.name == SANDBOX_CARRIER)
        {
            self.sandbox(SANDBOX_CARRIER, delay_ms);
        }
        for carrier in carriers {
            match carrier.kind {
                CarrierKind::Sandbox => self.sandbox(&carrier.name, delay_ms),
                CarrierKind::Http(http) => {
                    let clock = self.service.clock().clone();
                    match HttpLine::new(http, clock, lease) {
                        Ok(line) => drop(self.carrier(&carrier.name, vec![line])),
                        // The settings were checked at the start: its file went since.
                        Err(error) => {
                            let name = carrier.name;
                            tracing::error!(name, %error, "a carrier can't be used");
                            self.service.set_usable(&name, false);
                        }
                    }
                }
                CarrierKind::Smpp(smpp) => {
                    let open = |service: &Service| {
                        let seed = service.entropy().number();
                        SmppLine::open(smpp.clone(), service.clock().clone(), lease, seed)
                    };
                    let lines = (0..smpp.connections).map(|_| open(&self.service)).collect();
                    self.carrier(&carrier.name, lines);
                }
            }
        }
        self.watch();
        self.supervise("rerouting", rerouting::run);
        self.supervise("ending_leases", ending_leases::run);
        self.supervise("expanding", expanding::run);
        self.supervise("resuming", resuming::run);
        self.supervise("sweeping", sweeping::run);
    }

    /// Watches what others are bound to.
    fn only_look(&mut self, carriers: Vec<CarrierSettings>) {
        let unbound = carriers.into_iter();
        self.watched = unbound
            .map(|carrier| Watched::new(carrier.name, Vec::new()))
            .collect();
        self.watch();
    }

    fn watch(&mut self) {
        let watched = Arc::new(std::mem::take(&mut self.watched));
        let metrics = Arc::clone(&self.metrics);
        self.supervise("watching", move |service, shutdown| {
            watching::run(
                service,
                Arc::clone(&metrics),
                Arc::clone(&watched),
                shutdown,
            )
        });
        if self.service.is_shared() {
            let sandboxes = Arc::new(std::mem::take(&mut self.sandboxes));
            self.supervise("heartbeat", move |service, shutdown| {
                heartbeat::run(service, Arc::clone(&sandboxes), shutdown)
            });
        }
    }

    fn sandbox(&mut self, name: &str, delay_ms: u64) {
        let line = Sandbox::new(self.service.clock().clone(), delay_ms);
        let lines = self.carrier(name, vec![line]);
        let (service, shutdown) = (self.service.clone(), self.shutdown.clone());
        let (name, started) = (name.to_owned(), self.service.clock().now());
        if service.is_shared() {
            let named = lines.into_iter().map(|line| (name.clone(), line));
            self.sandboxes.extend(named);
            return;
        }
        for line in lines {
            let recovering = recover(
                service.clone(),
                name.clone(),
                line,
                started,
                shutdown.clone(),
            );
            self.tasks.spawn(recovering);
        }
    }

    /// Starts a carrier's connections.
    fn carrier<L: Line>(&mut self, name: &str, lines: Vec<L>) -> Vec<Arc<L>> {
        let lines: Vec<_> = lines.into_iter().map(Arc::new).collect();
        let states = lines.iter().map(|line| {
            let line = Arc::clone(line);
            Box::new(move || line.state()) as Box<dyn Fn() -> _ + Send + Sync>
        });
        let watched = Watched::new(name.to_owned(), states.collect());
        for line in &lines {
            let (line, open) = (Arc::clone(line), watched.open.subscribe());
            let (service, shutdown) = (self.service.clone(), self.shutdown.clone());
            self.tasks
                .spawn(serve(service, name.to_owned(), line, open, shutdown));
        }
        self.watched.push(watched);
        lines
    }

    fn supervise<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        name: &'static str,
        part: impl Fn(Service, CancellationToken) -> F + Send + Sync + 'static,
    ) {
        let (service, shutdown) = (self.service.clone(), self.shutdown.clone());
        self.tasks.spawn(async move {
            let start = || part(service.clone(), shutdown.clone());
            supervise(name, &shutdown, start).await;
        });
    }
}

/// How many messages a connection would take now.
fn free<L: Line>(line: &L, is_open: bool) -> usize {
    if is_open { line.free() } else { 0 }
}

/// Serves a connection: claims for it, records its reports, and closes it in the end.
async fn serve<L: Line>(
    service: Service,
    carrier: String,
    line: Arc<L>,
    open: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    let consumer = service.consume(&carrier);
    let credit = consumer.credit();
    let consumer = Arc::new(Mutex::new(consumer));
    let claiming = async {
        supervise("claiming", &shutdown, || {
            let (consumer, line) = (Arc::clone(&consumer), Arc::clone(&line));
            claiming::run(consumer, line, open.clone(), shutdown.clone())
        })
        .await;
        // It gives back what it was handed and hasn't received.
        drop(consumer);
        line.close().await;
    };
    let recording = supervise("recording", &shutdown, || {
        let (service, carrier, line) = (service.clone(), carrier.clone(), Arc::clone(&line));
        let (credit, open, shutdown) = (credit.clone(), open.clone(), shutdown.clone());
        recording::run(service, carrier, line, credit, open, shutdown)
    });
    tokio::join!(claiming, recording);
}

/// Runs a loop in a task of its own and starts it again if it breaks down: messages must go on.
async fn supervise<F: Future<Output = ()> + Send + 'static>(
    name: &'static str,
    shutdown: &CancellationToken,
    start: impl Fn() -> F,
) {
    while let Err(error) = tokio::spawn(start()).await {
        tracing::error!(name, %error, "a part of the dispatcher broke down and starts again");
        if pause(RETRY, shutdown).await {
            return;
        }
    }
}

/// Ends what an earlier process had claimed: nobody else dispatches from this database now.
async fn end_old_leases(service: &Service, shutdown: &CancellationToken) {
    loop {
        match service.end_leases(Leases::All).await {
            Ok(0) => return,
            Ok(count) => {
                tracing::info!(count, "an earlier process had claimed messages");
                return;
            }
            Err(error) => {
                tracing::error!(detail = ?error, "old claims can't be ended; trying again");
            }
        }
        if pause(RETRY, shutdown).await {
            return;
        }
    }
}

/// Tells a sandbox what an earlier process handed over; new messages needn't wait for that.
async fn recover(
    service: Service,
    carrier: String,
    line: Arc<Sandbox>,
    started: Timestamp,
    shutdown: CancellationToken,
) {
    let mut after = None;
    while !shutdown.is_cancelled() {
        match service
            .outstanding(&carrier, started, after, OUTSTANDING_CHUNK)
            .await
        {
            Ok(found) => {
                let Some(last) = found.last() else { return };
                after = Some(last.id);
                line.expect_receipts(&found);
            }
            Err(error) => {
                tracing::error!(detail = ?error, "what awaits receipts can't be read; trying again");
                pause(RETRY, &shutdown).await;
            }
        }
    }
}

/// Waits; true when the process is to stop.
async fn pause(time: Duration, shutdown: &CancellationToken) -> bool {
    tokio::time::timeout(time, shutdown.cancelled())
        .await
        .is_ok()
}
