use domain::{ApplicationId, Reference};

use super::*;

fn slot(application: i64, kind: KeyKind, is_active: bool) -> UploadSlot {
    let access = KeyAccess {
        application_id: ApplicationId(application),
        reference: Reference::parse("123456").unwrap(),
        kind,
    };
    UploadSlot { access, is_active, is_check: false }
}

/// Returns how many uploads get a slot, and why the next one doesn't.
fn taken(slots: &mut UploadSlots, new: impl Fn(i64) -> UploadSlot) -> (i64, Reason) {
    let mut n = 0;
    loop {
        match slots.take(new(n)) {
            Ok(()) => n += 1,
            Err(reason) => return (n, reason),
        }
    }
}

#[test]
fn strangers_leave_places_to_active_applications() {
    use KeyKind::{Live, Test};
    let mut slots = UploadSlots::default();
    let one = |_| slot(1, Test, false);
    assert_eq!(taken(&mut slots, one), (2, Reason::RateLimited));
    let many = |n| slot(10 + n, Test, false);
    assert_eq!(taken(&mut slots, many), (14, Reason::Unavailable));
    let active = |_| slot(2, Live, true);
    assert_eq!(taken(&mut slots, active), (8, Reason::RateLimited));
    let others = |n| slot(100 + n, Live, true);
    assert_eq!(taken(&mut slots, others), (8, Reason::Unavailable));
    for slot in slots.0.clone() {
        slots.release(&slot);
    }
    assert!(slots.0.is_empty());
}

#[test]
fn checks_leave_the_uploads_of_their_application_alone() {
    let mut slots = UploadSlots::default();
    let check = |n| UploadSlot::of_check(slot(n, KeyKind::Live, true).access);
    assert_eq!(taken(&mut slots, |_| check(1)), (2, Reason::RateLimited));
    assert_eq!(taken(&mut slots, |_| slot(1, KeyKind::Live, true)), (8, Reason::RateLimited));
    assert_eq!(taken(&mut slots, |n| check(10 + n)), (6, Reason::Unavailable));
}

#[test]
fn both_keys_share_the_places_of_their_application() {
    let mut slots = UploadSlots::default();
    let test = |_| slot(1, KeyKind::Test, true);
    assert_eq!(taken(&mut slots, test), (2, Reason::RateLimited));
    let live = |_| slot(1, KeyKind::Live, true);
    assert_eq!(taken(&mut slots, live), (6, Reason::RateLimited));
}
