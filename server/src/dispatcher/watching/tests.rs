//! When a carrier may be handed messages.

use std::sync::Mutex;

use domain::routing::Routes;
use domain::{Money, Prices};
use service::{Actor, CarrierInfo, Clock, Config, Entropy, Limits, Network};
use tempfile::TempDir;

use super::*;

async fn service(folder: &TempDir) -> Service {
    let network = Network {
        carriers: vec![CarrierInfo {
            name: "acme".to_owned(),
            sandbox: false,
            whole: false,
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
        clock: Clock::system(),
        entropy: Entropy::system(),
    })
    .await
    .unwrap()
}

/// A process that just started, after so many looks: whether the carrier may be handed messages.
async fn is_open_after(looks: usize, service: &Service) -> bool {
    let carriers = [Watched::new("acme".to_owned(), Vec::new())];
    let mut remembered = [Remembered::of(&carriers[0])];
    for _ in 0..looks {
        look(service, &Metrics::default(), &carriers, &mut remembered).await;
    }
    carriers[0].is_open()
}

#[tokio::test]
async fn nothing_is_handed_over_before_it_is_known_that_the_carrier_is_not_drained() {
    const STAFF: Actor = Actor::CommandLine;
    let folder = tempfile::tempdir().unwrap();
    let service = service(&folder).await;
    assert!(!is_open_after(0, &service).await);
    assert!(is_open_after(1, &service).await);
    service.drain_carrier(&STAFF, "acme").await.unwrap();
    assert!(!is_open_after(1, &service).await);
    service.resume_carrier(&STAFF, "acme").await.unwrap();
    assert!(is_open_after(1, &service).await);
    // As long as it can't be read, it isn't known.
    service.close().await;
    assert!(!is_open_after(2, &service).await);
}

/// Whether somebody is told to look for other ways.
async fn is_told(service: &Service) -> bool {
    let told = service.routes_changed().notified();
    tokio::time::timeout(Duration::ZERO, told).await.is_ok()
}

#[tokio::test]
async fn a_carrier_that_is_probed_cannot_be_relied_on_and_what_waits_leaves_it_with_a_lost_probe() {
    use ConnectionState::{Bound, Probing, Waiting};
    let folder = tempfile::tempdir().unwrap();
    let service = service(&folder).await;
    let state = Arc::new(Mutex::new(LineState {
        state: ConnectionState::Bound,
        since: Instant::now(),
        in_flight: 0,
        window: 10,
        answered: 0,
        throttled: 0,
        throttled_until: None,
        takes_probe: false,
        refused: Refused::default(),
        last_error: None,
    }));
    let line = Arc::clone(&state);
    let line: StateOfLine = Box::new(move || line.lock().unwrap().clone());
    let carriers = [Watched::new("acme".to_owned(), vec![line])];
    let mut remembered = [Remembered::of(&carriers[0])];
    let mut look_at = async |now: ConnectionState| {
        state.lock().unwrap().state = now;
        look(&service, &Metrics::default(), &carriers, &mut remembered).await;
        // It isn't waited for any more.
        let long_ago = Instant::now().checked_sub(LOST_GRACE).unwrap();
        remembered[0].lines[0].bound_at = long_ago;
        (is_told(&service).await, service.unusable_carriers().len())
    };
    assert_eq!(look_at(Bound).await, (false, 0));
    assert_eq!(look_at(Waiting).await, (true, 1));
    assert_eq!(look_at(Probing).await, (false, 1));
    assert_eq!(look_at(Waiting).await, (true, 1));
    assert_eq!(look_at(Waiting).await, (false, 1));
    assert_eq!(look_at(Probing).await, (false, 1));
    assert_eq!(look_at(Bound).await, (true, 0));
}
