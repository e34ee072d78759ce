//! Backups by the command `backup`, and who may read them.

use domain::MessageStatus;
use domain::records::BatchStatus;
use service::{Config, OpenError, Refusal, Service};

use crate::database::Backend;
use crate::uploads::{accepted, rows};
use crate::world::{World, money};

#[tokio::test]
async fn a_backup_has_the_files_of_uploads_that_are_not_expanded() {
    let world = World::new(Backend::Sqlite).await;
    let customer = world.active("one@example.org", "400").await;
    let id = accepted(&world, &customer, &rows(4500)).await;
    world.service.messages().expand(id).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("heliograph.db");
    world.service.operations().backup(&file).await.unwrap();
    assert!(world.service.operations().backup(&file).await.is_err());
    world.expand_all().await;
    // Without the files, the backup isn't restored.
    let (spool, away) = (place.path().join("heliograph.db.spool"), place.path().join("away"));
    std::fs::rename(&spool, &away).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", elsewhere.path().join("heliograph.db").display());
    let refused = Service::restore(&url, elsewhere.path(), &file).unwrap_err();
    assert!(matches!(refused, OpenError::UploadsMissing(missing) if missing == spool));
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    std::fs::rename(&away, &spool).unwrap();
    // Restores the backup as the docs describe: its folder becomes the data folder.
    std::fs::rename(place.path().join("heliograph.db.spool"), place.path().join("spool")).unwrap();
    let restored = Service::open(Config {
        database_url: format!("sqlite:{}", file.display()),
        data_dir: place.path().to_owned(),
        ..world.config()
    })
    .await
    .unwrap();
    while let Some(id) = restored.messages().next_unexpanded(None).await.unwrap() {
        restored.messages().expand(id).await.unwrap();
    }
    let access = world.access(&customer.live).await;
    let record = restored.messages().batch(&access, id).await.unwrap().unwrap();
    assert_eq!(
        (record.status, record.counts.get(MessageStatus::Queued)),
        (BatchStatus::Sending, 4500)
    );
    assert_eq!(restored.operations().check().await.unwrap(), Vec::<String>::new());
    restored.close().await;
}

#[tokio::test]
async fn a_backup_can_be_opened_as_a_database() {
    let world = World::new(Backend::Sqlite).await;
    let customer = world.active("one@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    let copy = world.folder().join("copy.db");
    world.service.operations().backup(&copy).await.unwrap();
    let again = world.service.operations().backup(&copy).await.unwrap_err();
    assert_eq!(again.refusal(), Some(&Refusal::FileExists));
    world.send(&customer.live, "12345678").await.unwrap();
    let mut config = world.config();
    config.database_url = format!("sqlite:{}", copy.display());
    config.data_dir = world.folder().join("restored");
    let restored = Service::open(config).await.unwrap();
    assert_eq!(restored.operations().check().await.unwrap(), Vec::<String>::new());
    let access = restored.messages().authorize(Some(customer.live.expose())).await.unwrap();
    assert_eq!(restored.messages().balance(&access).await.unwrap(), money("0.95"));
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_database_and_its_copies() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new(Backend::Sqlite).await;
    world.account("one@example.org").await;
    world.service.operations().backup(&world.folder().join("data/copy.db")).await.unwrap();
    for entry in std::fs::read_dir(world.folder().join("data")).unwrap() {
        let entry = entry.unwrap();
        if entry.path().extension().is_none_or(|extension| extension != "lock") {
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
        }
    }
}

#[tokio::test]
async fn a_server_without_its_key_does_not_start() {
    let world = World::new(Backend::Sqlite).await;
    let account = world.account("one@example.org").await;
    let file = world.folder().join("data/secret.key");
    world.service.accounts().load_keys().await.unwrap();
    let world = world.reopen().await;
    std::fs::remove_file(&file).unwrap();
    sqlx::query(
        "INSERT INTO second_factors (account_id, secret, created_at, last_step) \
                 VALUES (?, 'sealed', 1, 1)",
    )
    .bind(account.id)
    .execute(&mut world.database.connect().await)
    .await
    .unwrap();
    let refused = world.service.accounts().load_keys().await.unwrap_err();
    let expected = Refusal::SecretKeyMissing { file: file.display().to_string() };
    assert_eq!(refused.refusal(), Some(&expected));
    assert!(!file.exists());
    for malformed in [String::new(), "\n".to_owned(), "0".repeat(63), "0g".repeat(32)] {
        std::fs::write(&file, malformed).unwrap();
        let refused = world.service.accounts().load_keys().await.unwrap_err();
        assert!(refused.for_operator().contains("isn't a key of 64 hex digits"), "{refused:?}");
    }
    // The server only logs that this is another key.
    std::fs::write(&file, "00".repeat(32)).unwrap();
    world.service.accounts().load_keys().await.unwrap();
}
