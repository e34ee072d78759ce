//! The thread of a shard's groups. It takes the waiting inputs, has them stored, and replies. This
//! module also stores groups as transactions of statements: all groups on SQLite, and on PostgreSQL
//! the inputs that a call can't store.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use domain::MessageStatus;
use domain::ids::Shard;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;

use super::consumers::{Consumers, Slots};
use super::figures::Figures;
use super::inbox::{Answer, Inbox, Input, LastGroup, lose_all, refuse_all};
use super::sends::{SendingRows, admit_all, watch};
use super::server::ServerGroups;
use crate::admission::PreparedSend;
use crate::delivery::opted_out::reject;
use crate::delivery::{Lease, Submitted, claim_due};
use crate::money::releases::settle;
use crate::verify::checks::{PreparedCheck, check_all};
use crate::wakeups::Wakeup;
use crate::{ATTEMPTS, Inner, STATEMENTS_TIMEOUT, Service};
use store::error::{Error, Fault, Result};
use store::gate::Priority;
use store::messages::Ended;
use store::{Committed, Tx, Unanswered, prices};

/// The duration above which a group is logged.
const SLOW: Duration = Duration::from_millis(250);

/// Starts the thread of each shard. The threads end when the service is closed or dropped.
pub(crate) fn spawn(service: &Service) -> std::io::Result<()> {
    service.shards().try_for_each(|shard| spawn_of(service, shard))
}

fn spawn_of(service: &Service, shard: Shard) -> std::io::Result<()> {
    let commits = &service.inner.group_commit;
    let (ended, end) = oneshot::channel::<()>();
    let mut worker = Worker {
        inner: Arc::downgrade(&service.inner),
        shard,
        inbox: Arc::clone(commits.inbox(shard)),
        consumers: Arc::clone(&commits.consumers),
        figures: Arc::clone(&commits.figures),
        others: Handle::current(),
        server: service.store().dialect().is_shared().then(|| ServerGroups::new(commits, shard)),
        last: LastGroup { sends: 0, ended: Instant::now() },
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("group-commit".to_owned()).spawn(move || {
        let inner = Weak::clone(&worker.inner);
        let run = AssertUnwindSafe(|| worker.run(&runtime));
        if std::panic::catch_unwind(run).is_err()
            && let Some(inner) = inner.upgrade()
        {
            inner.store.fail();
            tracing::error!("the group commit thread panicked: nothing is written any more");
        }
        drop(ended);
    })?;
    let mut threads = commits.threads.lock().unwrap_or_else(PoisonError::into_inner);
    threads.push(end);
    Ok(())
}

struct Worker {
    inner: Weak<Inner>,
    shard: Shard,
    inbox: Arc<Inbox>,
    consumers: Arc<Consumers>,
    figures: Arc<Figures>,
    /// The runtime of all other tasks.
    others: Handle,
    /// Stores groups by calls. `None` on SQLite, where statements store them.
    server: Option<ServerGroups>,
    last: LastGroup,
}

impl Worker {
    fn run(&mut self, runtime: &Runtime) {
        while let Some(inputs) = self.inbox.next(&self.last, || self.consumers.poll_at(self.shard))
        {
            let Some(inner) = self.inner.upgrade() else {
                return;
            };
            let service = Service::from(inner);
            let is_send = |input: &&Input| matches!(input, Input::Send { .. });
            let sends = inputs.iter().filter(is_send).count();
            self.commit(runtime, &service, inputs);
            self.last = LastGroup { sends, ended: Instant::now() };
            if let Err(error) = runtime.block_on(service.store().end_log_move()) {
                tracing::error!(detail = ?error, "SQLite's log can't be moved into the database");
            }
        }
        let _context = runtime.enter();
        self.server = None;
    }

    /// Runs one group.
    fn commit(&mut self, runtime: &Runtime, service: &Service, inputs: Vec<Input>) {
        for input in &inputs {
            self.figures.input(input);
        }
        let Some(server) = &mut self.server else {
            return runtime.block_on(self.run_statements(service, inputs));
        };
        let inputs = runtime.block_on(server.commit(service, inputs));
        if !inputs.is_empty() {
            // Statements use a pooled connection, which other tasks use later. It must not belong
            // to this thread's runtime, which stands still between groups.
            let others = self.others.clone();
            others.block_on(self.run_statements(service, inputs));
        }
    }

    /// Stores inputs by statements: all inputs on SQLite, and on PostgreSQL those that a call can't
    /// store. If a transaction certainly stored nothing because of a faulty row, halves its inputs
    /// until the faulty input is alone.
    async fn run_statements(&mut self, service: &Service, inputs: Vec<Input>) {
        let mut parts = vec![inputs];
        while let Some(mut inputs) = parts.pop() {
            match self.transact(service, &inputs).await {
                Ok((outcome, Committed::Yes)) => outcome.reply(service, inputs),
                Ok((outcome, Committed::Unanswered(unanswered))) => {
                    let looking = look_up(service.clone(), inputs, outcome, unanswered);
                    self.others.spawn(looking);
                }
                Err(error) if error.is_about_rows() && inputs.len() > 1 => {
                    self.figures.halved();
                    parts.push(inputs.split_off(inputs.len() / 2));
                    parts.push(inputs);
                }
                Err(error) => {
                    self.figures.failed(inputs.len(), &error);
                    self.consumers.pause(self.shard);
                    if service.store().has_failed() {
                        lose_all(inputs, error);
                    } else {
                        refuse_all(inputs, error);
                    }
                }
            }
        }
    }

    /// Writes the inputs and commits. Retries if the database aborts the transaction in favour of
    /// another transaction.
    async fn transact(
        &mut self,
        service: &Service,
        inputs: &[Input],
    ) -> Result<(Outcome, Committed)> {
        let mut attempts = 1;
        loop {
            match self.transact_once(service, inputs).await {
                Err(error) if error.is_conflict() && attempts < ATTEMPTS => {
                    attempts += 1;
                    self.figures.repeated();
                    tracing::debug!(detail = ?error, "conflict with another process; trying \
                        again");
                }
                done => return done,
            }
        }
    }

    async fn transact_once(
        &mut self,
        service: &Service,
        inputs: &[Input],
    ) -> Result<(Outcome, Committed)> {
        let begun = Instant::now();
        let store = service.store();
        let mut tx = store.begin_at(self.shard, Priority::CommitGroup).await?;
        let lease = Lease::begin(service, self.shard, begun, service.now());
        let slots = Consumers::begin(&self.consumers, self.shard);
        let writing = write(service, &mut tx, inputs, slots, lease);
        let written = tokio::time::timeout(STATEMENTS_TIMEOUT, writing).await;
        let outcome =
            written.unwrap_or(Err(Fault::TimedOut("the work of a commit group").into()))?;
        let log_bytes = tx.log_bytes();
        let committing = Instant::now();
        let committed = tx.try_commit().await?;
        let (group, commit) = (begun.elapsed(), committing.elapsed());
        self.figures.committed(group, commit, log_bytes);
        if group > SLOW {
            let (ms, commit_ms) = (group.as_millis(), commit.as_millis());
            tracing::warn!(ms, commit_ms, inputs = inputs.len(), "a commit group took long");
        }
        Ok((outcome, committed))
    }
}

/// Writes a group: results and receipts, then sends, then checks of codes, then claims.
async fn write(
    service: &Service,
    tx: &mut Tx<'_>,
    inputs: &[Input],
    mut slots: Slots,
    lease: Lease,
) -> Result<Outcome> {
    let Recordings { answers: mut recorded, ended, matched } =
        record(service, tx, inputs, &mut slots).await?;
    settle(tx, &ended, service.now()).await?;
    // Checks come after sends, because a call locks the rows of applications before those of
    // verifications.
    let checks: Vec<&PreparedCheck> = inputs.iter().filter_map(Input::check).collect();
    let sends: Vec<&PreparedSend> = inputs.iter().filter_map(Input::send).collect();
    // On PostgreSQL a call admits sends and claims messages.
    let due = if tx.must_lock() { Vec::new() } else { slots.due() };
    let mut in_force = None;
    if !sends.is_empty() || !due.is_empty() {
        let (version, drained) = prices::version_and_drained(tx).await?;
        slots.close(drained);
        if !sends.is_empty() {
            let known = &service.inner.prices;
            in_force = known.of_version(tx, version, service.now()).await?;
        }
    }
    let (sent, rows) = admit_all(service, tx, &sends, in_force, &mut slots, lease).await?;
    let mut sent = sent.into_iter();
    let mut checked = check_all(tx, &checks, service.now()).await?.into_iter();
    let mut answers = Vec::with_capacity(inputs.len());
    for input in inputs {
        answers.extend(match input {
            Input::Send { .. } => sent.next().map(Answer::Sent),
            Input::Check { .. } => checked.next().map(Answer::Checked),
            Input::Claim { carrier, limit, .. } => {
                let (claimed, _) = claim_due(service, tx, carrier, *limit, lease).await?;
                Some(Answer::Claimed(lease, claimed))
            }
            _ => recorded.pop_front(),
        });
    }
    for carrier in due {
        let count = slots.reserve(&carrier, sends.len());
        if count > 0 {
            let (claimed, learned) = claim_due(service, tx, &carrier, count, lease).await?;
            slots.fill_all(&carrier, claimed, learned);
        }
    }
    Ok(Outcome { answers, rows, slots, lease, matched })
}

/// The effects of a group's results and receipts.
#[derive(Default)]
struct Recordings {
    /// The reply to each such input, in their order.
    answers: VecDeque<Answer>,
    /// The messages that became final.
    ended: Vec<Ended>,
    /// The receipts that had waited for the results, by carrier.
    matched: Vec<(String, Vec<MessageStatus>)>,
}

/// Writes results and receipts.
async fn record(
    service: &Service,
    tx: &mut Tx<'_>,
    inputs: &[Input],
    slots: &mut Slots,
) -> Result<Recordings> {
    let mut done = Recordings::default();
    for input in inputs {
        let answer = match input {
            Input::Send { .. } | Input::Claim { .. } | Input::Check { .. } => continue,
            Input::Results { carrier, results, .. } => {
                let results: Vec<&Submitted> = results.iter().collect();
                let written = service.delivery().write_results(tx, carrier, &results).await?;
                for (carrier, after) in written.again {
                    slots.queued(&carrier, after);
                }
                done.ended.extend(written.ended);
                done.matched.push((carrier.clone(), written.matched));
                Answer::Recorded(written.taken)
            }
            Input::Receipts { receipts, .. } => {
                service.delivery().write_receipts(tx, receipts.clone()).await?;
                Answer::Recorded(Vec::new())
            }
            Input::OptedOut(ids) => {
                done.ended.extend(reject(tx, ids, service.now()).await?);
                Answer::Recorded(Vec::new())
            }
            Input::CarrierReceipts { carrier, receipts, matching, .. } => {
                let delivery = service.delivery();
                let writing = delivery.write_carrier_receipts(tx, carrier, receipts, *matching);
                Answer::Matched(writing.await?)
            }
        };
        done.answers.push_back(answer);
    }
    Ok(done)
}

/// The decisions of a group. The callers learn of these decisions only when the group is durable.
struct Outcome {
    /// The replies, in the order of the inputs.
    answers: Vec<Answer>,
    rows: SendingRows,
    slots: Slots,
    lease: Lease,
    /// The receipts that had waited for the results, by carrier.
    matched: Vec<(String, Vec<MessageStatus>)>,
}

impl Outcome {
    /// Replies to all inputs, and sends claimed messages to their connections.
    fn reply(self, service: &Service, inputs: Vec<Input>) {
        if self.slots.has_queued() {
            service.inner.wakeups.notify_others(Wakeup::Queued);
        }
        self.slots.dispatch(self.lease);
        for (carrier, statuses) in self.matched {
            service.inner.figures.add_matched(&carrier, statuses);
        }
        for (input, answer) in inputs.into_iter().zip(self.answers) {
            if let (Some(send), Answer::Sent(outcome)) = (input.send(), &answer)
                && let Some(row) = self.rows.get(&send.request.key.reference())
            {
                watch(service, row, send, outcome);
            }
            input.answer(answer);
        }
    }
}

/// Finds out whether a group whose commit got no answer is stored, and replies to its inputs.
async fn look_up(service: Service, inputs: Vec<Input>, outcome: Outcome, unanswered: Unanswered) {
    let error = match service.store().outcome(unanswered).await {
        Ok(()) => return outcome.reply(&service, inputs),
        Err(error) => error,
    };
    tracing::error!(inputs = inputs.len(), detail = ?error, "a commit group failed to commit");
    if let Error::Uncertain(_) = error {
        lose_all(inputs, error);
    } else {
        refuse_all(inputs, error);
    }
}
