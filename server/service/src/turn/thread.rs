//! The turn's thread.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::consumers::Consumers;
use super::figures::Figures;
use super::inbox::{Inbox, Input, LastTurn};
use super::outcome::{Outcome, lose_all, refuse_all};
use super::unanswered::look_up;
use super::write::write;
use crate::delivery::Lease;
use crate::error::{Fault, Result};
use crate::store::{Committed, OwnConnection, Unanswered};
use crate::wakes::Wake;
use crate::{Inner, STATEMENTS_TIMEOUT, Service, TRIES};

/// A turn that took longer than this is worth a line in the log.
const SLOW: Duration = Duration::from_millis(250);

/// Starts the turn's thread. It ends when the service is closed or gone.
///
/// # Errors
/// When the machine gives no thread.
pub(crate) fn spawn(service: &Service) -> std::io::Result<()> {
    let turn = &service.inner.turn;
    let (ended, end) = oneshot::channel::<()>();
    let mut worker = Worker {
        inner: Arc::downgrade(&service.inner),
        inbox: Arc::clone(&turn.inbox),
        consumers: Arc::clone(&turn.consumers),
        figures: Arc::clone(&turn.figures),
        others: Handle::current(),
        own: OwnConnection::default(),
        last: LastTurn {
            sends: 0,
            ended: Instant::now(),
        },
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("turn".to_owned())
        .spawn(move || {
            let inner = Weak::clone(&worker.inner);
            let run = AssertUnwindSafe(|| worker.run(&runtime));
            if std::panic::catch_unwind(run).is_err()
                && let Some(inner) = inner.upgrade()
            {
                inner.store.fail();
                tracing::error!("the turn's thread panicked: nothing is written any more");
            }
            drop(ended);
        })?;
    *turn.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    Ok(())
}

struct Worker {
    inner: Weak<Inner>,
    inbox: Arc<Inbox>,
    consumers: Arc<Consumers>,
    figures: Arc<Figures>,
    /// Where everything else runs.
    others: Handle,
    own: OwnConnection,
    last: LastTurn,
}

/// What a turn's transaction came to; what failed stored nothing.
enum Transacted {
    Committed(Outcome),
    /// Whether it is stored has to be asked.
    Unanswered(Outcome, Unanswered),
}

impl Worker {
    fn run(&mut self, runtime: &tokio::runtime::Runtime) {
        while let Some(inputs) = self.inbox.next(&self.last, self.consumers.look_at()) {
            let Some(inner) = self.inner.upgrade() else {
                return;
            };
            let service = Service { inner };
            let is_send = |input: &&Input| matches!(input, Input::Send { .. });
            let sends = inputs.iter().filter(is_send).count();
            runtime.block_on(self.turn(&service, inputs));
            self.last = LastTurn {
                sends,
                ended: Instant::now(),
            };
            if let Err(error) = runtime.block_on(service.store().end_log_move()) {
                tracing::error!(detail = ?error, "the log can't be moved into the database's file");
            }
        }
        let _context = runtime.enter();
        self.own = OwnConnection::default();
    }

    /// One turn. A part of it that certainly stored nothing, for a fault of its rows, is halved
    /// until the input at fault stands alone; one whose outcome isn't known is never repeated.
    async fn turn(&mut self, service: &Service, inputs: Vec<Input>) {
        for input in &inputs {
            self.figures.input(input);
        }
        let mut parts = vec![inputs];
        while let Some(mut inputs) = parts.pop() {
            match self.transact(service, &inputs).await {
                Ok(Transacted::Committed(outcome)) => self.tell(service, inputs, outcome),
                Ok(Transacted::Unanswered(outcome, unanswered)) => {
                    let (service, inbox) = (service.clone(), Arc::clone(&self.inbox));
                    let looking = look_up(service, inbox, inputs, outcome, unanswered);
                    self.others.spawn(looking);
                }
                Err(error) if error.is_about_rows() && inputs.len() > 1 => {
                    self.figures.halved();
                    parts.push(inputs.split_off(inputs.len() / 2));
                    parts.push(inputs);
                }
                Err(error) => {
                    tracing::error!(inputs = inputs.len(), detail = ?error, "a turn was not stored");
                    self.consumers.pause();
                    if service.store().has_failed() {
                        lose_all(inputs, error);
                    } else {
                        refuse_all(inputs, error);
                    }
                }
            }
        }
    }

    fn tell(&self, service: &Service, inputs: Vec<Input>, outcome: Outcome) {
        if outcome.queued {
            service.inner.wakes.tell_others(Wake::Queued);
        }
        outcome.tell(inputs, &self.inbox);
    }

    /// Where another process was in the way nothing is stored, and the turn is done again.
    async fn transact(&mut self, service: &Service, inputs: &[Input]) -> Result<Transacted> {
        for _ in 1..TRIES {
            match self.transact_once(service, inputs).await {
                Err(error) if error.is_conflict() => {
                    self.figures.repeated();
                    tracing::debug!(detail = ?error, "another process was in the way; trying again");
                }
                done => return done,
            }
        }
        self.transact_once(service, inputs).await
    }

    async fn transact_once(&mut self, service: &Service, inputs: &[Input]) -> Result<Transacted> {
        let begun = Instant::now();
        let store = service.store();
        let mut tx = store.begin_turn(&mut self.own).await?;
        let lease = Lease::begin(service, begun, service.now());
        let places = Consumers::begin(&self.consumers);
        let writing = write(service, &mut tx, inputs, places, lease);
        let written = tokio::time::timeout(STATEMENTS_TIMEOUT, writing).await;
        let outcome = written.unwrap_or(Err(Fault::TimedOut("a turn's work").into()))?;
        let log_bytes = tx.log_bytes();
        let committing = Instant::now();
        let committed = tx.try_commit().await?;
        let (turn, commit) = (begun.elapsed(), committing.elapsed());
        self.figures.committed(turn, commit, log_bytes);
        if turn > SLOW {
            let (ms, commit_ms) = (turn.as_millis(), commit.as_millis());
            tracing::warn!(ms, commit_ms, inputs = inputs.len(), "a turn took long");
        }
        Ok(match committed {
            Committed::Yes => Transacted::Committed(outcome),
            Committed::Unanswered(unanswered) => Transacted::Unanswered(outcome, unanswered),
        })
    }
}
