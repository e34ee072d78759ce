//! Groups on PostgreSQL. Inputs are decided from rows that earlier groups cached. One call stores
//! the decisions whose rows haven't changed. Sends that the call didn't store are decided again
//! from the rows that it returned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Guard;
use domain::ids::Shard;
use domain::pumping::block_of;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::error::Elapsed;

use super::GroupCommit;
use super::cache::Cache;
use super::consumers::Consumers;
use super::figures::Figures;
use super::inbox::{Inbox, Input, lose_all, refuse_all};
use super::optimistic::{OptimisticGroup, group_id};
use super::reply::Left;
use super::sends::pumping_recipient;
use crate::admission::rates::RateKey;
use crate::delivery::Lease;
use crate::{ATTEMPTS, Service};
use store::DatabaseError;
use store::error::{Error, Fault, Result, Uncertain, took_too_long};
use store::group_call::{Called, GroupAnswer, GroupConnection, UnansweredCall};
use store::recipients;

/// How long a group waits to learn whether its call is stored. After that, the query goes on in the
/// background.
const QUERY_IN_GROUP: Duration = Duration::from_secs(2);
/// The time limit of that query, including the wait of the group.
const QUERY_TIMEOUT: Duration = Duration::from_secs(40);
/// The pause between two attempts of that query.
const QUERY_PAUSE: Duration = Duration::from_millis(100);
/// The maximum number of calls for the sends of a group. One is enough unless rows have changed.
/// Each further call uses the rows that the previous one returned.
const CALLS_MAX: usize = 16;

/// Runs the groups of a shard.
pub(super) struct ServerGroups {
    shard: Shard,
    inbox: Arc<Inbox>,
    consumers: Arc<Consumers>,
    figures: Arc<Figures>,
    /// The runtime of all other tasks.
    others: Handle,
    conn: GroupConnection,
    cache: Cache,
    /// Each background task that waits for the outcome of a call holds a clone.
    queries: Arc<()>,
}

enum Stored {
    Answered(Box<GroupAnswer>),
    /// It is unknown whether the call is stored. The task goes on querying.
    Unknown(OutcomeQuery, DatabaseError),
}

/// A task that queries whether a call is stored. Returns the call's answer, or `None` if the call
/// can no longer be stored. If the task fails or times out, the outcome stays unknown.
type OutcomeQuery = JoinHandle<std::result::Result<Option<GroupAnswer>, Elapsed>>;

impl ServerGroups {
    pub(super) fn new(commits: &GroupCommit, shard: Shard) -> Self {
        Self {
            shard,
            inbox: Arc::clone(commits.inbox(shard)),
            consumers: Arc::clone(&commits.consumers),
            figures: Arc::clone(&commits.figures),
            others: Handle::current(),
            conn: GroupConnection::default(),
            cache: Cache::default(),
            queries: Arc::default(),
        }
    }

    /// Stores the inputs of a group by calls, and replies to them. Returns the results and receipts
    /// that a call can't store. If a call certainly stored nothing because of a faulty row, halves
    /// its inputs until the faulty input is alone.
    pub(super) async fn commit(&mut self, service: &Service, inputs: Vec<Input>) -> Vec<Input> {
        let inputs = self.refuse_sends_if_stuck(inputs);
        self.cache.begin_group();
        let mut others = Vec::new();
        let mut parts = vec![(inputs, 0)];
        while let Some((mut inputs, calls)) = parts.pop() {
            if calls == CALLS_MAX {
                let error = Fault::TimedOut("deciding sends whose rows change");
                refuse_all(inputs, error.into());
                continue;
            }
            match self.part(service, &inputs).await {
                Ok((group, Stored::Answered(answer))) => {
                    let cache = &mut self.cache;
                    let left = group.reply(service, cache, *answer, inputs);
                    others.extend(left.others);
                    if !left.again.is_empty() {
                        parts.push((left.again, calls + 1));
                    }
                }
                Ok((group, Stored::Unknown(querying, error))) => {
                    // These sends count against the rate limits whether or not they are stored.
                    for key in group.sends.iter().filter_map(|send| send.counted) {
                        self.cache.in_group.use_request(key);
                    }
                    self.reply_when_known(service, group, inputs, querying, error);
                }
                Err(error) if error.is_about_rows() && inputs.len() > 1 => {
                    self.figures.halved();
                    parts.push((inputs.split_off(inputs.len() / 2), calls));
                    parts.push((inputs, calls));
                }
                Err(error) => {
                    self.figures.failed(inputs.len(), &error);
                    self.consumers.pause(self.shard);
                    if let Error::Uncertain(_) = error {
                        lose_all(inputs, error);
                    } else {
                        refuse_all(inputs, error);
                    }
                }
            }
        }
        self.give_requests_back(service).await;
        others
    }

    /// Refuses sends while the outcome of an earlier call is unknown. At that time the shard's
    /// database isn't responding, and each send would wait as long as that call. Returns the other
    /// inputs, which can't be refused.
    fn refuse_sends_if_stuck(&self, inputs: Vec<Input>) -> Vec<Input> {
        if Arc::strong_count(&self.queries) == 1 {
            return inputs;
        }
        let is_send = |input: &Input| input.send().is_some();
        let (sends, others): (Vec<_>, _) = inputs.into_iter().partition(is_send);
        if !sends.is_empty() {
            let error = Fault::TimedOut("querying the outcome of an earlier commit group");
            refuse_all(sends, error.into());
        }
        others
    }

    /// Decides the inputs, and makes the call that stores them.
    async fn part(
        &mut self,
        service: &Service,
        inputs: &[Input],
    ) -> Result<(OptimisticGroup, Stored)> {
        self.take_requests(service, inputs).await?;
        self.count_similar(service, inputs).await?;
        let begun = Instant::now();
        let lease = Lease::begin(service, self.shard, begun, service.now());
        let slots = Consumers::begin(&self.consumers, self.shard);
        let cache = &mut self.cache;
        let mut group = OptimisticGroup::of(service, self.shard, cache, slots, lease, inputs)?;
        if !group.needs_call() {
            return Ok((group, Stored::Answered(Box::default())));
        }
        let mut stored = self.call(service, &mut group).await?;
        if let Stored::Answered(answer) = &mut stored {
            self.cache.learn(&group.call, answer);
            self.figures.called(begun.elapsed());
        }
        Ok((group, stored))
    }

    /// Makes the call, and returns its answer. Repeats a call that the database aborted in favour
    /// of another transaction, or whose connection was lost before the call was stored. Doesn't
    /// repeat a call that took too long.
    async fn call(&mut self, service: &Service, group: &mut OptimisticGroup) -> Result<Stored> {
        let mut attempts = 1;
        loop {
            match self.conn.run(service.store(), &group.call).await {
                Ok(Called::Answered(answer)) => return Ok(Stored::Answered(answer)),
                Ok(Called::Unanswered(error)) => {
                    tracing::warn!(%error, "a commit group's call wasn't answered");
                    let call = UnansweredCall::of(&group.call);
                    let service = service.clone();
                    // The timeout must be created inside the task: a timer of this thread's runtime
                    // would stand still between groups.
                    let querying = async move {
                        tokio::time::timeout(QUERY_TIMEOUT, query_outcome(service, call)).await
                    };
                    // The query runs in its own task, so that it isn't cancelled if the group stops
                    // waiting for it.
                    let mut querying = self.others.spawn(querying);
                    match tokio::time::timeout(QUERY_IN_GROUP, &mut querying).await {
                        Ok(Ok(Ok(Some(answer)))) => {
                            return Ok(Stored::Answered(Box::new(answer)));
                        }
                        Ok(Ok(Ok(None))) if attempts == ATTEMPTS || took_too_long(&error) => {
                            return Err(Fault::NotCommitted(error).into());
                        }
                        Ok(Ok(Ok(None))) => {}
                        Ok(_) => return Err(Uncertain::Unanswered(error).into()),
                        Err(_) => return Ok(Stored::Unknown(querying, error)),
                    }
                }
                Err(error) if error.is_conflict() && attempts < ATTEMPTS => {
                    self.figures.repeated();
                    tracing::debug!(detail = ?error, "conflict with another process; trying \
                        again");
                }
                Err(error) => return Err(error),
            }
            attempts += 1;
            // The call wasn't stored under its old ID, and never will be.
            group.call.id = group_id(service);
        }
    }

    /// Replies to the inputs of a group once it is known whether its call is stored. Later groups
    /// run in the meantime.
    fn reply_when_known(
        &self,
        service: &Service,
        group: OptimisticGroup,
        inputs: Vec<Input>,
        querying: OutcomeQuery,
        error: DatabaseError,
    ) {
        let (service, inbox) = (service.clone(), Arc::clone(&self.inbox));
        let queries = Arc::clone(&self.queries);
        self.others.spawn(async move {
            let outcome = querying.await;
            // Do this before the replies, so that a caller that sends again at once isn't refused.
            drop(queries);
            let left = match outcome {
                Ok(Ok(Some(answer))) => {
                    let cache = &mut Cache::default();
                    group.reply(&service, cache, answer, inputs)
                }
                Ok(Ok(None)) => Left { again: inputs, others: Vec::new() },
                _ => return lose_all(inputs, Uncertain::Unanswered(error).into()),
            };
            for input in left.others {
                if let Err(input) = inbox.push(input) {
                    refuse_all(vec![input], inbox.why_refused().into());
                }
            }
            refuse_all(left.again, Fault::NotCommitted(error).into());
        });
    }

    /// For each send, takes a request from the rate limit of its key, if processes share the
    /// limits.
    async fn take_requests(&mut self, service: &Service, inputs: &[Input]) -> Result<()> {
        if !service.inner.rates.is_shared() {
            return Ok(());
        }
        let sends = inputs.iter().filter_map(Input::send);
        let opened = sends.filter(|send| {
            let row = send.application.and_then(|id| self.cache.application(id));
            row.is_some_and(|row| send.opens(row))
        });
        let keys = opened.map(|send| (send.request.key.reference(), send.request.key.kind()));
        let keys: Vec<RateKey> = keys.collect();
        let allowance = self.cache.in_group.allowance.get_or_insert_default();
        let missing = allowance.missing(keys);
        if missing.is_empty() {
            return Ok(());
        }
        let (service, mut allowance) = (service.clone(), std::mem::take(allowance));
        let taking = self.on_others(async move {
            let taken = service.messages().take_for(missing, &mut allowance).await;
            Ok((allowance, taken))
        });
        let (allowance, taken) = taking.await?;
        self.cache.in_group.allowance = Some(allowance);
        taken
    }

    /// For applications that refuse traffic pumping, reads how many messages all processes sent to
    /// numbers like those of the sends. Reads only the counts of numbers to which this process
    /// itself has sent many.
    async fn count_similar(&mut self, service: &Service, inputs: &[Input]) -> Result<()> {
        let (pumping, now) = (&service.inner.pumping, service.now());
        let mut numbers = BTreeMap::new();
        for send in inputs.iter().filter_map(Input::send) {
            let row = send.application.and_then(|id| self.cache.application(id));
            let Some(row) = row.filter(|row| send.opens(row)) else { continue };
            let (limits, to) = (row.limits(), pumping_recipient(row, send));
            if limits.traffic_pumping == Guard::Block
                && pumping.needs_others(to, limits.traffic_pumping_messages, now)
            {
                let block = (to.0, to.1, block_of(to.2).to_owned());
                numbers.insert(block, to.2.to_owned());
            }
        }
        if numbers.is_empty() {
            return Ok(());
        }
        let (service, shard) = (service.clone(), self.shard);
        self.on_others(async move {
            let mut conn = service.store().read_at(shard).await?;
            for ((application, test, block), number) in numbers {
                let code = service.country_code();
                let of = (application, test);
                let stored = recipients::similar(&mut conn, of, &block, code, now).await?;
                service.inner.pumping.set_stored((application, test, &number), stored, now);
            }
            Ok(())
        })
        .await
    }

    async fn give_requests_back(&mut self, service: &Service) {
        let Some(allowance) = self.cache.in_group.allowance.take() else {
            return;
        };
        let service = service.clone();
        let giving = self.on_others(async move {
            let mut conn = service.store().read().await?;
            service.messages().return_unused(&mut conn, allowance, service.now()).await
        });
        if let Err(error) = giving.await {
            tracing::warn!(detail = ?error, "couldn't return unused requests to the rate limits");
        }
    }

    /// Runs work on the main runtime because it uses a pooled connection. Other tasks use that
    /// connection later, so it must not belong to this thread's runtime, which stands still between
    /// groups.
    async fn on_others<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let done = self.others.spawn(work).await;
        done.map_err(|error| Fault::Task(error.to_string()))?
    }
}

/// Queries until the database answers whether a call is stored. Returns `None` if the call can no
/// longer be stored.
async fn query_outcome(service: Service, call: UnansweredCall) -> Option<GroupAnswer> {
    loop {
        let querying = async {
            let mut conn = service.store().read().await?;
            call.settle(&mut conn, service.now()).await
        };
        match querying.await {
            Ok(answer) => {
                // If the call was stored, its claims of queued messages are released, and the next
                // groups have to claim these messages again.
                service.inner.group_commit.poll();
                return answer;
            }
            Err(error) => {
                tracing::debug!(detail = ?error, "the outcome of a commit group can't be queried yet");
            }
        }
        tokio::time::sleep(QUERY_PAUSE).await;
    }
}
