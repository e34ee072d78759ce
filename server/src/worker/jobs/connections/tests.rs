//! Tests which carriers may get messages.

use std::sync::Mutex;

use domain::carrier_figures::{CarrierCounts, CarrierEvent};
use domain::routing::Routes;
use domain::{Money, Prices};
use service::{Actor, CarrierInfo, Clock, Config, Entropy, Limits, Network};
use tempfile::TempDir;

use super::*;
use crate::carrier::pace::Paces;
use crate::config::carriers::HealthSettings;
use crate::worker::watched::ReadState;

async fn service(folder: &TempDir) -> Service {
    let network = Network {
        carriers: vec![CarrierInfo {
            name: "acme".to_owned(),
            sandbox: false,
            binds: true,
            whole: false,
            message_id: None,
            named: service::NamedStates::default(),
            rewriting: domain::Rewriting::default(),
        }],
        routes: Routes::default(),
        country_code: "266".to_owned(),
        default_sender: "Heliograph".to_owned(),
    };
    Service::open(Config {
        database_url: format!("sqlite:{}", folder.path().join("test.db").display()),
        prices: Prices::new(Money::from_micros(1), Money::from_micros(2)).unwrap(),
        currency: "USD".to_owned(),
        data_dir: folder.path().join("data"),
        network,
        limits: Limits::default(),
        mail: service::MailSettings::default(),
        endpoints: service::EndpointRules::default(),
        opt_outs: service::OptOutSettings::default(),
        clock: Clock::system(),
        entropy: Entropy::system(),
    })
    .await
    .unwrap()
}

fn watch(connections: Vec<ReadState>) -> Watch {
    let carriers = WatchedCarriers::default();
    carriers.add(Arc::new(WatchedCarrier {
        carrier: "acme".to_owned(),
        health: HealthSettings::default(),
        open: tokio::sync::watch::Sender::new(false),
        connections,
        links: Vec::new(),
        paces: Paces::default(),
    }));
    Watch::new(Arc::default(), carriers)
}

/// Returns true if the carrier may get messages after a new process has looked this many times.
async fn is_open_after(looks: usize, service: &Service) -> bool {
    let mut watch = watch(Vec::new());
    for _ in 0..looks {
        watch.look(service).await;
    }
    watch.carriers.list()[0].is_open()
}

#[tokio::test]
async fn a_carrier_is_closed_until_its_drain_state_is_read() {
    const STAFF: Actor = Actor::CommandLine;
    let folder = tempfile::tempdir().unwrap();
    let service = service(&folder).await;
    assert!(!is_open_after(0, &service).await);
    assert!(is_open_after(1, &service).await);
    service.delivery().drain_carrier(&STAFF, "acme", true).await.unwrap();
    assert!(!is_open_after(1, &service).await);
    service.delivery().resume_carrier(&STAFF, "acme").await.unwrap();
    assert!(is_open_after(1, &service).await);
    // The drain state isn't known while the database can't be read.
    service.close().await;
    assert!(!is_open_after(2, &service).await);
}

/// Returns true if the rerouting job was woken.
async fn wakes_rerouting(service: &Service) -> bool {
    let woken = service.routes_changed().notified();
    tokio::time::timeout(Duration::ZERO, woken).await.is_ok()
}

fn bound() -> ConnectionStatus {
    ConnectionStatus {
        state: ConnectionState::Bound,
        since: Instant::now(),
        in_flight: 0,
        window: 10,
        unanswered_since: None,
        answered: 0,
        throttled: 0,
        throttled_until: None,
        takes_probe: false,
        lost: 0,
        refused: Refused::default(),
        last_error: None,
        last_error_at: None,
        held: None,
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_again_and_again_is_degraded_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let service = service(&folder).await;
    let state = Arc::new(Mutex::new(bound()));
    let connection = Arc::clone(&state);
    let connection: ReadState = Box::new(move || connection.lock().unwrap().clone());
    let mut watch = watch(vec![connection]);
    let metrics = Arc::clone(&watch.metrics);
    let mut after = async |lost: u64, now: ConnectionState| {
        {
            let mut state = state.lock().unwrap();
            (state.lost, state.state, state.since) = (lost, now, Instant::now());
            state.last_error = Some("closed".to_owned());
        }
        watch.look(&service).await.remove(0)
    };
    let once = after(1, ConnectionState::Bound).await;
    assert_eq!((once.state, once.last_error.as_deref()), (ConnectionState::Bound, Some("closed")));
    for lost in 2..FLAPPING_MIN {
        let record = after(lost, ConnectionState::Bound).await;
        assert_eq!(record.state, ConnectionState::Bound);
        let wanted =
            format!("closed. Besides, the connection was lost {lost} times in the last 10 minutes");
        assert_eq!(record.last_error, Some(wanted));
    }
    assert!(service.delivery().unusable_carriers().is_empty());
    let degraded = after(FLAPPING_MIN, ConnectionState::Bound).await;
    assert_eq!(degraded.state, ConnectionState::Degraded);
    let reason = "the connection was lost 5 times in the last 10 minutes. Last error: closed";
    assert_eq!(degraded.last_error.as_deref(), Some(reason));
    assert_eq!(service.delivery().unusable_carriers().len(), 1);
    // The time of the first loss, not of the last bind.
    let later = after(FLAPPING_MIN, ConnectionState::Bound).await;
    assert!(later.since.ms_since(degraded.since).abs() <= 100, "{later:?}");
    let down = after(FLAPPING_MIN + 1, ConnectionState::Waiting).await;
    assert_eq!(down.state, ConnectionState::Waiting);
    assert!(down.last_error.unwrap().contains("lost 6 times"));
    let steady = Instant::now().checked_sub(STEADY_TIME).unwrap();
    watch.reported[0].1.connections[0].losses.iter_mut().for_each(|at| *at = steady);
    watch.look(&service).await;
    state.lock().unwrap().state = ConnectionState::Bound;
    assert_eq!(watch.look(&service).await[0].state, ConnectionState::Bound);
    assert!(service.delivery().unusable_carriers().is_empty());
    let counted = "heliograph_carrier_connections_lost_total{carrier=\"acme\"} 6\n";
    assert!(metrics.render(None).contains(counted), "{}", metrics.render(None));
}

#[tokio::test]
async fn a_probing_carrier_is_unusable_and_a_lost_probe_wakes_rerouting() {
    use ConnectionState::{Bound, Probing, Waiting};
    let folder = tempfile::tempdir().unwrap();
    let service = service(&folder).await;
    let state = Arc::new(Mutex::new(bound()));
    let connection = Arc::clone(&state);
    let connection: ReadState = Box::new(move || connection.lock().unwrap().clone());
    let mut watch = watch(vec![connection]);
    let mut look_at = async |now: ConnectionState| {
        state.lock().unwrap().state = now;
        watch.look(&service).await;
        // Ends the grace period.
        let long_ago = Instant::now().checked_sub(LOST_GRACE).unwrap();
        watch.reported[0].1.connections[0].bound_at = long_ago;
        (wakes_rerouting(&service).await, service.delivery().unusable_carriers().len())
    };
    assert_eq!(look_at(Bound).await, (false, 0));
    assert_eq!(look_at(Waiting).await, (true, 1));
    assert_eq!(look_at(Probing).await, (false, 1));
    assert_eq!(look_at(Waiting).await, (true, 1));
    assert_eq!(look_at(Waiting).await, (false, 1));
    assert_eq!(look_at(Probing).await, (false, 1));
    assert_eq!(look_at(Bound).await, (true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_carrier_with_little_traffic_that_refuses_or_delivers_nothing_is_degraded() {
    let settings = HealthSettings {
        refused_percent: 50,
        undelivered_percent: 90,
        ..HealthSettings::default()
    };
    let mut health = Health::new(settings);
    let mut counts = CarrierCounts::default();
    let mut answer = async |event| {
        tokio::time::advance(Duration::from_mins(5)).await;
        counts.add(event, 1);
        health.update(counts, Waiting::default());
        health.degraded().map(|degraded| degraded.reason(Some(("no credit", None))).0)
    };
    for _ in 0..9 {
        assert_eq!(answer(CarrierEvent::Refused).await, None);
    }
    // One that it accepts begins the count again.
    assert_eq!(answer(CarrierEvent::Accepted).await, None);
    for _ in 0..9 {
        assert_eq!(answer(CarrierEvent::Deferred).await, None);
    }
    let reason = "the carrier refused or deferred the last 10 submits, all within 2700 s. Last \
        error: no credit";
    assert_eq!(answer(CarrierEvent::Refused).await.as_deref(), Some(reason));
    for _ in 0..2 {
        assert!(answer(CarrierEvent::Accepted).await.is_some());
    }
    assert_eq!(answer(CarrierEvent::Accepted).await, None);
    for event in [CarrierEvent::Failed, CarrierEvent::Delivered, CarrierEvent::Expired] {
        assert_eq!(answer(event).await, None);
    }
    for _ in 0..18 {
        assert_eq!(answer(CarrierEvent::Failed).await, None);
    }
    let reason = answer(CarrierEvent::Failed).await.unwrap();
    let said = "the last 20 receipts of the carrier, within 5700 s, report no delivery: ";
    assert!(reason.starts_with(said), "{reason}");
}

/// Returns a connection of another process.
fn elsewhere(node: i64, state: ConnectionState) -> ConnectionRecord {
    ConnectionRecord {
        carrier: "acme".to_owned(),
        node,
        number: 1,
        state,
        since: Timestamp::from_unix_ms(0),
        in_flight: 0,
        window: 10,
        rate: 0,
        throttled: 0,
        last_error: None,
        last_error_at: None,
        updated_at: Timestamp::from_unix_ms(0),
    }
}

#[tokio::test]
async fn the_connections_of_other_processes_count_while_they_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let service = service(&folder).await;
    let mut watch = watch(Vec::new());
    watch.look(&service).await;
    assert_eq!(service.delivery().unusable_carriers(), ["acme"]);
    watch.elsewhere = Some(vec![elsewhere(3, ConnectionState::Bound)]);
    service.close().await;
    watch.look(&service).await;
    assert!(service.delivery().unusable_carriers().is_empty());
}

#[test]
fn a_rate_is_shared_with_each_process_that_has_connections() {
    let others = [3, 3, 5].map(|node| elsewhere(node, ConnectionState::Waiting));
    assert_eq!(processes(&others.iter().collect::<Vec<_>>()), 3);
    assert_eq!(processes(&[]), 1);
}
