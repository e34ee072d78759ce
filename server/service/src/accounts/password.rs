//! Password hashes (argon2id). They are computed outside the async threads, a few at a time, and
//! with a lower priority than all other work.

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
use store::error::{Error, Fault, Refusal, Result};

/// OWASP's second recommendation for argon2id: 19 MiB, two passes, one lane. A debug build takes
/// less memory, because hashes would take a quarter of the tests' time. Only tests and demos run it.
const MEMORY_KIB: u32 = if cfg!(debug_assertions) { 1024 } else { 19_456 };
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// How long a hash may take at idle priority. After that it is restarted with a higher priority, so
/// that people can still sign in while every core is busy.
const PATIENCE: Duration = Duration::from_millis(100);
/// A thread with this niceness gets a tenth of a core that other threads want too.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// The maximum number of waiting hashes, of about 20 ms each. Further ones are refused.
const QUEUE_MAX: usize = 64;
const SALT_BYTES: usize = 16;

/// Hashes and verifies passwords.
pub(crate) struct Hasher {
    /// Slots for waiting and running hashes.
    slots: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    /// Slots for hashes at idle priority. A restarted hash keeps its slot until its first run ends.
    /// This bounds the memory that hashes use.
    idle: Arc<Semaphore>,
    /// The number of computed hashes.
    hashed: Arc<AtomicU64>,
    /// The hash of a password that nobody knows. It makes a sign-in with an unknown email take as
    /// long as one with a known email.
    dummy: Arc<str>,
}

impl Hasher {
    pub(crate) fn new(entropy: &Entropy) -> Result<Self> {
        let nobody_knows: [u8; 32] = entropy.bytes();
        let dummy = hash(&nobody_knows, &entropy.bytes())?.into();
        let parallel = parallel();
        Ok(Self {
            slots: Arc::new(Semaphore::new(QUEUE_MAX + parallel)),
            permits: Arc::new(Semaphore::new(parallel)),
            idle: Arc::new(Semaphore::new(parallel)),
            hashed: Arc::default(),
            dummy,
        })
    }

    /// Returns the hash of a password in PHC string format.
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

    /// Returns whether the password matches the hash. Without a hash, takes the same time and
    /// returns false.
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

    /// Returns a function that counts a hash once, even if the hash is restarted.
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

    /// Runs CPU-bound work. The work must be idempotent: if it isn't finished within [`PATIENCE`],
    /// the hasher starts it a second time with a higher priority.
    ///
    /// # Errors
    /// `Busy` if the queue is full.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl Fn() -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let slot = Arc::clone(&self.slots).try_acquire_owned();
        let slot = slot.map_err(|_| Refusal::Busy)?;
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
            drop((permit, slot));
            result
        })
        .await?
    }
}

/// The scheduling priority of a hashing thread.
#[derive(Clone, Copy)]
enum Priority {
    /// The thread yields the core at once to any other thread that has work. While every core is
    /// busy, it makes hardly any progress.
    Idle,
    /// The thread gets a tenth of a core that other threads want too, but keeps the core for some
    /// milliseconds at a time.
    Low,
}

/// Runs work on a thread of its own, because a thread of the async runtime would keep the priority.
/// Starting a thread costs a thousandth of a hash.
async fn on_thread<T: Send + 'static>(
    priority: Priority,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (done, result) = oneshot::channel();
    let run = move || {
        #[cfg(target_os = "linux")]
        priority.set();
        // Fails if the caller has gone.
        drop(done.send(work()));
    };
    let thread = std::thread::Builder::new().name("password-hash".to_owned());
    thread
        .spawn(run)
        .map_err(|error| Fault::Task(format!("can't start a password hash: {error}")))?;
    result
        .await
        .map_err(|_| Fault::Task("the thread that hashed a password ended".to_owned()).into())
}

#[cfg(target_os = "linux")]
impl Priority {
    /// Gives the calling thread this priority. Linux only: on other systems the priority would
    /// apply to the whole process.
    fn set(self) {
        /// Whether a failure has been logged.
        static WARNED: AtomicBool = AtomicBool::new(false);

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
            && !WARNED.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                %error,
                "can't lower the priority of password hashes: sign-ins may delay sends"
            );
        }
    }
}

/// Returns how many hashes run at once. Each takes a core and 19 MiB, and sends need the other half
/// of the cores.
fn parallel() -> usize {
    let cores = available_parallelism().map_or(1, NonZero::get);
    (cores / 2).max(1)
}

fn argon2() -> Result<Argon2<'static>> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|e| broken(&e))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn hash(password: &[u8], salt: &[u8; SALT_BYTES]) -> Result<String> {
    Ok(argon2()?.hash_password_with_salt(password, salt).map_err(|e| broken(&e))?.to_string())
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
