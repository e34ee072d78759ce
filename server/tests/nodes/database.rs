//! Direct access to the database.

use sqlx::{Connection as _, PgConnection};
use testing::postgres::Server;

/// Runs statements that return no rows.
pub fn execute(server: &Server, statements: &'static [&'static str]) {
    with_connection(server, async |conn| {
        for &statement in statements {
            sqlx::query(statement).execute(&mut *conn).await.unwrap();
        }
    });
}

/// Returns the number that a query selects.
pub fn number(server: &Server, query: &'static str) -> i64 {
    with_connection(server, async |conn| {
        let number = sqlx::query_scalar(query).fetch_one(conn).await;
        number.unwrap()
    })
}

fn with_connection<T>(server: &Server, work: impl AsyncFnOnce(&mut PgConnection) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut conn = PgConnection::connect(&server.url).await.unwrap();
        let done = work(&mut conn).await;
        conn.close().await.unwrap();
        done
    })
}
