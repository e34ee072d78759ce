//! The verbs of Heliograph: register, create an application, send, claim, credit a deposit.
//!
//! A verb owns one transaction: its work happens as a whole, or not at all. SQL stands only in
//! `store`. Time and randomness come from [`Clock`] and [`Entropy`], so that tests control both.

mod accounts;
mod admission;
mod applications;
mod clock;
mod delivery;
mod entropy;
mod error;
mod group_commit;
mod id_source;
mod mail;
mod money;
mod operations;
mod prices;
mod reports;
mod shards;
#[cfg(test)]
mod statements_on_citus;
mod store;
mod support;
mod uploads;
mod wakeups;
pub mod zones;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::ids::Shard;
use domain::{Prices, Reference, Timestamp};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::Instrument as _;

pub use accounts::devices::SessionRow;
pub use accounts::known_device::account_of_device;
pub use accounts::second_factor::{
    FactorRule, FactorState, RECOVERY_CODES, SecondStep, TotpSecret,
};
pub use accounts::security_events::ClientInfo;
pub use accounts::staff::AccountDetail;
pub use accounts::throttle::Networks;
pub use admission::idempotency::{IDEMPOTENCY_KEY_CHARS_MAX, IdempotencyKey};
pub use admission::rates::RateState;
pub use admission::{KeyAccess, SendAccess, SendError, SendRequest, Sent};
pub use applications::call_log::ApiCall;
pub use applications::{NewApplication, StatementFilter};
pub use clock::Clock;
pub use delivery::ended_leases::Leases;
pub use delivery::outcomes::SubmitOutcome;
pub use delivery::receipts::{CarrierReceipt, RECEIPT_NAME_CHARS_MAX, Receipt, user_reference};
pub use delivery::routing::{CarrierInfo, Network};
pub use delivery::{BATCHES_SHARE, Claimed, Lease, Submitted};
pub use entropy::Entropy;
pub use error::{Error, Fault, OpenError, Refusal, Result, Uncertain};
pub use group_commit::{Consumer, Credit, GroupFigures, Histogram, InboxDepth};
pub use mail::{MailCounts, MailSettings, OutgoingMail};
pub use money::deposits::{DepositOutcome, DepositRequest, DepositStatus, ImportOutcome};
pub use money::statement_file::BadStatement;
pub use money::statements::{CreditedLines, StatementFile};
pub use operations::copy::{Copied, CopiedSum, CopiedTable, CopyError};
pub use operations::distribute::{
    DistributeError, Distributed, DistributionPlan, DistributionStep,
};
pub use reports::MessageFilter;
pub use reports::figures::FiguresByPeriod;
pub use store::audit::Actor;
pub use store::dialect::without_password;
pub use store::history::MessageTables;
pub use store::queue::QueueState;
pub use store::reach::unprotected_host;
pub use store::statements::BankColumns;
pub use store::submits::Outstanding;
pub use support::audit::AuditFilter;
pub use uploads::acceptance::{AcceptedBatch, BatchRequest};
pub use uploads::batches::BatchFilter;
pub use uploads::places::TEST_UPLOADS_MAX;
pub use uploads::{Spooled, Upload, UploadError, UploadPermit};

use accounts::changes::Changes;
use accounts::password::Hasher;
use accounts::sealing::Sealing;
use accounts::throttle::Throttle;
use admission::rates::Rates;
use applications::call_log::CallLog;
use applications::key_uses::KeyUses;
use delivery::SegmentShards;
use delivery::routing::Router;
use delivery::scan_starts::ScanStarts;
use delivery::unmatched_names::UnmatchedNames;
use group_commit::GroupCommit;
use id_source::IdSource;
use operations::nodes::Node;
use prices::known::KnownPrices;
use reports::settled::SettledDays;
use reports::shares::SearchShares;
use shards::Shards;
use store::gate::Priority;
use store::{Chore, Missing, Store, WriteTx};
use uploads::Uploads;
use uploads::spool_folder::SpoolFolder;
use uploads::spool_store::Spools;
use wakeups::Wakeups;
use webauthn_rs::Webauthn;

/// How long a message may take, from acceptance to its final status.
pub const MESSAGE_LIFETIME_MS: i64 = 48 * 60 * 60 * 1000;
/// The carrier that always exists: it sends to nobody, and messages of test keys go to no other.
pub const SANDBOX_CARRIER: &str = "sandbox";

/// What a [`Service`] is opened with.
#[derive(Clone, Debug)]
pub struct Config {
    /// `sqlite:PATH`, whose file and folder are made when missing; or `postgres://…`, which any
    /// number of processes may serve.
    pub database_url: String,
    /// The base prices in force from this start on, if they differ from the stored ones and nobody
    /// else has set a price.
    pub prices: Prices,
    /// ISO 4217 code; must be the same at every start.
    pub currency: String,
    /// The folder where uploads wait until they are messages.
    pub data_dir: PathBuf,
    pub network: Network,
    pub limits: Limits,
    pub mail: MailSettings,
    pub clock: Clock,
    pub entropy: Entropy,
}

/// Limits that an operator may change.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most pages of a message.
    pub message_pages_max: usize,
    /// The most rows of an upload.
    pub bulk_rows_max: u64,
    /// The most bytes of an upload.
    pub bulk_bytes_max: u64,
    /// The most uploads of one application at a time.
    pub uploads_max: usize,
    /// The most requests per second and key; `None` for no limit.
    pub requests_per_second: Option<u32>,
    /// The most failed sign-ins per email and address in 15 minutes.
    pub sign_in_failures_max: i64,
    /// The most registrations per address in an hour.
    pub registrations_max: i64,
    /// The most changes that an account makes in the portal at once, and the most per second from
    /// then on.
    pub changes_at_once: u32,
    pub changes_per_second: u32,
    /// The most messages a day that the test key of an account sends that never had a deposit.
    pub unpaid_test_messages: i64,
    /// From how many bytes of such messages on, of all accounts together, operator and staff are
    /// warned.
    pub unpaid_bytes_max: i64,
    /// Whether staff may approve and credit applications of their own, and accept their sender
    /// names.
    pub own_applications: bool,
    /// Whether money, second factors and new members of staff take two members of staff at the
    /// desk.
    pub four_eyes: bool,
    /// Who must have a second factor.
    pub require_second_factor: FactorRule,
    /// How many days messages are kept once they are final.
    pub history_days: i64,
    /// How many days messages of test keys are kept.
    pub test_history_days: i64,
    /// The tables that are made for messages, with PostgreSQL.
    pub message_tables: MessageTables,
    /// How long a claim's lease is, in milliseconds. A submit takes far less; after a crash, other
    /// processes wait this long.
    pub lease_ms: i64,
    /// How long one answer of a report may look for messages. The messages found by then are the
    /// page, and the page's cursor goes on from there.
    pub report_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_pages_max: domain::message::PAGES_MAX_DEFAULT,
            bulk_rows_max: 1_000_000,
            bulk_bytes_max: 256 * 1024 * 1024,
            uploads_max: 8,
            requests_per_second: None,
            sign_in_failures_max: 10,
            registrations_max: 20,
            changes_at_once: 30,
            changes_per_second: 1,
            unpaid_test_messages: 5_000,
            unpaid_bytes_max: 1024 * 1024 * 1024,
            own_applications: false,
            four_eyes: false,
            require_second_factor: FactorRule::Staff,
            history_days: 400,
            test_history_days: 7,
            message_tables: MessageTables::Day,
            lease_ms: 60_000,
            report_time: Duration::from_secs(1),
        }
    }
}

/// The service. Clones share all of its state.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
    /// Who asks, for what is recorded.
    client: Arc<ClientInfo>,
    /// What the client's browser kept of an earlier sign-in.
    device_cookie: Option<Arc<str>>,
}

struct Inner {
    store: Store,
    clock: Clock,
    entropy: Entropy,
    ids: IdSource,
    hasher: Hasher,
    throttle: Throttle,
    changes: Changes,
    key_uses: KeyUses,
    call_log: CallLog,
    settled_days: SettledDays,
    limits: Limits,
    mail: MailSettings,
    group_commit: GroupCommit,
    rates: Rates,
    spools: Spools,
    uploads: Uploads,
    searches: SearchShares,
    unpaid: operations::unpaid::LastUse,
    router: Router,
    prices: KnownPrices,
    scan_starts: ScanStarts,
    routes_changed: Notify,
    wakeups: Arc<Wakeups>,
    unmatched_names: UnmatchedNames,
    segment_shards: SegmentShards,
    node: Node,
    shards: Shards,
    sealing: Sealing,
    /// Checks passkeys; `None` where browsers make none for this site.
    relying_party: Option<Webauthn>,
    /// The tasks that tell other processes of new work and listen to them; empty where there are no
    /// other processes.
    tasks: Mutex<Vec<AbortHandle>>,
}

impl From<Arc<Inner>> for Service {
    /// The service as it works by itself, asked by nobody.
    fn from(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            client: Arc::default(),
            device_cookie: None,
        }
    }
}

impl Service {
    /// Connects, migrates, records currency and prices, and starts group commit.
    ///
    /// # Errors
    /// When the database can't be used, is of a newer release, or has another currency.
    pub async fn open(config: Config) -> std::result::Result<Self, OpenError> {
        Self::open_as(config, Missing::Make).await
    }

    /// Like [`Service::open`], for a command beside the server: the database must exist and have
    /// the schema of this release, and the recorded prices and currency stay as they are.
    ///
    /// # Errors
    /// When the database is missing, can't be used, or is of another release.
    pub async fn open_beside(config: Config) -> std::result::Result<Self, OpenError> {
        Self::open_as(config, Missing::Refuse).await
    }

    async fn open_as(config: Config, missing: Missing) -> std::result::Result<Self, OpenError> {
        let store = Store::open(&config.database_url, missing).await?;
        let beside = missing == Missing::Refuse;
        // A command beside the server never changes the schema: the server that runs may be of
        // another release.
        if beside {
            store.must_be_of_this_release().await?;
        } else {
            store.serve_alone()?;
            store.migrate().await?;
        }
        operations::nodes::follow_server(&store, &config.clock).await?;
        let now = config.clock.now();
        operations::upkeep::install(&store, &config, beside, now).await?;
        let shards = operations::upkeep::shards(&store).await?;
        let (last_id, last_of_batches) = operations::upkeep::last_ids(&store, shards, now).await?;
        if !beside {
            operations::history::make_first_days(&store, now, config.limits.message_tables).await;
        }
        // Asked only here: what depends on the answer is chosen below, and each part uses its own
        // choice.
        let shared = store.dialect().is_shared();
        let token = (config.entropy.number() >> 1).cast_signed().max(1);
        let node = if beside || !shared {
            Node::Alone
        } else {
            Node::join(&store, token, now).await?
        };
        // After the node has taken its slot: a distribution that begins later finds the node and is
        // refused.
        if let Err(error) = operations::distribute::look(&store).await {
            node.leave(&store, now).await;
            return Err(error);
        }
        let readers = usize::try_from(store.dialect().readers()).unwrap_or(1);
        let service = Self::from(Arc::new(Inner {
            store,
            clock: config.clock,
            ids: IdSource::after(last_id, last_of_batches),
            hasher: Hasher::new(&config.entropy)?,
            throttle: Throttle::new(&config.limits),
            changes: Changes::new(&config.limits),
            key_uses: KeyUses::default(),
            call_log: CallLog::default(),
            settled_days: SettledDays::default(),
            sealing: Sealing::within(&config.data_dir),
            entropy: config.entropy,
            rates: Rates::new(config.limits.requests_per_second, shared),
            limits: config.limits,
            relying_party: accounts::passkeys::relying_party(&config.mail.base_url),
            mail: config.mail,
            group_commit: GroupCommit::new(usize::try_from(shards).unwrap_or(1)),
            spools: if shared {
                Spools::Table
            } else {
                Spools::Folder(SpoolFolder::within(&config.data_dir))
            },
            uploads: Uploads::default(),
            searches: SearchShares::new(readers),
            unpaid: Mutex::default(),
            router: Router::new(config.network),
            prices: KnownPrices::default(),
            scan_starts: ScanStarts::default(),
            routes_changed: Notify::new(),
            wakeups: Arc::default(),
            unmatched_names: UnmatchedNames::default(),
            segment_shards: SegmentShards::default(),
            node,
            shards: Shards::new(shards),
            tasks: Mutex::default(),
        }));
        if !beside {
            service.sweep_spools().await?;
        }
        group_commit::spawn(&service).map_err(OpenError::Thread)?;
        if shared {
            let tasks = wakeups::spawn(&service, !beside);
            *service.tasks() = tasks;
        }
        Ok(service)
    }

    /// Migrates the database and does nothing else; not while another process serves it, where only
    /// one may.
    ///
    /// # Errors
    /// When the database can't be used, is served by another process, or is of a newer release.
    pub async fn migrate(database_url: &str) -> std::result::Result<(), OpenError> {
        let store = Store::open(database_url, Missing::Make).await?;
        store.serve_alone()?;
        store.migrate().await?;
        store.close().await;
        Ok(())
    }

    /// Answers the requests that wait, stores what was noted, then closes the database.
    pub async fn close(&self) {
        self.inner.group_commit.close().await;
        self.store_notes().await;
        let tasks = std::mem::take(&mut *self.tasks());
        tasks.iter().for_each(AbortHandle::abort);
        if !tasks.is_empty() {
            wakeups::notify_now(self).await;
        }
        self.inner.node.leave(self.store(), self.now()).await;
        self.inner.store.close().await;
        if let Spools::Folder(folder) = &self.inner.spools {
            folder.disown();
        }
    }

    /// Stores what was noted in memory since the last time, so that a stop loses none of it. Nobody
    /// waits for long where the database doesn't answer.
    async fn store_notes(&self) {
        let stored = async {
            self.store_key_uses().await?;
            self.store_calls().await?;
            self.store_throttled().await
        };
        let stored = tokio::time::timeout(NOTES_TIMEOUT, stored).await;
        if !matches!(stored, Ok(Ok(()))) {
            tracing::warn!(
                detail = ?stored,
                "the last calls and uses of keys aren't stored at the stop"
            );
        }
    }

    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    pub fn entropy(&self) -> &Entropy {
        &self.inner.entropy
    }

    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// What commit groups did and how long they took.
    pub fn group_figures(&self) -> GroupFigures {
        self.inner.group_commit.figures()
    }

    /// Wakes the tasks that hand messages to carriers, after a carrier was drained or resumed.
    pub fn drained(&self) -> &Notify {
        &self.inner.wakeups.drained
    }

    /// Wakes the task that reroutes messages, after a carrier became usable or unusable, or a probe
    /// of a carrier was lost.
    pub fn routes_changed(&self) -> &Notify {
        &self.inner.routes_changed
    }

    /// Wakes all tasks that wait on this after each commit that put messages into the queue.
    pub fn queued(&self) -> &Notify {
        &self.inner.wakeups.queued
    }

    /// Wakes the task that expands uploads after each upload that is accepted.
    pub fn batch_accepted(&self) -> &Notify {
        &self.inner.wakeups.batch_accepted
    }

    /// Wakes the task that lets deferred messages go on, after each reinstatement.
    pub fn reinstated(&self) -> &Notify {
        &self.inner.wakeups.reinstated
    }

    /// Waits until nothing can be written any more, because what was written may not be on disk.
    /// The process should stop: what is on disk is consistent.
    pub async fn failed(&self) {
        self.store().failed().await;
    }

    /// Whether the database answers and stores what is written: on a full disk it only answers.
    pub async fn ping(&self) -> Result<()> {
        let service = self.clone();
        run_detached(async move {
            let now = service.now();
            let mut tx = service.store().begin_as(Priority::Verb).await?;
            // Deleted before the commit; its pages are written all the same.
            store::security_events::probe(&mut tx, now).await?;
            tx.commit().await
        })
        .await?;
        self.price_list().await.map(drop)
    }

    /// A secret that all processes of the installation share: what a form comes back in, to a
    /// browser without scripts, is sealed with it.
    pub async fn form_key(&self) -> Result<String> {
        let mut conn = self.store().read().await?;
        store::installation::form_key(&mut conn).await
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, Vec<AbortHandle>> {
        self.inner
            .tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a verb's work in a transaction of its own, which is committed when the work succeeds
    /// and rolled back otherwise. The time that the work is given is the transaction's beginning.
    async fn in_transaction<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut WriteTx<'_>, Timestamp) -> Work<'t, T> + Send + 'static,
    ) -> Result<T> {
        let service = self.clone();
        run_detached(async move {
            let mut tx = service.store().begin().await?;
            tx.asked_from(&service.client.address);
            let done = work(&mut tx, service.now()).await?;
            tx.commit().await?;
            Ok(done)
        })
        .await
    }

    /// Like [`Self::in_transaction`], in the shard of the application with this reference.
    async fn in_transaction_of<T: Send + 'static>(
        &self,
        reference: Reference,
        work: impl for<'t> FnOnce(&'t mut WriteTx<'_>, Timestamp) -> Work<'t, T> + Send + 'static,
    ) -> Result<T> {
        let shard = self.shard_of(reference).await?;
        self.in_transaction(move |tx, now| {
            tx.at(shard);
            work(tx, now)
        })
        .await
    }

    /// Does a chore in each shard.
    async fn do_chore<F>(&self, chore: Chore, priority: Priority, work: F) -> Result<()>
    where
        F: for<'t> Fn(&'t mut WriteTx<'_>, Timestamp) -> Work<'t, bool> + Copy + Send + 'static,
    {
        let doing = |shard| self.do_chore_at(shard, chore, priority, work);
        self.in_each_shard(doing).await.map(drop)
    }

    /// Does a chore in a shard, a part in each transaction, as long as the work says that more is
    /// left; does nothing while another process does the chore.
    async fn do_chore_at<F>(
        &self,
        shard: Shard,
        chore: Chore,
        priority: Priority,
        work: F,
    ) -> Result<()>
    where
        F: for<'t> Fn(&'t mut WriteTx<'_>, Timestamp) -> Work<'t, bool> + Copy + Send + 'static,
    {
        let mut more = true;
        while more {
            let service = self.clone();
            more = run_detached(async move {
                let tx = service.store().begin_chore(chore, shard, priority).await?;
                let Some(mut tx) = tx else { return Ok(false) };
                tx.at(shard);
                let more = work(&mut tx, service.now()).await?;
                tx.commit().await?;
                Ok(more)
            })
            .await?;
        }
        Ok(())
    }

    fn store(&self) -> &Store {
        &self.inner.store
    }

    fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// The next id that this process makes.
    fn next_id(&self, now: Timestamp) -> i64 {
        self.inner.ids.next(now, self.inner.node.slot())
    }
}

/// The work of a verb or a chore in its transaction.
type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 't>>;

/// What a verb does in a transaction, its own or that of another verb.
type Verb<T> = Box<dyn for<'t> FnOnce(&'t mut WriteTx<'_>, Timestamp) -> Work<'t, T> + Send>;

/// Waits after a part of long work for three times as long as the part took, since its beginning:
/// so that sends find the database free most of the time.
async fn leave_time(begun: Instant) {
    tokio::time::sleep(begun.elapsed() * 3).await;
}

/// How often work is tried that the database ends in favour of another process's work.
pub(crate) const ATTEMPTS: u32 = 6;

/// Like [`run_detached`], for work that several processes do on the same rows. Not all such work
/// can take its locks in one order: of two transactions that wait for each other the database ends
/// one, of which nothing is stored, and its work is tried again.
async fn run_detached_with_attempts<
    T: Send + 'static,
    W: Future<Output = Result<T>> + Send + 'static,
>(
    service: &Service,
    work: impl Fn(Service) -> W + Send + 'static,
) -> Result<T> {
    let service = service.clone();
    run_detached(async move {
        for _ in 1..ATTEMPTS {
            match work(service.clone()).await {
                Err(error) if error.is_conflict() => {
                    tracing::debug!(detail = ?error, "another process was in the way; trying \
                        again");
                }
                done => return done,
            }
        }
        work(service).await
    })
    .await
}

/// Runs a verb's work in a task of its own: the request's future may be dropped at any await, and
/// work that has begun must finish or roll back as a whole.
async fn run_detached<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    run_detached_within(WORK_TIMEOUT, work).await
}

/// Like [`run_detached`], for work that may take longer.
async fn run_detached_within<T: Send + 'static>(
    time: Duration,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let timed = tokio::time::timeout(time, work).in_current_span();
    let done = tokio::spawn(timed)
        .await
        .map_err(|failed| Uncertain::Task(failed.to_string()))?;
    done.unwrap_or(Err(Uncertain::TimedOut.into()))
}

/// Runs work that blocks on a thread for such work.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|failed| Fault::Task(failed.to_string()).into())
}

/// How long work may take before the database counts as gone: a server without power or network
/// says nothing. The limit is longer than a commit and asking for its outcome may take.
const WORK_TIMEOUT: Duration = Duration::from_mins(3);
/// How long a stop waits for what was noted in memory to be stored.
const NOTES_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the statements before a commit may take before the database counts as gone.
pub(crate) const STATEMENTS_TIMEOUT: Duration = Duration::from_secs(40);
