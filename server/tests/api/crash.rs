//! Kills. A killed process loses no message that was answered with 200.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::client::{Connection, bare};
use crate::harness::{Place, TestServer, money, until};

const SEED: u64 = 20_261_121;
const ROUNDS: usize = 4;
const CLIENTS: usize = 4;

/// Sends one message after the other until the server is gone. Returns the transaction IDs of the
/// accepted messages.
pub fn send_until_gone(address: &str, key: &str, after_each: impl Fn()) -> Vec<String> {
    let mut transids = Vec::new();
    let mut connection = Connection::open(address);
    let target = format!("/sms/send/{key}?number=57000001&message=Hi");
    while connection.try_write(&bare("GET", &target, &[])).is_ok() {
        let Some(answer) = connection.read() else {
            break;
        };
        assert_eq!(answer.status, 200, "{}", answer.text());
        transids.push(answer.json()["transid"].as_str().unwrap().to_owned());
        after_each();
    }
    transids
}

#[test]
fn every_200_becomes_final_after_kills() {
    let mut random = StdRng::seed_from_u64(SEED);
    let environment = [("HELIOGRAPH_ALLOW_SANDBOX", "true")];
    let mut server = TestServer::start(Place::new(), &[], &environment);
    let keys = server.place.funded("steady@example.org", "1000");
    let key = keys.live.expose();
    let accepted = Mutex::new(Vec::new());
    for _ in 0..ROUNDS {
        // Kills the server after this many answers, while other sends are in flight.
        let kill_after = random.random_range(1..120);
        let answered = AtomicUsize::new(0);
        let address = server.address().to_owned();
        let place = std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    let count = || _ = answered.fetch_add(1, Ordering::SeqCst);
                    let sent = send_until_gone(&address, key, count);
                    accepted.lock().unwrap().extend(sent);
                });
            }
            until("answers", || (answered.load(Ordering::SeqCst) >= kill_after).then_some(()));
            server.kill()
        });
        server = TestServer::start(place, &[], &environment);
    }
    let accepted = accepted.into_inner().unwrap();
    assert!(accepted.len() >= ROUNDS);
    for transid in &accepted {
        assert_eq!(server.final_report(key, transid)["status"], "delivered", "{transid}");
    }
    // Only stored messages were charged. Sends in flight may be stored without an answer.
    let stored = count_all(&server, key);
    assert!((accepted.len()..=accepted.len() + ROUNDS * CLIENTS).contains(&stored), "{stored}");
    let spent = money("0.05").checked_times(stored).unwrap();
    assert_eq!(server.balance(key), money("1000").checked_sub(spent).unwrap().to_string());
    server.place.check();
}

fn count_all(server: &TestServer, key: &str) -> usize {
    let mut count = 0;
    let mut cursor = String::new();
    loop {
        let json = server.get(&format!("/sms/reports/{key}?limit=1000{cursor}")).json();
        count += json["reports"].as_array().unwrap().len();
        match json["next"].as_str() {
            Some(next) => cursor = format!("&cursor={}", crate::client::encode(next)),
            None => return count,
        }
    }
}
