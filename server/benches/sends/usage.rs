//! The cost of messages: CPU time, context switches, write transactions, fsyncs.

use std::fmt;
use std::time::Duration;

use crate::machine;
use crate::table::float;

/// Write transactions and fsyncs so far, if they are counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub transactions: Option<u64>,
    pub fsyncs: Option<u64>,
}

/// The totals of some processes and their children so far.
#[derive(Clone, Debug)]
pub struct Usage {
    /// One entry per process, including its children.
    cpu: Vec<Duration>,
    switches: u64,
    work: Work,
}

/// The cost of one message or other request.
#[derive(Clone, Debug)]
pub struct Cost {
    pub cpu_us: f64,
    /// The CPU time per process, in µs.
    by_process: Vec<f64>,
    switches: f64,
    transactions: Option<f64>,
    fsyncs: Option<f64>,
}

impl Usage {
    pub fn now(processes: &[u32], work: Work) -> Self {
        Self {
            cpu: processes.iter().map(|id| machine::cpu(*id)).collect(),
            switches: processes.iter().map(|id| machine::switches(*id)).sum(),
            work,
        }
    }

    /// Returns the cost of each of `messages` messages since `before`.
    pub fn each_since(&self, before: &Self, messages: u64) -> Cost {
        let messages = float(messages.max(1));
        let each = |now: u64, before: u64| float(now.saturating_sub(before)) / messages;
        let counted = |now: Option<u64>, before: Option<u64>| Some(each(now?, before?));
        let spent = self.cpu.iter().zip(&before.cpu);
        let spent = spent.map(|(now, before)| now.saturating_sub(*before).as_secs_f64());
        let by_process: Vec<_> = spent.map(|seconds| seconds * 1e6 / messages).collect();
        Cost {
            cpu_us: by_process.iter().sum(),
            by_process,
            // The switches of threads that ended in between are missing.
            switches: each(self.switches, before.switches),
            transactions: counted(self.work.transactions, before.work.transactions),
            fsyncs: counted(self.work.fsyncs, before.work.fsyncs),
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |figure: Option<f64>| figure.map_or("–".to_owned(), |n| format!("{n:.3}"));
        write!(f, "each: {:.0} µs", self.cpu_us)?;
        if self.by_process.len() > 1 {
            let parts: Vec<_> = self.by_process.iter().map(|us| format!("{us:.0}")).collect();
            write!(f, " ({})", parts.join(" + "))?;
        }
        write!(
            f,
            ", {} transactions, {} fsyncs, {:.2} context switches",
            number(self.transactions),
            number(self.fsyncs),
            self.switches
        )
    }
}
