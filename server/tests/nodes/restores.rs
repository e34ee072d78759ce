//! A backup is made under load, more is sent, and the database is lost. Then the backup is restored
//! elsewhere and reconciled, with the commands that the docs describe.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use testing::harness::{Keys, until};

use crate::cluster::Cluster;
use crate::judging::text;
use crate::load::{Load, Outcome, SHORT, Sent};

const CLIENTS: u64 = 6;
const CARRIER: &str = "connections = 2\nwindow = 10";
/// The time that the carrier's answers take. The queue grows, because messages come faster.
const DELAY: Duration = Duration::from_millis(150);
/// The least number of messages in the queue when the backup begins.
const QUEUED: u64 = 300;
/// The least number of submits between the backup and the loss.
const SINCE: usize = 60;

#[test]
fn nobody_gets_a_text_twice_after_a_backup_under_load_on_sqlite() {
    rehearse(Cluster::on_sqlite(CARRIER), back_up).stop();
}

#[test]
fn nobody_gets_a_text_twice_after_a_base_backup_under_load_on_postgres() {
    let back_up = |cluster: &Cluster| -> Restore {
        let backup = cluster.database().back_up();
        // The node commits after the backup, and notes that outside the database.
        for _ in 0..2 {
            let noted = last_commit(cluster);
            until("a later commit", || (last_commit(cluster) != noted).then_some(()));
        }
        Box::new(move |cluster: &mut Cluster| cluster.restore_base(backup))
    };
    rehearse(Cluster::new(1, CARRIER), back_up).stop();
}

#[test]
fn nobody_gets_a_text_twice_after_a_dump_under_load_on_postgres() {
    let cluster = rehearse(Cluster::new(1, CARRIER), back_up);
    // A dump never overwrites a file, and a restore never overwrites tables.
    let place = &cluster.place;
    place.json(&["backup", "dump"]);
    let words = place.refused(&["backup", "dump"]);
    assert!(words.contains("exists already"), "{words}");
    let words = place.refused(&["restore", "dump"]);
    assert!(words.contains("already exists"), "{words}");
    cluster.stop();
}

/// Returns what the node knows of its last commit.
fn last_commit(cluster: &Cluster) -> String {
    std::fs::read_to_string(cluster.place.path().join("data/last_commit")).unwrap()
}

/// Restores a backup.
type Restore = Box<dyn FnOnce(&mut Cluster)>;

/// Makes a backup with the program.
fn back_up(cluster: &Cluster) -> Restore {
    cluster.place.json(&["backup", "backup"]);
    let backup = cluster.place.path().join("backup");
    Box::new(move |cluster| cluster.restore(&backup))
}

fn rehearse(mut cluster: Cluster, back_up: impl FnOnce(&Cluster) -> Restore) -> Cluster {
    let applications = [cluster.holding(), cluster.resending()];
    cluster.carrier.delay(DELAY);
    // The reconciliation waits for the leases in the backup.
    let file = cluster.place.path().join("heliograph.toml");
    let settings = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("lease_seconds = 15\n{settings}")).unwrap();
    cluster.start_all();
    let (sent, before, restore) = back_up_and_lose(&cluster, &applications, back_up);
    restore(&mut cluster);
    cluster.start_all();
    // The carrier repeats the receipts that the lost node didn't acknowledge.
    until("all receipts", || (cluster.carrier.open_receipts() == 0).then_some(()));
    let taken = cluster.carrier.taken();
    let held = cluster.place.json(&["messages", "reconcile"]);
    assert!(held["held_since"].is_string(), "{held}");
    until("no upload that isn't expanded", || {
        let open = |batch: &Value| text(batch, "status") == "expanding";
        let open = |keys: &Keys| cluster.batches(keys).iter().any(open);
        (!applications.iter().any(open)).then_some(())
    });
    let export = cluster.place.path().join("list.csv");
    std::fs::write(&export, cluster.carrier.list()).unwrap();
    let by = ["messages", "reconcile", "--receipts", "--carrier", "acme", "--export", "list.csv"];
    // The leases in the backup run out.
    let sorted: Value = until("no message that is being submitted", || {
        let output = cluster.place.run(&[&by[..], &["--json"]].concat());
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    });
    println!("{before} of {} requests before the backup, {sorted}", sent.len());
    let proven = |by: &str| sorted[by].as_u64().unwrap();
    assert!(proven("by_receipts") + proven("by_export") > 0, "nothing was queued at the backup");
    assert_eq!(cluster.carrier.taken(), taken, "a held message was submitted");
    cluster.place.json(&["messages", "reconcile", "--rest", "send"]);
    until("an empty queue", || (cluster.queued() == 0).then_some(()));
    until("all receipts", || (cluster.carrier.open_receipts() == 0).then_some(()));
    judge(&cluster, &applications, &sent, before);
    cluster
}

/// Checks that nobody got a text twice, and that the messages that were accepted before the backup
/// came.
fn judge(cluster: &Cluster, applications: &[Keys], sent: &[Sent], before: usize) {
    let all = sent.iter().flat_map(|sent| sent.numbers.clone());
    let twice: Vec<usize> = all.filter(|number| came(cluster, *number) > 1).collect();
    assert!(twice.is_empty(), "came twice: {twice:?}");
    let reports: BTreeMap<usize, Value> = applications
        .iter()
        .flat_map(|keys| cluster.reports(keys))
        .map(|report| (text(&report, "number").parse().unwrap(), report))
        .collect();
    let accepted = |sent: &&Sent| matches!(sent.outcome, Outcome::Accepted(_));
    for number in sent[..before].iter().filter(accepted).flat_map(|sent| sent.numbers.clone()) {
        let report = reports.get(&number).unwrap_or_else(|| panic!("{number} is lost"));
        // Some were being submitted when the backup was made.
        let is_unknown = report["status"] == "unknown";
        assert!(is_unknown || came(cluster, number) == 1, "never came: {report}");
    }
}

fn came(cluster: &Cluster, number: usize) -> usize {
    cluster.carrier.count(&number.to_string())
}

/// Sends and uploads, makes a backup meanwhile, goes on, and kills the node. Returns the requests,
/// how many of them were answered before the backup began, and what restores the backup.
fn back_up_and_lose(
    cluster: &Cluster,
    applications: &[Keys; 2],
    back_up: impl FnOnce(&Cluster) -> Restore,
) -> (Vec<Sent>, usize, Restore) {
    let [holding, resending] = applications;
    let load = Load::new(&cluster.nodes, &[holding, resending], SHORT);
    let (mut before, mut restore) = (0, None);
    load.beside(CLIENTS, true, || {
        until("a queue", || (cluster.queued() >= QUEUED).then_some(()));
        before = load.sent().len();
        restore = Some(back_up(cluster));
        let taken = cluster.carrier.taken();
        until("submits", || (cluster.carrier.taken() >= taken + SINCE).then_some(()));
        cluster.nodes[0].kill();
    });
    (load.sent(), before, restore.unwrap())
}
