//! `heliograph serve`: runs everything in one process, from the first bind to the last response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use domain::Timestamp;
use domain::records::PriceList;
use parking_lot::RwLock;
use serde::Serialize;
use service::Service;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::carrier::http::endpoint::{self, PostingCarriers};
use crate::cli::{Role, Serve};
use crate::commands::{Output, service_config};
use crate::config::{ConnectionLimits, Settings};
use crate::config_error::ConfigError;
use crate::data_files::{self, Owner};
use crate::demo::{self, Demo};
use crate::descriptors;
use crate::http::Connections;
use crate::metrics::Metrics;
use crate::ops::{self, Ops};
use crate::public::PublicAddress;
use crate::reload::Reloader;
use crate::systemd::{self, Notice};
use crate::webhook::{Sender, WebhookClient};
use crate::worker::{self, RunningWorker, WorkerSettings};
use crate::{http, openapi, shutdown, tls, web};

/// The pause before the next attempt to reach the database at a start.
const OPEN_PAUSE: Duration = Duration::from_secs(2);
/// How long requests may take to finish after the storage failed.
const FAILED_DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Why the server didn't start or couldn't continue. The exit code is 1.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Open(#[from] service::OpenError),
    #[error("{}", .0.for_operator())]
    Service(#[from] service::Error),
    #[error(transparent)]
    Demo(#[from] demo::DemoError),
    #[error("can't listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the worker failed; the log says why")]
    WorkerFailed,
    #[error(
        "the storage failed. The last sends got no response, because it isn't known whether they \
         are stored. The log says why the storage failed. If the disk couldn't be synced, check \
         it, then start again"
    )]
    StorageFailed,
    #[error("the system provides no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
}

impl ServeError {
    /// Adds the command that repairs the owners of files, if wrong owners can be the cause.
    pub fn with_repair(self, settings: &Settings) -> Box<dyn std::error::Error> {
        let user = Owner::of_process();
        let may_be_cause = matches!(self, Self::Open(_) | Self::Service(_)) && !user.is_root();
        match data_files::owners_to_repair(settings, user).filter(|_| may_be_cause) {
            Some(repair) => format!("{self}. {repair}").into(),
            None => self.into(),
        }
    }
}

/// The line that `--json` prints once the server is ready.
#[derive(Serialize)]
struct Ready {
    /// The URL of portal and API. Null for a worker, which has neither.
    url: Option<String>,
    ops_url: String,
    #[serde(flatten)]
    demo: Option<Demo>,
}

/// Serves until the process receives a signal to stop. With `json`, prints one line once it is
/// ready.
pub async fn serve(serve: &Serve, settings: &Settings, json: bool) -> Result<(), ServeError> {
    refuse(serve, settings)?;
    let settings = &if serve.demo { settings.of_demo() } else { settings.clone() };
    let tls = settings.tls.as_ref().map(tls::acceptor).transpose()?;
    let stop_requested = shutdown::on_signal()?;
    let hangup = shutdown::on_hangup()?;
    let stop = shutdown::after(&stop_requested, settings.stop_delay);
    // A worker has no portal and no API.
    let public = match serve.role {
        Some(Role::Worker) => None,
        Some(Role::Web) | None => Some(bind(settings.addr).await?),
    };
    let operator = bind(settings.ops_addr).await?;
    let url = match &public {
        Some(listener) => settings.base_url(listener.local_addr()?),
        None => settings.base_url(settings.addr),
    };
    let ops_url = format!("http://{}", operator.local_addr()?);

    let endpoints = settings.endpoint_rules(serve.demo);
    let config =
        service::Config { endpoints: endpoints.clone(), ..service_config(settings, url.clone()) };
    let Some(service) = open(config, &stop_requested).await? else {
        tracing::info!("stopped");
        return Ok(());
    };
    if let Err(error) = service.accounts().load_keys().await {
        // Otherwise each refused start would use up a slot among the nodes.
        service.close().await;
        return Err(error.into());
    }
    let demo =
        if serve.demo { Some(demo::prepare(&service, &settings.data_dir).await?) } else { None };
    let metrics = Arc::new(Metrics::default());
    let limits = ConnectionLimits {
        all: descriptors::allow(settings.connections.all),
        ..settings.connections
    };
    let PriceList { currency, .. } = service.money().price_list().await?;
    let sender = Arc::new(Sender {
        service: service.clone(),
        client: WebhookClient::new(endpoints)?,
        metrics: Arc::clone(&metrics),
        currency: currency.into(),
    });
    let last_command = service.delivery().newest_command().await?;
    let posting = Arc::new(PostingCarriers::default());
    posting.set(&settings.carriers.list);
    let receipts = endpoint::router(service.clone(), Arc::clone(&posting));
    let site = site(&service, settings, &url, &metrics, &sender, receipts, &stop).await?;
    let ops = ops::router(Ops {
        service: service.clone(),
        metrics: Arc::clone(&metrics),
        folders: Arc::new(data_files::folders(settings)),
        stop: stop_requested,
    });
    let ops_stop = CancellationToken::new();
    let ops_connections = connections_of_operator(limits, &metrics);
    let ops = tokio::spawn(http::serve(operator, None, ops, ops_connections, ops_stop.clone()));

    let served = async {
        let url = public.is_some().then_some(url);
        let now = service.clock().now();
        Output::new(json).print(&Ready { url, ops_url, demo }, |ready| words(ready, now))?;
        systemd::notify(Notice::Ready);
        let delivers = serve.role != Some(Role::Web);
        let trusted = settings.trusted_proxies.clone();
        let connections = Connections::new(limits, trusted, Arc::clone(&metrics));
        let serving = async {
            match public {
                Some(public) => http::serve(public, tls, site, connections, stop.clone()).await,
                None => stop.cancelled().await,
            }
        };
        let worker_stop = CancellationToken::new();
        let worker_settings = WorkerSettings {
            sandbox_delay_ms: settings.sandbox_delay_ms,
            carriers: settings.carriers.list.clone(),
            mail: settings.mail.clone(),
            delivers,
        };
        let worker =
            worker::spawn(service.clone(), worker_settings, metrics, sender, worker_stop.clone());
        let reloader = Reloader {
            service: service.clone(),
            settings: RwLock::new(settings.clone()),
            is_demo: serve.demo,
            posting,
            worker: Box::new(worker.changes()),
            connections: worker.connections.clone(),
        };
        let reloading = reloader.run(last_command, hangup, stop.clone());
        let running = run(&service, (worker, worker_stop), serving, &stop);
        tokio::join!(running, reloading).0
    }
    .await;
    // Closing a database writes to it, so one that can't be synced stays open.
    if !matches!(served, Err(ServeError::StorageFailed)) {
        service.close().await;
    }
    ops_stop.cancel();
    // At this point, no request to the operator's address matters any more.
    let _ = ops.await;
    tracing::info!("stopped");
    served
}

/// Responds to requests and submits messages to carriers, until the process receives a signal to
/// stop or one of the two fails.
async fn run(
    service: &Service,
    (mut worker, worker_stop): (RunningWorker, CancellationToken),
    serving: impl Future<Output = ()>,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        () = &mut serving => {}
        () = service.failed() => {
            // The connections of senders whose messages may be lost are closed without a response.
            // Nothing else can be done.
            stop.cancel();
            let _ = tokio::time::timeout(FAILED_DRAIN_TIMEOUT, serving).await;
            return Err(ServeError::StorageFailed);
        }
        // The worker ends by itself only after a panic. Without a worker, no message may be
        // accepted, because nobody would send it.
        _ = &mut worker.task => {
            stop.cancel();
            serving.await;
            return Err(ServeError::WorkerFailed);
        }
    }
    // All requests have their responses. Queued messages that weren't sent wait for the next start.
    worker_stop.cancel();
    worker.task.await.map_err(|_| ServeError::WorkerFailed)
}

/// Returns the connections of the operator's address. Only the total limit applies to the
/// operator's own programs.
fn connections_of_operator(limits: ConnectionLimits, metrics: &Arc<Metrics>) -> Connections {
    let limits = ConnectionLimits { address: limits.all, network: limits.all, ..limits };
    Connections::new(limits, Vec::new(), Arc::clone(metrics))
}

async fn site(
    service: &Service,
    settings: &Settings,
    url: &str,
    metrics: &Arc<Metrics>,
    sender: &Arc<Sender>,
    receipts: Router,
    stop: &CancellationToken,
) -> Result<PublicAddress, ServeError> {
    let document = openapi::document(url, &settings.limits).map_err(std::io::Error::from)?;
    let api = Api {
        service: service.clone(),
        metrics: Arc::clone(metrics),
        currency: Arc::clone(&sender.currency),
        sender: Arc::clone(sender),
        country_code: settings.country_code.as_str().into(),
        document: document.to_string().into(),
    };
    let form_key = service.form_key().await?;
    let portal = web::router(Arc::clone(sender), settings, url, &document, &form_key, stop.clone());
    let portal = portal.merge(receipts);
    let trusted = settings.trusted_proxies.clone();
    Ok(PublicAddress::new(
        api,
        portal,
        web::error_pages(settings, url),
        Arc::clone(metrics),
        trusted,
        web::is_https(url),
    )?)
}

/// Refuses calls and settings that can't be served, before anything is changed.
fn refuse(serve: &Serve, settings: &Settings) -> Result<(), ConfigError> {
    if serve.role.is_some() && settings.database_url.starts_with("sqlite:") {
        return Err(ConfigError::new(
            "--role needs PostgreSQL: with SQLite one process does all the work",
        ));
    }
    if serve.demo && !settings.addr.ip().is_loopback() {
        return Err(ConfigError::new(
            "--demo is refused on an address that can be reached from outside: its sign-ins are \
             printed",
        ));
    }
    settings.refuse_sandbox(serve.demo)
}

/// Opens the service. Waits while the database server can't be reached, because it may start after
/// this process. Returns `None` if the process receives a signal to stop.
async fn open(
    config: service::Config,
    stop_requested: &CancellationToken,
) -> Result<Option<Service>, ServeError> {
    loop {
        match Service::open(config.clone()).await {
            Err(error) if error.is_unreachable() => {
                tracing::warn!(%error, "waiting for the database; trying again in {OPEN_PAUSE:?}");
            }
            opened => return Ok(Some(opened?)),
        }
        tokio::select! {
            () = stop_requested.cancelled() => return Ok(None),
            () = tokio::time::sleep(OPEN_PAUSE) => {}
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|error| ServeError::Listen { address, error })
}

fn words(ready: &Ready, now: Timestamp) -> String {
    let Ready { url, ops_url, demo } = ready;
    let head = format!("Heliograph is ready; health and metrics at {ops_url}");
    match (url, demo) {
        (Some(url), Some(demo)) => format!("{head}\n\n{url}\n\n{}", demo.words(url, now)),
        (Some(url), None) => format!("{head}\n\n{url}"),
        (None, _) => head,
    }
}
