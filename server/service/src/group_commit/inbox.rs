//! The inbox: the queue of inputs for a shard's commit groups, and the replies to them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::{Reason, Transid};
use tokio::sync::oneshot;

use crate::admission::{PreparedSend, SendError, Sent};
use crate::delivery::receipts::{CarrierReceipt, Matching, Receipt, ReceiptMatch};
use crate::delivery::{Claimed, Lease, Submitted};
use crate::verify::Checked;
use crate::verify::checks::PreparedCheck;
use store::error::{Error, Fault, Result, Uncertain};

/// The maximum number of waiting sends. Further sends are refused as "unavailable".
const SENDS_MAX: usize = 4096;
/// The maximum number of sends per group. Larger groups gain little and delay everything else.
const SENDS_PER_GROUP: usize = 512;
/// The maximum number of waiting inputs that aren't sends. A caller waits for the reply to its last
/// input, so the inbox gets full only after a fault, or if thousands of codes are checked at once.
const CARRIER_INPUTS_MAX: usize = 4096;
/// A group that has this many results, receipts and claimed messages takes no further input from
/// carriers.
const ROWS_PER_GROUP: usize = 1024;
/// The same limit for a group with sends, because their callers wait. The limit is at least twice
/// the number of the group's sends, because each send leads to a result and a receipt.
const ROWS_BESIDE_SENDS: usize = 256;
/// The maximum time for which a group under load waits until it has as many sends as the previous
/// group, so that these sends share its commit.
const GATHER: Duration = Duration::from_micros(300);
/// A group is under load if it starts within this time after a group with sends.
const LOAD_PAUSE: Duration = Duration::from_millis(1);

/// A request to a commit group, with the channel for the reply.
pub(crate) enum Input {
    Send {
        send: Box<PreparedSend>,
        answer: oneshot::Sender<std::result::Result<Sent, SendError>>,
    },
    /// The outcomes of submits to a carrier. The reply lists the messages of which the carrier
    /// accepted every segment.
    Results {
        carrier: String,
        results: Vec<Submitted>,
        /// Accepted messages whose results an earlier call stored. The reply lists them too.
        taken: Vec<Transid>,
        answer: Option<oneshot::Sender<Result<Vec<Transid>>>>,
    },
    /// Receipts from a sandbox.
    Receipts {
        receipts: Vec<Receipt>,
        answer: oneshot::Sender<Result<()>>,
    },
    /// Receipts from a carrier, each with its index in `matches`. A call may have stored the
    /// others.
    CarrierReceipts {
        carrier: String,
        receipts: Vec<CarrierReceipt>,
        indexes: Vec<usize>,
        matches: Vec<ReceiptMatch>,
        matching: Matching,
        answer: oneshot::Sender<Result<Vec<ReceiptMatch>>>,
    },
    /// Messages to reject because their recipients have opted out. The call that found them left
    /// them unclaimed. Nobody waits for the reply: if they aren't stored, a later claim finds the
    /// messages again.
    OptedOut(Vec<Transid>),
    /// A code that was typed.
    Check {
        check: Box<PreparedCheck>,
        answer: oneshot::Sender<Result<Checked>>,
    },
    /// A claim of messages for a carrier. The reply doesn't wait for messages, so it is empty if no
    /// message is due.
    Claim {
        carrier: String,
        limit: usize,
        answer: oneshot::Sender<Result<(Lease, Vec<Claimed>)>>,
    },
}

impl Input {
    /// Returns the send if the input is one.
    pub(super) fn send(&self) -> Option<&PreparedSend> {
        match self {
            Self::Send { send, .. } => Some(send),
            _ => None,
        }
    }

    /// Returns the check of a code if the input is one.
    pub(super) fn check(&self) -> Option<&PreparedCheck> {
        match self {
            Self::Check { check, .. } => Some(check),
            _ => None,
        }
    }

    /// Replies to the caller. An input is stored even if its caller has gone.
    pub(super) fn answer(self, with: Answer) {
        match (self, with) {
            (Self::Send { answer, .. }, Answer::Sent(outcome)) => {
                let _ = answer.send(outcome.map_err(SendError::Refused));
            }
            (Self::Results { answer, taken: mut all, .. }, Answer::Recorded(taken)) => {
                all.extend(taken);
                if let Some(answer) = answer {
                    let _ = answer.send(Ok(all));
                }
            }
            (Self::Receipts { answer, .. }, _) => {
                let _ = answer.send(Ok(()));
            }
            (
                Self::CarrierReceipts { indexes, mut matches, answer, .. },
                Answer::Matched(found),
            ) => {
                for (index, found) in indexes.into_iter().zip(found) {
                    matches[index] = found;
                }
                let _ = answer.send(Ok(matches));
            }
            (Self::CarrierReceipts { matches, answer, .. }, _) => {
                let _ = answer.send(Ok(matches));
            }
            (Self::Check { answer, .. }, Answer::Checked(checked)) => {
                let _ = answer.send(checked);
            }
            (Self::Claim { answer, .. }, Answer::Claimed(lease, messages)) => {
                let _ = answer.send(Ok((lease, messages)));
            }
            // Dropping the channel tells the caller that the outcome is unknown.
            (input, _) => drop(input),
        }
    }

    /// Replies to the input if nothing of it is left to store. Otherwise returns the input.
    pub(super) fn unless_empty(self) -> Option<Self> {
        if self.rows() > 0 {
            return Some(self);
        }
        self.answer(Answer::Recorded(Vec::new()));
        None
    }

    /// Returns the number of results or receipts in the input, or the maximum number of messages
    /// that it claims.
    fn rows(&self) -> usize {
        match self {
            Self::Send { .. } => 0,
            Self::Check { .. } => 1,
            Self::Results { results, .. } => results.len(),
            Self::Receipts { receipts, .. } => receipts.len(),
            Self::CarrierReceipts { receipts, .. } => receipts.len(),
            Self::OptedOut(ids) => ids.len(),
            Self::Claim { limit, .. } => *limit,
        }
    }
}

/// The reply to an input.
pub(super) enum Answer {
    Sent(std::result::Result<Sent, Reason>),
    /// The stored messages of which the carrier accepted every segment. For receipts, an empty
    /// list.
    Recorded(Vec<Transid>),
    /// The result for each receipt.
    Matched(Vec<ReceiptMatch>),
    Claimed(Lease, Vec<Claimed>),
    Checked(Result<Checked>),
}

/// Replies to all inputs with an error that says that nothing was stored.
pub(super) fn refuse_all(inputs: Vec<Input>, error: Error) {
    let reason = error.reason();
    fail_all(inputs, error, SendError::Refused(reason));
}

/// Replies to all inputs with an error that says that the group may or may not be stored. The
/// clients of sends get no answer. The callers of results and receipts pass them in again.
pub(super) fn lose_all(inputs: Vec<Input>, error: Error) {
    fail_all(inputs, error, SendError::Lost);
}

fn fail_all(inputs: Vec<Input>, error: Error, send: SendError) {
    let error = Arc::new(error);
    let shared = || Error::shared(&error);
    for input in inputs {
        match input {
            Input::Send { answer, .. } => drop(answer.send(Err(send))),
            Input::Results { answer, .. } => {
                if let Some(answer) = answer {
                    let _ = answer.send(Err(shared()));
                }
            }
            Input::Receipts { answer, .. } => drop(answer.send(Err(shared()))),
            Input::CarrierReceipts { answer, .. } => drop(answer.send(Err(shared()))),
            Input::OptedOut(_) => {}
            Input::Check { answer, .. } => drop(answer.send(Err(shared()))),
            Input::Claim { answer, .. } => drop(answer.send(Err(shared()))),
        }
    }
}

/// The number of waiting inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxDepth {
    pub sends: usize,
    /// All other inputs: results, receipts, claims, rejections and checks of codes.
    pub carriers: usize,
}

impl std::iter::Sum for InboxDepth {
    fn sum<I: Iterator<Item = Self>>(depths: I) -> Self {
        let none = Self { sends: 0, carriers: 0 };
        depths.fold(none, |sum, depth| Self {
            sends: sum.sends + depth.sends,
            carriers: sum.carriers + depth.carriers,
        })
    }
}

/// The inputs that wait for a shard's thread.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    sends: VecDeque<Input>,
    carriers: VecDeque<Input>,
    closed: bool,
    /// 0 while the shard's thread runs. While the thread sleeps, the number of waiting sends that
    /// wakes it. If that number is 1, any input wakes the thread.
    wake_at: usize,
}

impl State {
    fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.carriers.is_empty()
    }
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a send and waits for its outcome, which comes after the commit.
    pub(crate) async fn send(&self, send: PreparedSend) -> std::result::Result<Sent, SendError> {
        let (answer, answered) = oneshot::channel();
        let send = Box::new(send);
        if self.push(Input::Send { send, answer }).is_err() {
            return Err(SendError::Refused(Reason::Unavailable));
        }
        // If the thread ended without a reply, it is unknown whether the send is stored.
        answered.await.unwrap_or(Err(SendError::Lost))
    }

    /// Adds a check of a code and waits for its answer, which comes after the commit.
    pub(crate) async fn check(&self, check: PreparedCheck) -> Result<Checked> {
        self.request(|answer| Input::Check { check: Box::new(check), answer }).await
    }

    pub(crate) async fn claim(&self, carrier: &str, limit: usize) -> Result<(Lease, Vec<Claimed>)> {
        let carrier = carrier.to_owned();
        let input = |answer| Input::Claim { carrier, limit, answer };
        self.request(input).await
    }

    pub(crate) async fn record_results(
        &self,
        carrier: &str,
        results: Vec<Submitted>,
    ) -> Result<Vec<Transid>> {
        let carrier = carrier.to_owned();
        let input =
            |answer| Input::Results { carrier, results, taken: Vec::new(), answer: Some(answer) };
        self.request(input).await
    }

    pub(crate) async fn record_receipts(&self, receipts: Vec<Receipt>) -> Result<()> {
        self.request(|answer| Input::Receipts { receipts, answer }).await
    }

    pub(crate) async fn record_carrier_receipts(
        &self,
        carrier: &str,
        receipts: Vec<CarrierReceipt>,
        matching: Matching,
    ) -> Result<Vec<ReceiptMatch>> {
        let (carrier, count) = (carrier.to_owned(), receipts.len());
        let (indexes, matches) = ((0..count).collect(), vec![ReceiptMatch::Unmatched; count]);
        self.request(|answer| Input::CarrierReceipts {
            carrier,
            receipts,
            indexes,
            matches,
            matching,
            answer,
        })
        .await
    }

    async fn request<T>(
        &self,
        input: impl FnOnce(oneshot::Sender<Result<T>>) -> Input,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        if self.push(input(answer)).is_err() {
            return Err(self.why_refused().into());
        }
        answered.await.unwrap_or_else(|_| {
            let why = "a commit group ended before its answer";
            Err(Uncertain::Task(why.to_owned()).into())
        })
    }

    /// Adds an input. Returns the input if the inbox is full or closed.
    pub(crate) fn push(&self, input: Input) -> std::result::Result<(), Input> {
        let mut state = self.state();
        let (is_closed, is_send) = (state.closed, matches!(input, Input::Send { .. }));
        let (line, most) = if is_send {
            (&mut state.sends, SENDS_MAX)
        } else {
            (&mut state.carriers, CARRIER_INPUTS_MAX)
        };
        if is_closed || line.len() >= most {
            return Err(input);
        }
        line.push_back(input);
        let waiting = if is_send { line.len() } else { 1 };
        self.wake(&mut state, waiting);
        Ok(())
    }

    /// Returns the reason why [`Inbox::push`] returned an input.
    pub(super) fn why_refused(&self) -> Fault {
        if self.state().closed { Fault::Stopped } else { Fault::InboxFull }
    }

    /// Wakes the shard's thread if it sleeps, so that the thread computes again when to poll the
    /// queue. Callers use this when a connection has free slots, or when messages were queued
    /// elsewhere. A running thread computes the time anyway before it sleeps.
    pub(crate) fn reconsider(&self) {
        self.wake(&mut self.state(), 1);
    }

    fn wake(&self, state: &mut State, waiting: usize) {
        if state.wake_at > 0 && waiting >= state.wake_at {
            state.wake_at = 0;
            self.filled.notify_one();
        }
    }

    /// Takes no more inputs. Inputs that are already in the inbox are still stored.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.wake_at = 0;
        self.filled.notify_one();
    }

    pub(crate) fn depth(&self) -> InboxDepth {
        let state = self.state();
        InboxDepth { sends: state.sends.len(), carriers: state.carriers.len() }
    }

    /// Waits for the inputs of the next group and returns them: the sends, then the inputs from
    /// carriers, both in order of arrival. Returns an empty list when it is time to poll the queue,
    /// and `None` once the inbox is closed and empty. `poll_at` returns the time of the next poll,
    /// or `None` while no connection has a free slot. The function calls `poll_at` again each time
    /// the thread wakes.
    pub(crate) fn next(
        &self,
        last: &LastGroup,
        poll_at: impl Fn() -> Option<Instant>,
    ) -> Option<Vec<Input>> {
        let mut state = self.state();
        while state.is_empty() {
            if state.closed {
                return None;
            }
            let wait = poll_at().map(|at| at.saturating_duration_since(Instant::now()));
            if wait.is_some_and(|wait| wait.is_zero()) {
                break;
            }
            state = self.sleep(state, 1, wait);
        }
        if last.is_under_load() {
            let until = Instant::now() + GATHER;
            while state.sends.len() < last.sends && !state.closed {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                state = self.sleep(state, last.sends, Some(left));
            }
        }
        let sends = state.sends.len().min(SENDS_PER_GROUP);
        let mut inputs: Vec<Input> = state.sends.drain(..sends).collect();
        let most = match sends {
            0 => ROWS_PER_GROUP,
            sends => ROWS_BESIDE_SENDS.max(2 * sends),
        };
        let mut rows = 0;
        while rows < most {
            let Some(input) = state.carriers.pop_front() else {
                break;
            };
            rows += input.rows();
            inputs.push(input);
        }
        Some(inputs)
    }

    fn sleep<'s>(
        &self,
        mut state: MutexGuard<'s, State>,
        wake_at: usize,
        wait: Option<Duration>,
    ) -> MutexGuard<'s, State> {
        state.wake_at = wake_at;
        let mut state = if let Some(wait) = wait {
            let woken = self.filled.wait_timeout(state, wait);
            woken.unwrap_or_else(PoisonError::into_inner).0
        } else {
            let woken = self.filled.wait(state);
            woken.unwrap_or_else(PoisonError::into_inner)
        };
        state.wake_at = 0;
        state
    }
}

pub(crate) struct LastGroup {
    pub(crate) sends: usize,
    pub(crate) ended: Instant,
}

impl LastGroup {
    fn is_under_load(&self) -> bool {
        self.sends > 0 && self.ended.elapsed() < LOAD_PAUSE
    }
}
