//! What a turn writes, in one transaction.

use std::collections::VecDeque;

use domain::{ApiKey, ApplicationId, Money, Reference, Transid};

use super::consumers::Places;
use super::inbox::Input;
use super::outcome::{Answer, Outcome};
use super::sends::admit_all;
use crate::Service;
use crate::admission::PreparedSend;
use crate::delivery::{Lease, Submitted, claim_due};
use crate::error::Result;
use crate::money::releases::settle;
use crate::store::messages::Ended;
use crate::store::{WriteTx, balances, installation};

/// Everything that a turn writes: results and receipts, sends, claims.
pub(super) async fn write(
    service: &Service,
    tx: &mut WriteTx<'_>,
    inputs: &[Input],
    mut places: Places,
    lease: Lease,
) -> Result<Outcome> {
    let (mut recorded, ended) = record(service, tx, inputs, &mut places).await?;
    let sends: Vec<&PreparedSend> = inputs.iter().filter_map(Input::send).collect();
    // Before the first application's row is written: transactions lock them together, in one order.
    settle_in_turn(service, tx, &ended, &sends).await?;
    let mut prices = None;
    if !sends.is_empty() || !places.claimable(0).is_empty() {
        let drained;
        (prices, drained) = installation::prices_and_drained(tx).await?;
        places.close(drained);
    }
    let sent = admit_all(service, tx, &sends, prices, &mut places, lease).await?;
    let mut sent = sent.into_iter();
    let mut answers = Vec::with_capacity(inputs.len());
    for input in inputs {
        answers.extend(match input {
            Input::Send { .. } => sent.next().map(Answer::Sent),
            Input::Claim { carrier, limit, .. } => {
                let (claimed, _) = claim_due(service, tx, carrier, *limit, lease).await?;
                Some(Answer::Claimed(claimed))
            }
            _ => recorded.pop_front().map(Answer::Recorded),
        });
    }
    for (carrier, count) in places.claimable(sends.len()) {
        let (claimed, learned) = claim_due(service, tx, &carrier, count, lease).await?;
        places.fill_all(&carrier, claimed, learned);
    }
    Ok(Outcome {
        queued: places.has_queued(),
        answers,
        places,
        lease,
    })
}

/// Writes results and receipts. Returns for each such input, in their order, the messages that are
/// stored as taken whole; and the messages of all inputs that ended.
async fn record(
    service: &Service,
    tx: &mut WriteTx<'_>,
    inputs: &[Input],
    places: &mut Places,
) -> Result<(VecDeque<Vec<Transid>>, Vec<Ended>)> {
    let (mut recorded, mut ended) = (VecDeque::new(), Vec::new());
    for input in inputs {
        recorded.push_back(match input {
            Input::Send { .. } | Input::Claim { .. } => continue,
            Input::Results {
                carrier, results, ..
            } => {
                let results: Vec<&Submitted> = results.iter().collect();
                let written = service.write_results(tx, carrier, &results).await?;
                for (carrier, after) in written.again {
                    places.queued(&carrier, after);
                }
                ended.extend(written.ended);
                written.taken
            }
            Input::Receipts { receipts, .. } => {
                service.write_receipts(tx, receipts.clone()).await?;
                Vec::new()
            }
            Input::CarrierReceipts {
                carrier, receipts, ..
            } => {
                let writing = service.write_carrier_receipts(tx, carrier, receipts);
                writing.await?;
                Vec::new()
            }
        });
    }
    Ok((recorded, ended))
}

/// Gives back what ended messages release, after locking these applications and those of the sends
/// together.
async fn settle_in_turn(
    service: &Service,
    tx: &mut WriteTx<'_>,
    ended: &[Ended],
    sends: &[&PreparedSend],
) -> Result<()> {
    let released = ended.iter().filter(|ended| ended.released > Money::ZERO);
    let ids: Vec<ApplicationId> = released.map(|ended| ended.application_id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let keys = sends.iter().map(|send| &send.request.key);
    let references: Vec<Reference> = keys.map(ApiKey::reference).collect();
    balances::lock(tx, &ids, &references).await?;
    settle(tx, ended, service.now()).await
}
