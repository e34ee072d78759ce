//! The ledger of a distributed database has no triggers. Privileges protect it from changes.

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _};

use crate::database::{Backend, new_name};
use crate::world::World;

/// Returns the password that all roles of the cluster share. Its servers use it to sign in to each
/// other.
fn password(url: &str) -> &str {
    let (start, _) = url.split_once('@').unwrap();
    start.rsplit_once(':').unwrap().1
}

#[tokio::test]
async fn the_owner_of_the_tables_cannot_change_the_ledger_unless_a_superuser() {
    let world = World::new(Backend::SHARED).await;
    world.active("one@example.org", "100").await;
    let url = world.database.url();
    let (role, password) = (new_name(), password(&url));
    let mut conn = world.database.connect().await;
    for statement in [
        format!("CREATE ROLE {role} LOGIN PASSWORD '{password}'"),
        format!("GRANT USAGE, CREATE ON SCHEMA public TO {role}"),
        format!("ALTER TABLE transfers OWNER TO {role}"),
    ] {
        conn.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    let (_, rest) = url.split_once('@').unwrap();
    let owners = format!("postgres://{role}:{password}@{rest}");
    let mut owner = AnyConnection::connect(&owners).await.unwrap();
    let count = owner.fetch_all("SELECT * FROM transfers").await.unwrap().len();
    assert_eq!(count, 1);
    for statement in
        ["UPDATE transfers SET amount = amount + 1", "DELETE FROM transfers", "TRUNCATE transfers"]
    {
        let refused = owner.execute(statement).await.unwrap_err();
        let code = refused.as_database_error().unwrap().code();
        assert_eq!(code.as_deref(), Some("42501"), "{statement}");
    }
    owner.close().await.unwrap();
    for statement in [
        "ALTER TABLE transfers OWNER TO CURRENT_USER".to_owned(),
        format!("DROP OWNED BY {role}"),
        format!("DROP ROLE {role}"),
    ] {
        conn.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    world.assert_sound().await;
}
