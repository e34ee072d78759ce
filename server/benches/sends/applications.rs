//! Creates further applications beside the demo's. It calls the service directly, because the
//! command line has no command for this: customers create applications in the portal.

use std::path::Path;

use domain::limits::LimitsChange;
use domain::{Category, Email, Money, Password, Prices};
use service::{
    Actor, Clock, Config, DepositRequest, Entropy, Limits, LimitsAuthor, Network, NewApplication,
    Service,
};

use crate::server::DEPOSIT;
use crate::stored::block_on;

/// Creates `count` Active applications with a balance, each in an account of its own, and returns
/// their live keys. No server may be running on the database if it is SQLite.
pub fn make(count: usize, database_url: &str, data_dir: &Path) -> Vec<String> {
    with_service(database_url, data_dir, async |service| {
        let mut keys = Vec::new();
        for number in 0..count {
            keys.push(make_one(service, number).await);
        }
        keys
    })
}

/// Creates an application like those of [`make`], with limits, and returns its live key.
pub fn make_limited(limits: LimitsChange, database_url: &str, data_dir: &Path) -> String {
    with_service(database_url, data_dir, async |service| {
        let (account_id, new) = register(service, "limited@example.org").await;
        fund(service, &new, "limited").await;
        let author = LimitsAuthor::Owner(account_id);
        service.applications().change_limits(new.reference, author, limits).await.unwrap();
        new.live_key.expose().to_owned()
    })
}

/// Creates a Pending application in an account of its own and returns its test key.
pub fn make_pending(database_url: &str, data_dir: &Path) -> String {
    with_service(database_url, data_dir, async |service| {
        let (_, new) = register(service, "pending@example.org").await;
        new.test_key.expose().to_owned()
    })
}

fn with_service<T>(url: &str, data_dir: &Path, work: impl AsyncFnOnce(&Service) -> T) -> T {
    block_on(async {
        let service = Service::open(config(url, data_dir)).await.unwrap();
        let done = work(&service).await;
        service.close().await;
        done
    })
}

fn config(database_url: &str, data_dir: &Path) -> Config {
    let money = |text| Money::parse(text).unwrap();
    Config {
        database_url: database_url.to_owned(),
        prices: Prices::new(money("0.05"), money("0.25")).unwrap(),
        currency: "USD".to_owned(),
        data_dir: data_dir.to_owned(),
        network: Network::sandbox("266".to_owned(), "Heliograph".to_owned()),
        // All accounts are registered from one address.
        limits: Limits { registrations_max: 10_000, ..Limits::default() },
        mail: service::MailSettings::default(),
        endpoints: service::EndpointRules::default(),
        opt_outs: service::OptOutSettings::default(),
        clock: Clock::system(),
        entropy: Entropy::system(),
    }
}

/// Creates an account with an application. Returns the ID of the account too.
async fn register(service: &Service, email: &str) -> (i64, NewApplication) {
    let email = Email::parse(email).unwrap();
    let password = Password::parse("correct horse battery").unwrap();
    let account = service.accounts().register(&email, &password, "127.0.0.1").await;
    let account_id = account.unwrap().id;
    let applications = service.applications();
    let new = applications.create_application(account_id, Category::Sms, None);
    (account_id, new.await.unwrap())
}

async fn make_one(service: &Service, number: usize) -> String {
    let (_, new) = register(service, &format!("bench{number}@example.org")).await;
    fund(service, &new, &number.to_string()).await;
    new.live_key.expose().to_owned()
}

/// Approves an application and credits it.
async fn fund(service: &Service, new: &NewApplication, name: &str) {
    let actor = Actor::CommandLine;
    service.applications().approve(&actor, new.reference).await.unwrap();
    let order = DepositRequest {
        bank_id: format!("bench {name}"),
        reference: new.reference.as_str().to_owned(),
        amount: Money::parse(DEPOSIT).unwrap(),
    };
    service.money().add_deposit(&actor, &order).await.unwrap();
}
