//! Receipts whose state wasn't known when they came. Once the settings of their carrier name the
//! state, they count like receipts that come now.

use std::time::Instant;

use domain::ids::Shard;
use domain::support::ReceiptKind;
use domain::{MessageIdForm, MessageStatus};

use crate::delivery::receipts::{CarrierReceipt, WrittenReceipt, message_ids, unmatched_rows};
use crate::delivery::routing::{CarrierInfo, NamedStates};
use crate::{Delivery, leave_time, run_detached};
use store::error::Result;
use store::gate::Priority;
use store::raw_receipts::{self, RawReceiptRow};
use store::unmatched_receipts::{self, WaitingReceipt};
use store::{Chore, carriers};

/// The number of receipts per transaction.
const CHUNK: i64 = 200;

impl Delivery<'_> {
    /// Applies a carrier's receipts whose states are named in the settings now. Those that match no
    /// message wait for one as unmatched. Returns how many were matched.
    pub(super) async fn apply_named_states(&self, carrier: &CarrierInfo) -> Result<usize> {
        let mut matched = 0;
        let mut conn = self.store().read().await?;
        if carrier.named.states.is_empty()
            || !raw_receipts::is_any_unknown(&mut conn, &carrier.name).await?
        {
            return Ok(0);
        }
        for state in carrier.named.states.keys() {
            let unknown = raw_receipts::with_unknown_state(&mut conn, &carrier.name, state, 1);
            let mut is_any = !unknown.await?.is_empty();
            while is_any {
                let begun = Instant::now();
                let taken = self.take_unknown(carrier.clone(), state.clone()).await?;
                // Otherwise another process is matching receipts.
                let Some((count, waiting)) = taken else { return Ok(matched) };
                is_any = count > 0;
                let (name, form) = (&carrier.name, carrier.message_id);
                let done = self.match_again(name, form, &waiting, form.is_some()).await?;
                matched += done.map_or(0, |done| done.len());
                leave_time(begun).await;
            }
        }
        Ok(matched)
    }

    /// Turns some receipts with a state into unmatched ones. Returns how many receipts had the
    /// state, and the unmatched ones. Returns `None` while another process is matching receipts.
    async fn take_unknown(
        &self,
        carrier: CarrierInfo,
        state: String,
    ) -> Result<Option<(usize, Vec<WaitingReceipt>)>> {
        let service = self.0.clone();
        run_detached(async move {
            let begun =
                service.store().begin_chore(Chore::MatchCrossed, Shard::FIRST, Priority::Results);
            let Some(mut tx) = begun.await? else { return Ok(None) };
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
                let unmatched: Vec<_> = (receipts.iter())
                    .flat_map(|(row, receipt)| unmatched_rows(receipt, row.id))
                    .collect();
                // The empty format is none of the carrier's, so that they are compared again if
                // the process dies now.
                let now = service.now();
                unmatched_receipts::keep(&mut tx, &unmatched, name, "", now).await?;
                carriers::add_unmatched(&mut tx, name, receipts.len(), 0).await?;
                tracing::info!(
                    carrier = name,
                    state,
                    receipts = receipts.len(),
                    "the settings name the state of earlier receipts now, which are applied"
                );
            }
            tx.commit().await?;
            let waiting = receipts.into_iter().map(|(row, receipt)| waiting(row, receipt));
            Ok(Some((rows.len(), waiting.collect())))
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

/// Returns a receipt as it is read from the unmatched ones.
fn waiting(row: &RawReceiptRow, receipt: CarrierReceipt) -> WaitingReceipt {
    WaitingReceipt {
        receipt: row.id,
        carrier_message_id: receipt.message_ids.into_iter().next().unwrap_or_default(),
        status: receipt.status,
        error: receipt.error,
        received_at: row.received_at(),
        text_id: receipt.written.text_id,
        parameter_id: receipt.written.parameter_id,
        state: receipt.written.state,
        number: receipt.number,
        sender: receipt.sender,
        user_reference: None,
        submitted_at: None,
    }
}
