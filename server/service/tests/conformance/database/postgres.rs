//! The PostgreSQL database of a test, on the server that the test command starts.

use std::path::Path;
use std::process::Command;

use service::Service;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _};
use tokio::sync::OnceCell;

use super::tables::{new_name, remove_by};

/// The environment variable with the server's URL.
const SERVER: &str = "HELIOGRAPH_TEST_POSTGRES";

static TEMPLATE: OnceCell<String> = OnceCell::const_new();

pub struct Database(String);

fn server() -> String {
    std::env::var(SERVER).unwrap_or_else(|_| {
        panic!(
            "{SERVER} is not set: these tests need PostgreSQL, which `make test-rust` starts for \
             them"
        )
    })
}

/// Returns the URL of a database on the server.
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

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

impl Database {
    pub async fn make() -> Self {
        // Copying a migrated database is faster than migrating each one.
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

    /// Creates a database without tables.
    pub async fn empty() -> Self {
        let name = new_name();
        on_server(format!("CREATE DATABASE {name}")).await;
        Self(name)
    }

    pub fn dump(&self, file: &Path) {
        run(Command::new("pg_dump").arg("--format=custom").arg("--file").arg(file).arg(self.url()));
    }

    pub fn restore(&self, file: &Path) {
        let mut restoring = Command::new("pg_restore");
        restoring.args(["--exit-on-error", "--dbname", &self.url()]);
        run(restoring.arg(file));
    }

    pub fn url(&self) -> String {
        url_of(&self.0)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.0);
        remove_by(on_server(statement));
    }
}
