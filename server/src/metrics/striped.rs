//! A value that many threads change at once: each thread has a part of its own, so that none waits
//! for another.

use std::array;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// More than most machines have cores, and so threads that serve requests. Where there are more
/// threads than parts, some share one.
const PARTS: usize = 32;

/// Parts that are added up when they are read.
pub struct Striped<T>([Part<T>; PARTS]);

/// On cache lines of its own, since processors wait for a cache line that another one writes.
#[repr(align(128))]
struct Part<T>(Mutex<T>);

impl<T: Default> Default for Striped<T> {
    fn default() -> Self {
        Self(array::from_fn(|_| Part(Mutex::default())))
    }
}

impl<T> Striped<T> {
    /// The calling thread's part.
    pub fn own(&self) -> MutexGuard<'_, T> {
        self.0[own_index()].lock()
    }

    /// Every part, one after the other.
    pub fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.0.iter().map(Part::lock)
    }
}

impl<T> Part<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        // A panic elsewhere leaves counts as good as they were.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Threads are numbered in the order of their first count.
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
