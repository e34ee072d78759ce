//! Password hashes: argon2id, computed outside the async threads, a few at a time and behind all
//! other work.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, PasswordHash, Version};
#[cfg(target_os = "linux")]
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use tokio::sync::{Semaphore, oneshot};

use crate::entropy::Entropy;
use crate::error::{Error, Fault, Refusal, Result};

/// OWASP's second choice for argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// How long a hash that only idle cores work at may take before it is begun anew with a higher
/// priority, so that people can still sign in while every core is busy.
const PATIENCE: Duration = Duration::from_millis(100);
/// A thread of this niceness gets a tenth of a core that others want too.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// How many wait to be hashed, each for some 20 ms; more are refused.
const QUEUE_MAX: usize = 64;
const SALT_BYTES: usize = 16;

/// Hashes and verifies passwords.
pub(crate) struct Hasher {
    /// Places in the queue, those included that are being hashed.
    places: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    /// Places for hashes that only idle cores work at. A hash that was begun anew keeps its place
    /// until it is done, so that no more of them hold memory.
    idle: Arc<Semaphore>,
    /// How many hashes were computed.
    hashed: Arc<AtomicU64>,
    /// The hash of a password that nobody knows, so that a sign-in with an unknown email takes as
    /// long as one with a known email.
    dummy: Arc<str>,
}

impl Hasher {
    pub(crate) fn new(entropy: &Entropy) -> Result<Self> {
        let nobody_knows: [u8; 32] = entropy.bytes();
        let dummy = hash(&nobody_knows, &entropy.bytes())?.into();
        let parallel = parallel();
        Ok(Self {
            places: Arc::new(Semaphore::new(QUEUE_MAX + parallel)),
            permits: Arc::new(Semaphore::new(parallel)),
            idle: Arc::new(Semaphore::new(parallel)),
            hashed: Arc::default(),
            dummy,
        })
    }

    /// The hash of a password in PHC string format.
    pub(crate) async fn hash(&self, password: &str, entropy: &Entropy) -> Result<String> {
        let password = password.to_owned();
        let salt = entropy.bytes();
        let count = self.count();
        self.blocking(move || {
            count();
            hash(password.as_bytes(), &salt)
        })
        .await
    }

    /// Whether the password belongs to the hash; without a hash this takes as long and is false.
    pub(crate) async fn verify(&self, password: &str, stored: Option<String>) -> Result<bool> {
        let password = password.to_owned();
        let (dummy, count) = (Arc::clone(&self.dummy), self.count());
        self.blocking(move || {
            count();
            let known = stored.is_some();
            let matches = verify(password.as_bytes(), stored.as_deref().unwrap_or(&dummy))?;
            Ok(known && matches)
        })
        .await
    }

    /// Counts a hash, however often it is begun.
    fn count(&self) -> impl Fn() + Send + Sync + 'static {
        let (hashed, is_counted) = (Arc::clone(&self.hashed), AtomicBool::new(false));
        move || {
            if !is_counted.swap(true, Ordering::Relaxed) {
                hashed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn hashed(&self) -> u64 {
        self.hashed.load(Ordering::Relaxed)
    }

    /// Does work that takes a core for long, and comes to the same whenever it is done.
    ///
    /// # Errors
    /// `Busy` when too many wait.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl Fn() -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| Refusal::Busy)?;
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|closed| Fault::Task(closed.to_string()))?;
        let work = Arc::new(work);
        if let Ok(idle) = Arc::clone(&self.idle).try_acquire_owned() {
            let work = Arc::clone(&work);
            let begun = on_thread(Priority::Idle, move || {
                let result = work();
                drop(idle);
                result
            });
            if let Ok(result) = tokio::time::timeout(PATIENCE, begun).await {
                return result?;
            }
        }
        on_thread(Priority::Low, move || {
            let result = work();
            drop((permit, place));
            result
        })
        .await?
    }
}

/// How the system shares the cores out to a thread that hashes.
#[derive(Clone, Copy)]
enum Priority {
    /// Any other thread that has work is given the core at once. While every core is busy such a
    /// thread hardly gets on.
    Idle,
    /// The thread gets a tenth of a core that others want too, but keeps the core for some
    /// milliseconds when it has it.
    Low,
}

/// Does work on a thread of its own: one of the async runtime's would keep the priority. A thread
/// costs a thousandth of a hash.
async fn on_thread<T: Send + 'static>(
    priority: Priority,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (done, result) = oneshot::channel();
    let run = move || {
        #[cfg(target_os = "linux")]
        priority.set();
        // Nobody waits any more where the caller left.
        drop(done.send(work()));
    };
    let thread = std::thread::Builder::new().name("password-hash".to_owned());
    thread
        .spawn(run)
        .map_err(|error| Fault::Task(format!("a thread for a password's hash: {error}")))?;
    result
        .await
        .map_err(|_| Fault::Task("the thread of a password's hash ended".to_owned()).into())
}

#[cfg(target_os = "linux")]
impl Priority {
    /// Gives the calling thread this priority. Elsewhere it would be the whole process's.
    fn set(self) {
        /// Whether the log says already that it can't be done.
        static TOLD: AtomicBool = AtomicBool::new(false);

        let set = match self {
            Self::Idle => {
                let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
                set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle)
                    .map_err(|error| error.to_string())
            }
            Self::Low => rustix::process::setpriority_process(None, NICENESS)
                .map_err(|error| error.to_string()),
        };
        if let Err(error) = set
            && !TOLD.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                %error,
                "the priority of password hashes can't be lowered: while people sign in, sends wait"
            );
        }
    }
}

/// How many hashes are computed at once: each takes a core and 19 MiB, and the sends need the other
/// half of the cores.
fn parallel() -> usize {
    let cores = available_parallelism().map_or(1, NonZero::get);
    (cores / 2).max(1)
}

fn argon2() -> Result<Argon2<'static>> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|e| broken(&e))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn hash(password: &[u8], salt: &[u8; SALT_BYTES]) -> Result<String> {
    Ok(argon2()?
        .hash_password_with_salt(password, salt)
        .map_err(|e| broken(&e))?
        .to_string())
}

fn verify(password: &[u8], stored: &str) -> Result<bool> {
    let stored = PasswordHash::new(stored).map_err(|e| broken(&e))?;
    match argon2()?.verify_password(password, &stored) {
        Ok(()) => Ok(true),
        Err(argon2::password_hash::Error::PasswordInvalid) => Ok(false),
        Err(error) => Err(broken(&error)),
    }
}

fn broken(error: &dyn std::fmt::Display) -> Error {
    Error::Failed(Fault::PasswordHash(error.to_string()))
}
