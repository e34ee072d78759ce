//! Proofs that a carrier got a message before a backup was restored: receipts that came since, and
//! lines of the carrier's own list.

use std::collections::HashMap;
use std::time::Instant;

use domain::ids::Shard;
use domain::{Kind, Timestamp, Transid};
use store::error::Result;
use store::hold::HeldMessage;
use store::unmatched_receipts::{self, Selection};

use crate::delivery::receipts::{NODES_DIFFER_MS, user_reference};
use crate::{Lease, Network, Service, SubmitOutcome, Submitted};

/// The number of messages that one transaction decides about.
pub(super) const CHUNK: i64 = 500;
/// How long before a message's acceptance its carrier may claim to have received it, in
/// milliseconds. The clocks differ.
const CLOCKS_APART_MS: i64 = 10 * 60 * 1000;

/// No claim has this token.
const NO_LEASE: i64 = -1;

/// A message or a segment that a carrier got.
#[derive(Clone, Debug, Default)]
pub struct ExportLine {
    /// Our ID of the message, if the list has it.
    pub transid: Option<Transid>,
    /// The recipient, as the carrier writes it. May be empty if there is a transid.
    pub number: String,
    /// When the carrier got it, if the list has that.
    pub at: Option<Timestamp>,
    /// The carrier message ID, if the list has it.
    pub carrier_message_id: Option<String>,
}

/// A proof that a carrier got a message.
#[derive(Clone, Debug, Default)]
pub(super) struct Proof {
    transid: Option<Transid>,
    /// The recipient, as the carrier writes it.
    number: String,
    sender: Option<String>,
    /// The reference of the submit, which identifies the message together with the number.
    user_reference: Option<u16>,
    at: Option<Timestamp>,
    /// When the receipt came. It proves nothing about later messages.
    received_at: Option<Timestamp>,
    carrier_message_id: Option<String>,
}

pub(super) struct Proven {
    pub(super) shard: Shard,
    pub(super) held: HeldMessage,
    /// When the carrier got the message according to its first proof. If the proof has no time,
    /// when the message was due.
    pub(super) at: Timestamp,
    /// The proofs that fit, by their indexes.
    proofs: Vec<usize>,
}

pub(super) struct Proofs<'a> {
    network: &'a Network,
    carrier: &'a str,
    all: Vec<Proof>,
    /// The indexes of the proofs that may be about a number, by that number with its country code.
    by_number: HashMap<String, Vec<usize>>,
    by_transid: HashMap<Transid, Vec<usize>>,
}

impl Proof {
    /// Returns the proofs from the unmatched receipts that came since the hold began.
    pub(super) async fn of_receipts(
        service: &Service,
        carrier: &str,
        since: Timestamp,
    ) -> Result<Vec<Self>> {
        let (mut after, mut proofs) = (0, Vec::new());
        loop {
            let mut conn = service.store().read().await?;
            let selection = Selection::OfNumbers(after);
            let some = unmatched_receipts::list(&mut conn, carrier, selection, CHUNK).await?;
            let Some(last) = some.last() else { return Ok(proofs) };
            after = last.receipt;
            let new = some.into_iter().filter(|receipt| receipt.made_at() >= since);
            proofs.extend(new.map(|receipt| Self {
                transid: None,
                received_at: Some(receipt.made_at()),
                number: receipt.number,
                sender: Some(receipt.sender).filter(|sender| !sender.is_empty()),
                user_reference: receipt.user_reference,
                at: receipt.submitted_at,
                carrier_message_id: None,
            }));
        }
    }

    pub(super) fn of_export(lines: &[ExportLine]) -> Vec<Self> {
        let proof = |line: &ExportLine| Self {
            transid: line.transid,
            number: line.number.trim().trim_start_matches('+').to_owned(),
            sender: None,
            user_reference: None,
            at: line.at,
            received_at: None,
            carrier_message_id: line.carrier_message_id.clone(),
        };
        lines.iter().map(proof).collect()
    }
}

impl<'a> Proofs<'a> {
    pub(super) fn new(network: &'a Network, carrier: &'a str, all: Vec<Proof>) -> Self {
        let mut by_number: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_transid: HashMap<Transid, Vec<usize>> = HashMap::new();
        for (index, proof) in all.iter().enumerate() {
            if let Some(transid) = proof.transid {
                by_transid.entry(transid).or_default().push(index);
            } else if !proof.number.is_empty() {
                for number in network.numbers_meant(carrier, &[proof.number.as_str()]) {
                    by_number.entry(number).or_default().push(index);
                }
            }
        }
        Self { network, carrier, all, by_number, by_transid }
    }

    /// Returns the proofs that the carrier got this message. If several messages fit a proof, the
    /// proof counts for each of them, because none of them may be sent a second time.
    pub(super) fn find(
        &self,
        shard: Shard,
        held: HeldMessage,
        country_code: &str,
    ) -> Option<Proven> {
        let digits = held.number.digits();
        let address = match held.number.kind() {
            Kind::Local => format!("{country_code}{digits}"),
            Kind::International => digits.to_owned(),
        };
        let of_number = self.by_number.get(&address).into_iter().flatten();
        let fitting = of_number.filter(|index| self.fits(&self.all[**index], &held, &address));
        let of_id = self.by_transid.get(&held.id).into_iter().flatten();
        let proofs: Vec<usize> = of_id.chain(fitting).copied().collect();
        let first = self.all.get(*proofs.first()?)?;
        let at = first.at.unwrap_or(held.due_at);
        Some(Proven { shard, held, at, proofs })
    }

    fn fits(&self, proof: &Proof, held: &HeldMessage, address: &str) -> bool {
        let echoes = |reference| {
            let mut segments = 1..=held.segments.max(1);
            segments.any(|segment| user_reference(held.id, segment) == reference)
        };
        let is_of_sender = || match (&proof.sender, &held.sender) {
            (Some(written), Some(sender)) => {
                self.network.writes_sender(self.carrier, sender, written)
            }
            _ => true,
        };
        let is_late_enough =
            || proof.at.is_none_or(|at| at.ms_since(held.due_at) >= -CLOCKS_APART_MS);
        let is_older =
            proof.received_at.is_some_and(|at| at.plus_ms(NODES_DIFFER_MS) < held.due_at);
        !is_older
            && self.network.writes_number(self.carrier, address, &proof.number)
            && match proof.user_reference {
                Some(reference) => echoes(reference),
                None => is_of_sender() && is_late_enough(),
            }
    }

    /// Returns the carrier's answers to the submits of these messages. A message's segments get the
    /// carrier message IDs of its proofs, in their order. Leaves out a message if each of its
    /// proofs may be about another message.
    pub(super) fn answers(&self, proven: &[Proven], whole: bool) -> Vec<Submitted> {
        let mut uses = vec![0_usize; self.all.len()];
        for index in proven.iter().flat_map(|one| &one.proofs) {
            uses[*index] += 1;
        }
        let answer = |one: &Proven| {
            let segments = if whole { 1 } else { one.held.segments.max(1) };
            let of_this = |index: &usize| {
                let id = self.all[*index].carrier_message_id.clone();
                id.filter(|_| uses[*index] == 1)
            };
            let mut ids = one.proofs.iter().map(of_this);
            let outcome = |segment| {
                let carrier_message_id = ids.next().flatten();
                (segment, SubmitOutcome::Accepted { carrier_message_id })
            };
            if !one.proofs.iter().any(|index| uses[*index] == 1) {
                return None;
            }
            let outcomes = (1..=segments).map(outcome).collect();
            Some(Submitted {
                id: one.held.id,
                application_id: one.held.application_id,
                // The message has left the queue, so this counts as a late answer.
                lease: Lease {
                    token: NO_LEASE,
                    shard: one.shard,
                    until: one.at,
                    not_after: Instant::now(),
                },
                segments,
                outcomes,
            })
        };
        proven.iter().filter_map(answer).collect()
    }
}
