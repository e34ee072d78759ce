//! Receipts whose state wasn't known when they came. Once the settings of their carrier name the
//! state, they count like receipts that come now.

use std::time::Instant;

use domain::ids::Shard;
use domain::support::ReceiptKind;
use domain::{MessageIdForm, MessageStatus};

use crate::delivery::receipts::{CarrierReceipt, WrittenReceipt, message_ids, unmatched_rows};
use crate::delivery::routing::{CarrierInfo, NamedStates};
use crate::delivery::waiting_receipts::NEW_FORM;
use crate::{Delivery, leave_time, run_detached};
use store::error::Result;
use store::gate::Priority;
use store::raw_receipts::{self, RawReceiptRow};
use store::{Chore, carriers, unmatched_receipts};

/// The number of receipts per transaction.
const CHUNK: i64 = 200;
/// [`CHUNK`] as a length.
const CHUNK_LEN: usize = 200;

impl Delivery<'_> {
    /// Takes a carrier's receipts whose states the settings now name, and stores them as unmatched,
    /// so that they are compared with messages. Returns their number.
    pub(super) async fn apply_named_states(&self, carrier: &CarrierInfo) -> Result<usize> {
        let mut applied = 0;
        for state in self.unknown_states(carrier).await? {
            loop {
                let begun = Instant::now();
                let count = self.take_unknown(carrier.clone(), state.clone()).await?;
                applied += count;
                if count < CHUNK_LEN {
                    break;
                }
                leave_time(begun).await;
            }
        }
        if applied > 0 {
            tracing::info!(
                carrier = carrier.name,
                receipts = applied,
                "applied earlier receipts, because the settings now name their state"
            );
        }
        Ok(applied)
    }

    /// Returns the states that the settings name and that earlier receipts of the carrier have.
    async fn unknown_states<'a>(&self, carrier: &'a CarrierInfo) -> Result<Vec<&'a String>> {
        let mut found = Vec::new();
        if carrier.named.states.is_empty() {
            return Ok(found);
        }
        let mut conn = self.store().read().await?;
        for state in carrier.named.states.keys() {
            if raw_receipts::has_unknown_state(&mut conn, &carrier.name, state).await? {
                found.push(state);
            }
        }
        Ok(found)
    }

    /// Stores some receipts with this state as unmatched. Returns the number of receipts that had
    /// it, or 0 while another process is matching receipts.
    async fn take_unknown(&self, carrier: CarrierInfo, state: String) -> Result<usize> {
        let service = self.0.clone();
        run_detached(async move {
            let begun =
                service.store().begin_chore(Chore::MatchCrossed, Shard::FIRST, Priority::Results);
            let Some(mut tx) = begun.await? else { return Ok(0) };
            let name = carrier.name.as_str();
            let rows = raw_receipts::with_unknown_state(&mut tx, name, &state, CHUNK).await?;
            let (mut kinds, mut receipts) = (Vec::new(), Vec::new());
            for row in &rows {
                match read(&carrier.named, row) {
                    Some((status, error)) => {
                        kinds.push((row.id, ReceiptKind::Final, error.clone()));
                        receipts.push((row, receipt(row, carrier.message_id, status, error)));
                    }
                    None => kinds.push((row.id, ReceiptKind::Intermediate, None)),
                }
            }
            raw_receipts::set_kinds(&mut tx, &kinds).await?;
            if !receipts.is_empty() {
                let unmatched = receipts
                    .iter()
                    .flat_map(|(row, receipt)| unmatched_rows(receipt, row.id, row.received_at()));
                let unmatched: Vec<_> = unmatched.collect();
                unmatched_receipts::keep(&mut tx, &unmatched, name, NEW_FORM).await?;
                carriers::add_unmatched(&mut tx, name, receipts.len(), 0).await?;
            }
            tx.commit().await?;
            Ok(rows.len())
        })
        .await
    }
}

/// Returns the status and the error that a receipt reports. `None` if its message is on its way.
fn read(named: &NamedStates, row: &RawReceiptRow) -> Option<(MessageStatus, Option<String>)> {
    let (status, error) = (*named.states.get(&row.state)?)?;
    let number = row.error.as_deref();
    let error = error.map(|error| {
        let of_carrier = number.and_then(|number| named.errors.get(number));
        of_carrier.copied().unwrap_or(error).with_number(number)
    });
    Some((status, error))
}

fn receipt(
    row: &RawReceiptRow,
    form: Option<MessageIdForm>,
    status: MessageStatus,
    error: Option<String>,
) -> CarrierReceipt {
    let (text_id, parameter_id) = (row.written_id.as_deref(), row.parameter_id.as_deref());
    CarrierReceipt {
        message_ids: message_ids(text_id, parameter_id, form),
        status,
        error,
        user_reference: None,
        number: row.number.clone(),
        sender: String::new(),
        submitted_at: None,
        received_at: Some(row.received_at()),
        written: WrittenReceipt {
            text_id: row.written_id.clone(),
            parameter_id: row.parameter_id.clone(),
            state: row.state.clone(),
        },
    }
}
