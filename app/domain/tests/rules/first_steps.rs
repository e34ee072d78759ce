//! The steps that take a new customer to the first message.

use domain::first_steps::{Progress, Step, StepState, first_steps};
use domain::records::ApplicationRecord;
use domain::{ApplicationStatus, Money, SenderState, SenderStatus, Timestamp};

use crate::readiness::{ready, request};
use StepState::{Done, Later, Open, Optional, Waits};

fn states(progress: Progress<'_>) -> Vec<StepState> {
    let steps = first_steps(progress);
    steps.into_iter().map(|(_, state)| state).collect()
}

/// A newly created application.
fn new() -> ApplicationRecord {
    ApplicationRecord { status: ApplicationStatus::Pending, balance: Money::ZERO, ..ready() }
}

#[test]
fn every_step_is_open_in_its_turn() {
    let start =
        Progress { is_confirmed: false, application: None, has_tried: false, has_sent: false };
    assert_eq!(states(start), [Open, Later, Later, Later, Later, Later, Later]);
    let confirmed = Progress { is_confirmed: true, ..start };
    assert_eq!(states(confirmed), [Done, Open, Later, Later, Later, Later, Later]);

    let application = new();
    let created = Progress { application: Some(&application), ..confirmed };
    assert_eq!(states(created), [Done, Done, Open, Optional, Open, Open, Later]);

    let application = ApplicationRecord {
        requested_sender: Some(request(SenderStatus::Pending)),
        activation_requested_at: Some(Timestamp::from_unix_ms(1)),
        ..new()
    };
    let asked = Progress { application: Some(&application), has_tried: true, ..confirmed };
    assert_eq!(states(asked), [Done, Done, Done, Waits, Waits, Open, Later]);

    let application = ApplicationRecord { sender_name: Some("Kiosk".to_owned()), ..ready() };
    let active = Progress { application: Some(&application), ..asked };
    assert_eq!(states(active), [Done, Done, Done, Done, Done, Done, Open]);
    let sent = Progress { has_sent: true, ..active };
    assert_eq!(states(sent), []);
}

#[test]
fn nothing_can_be_sent_while_the_first_sender_name_is_undecided_or_rejected() {
    for (status, sender_state, state, send) in [
        (SenderStatus::Pending, SenderState::Pending, Waits, Later),
        (SenderStatus::Rejected, SenderState::Rejected, Open, Later),
        (SenderStatus::Pending, SenderState::Requested, Waits, Open),
        (SenderStatus::Rejected, SenderState::None, Open, Open),
    ] {
        let application =
            ApplicationRecord { sender_state, requested_sender: Some(request(status)), ..ready() };
        let steps = first_steps(Progress {
            is_confirmed: true,
            application: Some(&application),
            has_tried: false,
            has_sent: false,
        });
        assert!(steps.contains(&(Step::AskForSenderName, state)));
        assert!(steps.contains(&(Step::SendFirstMessage, send)));
    }
}
