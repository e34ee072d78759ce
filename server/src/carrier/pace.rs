//! The rate limits of a carrier: of all its messages, and of each sender.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ::smpp::SharedPace;
use parking_lot::Mutex;
use tokio::time::Instant;

/// At most this much unused time is saved up for later messages.
const CATCH_UP: Duration = Duration::from_secs(1);
/// The longest wait before a message is tried again. So after an increase of the rate, no message
/// waits longer than this.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// With more senders than this, those that have sent nothing lately are forgotten.
const SENDERS_MAX: usize = 1000;

/// The limits that all connections to a carrier share.
#[derive(Clone, Default)]
pub struct Paces {
    pub all: Option<Arc<SharedPace>>,
    pub each_sender: Option<Arc<SenderPace>>,
}

impl Paces {
    /// Creates limits from rates per second; 0 means no limit.
    pub fn new(all: u32, each_sender: u32) -> Self {
        Self {
            all: (all > 0).then(|| Arc::new(SharedPace::new(all))),
            each_sender: SenderPace::of(each_sender),
        }
    }

    /// Sets how many processes share the rates. Each of them gets an equal part.
    pub fn share_with(&self, processes: u32) {
        if let Some(pace) = &self.all {
            pace.share_with(processes);
        }
        if let Some(pace) = &self.each_sender {
            pace.share_with(processes);
        }
    }

    /// Returns how long a message with this many segments must wait because of its sender's rate.
    /// Counts the message if it needn't wait.
    pub fn wait(&self, sender: &str, segments: usize) -> Option<Duration> {
        self.each_sender.as_ref()?.wait(sender, segments)
    }
}

/// The rate limit of each sender. All connections of a carrier share it, in all processes. Messages
/// that must wait go back into the queue, so that they don't take the slots of other senders.
pub struct SenderPace {
    rate: u32,
    processes: AtomicU32,
    senders: Mutex<HashMap<String, Turns>>,
}

struct Turns {
    /// When the sender's next segment may be sent.
    next: Instant,
    /// When the next message that has to wait may be sent, behind those that wait already.
    behind: Instant,
}

impl SenderPace {
    /// Creates a limit from a rate in segments per second; 0 means no limit.
    pub fn of(rate: u32) -> Option<Arc<Self>> {
        (rate > 0).then(|| Arc::new(Self::new(rate)))
    }

    /// Returns how long a message with this many segments must wait. Counts it if it needn't wait.
    pub fn wait(&self, sender: &str, segments: usize) -> Option<Duration> {
        self.turn(sender, segments, Instant::now())
    }

    /// `rate` is in segments per second, and not 0.
    fn new(rate: u32) -> Self {
        Self { rate, processes: AtomicU32::new(1), senders: Mutex::default() }
    }

    fn share_with(&self, processes: u32) {
        self.processes.store(processes.max(1), Ordering::Relaxed);
    }

    /// Counts a message with this many segments if it may be sent now. Otherwise returns how long
    /// it must wait.
    fn turn(&self, sender: &str, segments: usize, now: Instant) -> Option<Duration> {
        let processes = self.processes.load(Ordering::Relaxed);
        let segments = u32::try_from(segments).unwrap_or(u32::MAX);
        let takes = Duration::from_secs(processes.into()) * segments / self.rate;
        let mut senders = self.senders.lock();
        if senders.len() >= SENDERS_MAX {
            senders.retain(|_, turns| turns.next > now || turns.behind > now);
        }
        let earliest = now.checked_sub(CATCH_UP).unwrap_or(now);
        if !senders.contains_key(sender) {
            senders.insert(sender.to_owned(), Turns { next: earliest, behind: now });
        }
        let turns = senders.get_mut(sender)?;
        if turns.next <= now {
            turns.next = turns.next.max(earliest) + takes;
            return None;
        }
        let at = turns.behind.max(turns.next);
        turns.behind = (at + takes).min(now + WAIT_MAX);
        Some(at - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_has_its_rate() {
        let now = Instant::now();
        let pace = SenderPace::new(10);
        let turns = |sender, at| (0..15).map(|_| pace.turn(sender, 1, at)).collect::<Vec<_>>();
        let first = turns("Acme", now);
        // The first second is saved up.
        assert!(first[..11].iter().all(Option::is_none), "{first:?}");
        let ms = Duration::from_millis;
        assert_eq!(first[11..], [100, 200, 300, 400].map(|wait| Some(ms(wait))));
        assert_eq!(pace.turn("Beta", 1, now), None);
        // Later, the messages that waited leave.
        let later = now + ms(400);
        let left = turns("Acme", later).iter().filter(|wait| wait.is_none()).count();
        assert_eq!(left, 4);
        pace.share_with(2);
        let much_later = now + Duration::from_secs(100);
        assert_eq!(turns("Acme", much_later).iter().filter(|wait| wait.is_none()).count(), 6);
        for _ in 0..1000 {
            let waited = pace.turn("Acme", 3, much_later).unwrap();
            assert!(waited <= WAIT_MAX, "{waited:?}");
        }
    }
}
