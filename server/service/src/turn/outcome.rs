//! What a turn came to, and telling those who wait for it.

use std::sync::Arc;

use domain::{Reason, Transid};

use super::consumers::Places;
use super::inbox::{Inbox, Input};
use crate::admission::{SendError, Sent};
use crate::delivery::{Claimed, Lease};
use crate::error::Error;

/// The answer to an input.
pub(super) enum Answer {
    Sent(std::result::Result<Sent, Reason>),
    /// The messages that are stored as taken whole.
    Recorded(Vec<Transid>),
    Claimed(Vec<Claimed>),
}

/// What a turn came to, to be told once it is on disk.
pub(super) struct Outcome {
    /// In the order of the inputs.
    pub(super) answers: Vec<Answer>,
    pub(super) places: Places,
    pub(super) lease: Lease,
    /// Messages were put into the queue that no connection of this process was handed.
    pub(super) queued: bool,
}

impl Outcome {
    /// Answers everybody and hands messages over.
    pub(super) fn tell(self, inputs: Vec<Input>, inbox: &Inbox) {
        self.places.hand_over(self.lease, inbox);
        for (input, answer) in inputs.into_iter().zip(self.answers) {
            tell_one(input, answer, self.lease);
        }
    }

    /// A message that this turn stored, if it stored one.
    pub(super) fn new_message(&self) -> Option<Transid> {
        let mut sent = self.answers.iter().filter_map(|answer| match answer {
            Answer::Sent(Ok(sent)) if !sent.replayed => sent.transid,
            _ => None,
        });
        sent.next()
    }

    /// A message that this turn claimed, if it claimed one.
    pub(super) fn claimed_message(&self) -> Option<&Claimed> {
        let claimed = self.answers.iter().find_map(|answer| match answer {
            Answer::Claimed(messages) => messages.first(),
            _ => None,
        });
        claimed.or_else(|| self.places.first_claimed())
    }
}

/// A client that left needs no answer: what it asked for is done all the same.
fn tell_one(input: Input, answer: Answer, lease: Lease) {
    match (input, answer) {
        (Input::Send { answer, .. }, Answer::Sent(outcome)) => {
            let _ = answer.send(outcome.map_err(SendError::Refused));
        }
        (Input::Results { answer, .. }, Answer::Recorded(taken)) => {
            if let Some(answer) = answer {
                let _ = answer.send(Ok(taken));
            }
        }
        (Input::Receipts { answer, .. } | Input::CarrierReceipts { answer, .. }, _) => {
            let _ = answer.send(Ok(()));
        }
        (Input::Claim { answer, .. }, Answer::Claimed(messages)) => {
            let _ = answer.send(Ok((lease, messages)));
        }
        // Dropped, it counts as broken down.
        (input, _) => drop(input),
    }
}

/// Tells everybody that nothing was stored, and why.
pub(super) fn refuse_all(inputs: Vec<Input>, error: Error) {
    let reason = error.reason();
    fail_all(inputs, error, SendError::Refused(reason));
}

/// Tells everybody that what became of the turn isn't known: senders are given no answer, results
/// and receipts come again.
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
            Input::Receipts { answer, .. } | Input::CarrierReceipts { answer, .. } => {
                drop(answer.send(Err(shared())));
            }
            Input::Claim { answer, .. } => drop(answer.send(Err(shared()))),
        }
    }
}
