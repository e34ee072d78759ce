//! The file `secret.key` of a node, which seals secrets instead of the key in the database.

use service::{Refusal, examine};

use crate::cases::second_factors::set_up;
use crate::database::Backend;
use crate::world::{HOUR_MS, World};

/// SQLite: `sqlite::backups`.
#[tokio::test]
async fn a_process_without_the_key_file_that_others_had_does_not_start() {
    let world = World::new(Backend::SHARED).await;
    let account = world.account("one@example.org").await;
    let file = world.folder().join("data/secret.key");
    // The key in the database is enough for what it sealed.
    set_up(&world, &account).await;
    let world = world.reopen().await;
    world.service.accounts().load_keys().await.unwrap();
    std::fs::write(&file, "11".repeat(32)).unwrap();
    let world = world.reopen().await;
    world.service.accounts().load_keys().await.unwrap();
    world.pass(HOUR_MS);
    set_up(&world, &world.account("two@example.org").await).await;
    std::fs::remove_file(&file).unwrap();
    let world = world.reopen().await;
    let refused = world.service.accounts().load_keys().await.unwrap_err();
    let expected = Refusal::SecretKeyMissing { file: file.display().to_string() };
    assert_eq!(refused.refusal(), Some(&expected));
    let found = examine(&world.config()).await.unwrap().installation.unwrap();
    assert!(found.secret_key.is_err());
    std::fs::write(&file, "11".repeat(32)).unwrap();
    world.reopen().await.service.accounts().load_keys().await.unwrap();
}
