//! Blockers that keep an application from sending.

use domain::readiness::{Blocker, Need, SpendCap, blockers};
use domain::records::{ApplicationRecord, SenderRequestRecord};
use domain::{
    ApplicationStatus, Category, LostAnswer, Money, Reference, SenderState, SenderStatus, Timestamp,
};

const PRICE: Money = Money::from_micros(50_000);

/// An application that can send.
pub fn ready() -> ApplicationRecord {
    ApplicationRecord {
        reference: Reference::from_number(123_456),
        name: None,
        category: Category::Sms,
        status: ApplicationStatus::Active,
        sender_name: None,
        sender_state: SenderState::None,
        requested_sender: None,
        balance: PRICE,
        test_balance: Money::ZERO,
        created_at: Timestamp::from_unix_ms(0),
        activation_requested_at: None,
        lost_answer: LostAnswer::Hold,
        suspend_reason: None,
        low_balance: None,
        batch_mails_since: None,
        account_closed: false,
        account_disabled: false,
        email: "owner@example.org".to_owned(),
    }
}

pub fn request(status: SenderStatus) -> SenderRequestRecord {
    SenderRequestRecord {
        id: 1,
        reference: Reference::from_number(123_456),
        name: "Kiosk".to_owned(),
        status,
        reason: None,
        requested_at: Timestamp::from_unix_ms(0),
        decided_at: None,
    }
}

#[test]
fn an_application_that_has_all_it_needs_can_send() {
    assert_eq!(blockers(&ready(), PRICE, true, None), []);
}

#[test]
fn each_thing_that_is_missing_is_named() {
    let pending = ApplicationRecord { status: ApplicationStatus::Pending, ..ready() };
    let cases = [
        (pending.clone(), Blocker::ActivationNotRequested),
        (
            ApplicationRecord {
                activation_requested_at: Some(Timestamp::from_unix_ms(1)),
                ..pending
            },
            Blocker::ActivationWaits,
        ),
        (ApplicationRecord { status: ApplicationStatus::Suspended, ..ready() }, Blocker::Suspended),
        (
            ApplicationRecord {
                sender_state: SenderState::Pending,
                requested_sender: Some(request(SenderStatus::Pending)),
                ..ready()
            },
            Blocker::SenderNameWaits,
        ),
        (
            ApplicationRecord {
                sender_state: SenderState::Rejected,
                requested_sender: Some(request(SenderStatus::Rejected)),
                ..ready()
            },
            Blocker::SenderNameRejected,
        ),
        (ApplicationRecord { balance: Money::from_micros(49_999), ..ready() }, Blocker::Balance),
        (ApplicationRecord { account_disabled: true, ..ready() }, Blocker::AccountDisabled),
    ];
    for (application, blocker) in cases {
        assert_eq!(blockers(&application, PRICE, true, None), [blocker]);
    }
    assert_eq!(blockers(&ready(), PRICE, false, None), [Blocker::NoCarrier]);
    let cap = SpendCap { max: PRICE, until: Timestamp::from_unix_ms(1) };
    assert_eq!(blockers(&ready(), PRICE, true, Some(cap)), [Blocker::SpendCap(cap)]);
}

#[test]
fn a_name_that_is_asked_for_later_keeps_nothing_from_being_sent() {
    for status in [SenderStatus::Pending, SenderStatus::Rejected] {
        for (sender_state, name) in [
            (SenderState::Accepted, Some("Kiosk")),
            (SenderState::Requested, None),
            (SenderState::None, None),
        ] {
            let application = ApplicationRecord {
                sender_name: name.map(str::to_owned),
                sender_state,
                requested_sender: Some(request(status)),
                ..ready()
            };
            assert_eq!(blockers(&application, PRICE, true, None), []);
        }
    }
}

#[test]
fn several_things_stand_in_the_order_of_the_needs() {
    let application = ApplicationRecord {
        status: ApplicationStatus::Pending,
        sender_state: SenderState::Pending,
        requested_sender: Some(request(SenderStatus::Pending)),
        balance: Money::ZERO,
        ..ready()
    };
    let found = blockers(&application, PRICE, false, None);
    let needs: Vec<_> = found.iter().map(|blocker| blocker.need()).collect();
    let all_but_keys = [Need::Activation, Need::SenderName, Need::Balance, Need::Carrier];
    assert_eq!(needs, all_but_keys.map(Some));
}

#[test]
fn an_application_of_another_category_sends_nothing_whatever_it_has() {
    let application = ApplicationRecord { category: Category::Electricity, ..ready() };
    assert_eq!(blockers(&application, PRICE, true, None), [Blocker::Category]);
    let pending = ApplicationRecord { status: ApplicationStatus::Pending, ..application };
    // Its activation can still be requested.
    let both = [Blocker::Category, Blocker::ActivationNotRequested];
    assert_eq!(blockers(&pending, PRICE, true, None), both);
}
