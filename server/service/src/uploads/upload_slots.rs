//! Limits the number of concurrent uploads. Each upload holds memory and a spool for as long as its
//! body takes to arrive. Checks of files hold slots too.

use domain::{KeyKind, Reason};

use crate::Service;
use crate::admission::KeyAccess;

/// The most uploads per process, of all applications together. An upload takes up to 20 MiB of
/// memory.
const UPLOADS_MAX: usize = 32;
/// The most uploads per process of applications that aren't Active. Anybody can create such
/// applications, so the other slots are for applications that may send.
const NOT_ACTIVE_MAX: usize = UPLOADS_MAX / 2;
/// The most uploads of an application, in all processes together.
pub const UPLOADS_PER_APPLICATION: usize = 8;
/// The most uploads with a test key, which spends no money.
pub const TEST_UPLOADS_MAX: usize = 2;
/// The most checks of files per process, and the most of an application. They take slots of
/// uploads, but don't count towards the uploads of their application.
const CHECKS_MAX: usize = 8;
pub const CHECKS_PER_APPLICATION: usize = 2;

/// The slot of an upload in progress. An account has only one application that can upload, so an
/// application's slots are those of its account.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct UploadSlot {
    pub(crate) access: KeyAccess,
    pub(crate) is_active: bool,
    /// Whether the file is only checked.
    pub(crate) is_check: bool,
}

impl UploadSlot {
    /// Returns the slot of a check. Anybody can create an application and check files, so checks
    /// leave the slots of Active applications alone.
    pub(crate) const fn of_check(access: KeyAccess) -> Self {
        Self { access, is_active: false, is_check: true }
    }
}

/// A slot that is taken until this is dropped.
pub(crate) struct HeldSlot {
    pub(crate) service: Service,
    slot: UploadSlot,
}

impl HeldSlot {
    pub(crate) fn take(service: &Service, slot: UploadSlot) -> Result<Self, Reason> {
        service.inner.uploads.lock().slots.take(slot)?;
        Ok(Self { service: service.clone(), slot })
    }
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        self.service.inner.uploads.lock().slots.release(&self.slot);
    }
}

/// The uploads in progress in this process.
#[derive(Default)]
pub(crate) struct UploadSlots(Vec<UploadSlot>);

/// The number of uploads in progress of the same application and of the same key.
#[derive(Default)]
pub(crate) struct Own {
    pub(crate) application: usize,
    pub(crate) key: usize,
}

impl Own {
    /// Whether the application may have another upload with a key of this kind.
    pub(crate) const fn has_room(&self, kind: KeyKind) -> bool {
        self.application < UPLOADS_PER_APPLICATION
            && (matches!(kind, KeyKind::Live) || self.key < TEST_UPLOADS_MAX)
    }
}

impl UploadSlots {
    pub(crate) fn take(&mut self, new: UploadSlot) -> Result<(), Reason> {
        let (mut own, mut not_active, mut of_kind) = (Own::default(), 0, 0);
        for slot in &self.0 {
            not_active += usize::from(!slot.is_active);
            let is_same_kind = slot.is_check == new.is_check;
            of_kind += usize::from(is_same_kind);
            let same = slot.access.application_id == new.access.application_id;
            own.application += usize::from(same && is_same_kind);
            own.key += usize::from(slot.access == new.access && is_same_kind);
        }
        let has_room = if new.is_check {
            own.application < CHECKS_PER_APPLICATION
        } else {
            own.has_room(new.access.kind)
        };
        if !has_room {
            return Err(Reason::RateLimited);
        }
        let is_full = self.0.len() >= UPLOADS_MAX
            || (!new.is_active && not_active >= NOT_ACTIVE_MAX)
            || (new.is_check && of_kind >= CHECKS_MAX);
        if is_full {
            return Err(Reason::Unavailable);
        }
        self.0.push(new);
        Ok(())
    }

    pub(crate) fn release(&mut self, slot: &UploadSlot) {
        if let Some(found) = self.0.iter().position(|other| other == slot) {
            self.0.swap_remove(found);
        }
    }
}

#[cfg(test)]
mod tests;
