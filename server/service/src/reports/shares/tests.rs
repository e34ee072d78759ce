use domain::{ApplicationId, KeyKind, Money, Prices, Reference};
use futures_util::FutureExt as _;

use super::*;
use crate::{
    Clock, Config, Entropy, KeyAccess, Limits, MailSettings, MessageFilter, Network, Service,
};

async fn service(folder: &std::path::Path) -> Service {
    let money = |text| Money::parse(text).unwrap();
    let config = Config {
        database_url: format!("sqlite:{}", folder.join("heliograph.db").display()),
        prices: Prices::new(money("0.05"), money("0.25")).unwrap(),
        currency: "USD".to_owned(),
        data_dir: folder.to_owned(),
        network: Network::sandbox("266".to_owned(), "Heliograph".to_owned()),
        limits: Limits::default(),
        mail: MailSettings::default(),
        endpoints: crate::EndpointRules::default(),
        opt_outs: crate::OptOutSettings::default(),
        clock: Clock::system(),
        entropy: Entropy::seeded(1),
    };
    Service::open(config).await.unwrap()
}

/// Returns access to an application. With one shard, the application needn't exist.
fn access(id: i64) -> KeyAccess {
    KeyAccess {
        application_id: ApplicationId(id),
        reference: Reference::parse("000001").unwrap(),
        kind: KeyKind::Live,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_by_keys_and_pages_take_a_share() {
    let folder = tempfile::tempdir().unwrap();
    let service = service(folder.path()).await;
    let filter = MessageFilter { limit: 1, ..MessageFilter::default() };
    // An application may use one of the four connections.
    let searches = &service.inner.searches;
    let _application = searches.take(Searcher::Application(1)).await.unwrap();
    let refused = service.messages().list(&access(1), &filter).await.unwrap_err();
    assert_eq!(refused.reason(), domain::Reason::Unavailable);
    let found = service.messages().list(&access(2), &filter).await.unwrap();
    assert!(found.items.is_empty());
    let _account = searches.take(Searcher::Account(1)).await.unwrap();
    let refused = service.messages().account_messages(1, None, &filter).await;
    assert_eq!(refused.unwrap_err().reason(), domain::Reason::Unavailable);
    service.close().await;
}

#[tokio::test]
async fn who_searches_much_leaves_room_to_others() {
    let shares = SearchShares::new(8);
    let (one, two) = (Searcher::Application(1), Searcher::Account(1));
    let first = shares.take(one).await.unwrap();
    let second = shares.take(one).await.unwrap();
    let mut third = std::pin::pin!(shares.take(one));
    assert!(third.as_mut().now_or_never().is_none());
    let others = [shares.take(two).await.unwrap(), shares.take(two).await.unwrap()];
    // All searches together may use half of the connections.
    assert!(shares.take(Searcher::Application(2)).now_or_never().is_none());
    drop(first);
    assert!(third.await.is_ok());
    drop((second, others));
    assert!(shares.take(one).await.is_ok());
    shares.own(two);
    assert_eq!(shares.own.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_waits_for_long() {
    let shares = SearchShares::new(4);
    let _first = shares.take(Searcher::Application(1)).await.unwrap();
    let refused = shares.take(Searcher::Application(1)).await.err().unwrap();
    assert_eq!(refused.reason(), domain::Reason::Unavailable);
}
