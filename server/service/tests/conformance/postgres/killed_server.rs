//! The database server is killed. Every send is answered, and the answer is true.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::{ApiKey, Category, Email};
use service::{Actor, Config, Entropy, Limits, SANDBOX_CARRIER, SendError, Service};
use sqlx::{AnyConnection, Connection as _, Row as _};
use testing::postgres::{End, Server};

use super::cuts::{Fate, Proxy, stored};
use crate::database::Backend;
use crate::world::{PASSWORD, World, order, password, request};

const STAFF: Actor = Actor::CommandLine;

/// Kills the server and starts it again.
async fn kill(server: &Arc<Server>) {
    let server = Arc::clone(server);
    let killing = tokio::task::spawn_blocking(move || server.restart(End::Immediate));
    killing.await.unwrap();
}

async fn customer(service: &Service) -> ApiKey {
    let email = Email::parse("one@example.org").unwrap();
    let account = service.accounts().register(&email, &password(PASSWORD), "::1").await.unwrap();
    let new =
        service.applications().create_application(account.id, Category::Sms, None).await.unwrap();
    service.applications().approve(&STAFF, new.reference).await.unwrap();
    let deposit = order("first", new.reference.as_str(), "100000");
    service.money().add_deposit(&STAFF, &deposit).await.unwrap();
    new.live_key
}

/// A killed server forgets transactions that it hadn't written, and reuses their numbers. Commit
/// groups therefore have their own IDs, by which their outcome is queried.
#[tokio::test(flavor = "multi_thread")]
async fn a_send_whose_server_is_killed_is_stored_once_whoever_gets_its_transactions_number() {
    let server = Arc::new(Server::start());
    let url = server.url.clone();
    let world = World::new(Backend::Postgres).await;
    let proxy = Proxy::before(&url, None).await;
    let a = proxy.service(&world, &url).await;
    let key = customer(&a).await;
    let mut conn = AnyConnection::connect(&url).await.unwrap();
    // In the first round nobody reuses the number. In the second one somebody does.
    for others in [0, 30] {
        let before = stored(&mut conn).await;
        proxy.next(Fate::Held);
        let lost = tokio::spawn({
            let (a, key) = (a.clone(), key.clone());
            async move { a.messages().send(request(&key, "12345678", "hello")).await }
        });
        proxy.state.held.notified().await;
        if others == 0 {
            kill(&server).await;
        } else {
            // Kills only one process of the server, which then restarts the others and resets their
            // shared memory.
            let row = sqlx::query("SELECT pg_backend_pid()").fetch_one(&mut conn).await;
            let pid: i32 = row.unwrap().get(0);
            let mut other = AnyConnection::connect(&url).await.unwrap();
            let killed = Command::new("kill").arg("-KILL").arg(pid.to_string()).status();
            assert!(killed.unwrap().success());
            // From when it ends the other processes on, the server takes no connections until it
            // has recovered.
            while sqlx::query("SELECT 1").fetch_one(&mut other).await.is_ok() {}
        }
        conn = loop {
            if let Ok(conn) = AnyConnection::connect(&url).await {
                break conn;
            }
        };
        let config = Config {
            database_url: url.clone(),
            entropy: Entropy::seeded(5 + others),
            ..world.config()
        };
        let b = Service::open(config).await.ok().unwrap();
        let mut accepted = before;
        for _ in 0..others {
            let sent = b.messages().send(request(&key, "12345678", "hello")).await.unwrap();
            accepted.insert(sent.transid.unwrap().0);
        }
        proxy.state.release.notify_one();
        let sent = lost.await.unwrap().unwrap();
        assert!(accepted.insert(sent.transid.unwrap().0));
        assert_eq!(stored(&mut conn).await, accepted);
        assert_eq!(b.operations().check().await.unwrap(), Vec::<String>::new());
        b.close().await;
    }
    a.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answered_send_is_stored_after_the_server_is_killed() {
    const KILLS: usize = 6;
    let server = Arc::new(Server::start());
    let url = server.url.clone();
    let world = World::new(Backend::Postgres).await;
    let config = |seed| Config {
        database_url: url.clone(),
        entropy: Entropy::seeded(seed),
        limits: Limits::default(),
        ..world.config()
    };
    let services = [
        Service::open(config(1)).await.ok().unwrap(),
        Service::open(config(2)).await.ok().unwrap(),
        Service::open(config(3)).await.ok().unwrap(),
    ];
    let key = customer(&services[0]).await;
    let done = Arc::new(AtomicBool::new(false));
    let sending: Vec<_> = (0..12)
        .map(|n| {
            let (service, key, done) = (services[n % 3].clone(), key.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let mut accepted = BTreeSet::new();
                while !done.load(Ordering::Relaxed) {
                    match service.messages().send(request(&key, "12345678", "hello")).await {
                        Ok(sent) => assert!(accepted.insert(sent.transid.unwrap().0)),
                        Err(SendError::Refused(_)) => tokio::task::yield_now().await,
                        Err(SendError::Lost) => panic!("the server could be asked"),
                    }
                    // Another writer.
                    let _ = service.delivery().claim(SANDBOX_CARRIER, 1).await;
                }
                accepted
            })
        })
        .collect();
    let mut conn = AnyConnection::connect(&url).await.unwrap();
    for _ in 0..KILLS {
        let before = stored(&mut conn).await.len();
        while stored(&mut conn).await.len() < before + 100 {}
        kill(&server).await;
        conn = AnyConnection::connect(&url).await.unwrap();
    }
    let before = stored(&mut conn).await.len();
    while stored(&mut conn).await.len() < before + 100 {}
    done.store(true, Ordering::Relaxed);
    let mut accepted = BTreeSet::new();
    for task in sending {
        accepted.append(&mut task.await.unwrap());
    }
    assert_eq!(stored(&mut conn).await, accepted);
    assert_eq!(services[0].operations().check().await.unwrap(), Vec::<String>::new());
    for service in services {
        service.close().await;
    }
}
