//! Limits on attempts: failed sign-ins, registrations, requests for reset links, and others.
//!
//! Attempts are counted in memory before any other work, so an attempt over a limit costs no query
//! and no hash. Each process has its own counts.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::Timestamp;

use crate::Limits;
use store::error::{Error, Refusal};

const MINUTE_MS: i64 = 60_000;
/// The maximum number of counts, of about 50 bytes each. Above it, the lowest counts are dropped.
const COUNTS_MAX: usize = 200_000;
/// The maximum number of requests for a reset link per hour from one network for one email.
const RESET_LINKS_MAX: i64 = 5;
/// The maximum number of new emails that one account may request per day. Each confirmed change
/// invalidates earlier reset links, and a thief must not be able to repeat that endlessly.
const EMAIL_CHANGES_MAX: i64 = 5;
/// The maximum number of recorded access denials per account and hour.
const DENIED_MAX: i64 = 20;
/// The first delay. Each further delay is twice as long.
const DELAY_MS: u64 = 100;
/// The maximum number of times that the delay doubles.
const DOUBLINGS_MAX: u32 = 5;
/// The longest delay that the limit on all clients together causes. The delay grows from zero while
/// the second half of that limit is used up.
const STRAIN_DELAY_MS: i64 = 500;

/// A kind of attempt that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Attempt {
    SignIn,
    /// A sign-in or a request for a reset link from a known device.
    KnownDevice,
    Register,
    /// A request for a mail with a reset link.
    ResetLink,
    /// An attempt to set a password with a reset link.
    Reset,
    /// A request to change the email of a signed-in account.
    EmailChange,
    /// The password of an account that is already signed in.
    Password,
    /// A code of the second factor, or a recovery code.
    Code,
    /// A request for a page that the account may not see.
    Denied,
}

impl Attempt {
    /// The name of the kind in logs and security events.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::SignIn => "sign-in",
            Self::KnownDevice => "sign-in by a known device",
            Self::Register => "registration",
            Self::ResetLink => "request for a reset link",
            Self::Reset => "reset",
            Self::EmailChange => "change of the email",
            Self::Password => "password",
            Self::Code => "code of the second factor",
            Self::Denied => "denied access",
        }
    }

    const fn window_ms(self) -> i64 {
        match self {
            Self::EmailChange => 24 * 60 * MINUTE_MS,
            Self::Register | Self::ResetLink | Self::Denied => 60 * MINUTE_MS,
            Self::SignIn | Self::KnownDevice | Self::Reset | Self::Password | Self::Code => {
                15 * MINUTE_MS
            }
        }
    }
}

/// Counts attempts and enforces their limits.
pub(crate) struct Throttle {
    sign_in_failures_max: i64,
    registrations_max: i64,
    /// Hashes the keys of counts with a random seed, so that nobody can choose two keys that
    /// collide.
    hasher: RandomState,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    by_name: HashMap<u64, Count>,
    /// The attempts refused since [`Throttle::take_refused`] was last called.
    refused: BTreeMap<Attempt, i64>,
    /// When the log last warned that the total of a kind of attempts is used up.
    alarmed: BTreeMap<Attempt, Timestamp>,
    /// When expired counts were last dropped.
    swept_at: Option<Timestamp>,
}

#[derive(Clone, Copy)]
struct Count {
    started_at: Timestamp,
    ends_at: Timestamp,
    hits: i64,
}

/// A counted attempt. It stays counted unless [`Throttle::uncount`] removes it.
pub(crate) struct Counted {
    names: Vec<u64>,
    /// How long this attempt must wait before it is judged.
    pub(crate) delay: Duration,
}

impl Counted {
    /// Adds the counts of the same attempt under another limit.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.names.extend(other.names);
        self
    }
}

/// The key of a count, and the maximum of the count.
type Limit = (u64, i64);

/// Which limits apply to an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    /// All clients together have used up their total, so each network has only a small share of its
    /// own. The total alone refuses no attempt. Otherwise strangers in a few networks could lock
    /// everybody out.
    Strained,
    /// Only the limits of the client itself, for a client in a network from which the owner has
    /// signed in before.
    Own,
}

impl Throttle {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            sign_in_failures_max: limits.sign_in_failures_max,
            registrations_max: limits.registrations_max,
            hasher: RandomState::new(),
            counts: Mutex::default(),
        }
    }

    /// Counts an attempt by a client, or refuses it if one of its limits is reached. A refused
    /// attempt isn't counted. `account` is an email, an ID or a known device. It is empty for an
    /// attempt that concerns no account.
    pub(crate) fn count(
        &self,
        what: Attempt,
        client: &str,
        account: &str,
        now: Timestamp,
    ) -> Result<Counted, Error> {
        let Some((total, max)) = self.total(what) else {
            return self.count_in(Scope::All, what, client, account, now);
        };
        let used = self.counts().hits(total, now);
        let scope = if used < max { Scope::All } else { Scope::Strained };
        let mut counted = self.count_in(scope, what, client, account, now)?;
        let mut counts = self.counts();
        let used = counts.add(total, what, now);
        if used >= max && counts.alarms(what, now) {
            tracing::warn!(
                what = what.code(),
                "all clients together have reached the limit of these attempts: until the count \
                 restarts, each network has a small share, and answers are slow"
            );
        }
        counted.names.push(total);
        counted.delay = counted.delay.max(strain_delay(used, max));
        Ok(counted)
    }

    /// Counts an attempt from a home network: one from which the owner has signed in before.
    /// Attempts from other networks can't lock the owner out there.
    pub(crate) fn count_in_home(
        &self,
        what: Attempt,
        client: &str,
        account: &str,
        now: Timestamp,
    ) -> Result<Counted, Error> {
        self.count_in(Scope::Own, what, client, account, now)
    }

    fn count_in(
        &self,
        scope: Scope,
        what: Attempt,
        client: &str,
        account: &str,
        now: Timestamp,
    ) -> Result<Counted, Error> {
        let limits = self.limits(scope, what, client, account);
        let mut counts = self.counts();
        if let Some(retry_after_ms) = counts.full(&limits, now) {
            let retry_after_s = (retry_after_ms / 1000).max(1);
            return Err(Refusal::Throttled { retry_after_s }.into());
        }
        let mut first = 0;
        for (index, (name, _)) in limits.iter().enumerate() {
            let hits = counts.add(*name, what, now);
            if index == 0 {
                first = hits;
            }
        }
        let most = limits.first().map_or(0, |(_, max)| *max);
        Ok(Counted {
            names: limits.into_iter().map(|(name, _)| name).collect(),
            delay: delay(what, first, most),
        })
    }

    /// Adds an attempt to the sums of refused attempts.
    pub(crate) fn note_refused(&self, what: Attempt) {
        *self.counts().refused.entry(what).or_default() += 1;
    }

    /// Removes an attempt from its counts.
    pub(crate) fn uncount(&self, counted: &Counted) {
        let mut counts = self.counts();
        for name in &counted.names {
            if let Some(count) = counts.by_name.get_mut(name) {
                count.hits -= 1;
                if count.hits <= 0 {
                    counts.by_name.remove(name);
                }
            }
        }
    }

    /// Removes a successful attempt from its counts, and clears the attempts that the same client
    /// made before for the same account.
    pub(crate) fn succeed(&self, counted: &Counted) {
        self.uncount(counted);
        if let Some(narrowest) = counted.names.first() {
            self.counts().by_name.remove(narrowest);
        }
    }

    /// Returns the number of refused attempts by kind, and resets the sums.
    pub(crate) fn take_refused(&self) -> BTreeMap<Attempt, i64> {
        std::mem::take(&mut self.counts().refused)
    }

    /// Returns the kinds of attempts whose total is used up.
    pub(crate) fn strained(&self, now: Timestamp) -> Vec<&'static str> {
        let counts = self.counts();
        let kinds = [Attempt::SignIn, Attempt::Register, Attempt::ResetLink, Attempt::Reset];
        let strained = kinds.into_iter().filter(|what| {
            let total = self.total(*what);
            total.is_some_and(|(name, max)| counts.hits(name, now) >= max)
        });
        strained.map(Attempt::code).collect()
    }

    /// Returns the limit on attempts of a kind by all clients together. Beyond it, each network has
    /// only a small share.
    fn total(&self, what: Attempt) -> Option<Limit> {
        let max = match what {
            Attempt::SignIn | Attempt::Reset => self.sign_in_failures_max.saturating_mul(200),
            Attempt::ResetLink => RESET_LINKS_MAX * 200,
            Attempt::Register => self.registrations_max.saturating_mul(50),
            _ => return None,
        };
        Some((self.hasher.hash_one((what, "all", "")), max))
    }

    /// Returns the limits of an attempt, the narrowest first. A limit that more clients share is
    /// higher.
    fn limits(&self, scope: Scope, what: Attempt, client: &str, account: &str) -> Vec<Limit> {
        let Networks { address, near, far } = Networks::of(client);
        let name = |scope: &str, text: &str| self.hasher.hash_one((what, scope, text));
        let limit =
            |scope, text: &str, base: i64, times| (name(scope, text), base.saturating_mul(times));
        let of_client = |base, times: [i64; 3]| {
            let mut limits = vec![
                limit("address", &address, base, times[0]),
                limit("near", &near, base, times[1]),
            ];
            match scope {
                Scope::All => limits.push(limit("far", &far, base, times[2])),
                Scope::Strained => limits.push(limit("far", &far, base, 1)),
                Scope::Own => {}
            }
            limits
        };
        let both = |base| limit("both", &format!("{near} {account}"), base, 1);
        let failures = self.sign_in_failures_max;
        match what {
            Attempt::SignIn => {
                let mut limits = vec![both(failures)];
                if scope != Scope::Own {
                    limits.push(limit("account", account, failures, 10));
                }
                limits.extend(of_client(failures, [5, 5, 20]));
                limits
            }
            // No limit per account: the limit on mails to an account takes its place, without
            // revealing whether the account exists.
            Attempt::ResetLink => {
                let mut limits = vec![both(RESET_LINKS_MAX)];
                limits.extend(of_client(RESET_LINKS_MAX, [10, 10, 40]));
                limits
            }
            Attempt::Register => of_client(self.registrations_max, [1, 1, 5]),
            Attempt::Reset => of_client(failures, [2, 2, 8]),
            Attempt::KnownDevice | Attempt::Password | Attempt::Code => {
                vec![limit("account", account, failures, 1)]
            }
            Attempt::EmailChange => vec![limit("account", account, EMAIL_CHANGES_MAX, 1)],
            Attempt::Denied => vec![limit("account", account, DENIED_MAX, 1)],
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Returns how many milliseconds an attempt must wait because of a limit. `None` if it may
    /// proceed.
    fn full(&mut self, limits: &[Limit], now: Timestamp) -> Option<i64> {
        let mut waits = Vec::new();
        for (name, max) in limits {
            if let Some(count) = self.by_name.get(name)
                && count.is_on(now)
                && count.hits >= *max
            {
                waits.push(count.ends_at.ms_since(now));
            }
        }
        if waits.is_empty() && self.by_name.len() + limits.len() > COUNTS_MAX {
            self.sweep(now);
            // Refusing new counts would lock everybody out. An attacker who fills the table creates
            // many low counts, and clients near a limit have high ones.
            let mut lowest = 1;
            while self.by_name.len() + limits.len() > COUNTS_MAX {
                self.by_name.retain(|_, count| count.hits > lowest);
                lowest *= 2;
            }
        }
        waits.into_iter().max()
    }

    fn hits(&self, name: u64, now: Timestamp) -> i64 {
        let count = self.by_name.get(&name).filter(|count| count.is_on(now));
        count.map_or(0, |count| count.hits)
    }

    /// Returns whether to log now that the total of a kind of attempts is used up. True at most
    /// once per window.
    fn alarms(&mut self, what: Attempt, now: Timestamp) -> bool {
        let last = self.alarmed.get(&what);
        if last.is_some_and(|at| now.ms_since(*at).abs() < what.window_ms()) {
            return false;
        }
        self.alarmed.insert(what, now);
        true
    }

    /// Adds one to a count and returns it. An expired count restarts at zero.
    fn add(&mut self, name: u64, what: Attempt, now: Timestamp) -> i64 {
        let begun = Count { started_at: now, ends_at: now.plus_ms(what.window_ms()), hits: 0 };
        let count = self.by_name.entry(name).or_insert(begun);
        if !count.is_on(now) {
            *count = begun;
        }
        count.hits += 1;
        count.hits
    }

    /// Drops expired counts, at most once a second.
    fn sweep(&mut self, now: Timestamp) {
        if self.swept_at.is_none_or(|at| now.ms_since(at).abs() >= 1000) {
            self.swept_at = Some(now);
            self.by_name.retain(|_, count| count.is_on(now));
        }
    }
}

impl Count {
    /// True if the count hasn't expired. A count also expires if the clock is set back.
    fn is_on(&self, now: Timestamp) -> bool {
        self.started_at <= now && now < self.ends_at
    }
}

/// Returns how long an attempt must wait before it is judged. Once a client has used up half of its
/// sign-in attempts for an account, each further attempt waits. A person who mistypes waits
/// briefly, and a program waits long.
fn delay(what: Attempt, hits: i64, max: i64) -> Duration {
    let over = hits - max / 2 - 1;
    if what != Attempt::SignIn || over < 0 || max < 2 {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(over).unwrap_or(u32::MAX).min(DOUBLINGS_MAX);
    Duration::from_millis(DELAY_MS << doublings)
}

/// Returns a delay that grows as all clients together use up their limit. So attempts become slow
/// before each network is reduced to its small share.
fn strain_delay(used: i64, max: i64) -> Duration {
    let over = used.saturating_mul(2).saturating_sub(max).clamp(0, max);
    let delay = over.saturating_mul(STRAIN_DELAY_MS) / max.max(1);
    Duration::from_millis(u64::try_from(delay).unwrap_or_default())
}

/// The networks that a client's address is counted in. For IPv6 these are the /64, which one
/// customer has, and the /48, which one site has. For IPv4 they are the address and its /24.
pub struct Networks {
    address: String,
    pub near: String,
    pub far: String,
}

impl Networks {
    pub fn of(client: &str) -> Self {
        let address = client.to_owned();
        match client.parse() {
            Ok(IpAddr::V6(v6)) => {
                let [a, b, c, d, ..] = v6.segments();
                Self {
                    address,
                    near: format!("{a:x}:{b:x}:{c:x}:{d:x}::/64"),
                    far: format!("{a:x}:{b:x}:{c:x}::/48"),
                }
            }
            Ok(IpAddr::V4(v4)) => {
                let [a, b, c, _] = v4.octets();
                Self { near: address.clone(), far: format!("{a}.{b}.{c}.0/24"), address }
            }
            Err(_) => Self { near: address.clone(), far: address.clone(), address },
        }
    }
}

/// Returns the network that is stored for a client's address. For IPv6 it is the /64, because a
/// customer has a whole one.
pub(crate) fn network(client: &str) -> String {
    Networks::of(client).near
}

#[cfg(test)]
mod tests;
