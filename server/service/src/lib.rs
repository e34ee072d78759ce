//! The operations of Heliograph, which the code calls verbs: register, create an application, send,
//! claim, credit a deposit.
//!
//! A verb changes the database in a transaction of its own, so its work happens completely or not
//! at all. Long work, such as an import, takes several transactions. Only `store` contains SQL.
//! Time and randomness come from [`Clock`] and [`Entropy`], so that tests control both.

mod accounts;
mod admission;
mod application_events;
mod applications;
mod cancelling;
mod clock;
mod delivery;
mod entropy;
mod erasure;
mod group_commit;
mod id_source;
mod inbound;
mod limits;
mod mail;
mod money;
mod operations;
mod opt_outs;
mod prices;
mod reports;
mod shards;
mod support;
mod test_clocks;
mod token;
mod transactions;
mod uploads;
mod verify;
mod wakeups;
mod webhooks;
pub mod zones;

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::support_hours::SupportHours;
use domain::{Prices, Timestamp};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use accounts::changes::Changes;
use accounts::password::Hasher;
use accounts::sealing::Sealing;
use accounts::throttle::Throttle;
use admission::rates::Rates;
use applications::alarms::Alarms;
use applications::call_log::CallLog;
use applications::key_uses::KeyUses;
use applications::pumping::Pumping;
use delivery::SegmentShards;
use delivery::figures::Figures;
use delivery::raw_receipts::RawReceipts;
use delivery::routing::Router;
use delivery::scan_starts::ScanStarts;
use delivery::unmatched_ids::UnmatchedIds;
use delivery::waiting_receipts::{ComparedForms, UnmatchedRuns};
use group_commit::GroupCommit;
use id_source::IdSource;
use operations::last_commit::LastCommit;
use operations::nodes::Node;
use prices::known::KnownPrices;
use reports::settled::SettledDays;
use reports::shares::SearchShares;
use shards::Shards;
use store::gate::Priority;
use store::{Missing, Store};
use uploads::Uploads;
use uploads::spool_folder::SpoolFolder;
use uploads::spool_store::Spools;
use wakeups::Wakeups;
use webauthn_rs::Webauthn;

pub use accounts::devices::SessionRow;
pub use accounts::key_check::KeyPlace;
pub use accounts::known_device::account_of_device;
pub use accounts::second_factor::{FactorState, RECOVERY_CODES, SecondStep, TotpSecret};
pub use accounts::security_events::ClientInfo;
pub use accounts::staff::{AccountChange, AccountDetail};
pub use accounts::throttle::Networks;
pub use admission::code::SentCode;
pub use admission::idempotency::{IDEMPOTENCY_KEY_CHARS_MAX, IdempotencyKey};
pub use admission::rates::RateState;
pub use admission::{KeyAccess, Origin, Presented, SendAccess, SendError, SendRequest, Sent};
pub use applications::call_log::ApiCall;
pub use applications::limits::{ChangedLimits, LimitsAuthor};
pub use applications::trials::LimitTrial;
pub use applications::{NewApplication, StatementFilter};
pub use cancelling::batches::{BatchChange, ChangedBatch};
pub use cancelling::{CancelTarget, Cancelled, StopAuthor};
pub use clock::Clock;
pub use delivery::commands::{
    ANSWERS_PAUSE, ANSWERS_TIMEOUT, AnswerState, CarrierCommand, CommandAnswer, TestCommand,
    TraceCommand,
};
pub use delivery::ended_leases::Leases;
pub use delivery::outcomes::SubmitOutcome;
pub use delivery::raw_receipts::RawReceipt;
pub use delivery::receipts::{
    CARRIER_MESSAGE_ID_CHARS_MAX, CarrierReceipt, Receipt, ReceiptMatch, WrittenReceipt,
    message_ids, user_reference,
};
pub use delivery::route_trial::{RouteTrial, TrialMessage, TriedRoute};
pub use delivery::routing::{CarrierInfo, NamedState, NamedStates, Network};
pub use delivery::test_messages::TestReceipt;
pub use delivery::waiting_receipts::ReceiptFilter;
pub use delivery::{BATCHES_SHARE, Claimed, Lease, Submitted};
pub use entropy::Entropy;
pub use erasure::{Erasure, NumberExport};
pub use group_commit::{Consumer, Credit, GroupFigures, Histogram, InboxDepth};
pub use inbound::{InboundContent, InboundDelivery, InboundFilter, ReceivedTest, TestInbound};
pub use limits::{DEFAULT_SETTINGS, FactorRule, Limits};
pub use mail::{MailCounts, MailSettings, OutgoingMail};
pub use money::deposits::{DepositOutcome, DepositRequest, DepositStatus};
pub use money::statement_file::BadStatement;
pub use money::statements::{CreditedLines, StatementFile};
pub use operations::copy::{Copied, CopiedSum, CopiedTable, CopyError};
pub use operations::distribute::{
    DistributeError, Distributed, DistributionPlan, DistributionStep,
};
pub use operations::examination::{Examination, Installation, UselessReceipts, examine};
pub use operations::hold::{Export, Hold, Reconciled, Reconciliation, Rest};
pub use operations::reconciling::ExportLine;
pub use opt_outs::numbers::NumberList;
pub use opt_outs::settings::{InvalidOptOutSettings, OptOutSettings};
pub use opt_outs::{ChangedOptOuts, OptOutAuthor, OptOutChange, OptOutFilter};
pub use reports::MessageFilter;
pub use reports::figures::FiguresByPeriod;
pub use store::audit::Actor;
pub use store::dialect::{file_of_url, without_password};
pub use store::error::{Error, Fault, OpenError, Refusal, Result, Uncertain};
pub use store::history::MessageTables;
pub use store::queue::QueueState;
pub use store::reach::unprotected_host;
pub use store::statements::BankColumns;
pub use store::submits::Outstanding;
pub use support::audit::AuditFilter;
pub use support::messages::UnknownMessage;
pub use support::settling::Settlement;
pub use test_clocks::{ClockChange, MovedClock};
pub use uploads::acceptance::{AcceptedBatch, BatchRequest};
pub use uploads::batches::BatchFilter;
pub use uploads::file_check::{CheckedFile, FileCheck};
pub use uploads::number_file::NumberFile;
pub use uploads::upload_slots::{
    CHECKS_PER_APPLICATION, TEST_UPLOADS_MAX, UPLOADS_PER_APPLICATION,
};
pub use uploads::{Spooled, Upload, UploadError, UploadPermit};

pub use verify::{
    Checked, CodeDefaults, CodeSettings, StartError, StartOf, StartRequest, VerificationRecord,
    VerifyFigures,
};
pub use webhooks::address::{EndpointRules, EndpointUrl, URL_CHARS_MAX};
pub use webhooks::attempts::{COUNTED_DAYS, COUNTED_MAX};
pub use webhooks::delivery::{Attempt, BATCH_MS, DueEvent, EventBatch, LeasedWebhook, TestBegun};
pub use webhooks::endpoints::{ChangedWebhook, WebhookChange};
pub use webhooks::events::{EventData, EventFilter, EventPage, EventRecord};
pub use webhooks::secret::WebhookSecret;

pub(crate) use transactions::{
    ATTEMPTS, STATEMENTS_TIMEOUT, Verb, leave_time, run_blocking, run_detached,
    run_detached_with_attempts, run_detached_within,
};

pub use domain::schedule::LIFETIME_MS as MESSAGE_LIFETIME_MS;
/// The carrier that always exists. It delivers to nobody, and messages of test keys go to no other
/// carrier.
pub const SANDBOX_CARRIER: &str = "sandbox";

/// The configuration of a [`Service`].
#[derive(Clone, Debug)]
pub struct Config {
    /// `sqlite:PATH` or `postgres://…`. A missing SQLite file is created together with its folder.
    /// Any number of processes may serve a PostgreSQL database.
    pub database_url: String,
    /// The base prices. They come into force at this start if they differ from the stored ones,
    /// unless prices have been set at the support desk or by command.
    pub prices: Prices,
    /// The ISO 4217 code. It must be the same at every start.
    pub currency: String,
    /// The folder for what isn't in the database: the file `secret.key`, with SQLite the uploads
    /// whose rows aren't messages yet, and with PostgreSQL the file `last_commit`.
    pub data_dir: PathBuf,
    pub network: Network,
    pub limits: Limits,
    pub mail: MailSettings,
    pub endpoints: EndpointRules,
    pub opt_outs: OptOutSettings,
    pub clock: Clock,
    pub entropy: Entropy,
}

/// The timeout of `store_notes`.
const NOTES_TIMEOUT: Duration = Duration::from_secs(2);

/// The service. Clones share all of its state.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
    /// The client that sent the request, for audit entries and security events.
    client: Arc<ClientInfo>,
    /// The cookie that an earlier sign-in left in the client's browser.
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
    alarms: Alarms,
    pumping: Pumping,
    settled_days: SettledDays,
    limits: Limits,
    mail: MailSettings,
    endpoint_rules: EndpointRules,
    opt_outs: OptOutSettings,
    group_commit: GroupCommit,
    rates: Rates,
    spools: Spools,
    uploads: Uploads,
    searches: SearchShares,
    unpaid: operations::unpaid::LastUse,
    recounts: operations::recount::LastRecounts,
    inbound_counts: inbound::InboundCounts,
    router: Router,
    figures: Figures,
    prices: KnownPrices,
    scan_starts: ScanStarts,
    routes_changed: Notify,
    wakeups: Arc<Wakeups>,
    unmatched_ids: UnmatchedIds,
    pub(crate) compared_forms: ComparedForms,
    pub(crate) unmatched_runs: UnmatchedRuns,
    raw_receipts: RawReceipts,
    segment_shards: SegmentShards,
    node: Node,
    shards: Shards,
    sealing: Sealing,
    /// Verifies passkeys. `None` if browsers can't create passkeys for this site.
    relying_party: Option<Webauthn>,
    /// The tasks that send wakeups to other processes and receive theirs. Empty if there can be no
    /// other processes.
    tasks: Mutex<Vec<AbortHandle>>,
}

impl From<Arc<Inner>> for Service {
    /// Returns a service for work that no client requested.
    fn from(inner: Arc<Inner>) -> Self {
        Self { inner, client: Arc::default(), device_cookie: None }
    }
}

impl Service {
    /// Connects to the database, migrates it, records the currency and prices, and starts group
    /// commit.
    ///
    /// # Errors
    /// Fails if the database can't be used, belongs to a newer release, or has another currency.
    pub async fn open(config: Config) -> std::result::Result<Self, OpenError> {
        Self::open_as(config, Missing::Make).await
    }

    /// Like [`Service::open`], for a command that may run next to a server. The database must exist
    /// and have the schema of this release. The recorded prices and currency stay as they are.
    ///
    /// # Errors
    /// Fails if the database is missing, can't be used, or belongs to another release.
    pub async fn open_beside(config: Config) -> std::result::Result<Self, OpenError> {
        Self::open_as(config, Missing::Refuse).await
    }

    async fn open_as(config: Config, missing: Missing) -> std::result::Result<Self, OpenError> {
        let store = Store::open(&config.database_url, missing).await?;
        let beside = missing == Missing::Refuse;
        // A command never changes the schema, because a running server may belong to another
        // release.
        if beside {
            store.must_be_usable().await?;
        } else {
            store.serve_alone()?;
            store.migrate().await?;
        }
        operations::nodes::follow_server(&store, &config.clock).await?;
        let now = config.clock.now();
        operations::upkeep::install(&store, &config, beside, now).await?;
        let shards = operations::upkeep::shards(&store).await?;
        let (last_id, last_of_batches) = operations::upkeep::last_ids(&store, shards, now).await?;
        let last = last_id.max(last_of_batches);
        let place = operations::hold::begin_if_moved(&store, last, now).await?;
        if !beside {
            operations::history::make_first_days(&store, now, config.limits.message_tables).await;
        }
        let shared = store.dialect().is_shared();
        let token = (config.entropy.number() >> 1).cast_signed().max(1);
        let node = if beside || !shared {
            Node::Alone
        } else {
            let last_commit = LastCommit::read(&config.data_dir, token);
            last_commit.renew(&store, place, last, now).await?;
            Node::join(&store, last_commit, token, now).await?
        };
        // This check runs after the node has taken its slot, so a distribution that begins later
        // finds the node and refuses to run.
        if let Err(error) = operations::distribute::check(&store).await {
            node.leave(&store, now).await;
            return Err(error);
        }
        let readers = usize::try_from(store.dialect().readers()).unwrap_or(1);
        let service = Self::from(Arc::new(Inner {
            store,
            clock: config.clock.clone(),
            ids: IdSource::after(last_id, last_of_batches),
            hasher: Hasher::new(&config.entropy)?,
            throttle: Throttle::new(&config.limits),
            changes: Changes::new(&config.limits),
            key_uses: KeyUses::default(),
            call_log: CallLog::default(),
            alarms: Alarms::default(),
            pumping: Pumping::default(),
            settled_days: SettledDays::default(),
            sealing: Sealing::within(&config.data_dir),
            entropy: config.entropy,
            rates: Rates::new(config.limits.requests_per_second, shared),
            limits: config.limits,
            relying_party: accounts::passkeys::relying_party(&config.mail.base_url),
            mail: config.mail,
            endpoint_rules: config.endpoints,
            opt_outs: config.opt_outs,
            group_commit: GroupCommit::new(usize::try_from(shards).unwrap_or(1)),
            spools: if shared {
                Spools::Table
            } else {
                Spools::Folder(SpoolFolder::within(&config.data_dir))
            },
            uploads: Uploads::default(),
            searches: SearchShares::new(readers),
            unpaid: Mutex::default(),
            recounts: Mutex::default(),
            inbound_counts: inbound::InboundCounts::default(),
            router: Router::new(config.network, config.clock),
            figures: Figures::default(),
            prices: KnownPrices::default(),
            scan_starts: ScanStarts::default(),
            routes_changed: Notify::new(),
            wakeups: Arc::default(),
            unmatched_ids: UnmatchedIds::default(),
            compared_forms: ComparedForms::default(),
            unmatched_runs: UnmatchedRuns::default(),
            raw_receipts: RawReceipts::default(),
            segment_shards: SegmentShards::default(),
            node,
            shards: Shards::new(shards),
            tasks: Mutex::default(),
        }));
        if !beside {
            service.messages().sweep_spools().await?;
        }
        group_commit::spawn(&service).map_err(OpenError::Thread)?;
        if shared {
            let tasks = wakeups::spawn(&service, !beside);
            *service.tasks() = tasks;
        }
        Ok(service)
    }

    /// Migrates the database and does nothing else. A SQLite database must not be served meanwhile.
    ///
    /// # Errors
    /// Fails if the database can't be used, is served by another process, or belongs to a newer
    /// release.
    pub async fn migrate(database_url: &str) -> std::result::Result<(), OpenError> {
        let store = Store::open(database_url, Missing::Make).await?;
        store.serve_alone()?;
        store.migrate().await?;
        store.close().await;
        Ok(())
    }

    /// Answers the pending requests, stores the API calls, key uses, alarms, throttled attempts,
    /// carriers' figures and raw receipts that are still in memory, and closes the database.
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

    /// Stores the API calls, key uses, alarms, throttled attempts, carriers' figures and raw
    /// receipts that are still in memory, so that a stop doesn't lose them. Gives up after
    /// [`NOTES_TIMEOUT`] if the database doesn't answer.
    async fn store_notes(&self) {
        let stored = async {
            self.applications().store_key_uses().await?;
            self.applications().store_calls().await?;
            self.applications().store_alarms().await?;
            self.accounts().store_throttled().await?;
            self.delivery().store_carrier_figures().await?;
            while self.delivery().store_raw_receipts().await?.is_some() {}
            Ok(())
        };
        let stored = tokio::time::timeout(NOTES_TIMEOUT, stored).await;
        if !matches!(stored, Ok(Result::Ok(()))) {
            tracing::warn!(
                detail = ?stored,
                "couldn't store the latest API calls, key uses and figures before stopping"
            );
        }
    }

    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    pub fn entropy(&self) -> &Entropy {
        &self.inner.entropy
    }

    /// Returns how customers reach support, as lines of text.
    pub fn support_contact(&self) -> Option<&str> {
        self.inner.mail.support_contact.as_deref()
    }

    /// Returns the hours in which staff answer, if the operator has set them.
    pub(crate) fn support_hours(&self) -> Option<&SupportHours> {
        self.inner.mail.support_hours.as_ref()
    }

    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Returns the counts and durations of commit groups.
    pub fn group_figures(&self) -> GroupFigures {
        self.inner.group_commit.figures()
    }

    /// Returns the [`Notify`] for the tasks that submit messages. It wakes all of them after a
    /// carrier was drained or resumed, and after a hold began or ended.
    pub fn drained(&self) -> &Notify {
        &self.inner.wakeups.drained
    }

    /// Returns the [`Notify`] for the task that reroutes messages. It fires after a carrier became
    /// usable or unusable, or after a probe of a carrier was lost.
    pub fn routes_changed(&self) -> &Notify {
        &self.inner.routes_changed
    }

    /// Returns the [`Notify`] for tasks that wait for the queue. It wakes all of them after
    /// messages were put into the queue, unless a commit group of this process put them there.
    pub fn queued(&self) -> &Notify {
        &self.inner.wakeups.queued
    }

    /// Returns the [`Notify`] for the task that expands uploads. It fires after an upload was
    /// accepted, paused, resumed or cancelled, and after the clock of a test key was moved.
    pub fn batch_accepted(&self) -> &Notify {
        &self.inner.wakeups.batch_accepted
    }

    /// Returns the [`Notify`] for the tasks that follow the clocks of test keys. It wakes all of
    /// them after a clock was moved.
    pub fn clock_moved(&self) -> &Notify {
        &self.inner.wakeups.clock_moved
    }

    /// Returns the [`Notify`] for the task that requeues deferred messages. It fires after an
    /// application was reinstated or an account was enabled.
    pub fn reinstated(&self) -> &Notify {
        &self.inner.wakeups.reinstated
    }

    /// Waits until the service can't write any more, which happens if earlier writes may not have
    /// reached the disk. The process should then exit. The data on disk is consistent.
    pub async fn failed(&self) {
        self.store().failed().await;
    }

    /// Checks that the database answers queries and stores writes. On a full disk it answers but
    /// doesn't store.
    pub async fn ping(&self) -> Result<()> {
        let service = self.clone();
        run_detached(async move {
            let now = service.now();
            let mut tx = service.store().begin_as(Priority::Verb).await?;
            // The probe's row is deleted before the commit, but its pages are written anyway.
            store::security_events::probe(&mut tx, now).await?;
            tx.commit().await
        })
        .await?;
        self.money().price_list().await.map(drop)
    }

    /// Returns a secret that all processes of the installation share. It seals the content of a
    /// form that is sent back to a browser without scripts.
    pub async fn form_key(&self) -> Result<String> {
        let mut conn = self.store().read().await?;
        store::installation::form_key(&mut conn).await
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, Vec<AbortHandle>> {
        self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> &Store {
        &self.inner.store
    }

    fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Returns the home country's code, which is put before local numbers for carriers.
    pub fn country_code(&self) -> &str {
        &self.inner.router.country_code
    }

    /// Returns a new ID of this process.
    fn next_id(&self, now: Timestamp) -> i64 {
        self.inner.ids.next(now, self.inner.node.slot())
    }
}

macro_rules! subjects {
    ($($(#[$doc:meta])* $subject:ident, $method:ident;)*) => {
        $(
            $(#[$doc])*
            pub struct $subject<'a>(&'a Service);

            impl Deref for $subject<'_> {
                type Target = Service;

                fn deref(&self) -> &Service {
                    self.0
                }
            }
        )*

        impl Service {
            $(
                $(#[$doc])*
                pub fn $method(&self) -> $subject<'_> {
                    $subject(self)
                }
            )*
        }
    };
}

subjects! {
    /// Registration, sign-in, devices, second factors, and what an owner does with an account.
    Accounts, accounts;
    /// Applications with their keys, sender names and decisions of staff.
    Applications, applications;
    /// Deposits, bank statements and prices.
    Money, money;
    /// Sends, uploads and reports.
    Messages, messages;
    /// Claims, results, receipts, carriers and routes.
    Delivery, delivery;
    /// The support desk: search, audit log, approvals, messages and accounts as staff see them.
    Support, support;
    /// The periodic work, mails, nodes, history and the check.
    Operations, operations;
    /// Events: the list that programs poll, endpoints, and deliveries to them.
    Webhooks, webhooks;
}
