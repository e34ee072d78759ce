//! Power cuts while messages are sent and files are uploaded, accepted and expanded. Only what the
//! process synced is certain to be left.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::crash_bulk::{DEPOSIT, History, Stored, length};
use crate::harness::{Keys, Place, TestServer};
use crate::power::Power;

const SEED: u64 = 20_261_129;
/// So few rows that SQLite doesn't empty its log.
const FEW_ROWS: usize = 200;

/// A server on a disk whose power can be cut, with an application.
fn server_on_power(ignored: &str) -> (TestServer, Keys, Power) {
    let place = Place::new();
    let keys = place.funded("steady@example.org", DEPOSIT);
    let power = Power::new(place.path());
    (start(place, &power, ignored), keys, power)
}

fn start(place: Place, power: &Power, ignored: &str) -> TestServer {
    let environment = power.environment(ignored).into_iter();
    let environment = environment.chain([("HELIOGRAPH_ALLOW_SANDBOX", "true")]);
    TestServer::start(place, &[], &environment.collect::<Vec<_>>())
}

#[test]
fn nothing_that_was_answered_is_lost_in_power_cuts() {
    let (mut server, keys, mut power) = server_on_power("");
    let key = keys.live.expose();
    let mut history = History::new(length("SOAK_POWER_ROWS", 4000), SEED);
    let mut random = StdRng::seed_from_u64(SEED);
    for round in 0..length("SOAK_POWER_CUTS", 4) {
        let place = history.until_killed(server, key);
        // At every other cut, the disk has also written half of the rest.
        power.cut(|| round % 2 == 1 && random.random());
        server = start(place, &power, "");
        server.place.check();
    }
    history.judge(&server, key);
}

/// Without the syncs of its log, SQLite works as with `synchronous = NORMAL`.
#[test]
fn the_loss_of_commits_that_are_not_synced_is_noticed() {
    let (mut server, keys, mut power) = server_on_power("-wal");
    let key = keys.live.expose();
    let mut history = History::new(FEW_ROWS, SEED);
    for _ in 0..3 {
        let place = history.until_killed(server, key);
        power.cut(|| false);
        server = start(place, &power, "-wal");
        server.place.check();
    }
    let lost = history.lost(&Stored::of(&server, key)).len();
    println!("{lost} are lost");
    assert!(lost > 0);
}
