//! The service's verbs, called by this process: what a claim takes can be seen nowhere else.

use std::fmt::Write as _;

use domain::{
    ApiKey, BulkMode, BulkWriting, Category, Email, MessageStatus, MessageText, Money, Number,
    Password, Prices,
};
use service::{
    Actor, BatchOrder, Claimed, Clock, Config, DepositOrder, Entropy, Lease, Limits, Network,
    Receipt, SANDBOX_CARRIER, SendRequest, Service, SubmitOutcome, Submitted,
};
use tempfile::TempDir;

use super::cluster::Cluster;

/// More than anybody spends here.
const DEPOSIT: &str = "100000000";
const PIECE: usize = 64 * 1024;

/// A service with an Active, funded application, whose messages wait for the sandbox.
pub struct Verbs {
    pub service: Service,
    key: ApiKey,
    folder: TempDir,
}

impl Verbs {
    pub async fn on(cluster: &Cluster) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let service = Service::open(config(cluster, &folder)).await.unwrap();
        let key = funded(&service).await;
        Self {
            service,
            key,
            folder,
        }
    }

    /// One more on the same database.
    pub async fn another(&self, cluster: &Cluster) -> Service {
        Service::open(config(cluster, &self.folder)).await.unwrap()
    }

    /// Fills the queue by an upload of so many rows.
    pub async fn queue(&self, rows: usize) {
        let mut file = String::new();
        for n in 0..rows {
            let number = 57_000_000 + n;
            writeln!(file, "{number},Hello, your code is {n:06}").unwrap();
        }
        let service = &self.service;
        let ticket = service.begin_bulk(Some(self.key.expose()), None);
        let ticket = ticket.await.unwrap();
        let upload = ticket.upload(BulkMode::OneToOne, BulkWriting::Plain);
        let mut upload = upload.await.unwrap();
        for piece in file.as_bytes().chunks(PIECE) {
            upload.write(piece).await.unwrap();
        }
        let spooled = upload.finish().await.unwrap();
        let order = BatchOrder {
            message: None,
            requestid: None,
            dry_run: false,
        };
        let accepted = service.accept_batch(&ticket, spooled, order).await;
        assert!(accepted.is_ok(), "{accepted:?}");
        while let Some(id) = service.next_unexpanded(None).await.unwrap() {
            service.expand(id).await.unwrap();
        }
    }

    /// A message to be sent.
    pub fn request(&self) -> SendRequest {
        SendRequest {
            key: self.key.clone(),
            number: Number::parse("57000001").unwrap(),
            message: MessageText::parse("Hello there".to_owned(), 10).unwrap(),
            requestid: None,
            idempotency: None,
            dry_run: false,
        }
    }
}

/// Stores that the carrier took claimed messages.
pub async fn record_taken(service: &Service, lease: Lease, claimed: &[Claimed]) {
    let results = claimed.iter().map(|message| Submitted {
        id: message.id,
        application_id: message.application_id,
        lease,
        segments: 1,
        outcomes: vec![(
            1,
            SubmitOutcome::Accepted {
                carrier_message_id: None,
            },
        )],
    });
    let taken = service.record_submitted(SANDBOX_CARRIER, results.collect());
    assert_eq!(taken.await.unwrap().len(), claimed.len());
}

/// Stores that they were delivered.
pub async fn record_delivered(service: &Service, claimed: &[Claimed]) {
    let receipts = claimed.iter().map(|message| Receipt {
        id: message.id,
        application_id: message.application_id,
        status: MessageStatus::Delivered,
        error: None,
    });
    service.record_receipts(receipts.collect()).await.unwrap();
}

fn config(cluster: &Cluster, folder: &TempDir) -> Config {
    let money = |text| Money::parse(text).unwrap();
    Config {
        database_url: cluster.url().to_owned(),
        prices: Prices::new(money("0.05"), money("0.25")).unwrap(),
        currency: "USD".to_owned(),
        data_dir: folder.path().join("data"),
        network: Network::sandbox("266".to_owned(), "Heliograph".to_owned()),
        limits: Limits::default(),
        clock: Clock::system(),
        entropy: Entropy::system(),
    }
}

async fn funded(service: &Service) -> ApiKey {
    let (email, password) = (
        Email::parse("bench@example.org").unwrap(),
        Password::parse("correct horse battery").unwrap(),
    );
    let account = service.register(&email, &password, "127.0.0.1").await;
    let new = service.create_application(account.unwrap().id, Category::Sms, None);
    let new = new.await.unwrap();
    let actor = Actor::CommandLine;
    service.approve(&actor, new.reference).await.unwrap();
    let order = DepositOrder {
        bank_id: "bench".to_owned(),
        reference: new.reference.as_str().to_owned(),
        amount: Money::parse(DEPOSIT).unwrap(),
    };
    service.add_deposit(&actor, &order).await.unwrap();
    new.live_key
}
