//! A service on its own database.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::records::{AccountRecord, MessageDetail};
use domain::{
    ApiKey, Category, Email, KeyKind, MessageStatus, MessageText, Money, Number, Password, Prices,
    Reference, Schedule, SenderName, Timestamp, Transid,
};
use service::{
    Actor, Clock, Config, DepositRequest, Entropy, IdempotencyKey, KeyAccess, Lease, Limits,
    MailSettings, Network, Origin, SendError, SendRequest, Sent, Service, StatementFilter,
    Submitted,
};
use tempfile::TempDir;

use crate::database::{Backend, Database};

/// 2026-01-01T00:00:00Z.
pub const START_MS: i64 = 1_767_225_600_000;
pub const HOUR_MS: i64 = 3_600_000;
pub const PASSWORD: &str = "correct horse battery";

pub struct World {
    pub service: Service,
    pub clock: Arc<AtomicI64>,
    pub folder: TempDir,
    pub database: Database,
    /// How many times the service was opened. Seeds the randomness of each process.
    pub opened: u64,
    pub network: Network,
    /// Takes effect when the service is opened next.
    pub limits: Limits,
    pub mail: MailSettings,
}

/// An application with its keys and the account that owns it.
#[derive(Clone)]
pub struct Customer {
    pub account: AccountRecord,
    pub reference: Reference,
    pub live: ApiKey,
    pub test: ApiKey,
}

impl World {
    /// Opens a service with the sandbox as the only carrier.
    pub async fn new(backend: Backend) -> Self {
        let network = Network::sandbox("266".to_owned(), "Heliograph".to_owned());
        Self::with(backend, network).await
    }

    pub async fn with(backend: Backend, network: Network) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::make(backend, folder.path()).await;
        Self::on(database, folder, network).await
    }

    /// Opens a service on an existing database.
    pub async fn on(database: Database, folder: TempDir, network: Network) -> Self {
        let clock = Arc::new(AtomicI64::new(START_MS));
        let config = config(&folder, &database, &clock, 1, network.clone());
        let service = Service::open(config).await.unwrap();
        Self {
            service,
            clock,
            folder,
            database,
            opened: 1,
            network,
            limits: Limits::default(),
            mail: MailSettings::default(),
        }
    }

    /// Opens a service with a mail server in its settings.
    pub async fn mailing(backend: Backend) -> Self {
        let mut world = Self::new(backend).await;
        world.mail = MailSettings {
            base_url: "https://sms.example.org".to_owned(),
            is_set_up: true,
            support_contact: None,
            support_hours: None,
        };
        world.reopen().await
    }

    /// Sets the carriers and routes that the service has once it is opened again.
    pub fn set_network(&mut self, network: Network) {
        self.network = network;
    }

    /// Closes the service and opens it again.
    pub async fn reopen(self) -> Self {
        self.service.close().await;
        let opened = self.opened + 1;
        let network = self.network.clone();
        let config = Config {
            limits: self.limits,
            mail: self.mail.clone(),
            ..config(&self.folder, &self.database, &self.clock, opened, network)
        };
        let service = Service::open(config).await.unwrap();
        Self { service, opened, ..self }
    }

    pub fn config(&self) -> Config {
        let network = self.network.clone();
        Config {
            mail: self.mail.clone(),
            ..config(&self.folder, &self.database, &self.clock, self.opened, network)
        }
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.clock.load(Ordering::Relaxed))
    }

    /// Records the results of submits under this lease.
    pub async fn record(
        &self,
        carrier: &str,
        lease: &Lease,
        results: Vec<Submitted>,
    ) -> Vec<Transid> {
        let held = |result| Submitted { lease: *lease, ..result };
        let results = results.into_iter().map(held).collect();
        let service = &self.service;
        service.delivery().record_submitted(carrier, results).await.unwrap()
    }

    /// Expands every upload into messages.
    pub async fn expand_all(&self) {
        while let Some(id) = self.service.messages().next_unexpanded(None).await.unwrap() {
            self.service.messages().expand(id).await.unwrap();
        }
    }

    pub fn pass(&self, ms: i64) {
        self.clock.fetch_add(ms, Ordering::Relaxed);
    }

    pub async fn account(&self, email: &str) -> AccountRecord {
        let email = Email::parse(email).unwrap();
        self.service.accounts().register(&email, &password(PASSWORD), "127.0.0.1").await.unwrap()
    }

    /// Registers a customer with a Pending SMS application without money.
    pub async fn pending(&self, email: &str) -> Customer {
        self.pending_as(email, None).await
    }

    /// Like [`World::pending`], with a sender name.
    pub async fn pending_as(&self, email: &str, sender: Option<&str>) -> Customer {
        let account = self.account(email).await;
        let new = self
            .service
            .applications()
            .create_application(account.id, Category::Sms, sender.map(name).as_ref())
            .await
            .unwrap();
        Customer { account, reference: new.reference, live: new.live_key, test: new.test_key }
    }

    /// Registers a customer with an Active SMS application and this balance.
    pub async fn active(&self, email: &str, balance: &str) -> Customer {
        let customer = self.pending(email).await;
        self.activate(&customer, balance).await;
        customer
    }

    /// Approves a customer's application, and deposits this balance.
    pub async fn activate(&self, customer: &Customer, balance: &str) {
        self.service.applications().approve(&Actor::CommandLine, customer.reference).await.unwrap();
        if balance != "0" {
            let bank_id = format!("first of {}", customer.account.email);
            self.deposit(&bank_id, customer.reference, balance).await;
        }
    }

    pub async fn deposit(&self, bank_id: &str, reference: Reference, amount: &str) {
        let order = order(bank_id, reference.as_str(), amount);
        self.service.money().add_deposit(&Actor::CommandLine, &order).await.unwrap();
    }

    pub async fn send(&self, key: &ApiKey, number: &str) -> Result<Sent, SendError> {
        self.service.messages().send(request(key, number, "hello")).await
    }

    pub async fn access(&self, key: &ApiKey) -> KeyAccess {
        self.service.messages().authorize(Some(key.expose())).await.unwrap()
    }

    pub async fn balance(&self, key: &ApiKey) -> Money {
        self.service.messages().balance(&self.access(key).await).await.unwrap()
    }

    /// Returns a message of the live key, with its timeline and charge.
    pub async fn message(&self, customer: &Customer, id: Transid) -> MessageDetail {
        let access = self.access(&customer.live).await;
        let found = self.service.messages().message(&access, id).await.unwrap();
        found.unwrap()
    }

    pub async fn status(&self, customer: &Customer, id: Transid) -> MessageStatus {
        self.message(customer, id).await.record.status
    }

    /// Asserts that every invariant holds.
    pub async fn assert_sound(&self) {
        assert_eq!(self.service.operations().check().await.unwrap(), Vec::<String>::new());
    }
}

fn config(
    folder: &TempDir,
    database: &Database,
    clock: &Arc<AtomicI64>,
    opened: u64,
    network: Network,
) -> Config {
    Config {
        database_url: database.url(),
        prices: prices("0.05", "0.25"),
        currency: "USD".to_owned(),
        data_dir: folder.path().join("data"),
        network,
        limits: Limits::default(),
        mail: MailSettings::default(),
        endpoints: service::EndpointRules::default(),
        opt_outs: service::OptOutSettings::default(),
        clock: Clock::fixed(Arc::clone(clock)),
        entropy: Entropy::seeded(clock.load(Ordering::Relaxed).cast_unsigned() ^ opened),
    }
}

pub fn prices(local: &str, international: &str) -> Prices {
    Prices::new(money(local), money(international)).unwrap()
}

pub fn money(text: &str) -> Money {
    Money::parse(text).unwrap()
}

pub fn password(text: &str) -> Password {
    Password::parse(text).unwrap()
}

pub fn name(text: &str) -> SenderName {
    SenderName::parse(text).unwrap()
}

pub fn order(bank_id: &str, reference: &str, amount: &str) -> DepositRequest {
    DepositRequest {
        bank_id: bank_id.to_owned(),
        reference: reference.to_owned(),
        amount: money(amount),
    }
}

pub fn request(key: &ApiKey, number: &str, text: &str) -> SendRequest {
    SendRequest {
        key: key.clone(),
        number: Number::parse(number).unwrap(),
        message: MessageText::parse(text.to_owned(), 10).unwrap(),
        requestid: None,
        schedule: Schedule::default(),
        idempotency: None,
        dry_run: false,
        origin: Origin::default(),
    }
}

/// Adds an idempotency key to a request.
pub fn keyed(key: &str, request: SendRequest) -> SendRequest {
    SendRequest { idempotency: Some(IdempotencyKey::parse(key).unwrap()), ..request }
}

/// Returns a well-formed key that belongs to nobody.
pub fn stranger(reference: Reference) -> ApiKey {
    ApiKey::from_entropy(reference, KeyKind::Live, [7; 32])
}

/// A filter for a page of an application's whole statement.
pub fn whole(cursor: Option<&str>, limit: i64) -> StatementFilter<'_> {
    StatementFilter { cursor, limit, ..StatementFilter::default() }
}
