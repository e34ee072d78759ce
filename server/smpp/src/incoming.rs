//! What a link does about each PDU of the peer's.

use rusmpp::Pdu;
use tokio::time::Instant;

use crate::encode::{self, Role};
use crate::frames::{self, Frame, command};
use crate::link::{Link, Phase};
use crate::throttle::Throttle;
use crate::window::Answered;
use crate::{Delivery, DeliveryHandle, Event, Outcome, status_code};

impl Link {
    /// Goes through the PDUs that are there.
    pub(crate) fn read_frames(&mut self) {
        loop {
            if self.parting.is_some() {
                self.socket.incoming.clear();
            }
            if self.end.is_some() || !self.may_read() {
                return;
            }
            match frames::next(&mut self.socket.incoming) {
                Ok(Some(frame)) => self.read_frame(frame),
                Ok(None) => return,
                Err(frames::BadLength(length)) => {
                    self.respond(status_code::INVALID_COMMAND_LENGTH, 0, Pdu::GenericNack);
                    self.part(format!("the peer sent a PDU of {length} octets"));
                }
            }
        }
    }

    /// Goes through what was received and not looked at, once the link has ended: the answers among
    /// it count though nothing more may be delivered.
    pub(crate) fn read_left_answers(&mut self) {
        while let Ok(Some(frame)) = frames::next(&mut self.socket.incoming) {
            if frame.command == command::SUBMIT_SM_RESP {
                self.read_answer(&frame);
            }
        }
    }

    fn read_frame(&mut self, frame: Frame) {
        let sequence = frame.sequence;
        match frame.command {
            command::SUBMIT_SM_RESP => self.read_answer(&frame),
            command::GENERIC_NACK => self.read_nack(&frame),
            command::BIND_RECEIVER_RESP => self.read_bound(&frame, Role::Receiver),
            command::BIND_TRANSMITTER_RESP => self.read_bound(&frame, Role::Transmitter),
            command::BIND_TRANSCEIVER_RESP => self.read_bound(&frame, Role::Transceiver),
            command::DELIVER_SM | command::DATA_SM => self.read_delivery(frame),
            command::ENQUIRE_LINK => self.respond(0, sequence, Pdu::EnquireLinkResp),
            command::UNBIND => {
                self.respond(0, sequence, Pdu::UnbindResp);
                self.part("the peer unbound".to_owned());
            }
            command::UNBIND_RESP => {
                if let Phase::Leaving { .. } = self.phase {
                    self.end = Some("unbound".to_owned());
                }
            }
            // Neither has a response. To an outbind one would bind, which we do by ourselves.
            command::OUTBIND | command::ALERT_NOTIFICATION => {}
            // A nack for a response could be answered by a nack, and so on.
            other if other & command::RESPONSE != 0 => {}
            _ => self.respond(status_code::INVALID_COMMAND_ID, sequence, Pdu::GenericNack),
        }
    }

    fn read_answer(&mut self, frame: &Frame) {
        let outcome = match frame.status {
            status_code::OK => Outcome::Accepted {
                message_id: frames::message_id(&frame.body),
            },
            status => Outcome::Refused { status },
        };
        self.answer(frame.sequence, outcome);
    }

    fn read_nack(&mut self, frame: &Frame) {
        if let Phase::Binding { sequence, .. } = self.phase
            && sequence == frame.sequence
        {
            self.end = Some(format!("bind refused: generic_nack {:#010X}", frame.status));
            return;
        }
        // It says nothing about what is refused. A submit that went through must not be taken for
        // refused; one that is meant indeed comes to its end as one without an answer.
        if self.has_responded(frame.sequence) {
            return;
        }
        let status = match frame.status {
            status_code::OK => status_code::UNKNOWN_ERROR,
            status => status,
        };
        self.answer(frame.sequence, Outcome::Refused { status });
    }

    /// Whether a PDU of the peer's with this sequence number was answered lately.
    fn has_responded(&self, sequence: u32) -> bool {
        let lately = self.shared.settings.timers.answer;
        let mut responses = self.responses.iter();
        responses.any(|(at, responded)| *responded == sequence && at.elapsed() <= lately)
    }

    fn answer(&mut self, sequence: u32, outcome: Outcome) {
        // An answer to nothing, or a second one to the same: there is nobody to tell.
        let Some(answered) = self.window.answered(sequence) else {
            return;
        };
        self.answered += 1;
        self.answered_at = Some(Instant::now());
        match outcome {
            Outcome::Accepted { .. } => {
                self.worked = true;
                self.throttle.accepted();
            }
            Outcome::Refused { status } if Throttle::is_throttling(status) => {
                self.throttled += 1;
                self.throttle.throttled(Instant::now());
            }
            _ => {}
        }
        match answered {
            Answered::InTime(tag) => self.finish_submit(tag, outcome),
            // It left the window when it was given up.
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
            status => self.end = Some(format!("bind refused: status {status:#010X}")),
        }
    }

    fn read_delivery(&mut self, frame: Frame) {
        let data = frame.command == command::DATA_SM;
        let sequence = frame.sequence;
        match self.phase {
            Phase::Bound => {}
            Phase::Binding { .. } => {
                let status = status_code::INCORRECT_BIND_STATUS;
                self.respond(status, sequence, encode::delivered(data));
                return;
            }
            // A refusal might be taken for good; what isn't answered is delivered again.
            Phase::Leaving { .. } => return,
        }
        let read = if data {
            frames::data_sm(frame.body)
        } else {
            frames::deliver_sm(frame.body)
        };
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
        self.events
            .push(Event::Deliver(Delivery { handle, ..delivery }));
    }
}
