//! A copy of what is stored about a phone number, as a JSON file.

use std::collections::VecDeque;

use domain::ids::{Shard, id_unix_ms};
use domain::records::MessageRecord;
use domain::{InboundRecord, Number, OptOutRecord, Timestamp};
use serde_json::{Value, json};

use super::Target;
use crate::Service;
use crate::inbound::InboundFilter;
use crate::opt_outs::OptOutFilter;
use crate::reports::MessageFilter;
use store::erasure::{AttemptOfNumber, CodeOfNumber};
use store::error::Result;
use store::raw_receipts::RawReceiptRow;

/// The maximum number of records per read. A file is never in memory as a whole.
const PAGE: i64 = 200;

/// A file that is being written.
pub struct NumberExport {
    service: Service,
    shard: Shard,
    number: Number,
    targets: Vec<Target>,
    steps: VecDeque<Step>,
    is_begun: bool,
    has_records: bool,
}

/// The records to write next.
enum Step {
    /// The messages to the number, from a page on.
    Messages {
        target: usize,
        cursor: Option<String>,
    },
    Inbound {
        target: usize,
        cursor: Option<String>,
    },
    /// The verifications, the opt-out and the attempts to deliver events.
    Others {
        target: usize,
    },
    Receipts,
    End,
}

impl NumberExport {
    pub(super) fn new(
        service: &Service,
        shard: Shard,
        number: &Number,
        targets: Vec<Target>,
    ) -> Self {
        let mut steps = VecDeque::new();
        for target in 0..targets.len() {
            steps.push_back(Step::Messages { target, cursor: None });
            steps.push_back(Step::Inbound { target, cursor: None });
            steps.push_back(Step::Others { target });
        }
        steps.extend([Step::Receipts, Step::End]);
        let (service, number) = (service.clone(), number.clone());
        let (is_begun, has_records) = (false, false);
        Self { service, shard, number, targets, steps, is_begun, has_records }
    }

    /// Returns the next part of the file, or `None` at its end.
    pub async fn next_part(&mut self) -> Result<Option<String>> {
        if !self.is_begun {
            self.is_begun = true;
            let at = json!(self.service.now().to_string());
            let number = json!(self.number.digits());
            let head = format!(r#"{{"exported_at":{at},"number":{number},"records":["#);
            return Ok(Some(head));
        }
        let Some(step) = self.steps.pop_front() else {
            return Ok(None);
        };
        let records = match step {
            Step::Messages { target, cursor } => self.messages(target, cursor).await?,
            Step::Inbound { target, cursor } => self.inbound(target, cursor).await?,
            Step::Others { target } => self.others(&self.targets[target]).await?,
            Step::Receipts => self.receipts().await?,
            Step::End => return Ok(Some("]}\n".to_owned())),
        };
        let mut text = String::new();
        for record in records {
            if self.has_records {
                text.push(',');
            }
            self.has_records = true;
            text.push_str(&record.to_string());
        }
        Ok(Some(text))
    }

    async fn messages(&mut self, target: usize, cursor: Option<String>) -> Result<Vec<Value>> {
        let of = &self.targets[target];
        let number = of.forms.first().cloned();
        let filter = MessageFilter { number, limit: PAGE, cursor, ..MessageFilter::default() };
        let page = self.service.messages().list(&of.access, &filter).await?;
        let mut conn = self.service.store().read_at(self.shard).await?;
        let mut records = Vec::new();
        // A local number and an international one may have the same digits.
        let is_to_it = |message: &&MessageRecord| {
            let forms = of.forms.iter().map(|form| (form.digits(), form.kind()));
            forms.into_iter().any(|form| form == (message.number.as_str(), message.kind))
        };
        for message in page.items.iter().filter(is_to_it) {
            let id = of.access.application_id;
            let timeline = store::timeline::list(&mut conn, message.transid, id).await?;
            let timeline = timeline.iter().map(|entry| {
                let (at, status) = (entry.at.to_string(), entry.status.as_str());
                json!({"at": at, "status": status, "detail": entry.detail})
            });
            let mut record = message_value(message);
            record["timeline"] = timeline.collect();
            records.push(of.marked("message", record));
        }
        if let Some(next) = page.next {
            self.steps.push_front(Step::Messages { target, cursor: Some(next) });
        }
        Ok(records)
    }

    async fn inbound(&mut self, target: usize, cursor: Option<String>) -> Result<Vec<Value>> {
        let of = &self.targets[target];
        let number = of.forms.first().cloned();
        let filter = InboundFilter { number, limit: PAGE, cursor, ..InboundFilter::default() };
        let page = self.service.messages().inbound(&of.access, &filter).await?;
        let records = page.items.iter();
        let records = records.map(|found| of.marked("inbound_message", inbound_value(found)));
        let records = records.collect();
        if let Some(next) = page.next {
            self.steps.push_front(Step::Inbound { target, cursor: Some(next) });
        }
        Ok(records)
    }

    async fn others(&self, of: &Target) -> Result<Vec<Value>> {
        let number = of.forms.first().cloned();
        let filter = OptOutFilter { number, limit: PAGE, cursor: None };
        let opt_outs = self.service.applications().opt_outs(&of.access, &filter).await?;
        let mut conn = self.service.store().read_at(self.shard).await?;
        let (mut codes, mut attempts) = (Vec::new(), Vec::new());
        for (form, number) in of.numbers().enumerate() {
            attempts.extend(number.attempts(&mut conn).await?);
            if form == 0 {
                codes = number.codes(&mut conn).await?;
            }
        }
        let opt_outs = opt_outs.items.iter().map(|it| of.marked("opt_out", opt_out_value(it)));
        let codes = codes.iter().map(|it| of.marked("verification", code_value(it)));
        let attempts = attempts.iter().map(|it| of.marked("webhook_attempt", attempt_value(it)));
        Ok(opt_outs.chain(codes).chain(attempts).collect())
    }

    async fn receipts(&self) -> Result<Vec<Value>> {
        let messages = self.service.messages();
        let own = messages.receipts_of(self.shard, &self.number, &self.targets).await?;
        Ok(own.iter().map(receipt_value).collect())
    }
}

impl Target {
    /// Adds the record's type, and its application and key.
    fn marked(&self, kind: &str, mut record: Value) -> Value {
        record["type"] = json!(kind);
        record["application"] = json!(self.access.reference.to_string());
        record["key"] = json!(self.access.kind.as_str());
        record
    }
}

fn at(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}

fn message_value(message: &MessageRecord) -> Value {
    json!({
        "transid": message.transid.to_string(),
        "requestid": message.requestid,
        "batchid": message.batchid.map(|batch| batch.to_string()),
        "number": message.number,
        "sender": message.sender,
        "message": message.message,
        "status": message.status.as_str(),
        "error": message.error,
        "pages": message.pages,
        "segments": message.segments,
        "cost": message.cost.to_string(),
        "released": message.released.to_string(),
        "created_at": message.created_at.to_string(),
        "send_at": at(message.send_at),
        "submitted_at": at(message.submitted_at),
        "final_at": at(message.final_at),
    })
}

fn inbound_value(message: &InboundRecord) -> Value {
    json!({
        "inboundid": message.inboundid.to_string(),
        "number": message.number,
        "recipient": message.recipient,
        "message": message.message,
        "segments": message.segments,
        "received_at": message.received_at.to_string(),
    })
}

fn opt_out_value(opt_out: &OptOutRecord) -> Value {
    json!({
        "number": opt_out.number,
        "source": opt_out.source.as_str(),
        "created_at": opt_out.created_at.to_string(),
    })
}

fn code_value(code: &CodeOfNumber) -> Value {
    json!({
        "verifyid": domain::VerifyId(code.id).to_string(),
        "started_at": code.created_at.to_string(),
        "expires_at": code.expires_at.to_string(),
        "attempts": code.attempts,
        "verified_at": at(code.verified_at),
    })
}

fn attempt_value(attempt: &AttemptOfNumber) -> Value {
    json!({
        "event": attempt.event_id.to_string(),
        "at": attempt.at.to_string(),
        "status": attempt.status,
        "error": attempt.error,
        "answer": attempt.answer,
    })
}

/// Answers are without their bodies, which are for operators.
fn receipt_value(receipt: &RawReceiptRow) -> Value {
    let is_receipt = receipt.kind.is_of_receipt();
    json!({
        "type": if is_receipt { "receipt" } else { "answer" },
        "carrier_message_id": receipt.written_id,
        "number": receipt.number,
        "state": receipt.state,
        "raw": is_receipt.then_some(&receipt.raw),
        "received_at": Timestamp::from_unix_ms(id_unix_ms(receipt.id)).to_string(),
    })
}
