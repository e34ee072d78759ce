//! A client that moves the clock of a test key, and sends, schedules and cancels with that key.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use testing::client::{bare, form};
use testing::harness::until;

use crate::cluster::Cluster;
use crate::judging::text;
use crate::load::{Asking, Load};

const SEED: u64 = 20_261_128;
/// The pause between two requests.
const PACE: Duration = Duration::from_millis(40);
/// The most requests after the load is over.
const MORE: usize = 500;
const HOUR_S: i64 = 3600;
/// How far ahead of real time a message is scheduled. The clock may have passed it.
const AHEAD_S: std::ops::Range<i64> = HOUR_S..72 * HOUR_S;
const JUMP_S: std::ops::Range<i64> = 1..12 * HOUR_S;

/// What a test key did.
pub struct Jumps<'a> {
    key: &'a str,
    sent: Mutex<Vec<String>>,
    cancelled: Mutex<BTreeSet<String>>,
    moves: Mutex<usize>,
}

impl<'a> Jumps<'a> {
    pub fn new(test_key: &'a str) -> Self {
        Self {
            key: test_key,
            sent: Mutex::default(),
            cancelled: Mutex::default(),
            moves: Mutex::default(),
        }
    }

    /// Sends, moves and cancels until the load is over. On a busy machine, the storm may leave little
    /// time, so it goes on a while if it hasn't done each of them.
    pub fn run(&self, load: &Load<'_>) {
        let mut random = StdRng::seed_from_u64(SEED);
        let mut asking = Asking::new(load, SEED);
        let mut more = MORE;
        while !load.is_over() || (more > 0 && !self.did_each()) {
            more -= usize::from(load.is_over());
            match random.random_range(0..8) {
                0 => self.jump(&mut asking, &mut random),
                1 | 2 => self.cancel(&mut asking, &mut random),
                choice => self.send(&mut asking, &mut random, choice > 4),
            }
            std::thread::sleep(PACE);
        }
    }

    fn did_each(&self) -> bool {
        let is_empty = self.sent.lock().unwrap().is_empty();
        !is_empty && *self.moves.lock().unwrap() > 0 && !self.cancelled.lock().unwrap().is_empty()
    }

    fn ask(&self, asking: &mut Asking<'_>, path: &str, pairs: &[(&str, &str)]) -> Option<Value> {
        let target = format!("/sms/{path}/{}?{}", self.key, form(pairs));
        match asking.exchange(&bare("POST", &target, &[("Connection", "close")])) {
            Some((200, body)) => Some(body),
            // The clock has passed the time or can't be moved any further, the test money is spent,
            // nothing is left to cancel, or the disk is full.
            Some((400 | 402 | 409 | 429 | 500 | 503, _)) | None => None,
            Some(answer) => panic!("{path}: {answer:?}"),
        }
    }

    fn send(&self, asking: &mut Asking<'_>, random: &mut StdRng, later: bool) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let ahead = random.random_range(AHEAD_S) * 1000;
        let at = Timestamp::from_unix_ms(i64::try_from(now).unwrap() + ahead).to_string();
        let scheduled = [("number", "57000001"), ("message", "Hello"), ("sendat", &at)];
        let pairs = &scheduled[..if later { 3 } else { 2 }];
        let sent = self.ask(asking, "send", pairs);
        let transid = sent.map(|sent| text(&sent, "transid").to_owned());
        self.sent.lock().unwrap().extend(transid);
    }

    fn jump(&self, asking: &mut Asking<'_>, random: &mut StdRng) {
        let seconds = random.random_range(JUMP_S).to_string();
        let is_back = random.random_range(0..6) == 0;
        let change = if is_back { ("reset", "1") } else { ("advance", seconds.as_str()) };
        let moved = self.ask(asking, "test/clock", &[change]);
        *self.moves.lock().unwrap() += usize::from(moved.is_some());
    }

    fn cancel(&self, asking: &mut Asking<'_>, random: &mut StdRng) {
        let transid = {
            let sent = self.sent.lock().unwrap();
            if sent.is_empty() {
                return;
            }
            sent[random.random_range(0..sent.len())].clone()
        };
        if self.ask(asking, "cancel", &[("transid", &transid)]).is_some() {
            self.cancelled.lock().unwrap().insert(transid);
        }
    }

    /// Moves the clock past all times, and checks that every message ends as the answers say.
    pub fn judge(&self, cluster: &Cluster) {
        let post = |change: &str| {
            let target = format!("/sms/test/clock/{}?{change}", self.key);
            let address = cluster.nodes[0].address().unwrap();
            testing::client::exchange(&address, &bare("POST", &target, &[])).is(200, 200, "");
        };
        post("reset=1");
        post(&format!("advance={}", AHEAD_S.end + HOUR_S));
        let (sent, cancelled) = (self.sent.lock().unwrap(), self.cancelled.lock().unwrap());
        for transid in &*sent {
            let target = format!("/sms/reports/{}/{transid}", self.key);
            let report = until("the end of a test message", || {
                let report = cluster.nodes[0].get(&target).json()["report"].clone();
                let is_open = ["scheduled", "queued", "sending", "submitted"]
                    .contains(&text(&report, "status"));
                (!is_open).then_some(report)
            });
            let is_cancelled = report["status"] == "cancelled";
            // A cancellation without an answer may have been executed.
            assert!(is_cancelled || !cancelled.contains(transid), "{report}");
            assert!(!is_cancelled || report["submitted_at"].is_null(), "{report}");
        }
        let (moves, sent) = (*self.moves.lock().unwrap(), sent.len());
        println!("test clock: {moves} moves, {sent} messages, {} cancelled", cancelled.len());
        assert!(moves > 0 && sent > 0 && !cancelled.is_empty(), "the test key did nothing");
    }
}
