//! Handles the PDUs that the peer sends.

use rusmpp::{CommandId, Pdu};
use tokio::time::Instant;

use crate::encode::{self, Role};
use crate::frames::{self, Frame};
use crate::link::{Link, Phase};
use crate::throttle::Reaction;
use crate::window::Answered;
use crate::{Delivery, DeliveryHandle, Event, Fault, FaultKind, Outcome, status_code};

impl Link {
    /// Handles every PDU that was received in full.
    pub(crate) fn read_frames(&mut self) {
        loop {
            if self.shutdown_fault.is_some() {
                self.socket.incoming.clear();
            }
            if self.end.is_some() || !self.may_read() {
                return;
            }
            match frames::next(&mut self.socket.incoming) {
                Ok(Some(frame)) => {
                    if self.shared.taps.is_open() {
                        self.shared.taps.copy(self.index, false, &frame.octets());
                    }
                    self.read_frame(frame);
                }
                Ok(None) => return,
                Err(frames::BadLength(length)) => {
                    self.respond(status_code::INVALID_COMMAND_LENGTH, 0, Pdu::GenericNack);
                    self.shut_down(self.not_smpp(length));
                }
            }
        }
    }

    /// Returns the fault of a peer that sent a PDU of this invalid length. A peer that expects TLS
    /// answers the bind with a TLS record, whose first octets we read as a length.
    fn not_smpp(&self, length: u32) -> Fault {
        let record = self.bind == 0 && matches!(length >> 16, 0x1503 | 0x1603);
        let kind = if record { FaultKind::TlsExpected } else { FaultKind::BadPdu };
        Fault::new(kind, format!("a PDU of {length} octets"))
    }

    /// Handles the submit responses that were received before the link ended but not handled yet.
    /// Drops the deliveries, because the peer will repeat them.
    pub(crate) fn read_left_answers(&mut self) {
        while let Ok(Some(frame)) = frames::next(&mut self.socket.incoming) {
            if frame.command == CommandId::SubmitSmResp {
                self.read_answer(&frame);
            }
        }
    }

    fn read_frame(&mut self, frame: Frame) {
        let sequence = frame.sequence;
        match frame.command {
            CommandId::SubmitSmResp => self.read_answer(&frame),
            CommandId::GenericNack => self.read_nack(&frame),
            CommandId::BindReceiverResp => self.read_bound(&frame, Role::Receiver),
            CommandId::BindTransmitterResp => self.read_bound(&frame, Role::Transmitter),
            CommandId::BindTransceiverResp => self.read_bound(&frame, Role::Transceiver),
            CommandId::DeliverSm | CommandId::DataSm => self.read_delivery(frame),
            CommandId::EnquireLink => self.respond(0, sequence, Pdu::EnquireLinkResp),
            CommandId::Unbind => {
                self.respond(0, sequence, Pdu::UnbindResp);
                self.shut_down(Fault::new(FaultKind::Unbound, ""));
            }
            CommandId::UnbindResp => {
                if let Phase::ShuttingDown { .. } = self.phase {
                    self.end = Some(Fault::new(FaultKind::Unbound, ""));
                }
            }
            // Neither PDU has a response. An outbind asks us to bind, which we do anyway.
            CommandId::Outbind | CommandId::AlertNotification => {}
            // We never nack a response: the peer could nack our nack, and so on without end.
            other if other.is_response() => {}
            _ => self.respond(status_code::INVALID_COMMAND_ID, sequence, Pdu::GenericNack),
        }
    }

    fn read_answer(&mut self, frame: &Frame) {
        let message_id = frames::message_id(&frame.body);
        let outcome = match frame.status {
            status_code::OK => Outcome::Accepted { message_id },
            status => Outcome::Refused { status, message_id },
        };
        self.answer(frame.sequence, outcome);
    }

    fn read_nack(&mut self, frame: &Frame) {
        // A peer that can't decode a PDU nacks the sequence number 0 (SMPP 3.4, 4.3.1).
        if let Phase::Binding { sequence, .. } = self.phase
            && [sequence, 0].contains(&frame.sequence)
        {
            self.end = Some(Fault::bind_nack(self.role, frame.status));
            return;
        }
        // The nack may be about one of our responses with the same sequence number. In that case
        // the peer may have accepted the submit, so the link must not report it as refused. If the
        // nack is about the submit after all, the submit gets no answer.
        if self.has_responded(frame.sequence) {
            return;
        }
        let status = match frame.status {
            status_code::OK => status_code::UNKNOWN_ERROR,
            status => status,
        };
        self.answer(frame.sequence, Outcome::Refused { status, message_id: None });
    }

    /// Returns whether we recently responded to a PDU of the peer with this sequence number.
    fn has_responded(&self, sequence: u32) -> bool {
        let lately = self.shared.settings.timers.answer;
        let mut responses = self.responses.iter();
        responses.any(|(at, responded)| *responded == sequence && at.elapsed() <= lately)
    }

    fn answer(&mut self, sequence: u32, outcome: Outcome) {
        // Ignores an answer to no submit, and a second answer to the same submit.
        let Some(answered) = self.window.answered(sequence) else {
            return;
        };
        self.answered += 1;
        self.answered_at = Some(Instant::now());
        match outcome {
            Outcome::Accepted { .. } => {
                self.worked = true;
                self.held = Some(false);
                self.throttle.accepted();
            }
            Outcome::Refused { status, .. } => match (self.shared.settings.reaction)(status) {
                Reaction::Throttle => {
                    self.throttled += 1;
                    self.throttle.refused(Instant::now());
                }
                Reaction::Hold => self.held = Some(true),
                Reaction::None => {}
            },
            _ => {}
        }
        match answered {
            Answered::InTime(tag) => self.finish_submit(tag, outcome),
            // The submit left the window when it was given up.
            Answered::Late(tag) => self.events.push(Event::Answer { tag, outcome }),
        }
    }

    fn read_bound(&mut self, frame: &Frame, role: Role) {
        let Phase::Binding { sequence, .. } = self.phase else {
            return;
        };
        if sequence != frame.sequence || role != self.role {
            return;
        }
        match frame.status {
            status_code::OK => self.bound(),
            status => self.end = Some(Fault::bind_refused(self.role, status)),
        }
    }

    fn read_delivery(&mut self, frame: Frame) {
        let data = frame.command == CommandId::DataSm;
        let sequence = frame.sequence;
        match self.phase {
            Phase::Bound => {}
            Phase::Binding { .. } => {
                let status = status_code::INCORRECT_BIND_STATUS;
                self.respond(status, sequence, encode::delivered(data));
                return;
            }
            // The peer repeats a delivery that gets no answer, but it might treat a refusal as
            // final.
            Phase::ShuttingDown { .. } => return,
        }
        let read = if data { frames::data_sm(frame.body) } else { frames::deliver_sm(frame.body) };
        let Some(delivery) = read else {
            self.respond(status_code::SYSTEM_ERROR, sequence, Pdu::GenericNack);
            return;
        };
        self.worked = true;
        self.deliveries += 1;
        self.unacknowledged.insert(self.deliveries);
        let handle = DeliveryHandle {
            link: self.index,
            bind: self.bind,
            serial: self.deliveries,
            sequence,
            data,
        };
        self.events.push(Event::Deliver(Delivery { handle, ..delivery }));
    }
}
