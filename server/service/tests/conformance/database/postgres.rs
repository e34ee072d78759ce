//! A PostgreSQL database of a test's own, on the server that the test command starts.

use std::sync::atomic::{AtomicU32, Ordering};

use service::Service;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _};
use tokio::sync::OnceCell;

/// Where the server is.
const SERVER: &str = "HELIOGRAPH_TEST_POSTGRES";

static TEMPLATE: OnceCell<String> = OnceCell::const_new();
static COUNT: AtomicU32 = AtomicU32::new(0);

pub struct Database(String);

fn server() -> String {
    std::env::var(SERVER).unwrap_or_else(|_| {
        panic!("{SERVER} is not set: these tests need PostgreSQL, which `make test-rust` starts for them")
    })
}

/// The URL of a database of the server.
fn url_of(name: &str) -> String {
    let server = server();
    let (start, _) = server.rsplit_once('/').unwrap();
    format!("{start}/{name}")
}

async fn on_server(statement: String) {
    sqlx::any::install_default_drivers();
    let mut conn = AnyConnection::connect(&server()).await.unwrap();
    conn.execute(AssertSqlSafe(statement)).await.unwrap();
    conn.close().await.unwrap();
}

fn new_name() -> String {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("test_{}_{count}", std::process::id())
}

impl Database {
    pub async fn make() -> Self {
        // Copying one that is migrated is quicker than migrating each.
        let template = TEMPLATE.get_or_init(|| async {
            let name = new_name();
            on_server(format!("CREATE DATABASE {name}")).await;
            Service::migrate(&url_of(&name)).await.unwrap();
            name
        });
        let (template, name) = (template.await, new_name());
        on_server(format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        Self(name)
    }

    /// One without any table.
    pub async fn empty() -> Self {
        let name = new_name();
        on_server(format!("CREATE DATABASE {name}")).await;
        Self(name)
    }

    pub fn url(&self) -> String {
        url_of(&self.0)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.0);
        // A runtime of its own: this one may be about to end.
        let dropping = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(on_server(statement));
        });
        assert!(dropping.join().is_ok() || std::thread::panicking());
    }
}
