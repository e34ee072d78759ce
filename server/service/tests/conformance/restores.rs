//! A backup that is restored after more messages were sent: nobody gets a text twice.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::MessageStatus;
use domain::MessageStatus::{Cancelled, Delivered, Failed, Submitted, Unknown};
use domain::support::ReceiptKind;
use service::{
    Actor, AuditFilter, CarrierReceipt, Export, ExportLine, RawReceipt, Reconciled, Reconciliation,
    Refusal, Rest, Service, user_reference,
};

use crate::cases::holds::{reconcile, sent_to, submit_all};
use crate::database::Backend;
use crate::network::{network, taken_as};
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

/// Returns a raw receipt of acme that doesn't tell its sender or date.
fn with_unknown_state(number: &str) -> RawReceipt {
    RawReceipt {
        kind: ReceiptKind::UnknownState,
        text_id: Some(format!("of-{number}")),
        parameter_id: None,
        number: number.to_owned(),
        state: "GONE".to_owned(),
        error: None,
        raw: String::new(),
        message_id: None,
    }
}

/// Lets the settings of acme name the state of these receipts.
async fn name_the_state(sending: &Sending) {
    let mut named = network(&[("acme", 1, None)]);
    named.carriers[0].named.states = [("GONE".to_owned(), Some((Failed, None)))].into();
    let delivery = sending.world.service.delivery();
    delivery.set_network(named);
    delivery.match_waiting().await.unwrap();
}

fn line(number: &str) -> ExportLine {
    ExportLine { number: number.to_owned(), ..ExportLine::default() }
}

/// Returns what acme says it has sent: the last number is of no message.
fn export_of_acme() -> Export {
    Export {
        carrier: "acme".to_owned(),
        lines: vec![
            ExportLine { carrier_message_id: Some("L2".to_owned()), ..line("+26612345672") },
            line("26612345673"),
            line("26612345674"),
            line("26612345675"),
            line("26699999999"),
        ],
    }
}

/// Returns the actions on all messages that stand in the audit log.
async fn audited(sending: &Sending) -> BTreeSet<String> {
    let filter =
        AuditFilter { subject: Some("messages".to_owned()), limit: 100, ..AuditFilter::default() };
    let page = sending.world.service.support().audit(&filter).await.unwrap();
    page.items.into_iter().map(|entry| entry.action).collect()
}

async fn nobody_gets_a_text_twice_after_a_restore(backend: Backend) {
    let before = Sending::by_acme(backend).await;
    let old = sent_to(&before, "12345670").await;
    before.world.pass(HOUR_MS);
    let by_receipt = sent_to(&before, "12345671").await;
    let by_list = sent_to(&before, "12345672").await;
    let dated = [sent_to(&before, "12345676").await, sent_to(&before, "12345677").await];
    let sent_at = before.world.now();
    let upload = accepted(&before.world, &before.customer, "12345673,a\n12345674,b\n").await;
    let twins = [sent_to(&before, "12345675").await, sent_to(&before, "12345675").await];
    let (not_proven, by_state) =
        (sent_to(&before, "12345680").await, sent_to(&before, "12345681").await);
    // A receipt from before the backup can't be for a message in the queue.
    before.keep_raw(with_unknown_state("26612345680")).await;
    let backup = before.world.back_up().await;
    // The old message and one of the twins stay in the queue. Everything else is sent.
    let mut sender = String::new();
    for handed in before.claim("acme").await {
        let id = handed.id();
        sender.clone_from(&handed.message.sender);
        if id != old && id != twins[1] {
            before.answer(&handed, taken_as(&format!("X{id}"))).await;
        }
    }
    sent_to(&before, "12345679").await;
    before.world.expand_all().await;
    assert_eq!(submit_all(&before).await.len(), 3);
    before.world.service.close().await;
    before.world.pass(60_000);

    let after =
        Sending { world: before.world.restored(&backup).await, customer: before.customer.clone() };
    let operations = after.world.service.operations();
    let hold = operations.hold().await.unwrap().unwrap();
    assert_eq!(hold.waiting, 9);
    after.assert_nothing_due("acme").await;
    assert!(after.world.service.delivery().carriers().await.unwrap()[0].held_since.is_some());
    // A new message waits, too.
    after.world.pass(1000);
    let new = sent_to(&after, "12345678").await;
    after.assert_nothing_due("acme").await;
    let wanted = Reconciliation { by_receipts: true, ..Reconciliation::default() };
    let refused = operations.reconcile(&STAFF, wanted.clone()).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UploadHeld { batch: upload.to_string() }));
    after.world.expand_all().await;
    assert_eq!(operations.hold().await.unwrap().unwrap().waiting, 11);
    after.assert_nothing_due("acme").await;

    after
        .receive(CarrierReceipt {
            number: "26612345671".to_owned(),
            user_reference: Some(user_reference(by_receipt, 1)),
            ..receipt("unknown-id", Delivered)
        })
        .await;
    // The dates are three minutes and one minute before the submits. Each proves that a message to
    // the number was sent, so none is sent again. But the earlier one may be for another message.
    for (number, minutes) in [("26612345676", 3), ("26612345677", 1)] {
        after
            .receive(CarrierReceipt {
                number: number.to_owned(),
                sender: sender.clone(),
                submitted_at: Some(sent_at.plus_ms(-minutes * 60_000)),
                ..receipt(number, Delivered)
            })
            .await;
    }
    after.keep_raw(with_unknown_state("26612345681")).await;
    name_the_state(&after).await;
    assert_eq!(reconcile(&after, wanted).await.by_receipts, 4);
    after.assert_status(by_state, Unknown).await;
    after.assert_status(by_receipt, Delivered).await;
    after.assert_status(dated[0], Unknown).await;
    after.assert_status(dated[1], Delivered).await;
    let by = Reconciliation {
        export: Some(export_of_acme()),
        discard_before: Some(after.world.now().plus_ms(-HOUR_MS / 2)),
        rest: Some(Rest::Send),
        ..Reconciliation::default()
    };
    let expected = Reconciled {
        by_export: 3,
        unknown: 2,
        discarded: 1,
        released: money("0.05"),
        left: 1,
        ended: true,
        ..Reconciled::default()
    };
    assert_eq!(reconcile(&after, by).await, expected);
    after.assert_status(by_list, Submitted).await;
    after.receive(receipt("L2", Delivered)).await;
    after.assert_status(by_list, Delivered).await;
    after.assert_status(old, Cancelled).await;
    // Nobody knows which of the twins was sent, so neither is sent again.
    for twin in twins {
        after.assert_status(twin, Unknown).await;
    }
    assert!(operations.hold().await.unwrap().is_none());
    assert_eq!(submit_all(&after).await, BTreeSet::from([new, not_proven]));
    after.assert_sound().await;
    let expected = ["messages.discard", "messages.hold", "messages.release", "messages.unknown"];
    assert_eq!(audited(&after).await, expected.map(str::to_owned).into());
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
