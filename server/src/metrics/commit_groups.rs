//! The work of the service's commit groups.

use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use service::{GroupFigures, Histogram};

use super::values::{ByLabels, ConstHistogram};

pub(super) fn register(registry: &mut Registry, figures: &GroupFigures) {
    registry.register(
        "commit_group_seconds",
        "Time of a commit group, one transaction that writes all waiting inputs, from begin to commit",
        histogram(&figures.group),
    );
    registry.register(
        "commit_group_commit_seconds",
        "Time of a commit group's commit, with its sync of the disk",
        histogram(&figures.commit),
    );
    let inputs = figures.inputs.iter();
    let inputs = inputs.map(|(kind, count)| ([("kind", *kind)], ConstCounter::new(*count)));
    registry.register(
        "commit_group_inputs",
        "Inputs of commit groups, by kind",
        ByLabels(inputs.collect()),
    );
    let inbox = [("send", figures.inbox.sends), ("carrier", figures.inbox.carriers)];
    let inbox = inbox.map(|(kind, waiting)| ([("kind", kind)], ConstGauge::new(waiting)));
    registry.register(
        "commit_group_inbox",
        "Inputs that wait for the next commit group, by kind",
        ByLabels(inbox.into()),
    );
    registry.register(
        "commit_group_repeats",
        "Commit groups that were repeated because of a conflict with another process",
        ConstCounter::new(figures.repeated),
    );
    registry.register(
        "commit_group_halvings",
        "Commit groups that were split in half to find a faulty input",
        ConstCounter::new(figures.halved),
    );
    registry.register(
        "database_log_bytes",
        "Bytes of SQLite's log that aren't in the database's file yet",
        ConstGauge::new(figures.log_bytes),
    );
}

fn histogram(of: &Histogram) -> ConstHistogram {
    let mut below = 0;
    let bounded = of.buckets.iter().map(|(bound, count)| {
        let between = count - below;
        below = *count;
        (*bound, between)
    });
    let mut buckets: Vec<(f64, u64)> = bounded.collect();
    // The counts are read one after another while commit groups continue, so they may not add up.
    buckets.push((f64::INFINITY, of.count.saturating_sub(below)));
    ConstHistogram { sum: of.seconds, count: of.count, buckets }
}
