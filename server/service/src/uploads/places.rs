//! Limits the number of concurrent uploads. Each upload holds memory and a spool for as long as its
//! body takes to arrive.

use domain::{KeyKind, Reason};

use crate::admission::KeyAccess;

/// The most uploads per process, of all applications together. An upload takes up to 20 MiB of
/// memory.
const UPLOADS_MAX: usize = 32;
/// The most uploads per process of applications that aren't Active. Anybody can create such
/// applications, so the other slots are for applications that may send.
const NOT_ACTIVE_MAX: usize = UPLOADS_MAX / 2;
/// The most uploads with a test key, which spends no money.
pub const TEST_UPLOADS_MAX: usize = 2;

/// The slot of an upload in progress. An account has only one application that can upload, so an
/// application's slots are those of its account.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) access: KeyAccess,
    pub(crate) is_active: bool,
}

/// The uploads in progress in this process.
#[derive(Default)]
pub(crate) struct Places(Vec<Place>);

/// The number of uploads in progress of the same application and of the same key.
#[derive(Default)]
pub(crate) struct Own {
    pub(crate) application: usize,
    pub(crate) key: usize,
}

impl Own {
    /// Whether the application may have another upload with a key of this kind.
    pub(crate) const fn has_room(&self, kind: KeyKind, application_max: usize) -> bool {
        self.application < application_max
            && (matches!(kind, KeyKind::Live) || self.key < TEST_UPLOADS_MAX)
    }
}

impl Places {
    pub(crate) fn take(&mut self, new: Place, application_max: usize) -> Result<(), Reason> {
        let (mut own, mut not_active) = (Own::default(), 0);
        for place in &self.0 {
            not_active += usize::from(!place.is_active);
            let same = place.access.application_id == new.access.application_id;
            own.application += usize::from(same);
            own.key += usize::from(place.access == new.access);
        }
        if !own.has_room(new.access.kind, application_max) {
            return Err(Reason::RateLimited);
        }
        if self.0.len() >= UPLOADS_MAX || (!new.is_active && not_active >= NOT_ACTIVE_MAX) {
            return Err(Reason::Unavailable);
        }
        self.0.push(new);
        Ok(())
    }

    pub(crate) fn give_back(&mut self, place: &Place) {
        if let Some(found) = self.0.iter().position(|other| other == place) {
            self.0.swap_remove(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{ApplicationId, Reference};

    use super::*;

    fn place(application: i64, kind: KeyKind, is_active: bool) -> Place {
        let access = KeyAccess {
            application_id: ApplicationId(application),
            reference: Reference::parse("123456").unwrap(),
            kind,
        };
        Place { access, is_active }
    }

    /// Returns how many uploads get a slot, and why the next one doesn't.
    fn taken(places: &mut Places, new: impl Fn(i64) -> Place) -> (i64, Reason) {
        let mut n = 0;
        loop {
            match places.take(new(n), 8) {
                Ok(()) => n += 1,
                Err(reason) => return (n, reason),
            }
        }
    }

    #[test]
    fn strangers_leave_places_to_active_applications() {
        use KeyKind::{Live, Test};
        let mut places = Places::default();
        let one = |_| place(1, Test, false);
        assert_eq!(taken(&mut places, one), (2, Reason::RateLimited));
        let many = |n| place(10 + n, Test, false);
        assert_eq!(taken(&mut places, many), (14, Reason::Unavailable));
        let active = |_| place(2, Live, true);
        assert_eq!(taken(&mut places, active), (8, Reason::RateLimited));
        let others = |n| place(100 + n, Live, true);
        assert_eq!(taken(&mut places, others), (8, Reason::Unavailable));
        for place in places.0.clone() {
            places.give_back(&place);
        }
        assert!(places.0.is_empty());
    }

    #[test]
    fn both_keys_share_the_places_of_their_application() {
        let mut places = Places::default();
        let test = |_| place(1, KeyKind::Test, true);
        assert_eq!(taken(&mut places, test), (2, Reason::RateLimited));
        let live = |_| place(1, KeyKind::Live, true);
        assert_eq!(taken(&mut places, live), (6, Reason::RateLimited));
    }
}
