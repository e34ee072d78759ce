//! A backup that is restored after more messages were sent: nobody gets a text twice.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::MessageStatus;
use domain::MessageStatus::{Cancelled, Delivered, Submitted, Unknown};
use service::{
    Actor, AuditFilter, CarrierReceipt, Export, ExportLine, Reconciled, Reconciliation, Refusal,
    Rest, Service, user_reference,
};

use crate::cases::holds::{reconcile, sent_to, submit_all};
use crate::database::Backend;
use crate::network::taken_as;
use crate::sending::{Sending, receipt};
use crate::uploads::accepted;
use crate::world::{HOUR_MS, World, money};

on_each_backend![
    nobody_gets_a_text_twice_after_a_restore,
    the_rest_of_a_restore_is_never_sent_if_the_operator_says_so,
];

const STAFF: Actor = Actor::CommandLine;

impl World {
    /// Makes a backup in the folder of the world.
    pub async fn back_up(&self) -> PathBuf {
        let file = self.folder().join("backup");
        self.database.back_up(&self.service, &file).await;
        file
    }

    /// Restores a backup elsewhere, and opens a service on it.
    pub async fn restored(&self, backup: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = self.database.restored(backup, folder.path()).await;
        let world = Self {
            service: self.service.clone(),
            clock: Arc::clone(&self.clock),
            folder,
            database,
            opened: self.opened + 1,
            network: self.network.clone(),
            limits: self.limits,
            mail: self.mail.clone(),
        };
        let service = Service::open(world.config()).await.unwrap();
        Self { service, ..world }
    }
}

fn line(number: &str) -> ExportLine {
    ExportLine { number: number.to_owned(), ..ExportLine::default() }
}

async fn nobody_gets_a_text_twice_after_a_restore(backend: Backend) {
    let before = Sending::by_acme(backend).await;
    let old = sent_to(&before, "12345670").await;
    before.world.pass(HOUR_MS);
    let by_receipt = sent_to(&before, "12345671").await;
    let by_list = sent_to(&before, "12345672").await;
    let upload = accepted(&before.world, &before.customer, "12345673,a\n12345674,b\n").await;
    let twins = [sent_to(&before, "12345675").await, sent_to(&before, "12345675").await];
    let backup = before.world.back_up().await;
    // The old message and one of the twins stay in the queue. Everything else is sent.
    for handed in before.claim("acme").await {
        let id = handed.id();
        if id != old && id != twins[1] {
            before.answer(&handed, taken_as(&format!("X{id}"))).await;
        }
    }
    sent_to(&before, "12345679").await;
    before.world.expand_all().await;
    let rows = submit_all(&before).await;
    assert_eq!(rows.len(), 3, "{rows:?}");
    before.world.service.close().await;
    before.world.pass(60_000);

    let after =
        Sending { world: before.world.restored(&backup).await, customer: before.customer.clone() };
    let operations = after.world.service.operations();
    let hold = operations.hold().await.unwrap().unwrap();
    assert_eq!(hold.waiting, 5);
    after.assert_nothing_due("acme").await;
    assert!(after.world.service.delivery().carriers().await.unwrap()[0].held_since.is_some());
    // A new message waits, too.
    after.world.pass(1000);
    let new = sent_to(&after, "12345678").await;
    after.assert_nothing_due("acme").await;
    let wanted = Reconciliation { by_receipts: true, ..Reconciliation::default() };
    let refused = operations.reconcile(&STAFF, wanted.clone()).await.unwrap_err();
    let expected = Refusal::UploadHeld { batch: upload.to_string() };
    assert_eq!(refused.refusal(), Some(&expected));
    after.world.expand_all().await;
    assert_eq!(operations.hold().await.unwrap().unwrap().waiting, 7);
    after.assert_nothing_due("acme").await;

    after
        .receive(CarrierReceipt {
            number: "26612345671".to_owned(),
            user_reference: Some(user_reference(by_receipt, 1)),
            ..receipt("unknown-id", Delivered)
        })
        .await;
    assert_eq!(reconcile(&after, wanted).await.by_receipts, 1);
    after.assert_status(by_receipt, Delivered).await;
    let export = Export {
        carrier: "acme".to_owned(),
        lines: vec![
            ExportLine { carrier_message_id: Some("L2".to_owned()), ..line("+26612345672") },
            line("26612345673"),
            line("26612345674"),
            line("26612345675"),
            line("26699999999"),
        ],
    };
    let by = Reconciliation {
        export: Some(export),
        discard_before: Some(after.world.now().plus_ms(-HOUR_MS / 2)),
        rest: Some(Rest::Send),
        ..Reconciliation::default()
    };
    let done = reconcile(&after, by).await;
    let expected = Reconciled {
        by_export: 5,
        discarded: 1,
        released: money("0.05"),
        ended: true,
        ..Reconciled::default()
    };
    assert_eq!(done, expected);
    after.assert_status(by_list, Submitted).await;
    after.receive(receipt("L2", Delivered)).await;
    after.assert_status(by_list, Delivered).await;
    after.assert_status(old, Cancelled).await;
    // Nobody knows which of the twins was sent, so neither is sent again.
    for twin in twins {
        after.assert_status(twin, Unknown).await;
    }
    assert!(operations.hold().await.unwrap().is_none());
    assert_eq!(submit_all(&after).await, BTreeSet::from([new]));
    after.assert_sound().await;
    let audit =
        AuditFilter { subject: Some("messages".to_owned()), limit: 100, ..AuditFilter::default() };
    let audit = after.world.service.support().audit(&audit).await.unwrap();
    let actions: BTreeSet<_> = audit.items.iter().map(|entry| entry.action.as_str()).collect();
    let expected = ["messages.discard", "messages.hold", "messages.release", "messages.unknown"];
    assert_eq!(actions, BTreeSet::from(expected));
    let over = operations.reconcile(&STAFF, Reconciliation::default()).await.unwrap_err();
    assert_eq!(over.refusal(), Some(&Refusal::NotHeld));
    // A process that starts at the same place again isn't held.
    let again = after.reopen().await;
    assert!(again.world.service.operations().hold().await.unwrap().is_none());
}

async fn the_rest_of_a_restore_is_never_sent_if_the_operator_says_so(backend: Backend) {
    let before = Sending::by_acme(backend).await;
    let id = sent_to(&before, "12345671").await;
    let backup = before.world.back_up().await;
    assert_eq!(submit_all(&before).await, BTreeSet::from([id]));
    before.world.pass(60_000);
    let after =
        Sending { world: before.world.restored(&backup).await, customer: before.customer.clone() };
    let by = Reconciliation { rest: Some(Rest::Unknown), ..Reconciliation::default() };
    let done = reconcile(&after, by).await;
    assert_eq!((done.unknown, done.left, done.ended), (1, 0, true));
    after.assert_status(id, Unknown).await;
    assert_eq!(submit_all(&after).await, BTreeSet::new());
    // The charge stays, and a receipt still tells what became of the message.
    after.assert_balance("99.95").await;
    after
        .receive(CarrierReceipt {
            number: "26612345671".to_owned(),
            user_reference: Some(user_reference(id, 1)),
            ..receipt("any", MessageStatus::Delivered)
        })
        .await;
    after.assert_status(id, Delivered).await;
    after.assert_sound().await;
}
