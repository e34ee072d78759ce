//! A value that many threads change at once. Each thread has its own part, so that no thread waits
//! for another.

use std::array;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// More than the cores of most machines, and so more than the threads that serve requests. If there
/// are more threads than parts, some threads share a part.
const PARTS: usize = 32;

/// The parts of a value. A reader adds them up.
pub struct Striped<T>([Part<T>; PARTS]);

/// Aligned to cache lines of its own, because a processor waits for a cache line that another one
/// writes.
#[repr(align(128))]
struct Part<T>(Mutex<T>);

impl<T: Default> Default for Striped<T> {
    fn default() -> Self {
        Self(array::from_fn(|_| Part(Mutex::default())))
    }
}

impl<T> Striped<T> {
    /// Returns the calling thread's part.
    pub fn own(&self) -> MutexGuard<'_, T> {
        self.0[own_index()].0.lock()
    }

    /// Returns every part, one after another.
    pub fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(|part| part.0.lock())
    }
}

/// Returns the calling thread's index. Threads are numbered in the order of their first count.
fn own_index() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<Option<usize>> = const { Cell::new(None) };
    }
    OWN.get().unwrap_or_else(|| {
        let index = THREADS.fetch_add(1, Ordering::Relaxed) % PARTS;
        OWN.set(Some(index));
        index
    })
}
