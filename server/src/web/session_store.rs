//! Stores sessions in the service's database, where they are also the devices of accounts.

use std::fmt;

use async_trait::async_trait;
use domain::Timestamp;
use service::{Service, SessionRow};
use time::OffsetDateTime;
use tower_sessions::SessionStore;
use tower_sessions::session::{Id, Record};
use tower_sessions::session_store::{Error, Result};

/// The service's sessions, as the session layer uses them.
#[derive(Clone)]
pub struct ServiceSessions(pub Service);

impl fmt::Debug for ServiceSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceSessions")
    }
}

fn row(record: &Record) -> Result<SessionRow> {
    let data =
        serde_json::to_string(&record.data).map_err(|error| Error::Encode(error.to_string()))?;
    let expires_at = Timestamp::from_unix_ms(record.expiry_date.unix_timestamp() * 1000);
    Ok(SessionRow { account_id: None, data, expires_at })
}

fn record(id: Id, row: &SessionRow) -> Result<Record> {
    let decode = |error: &dyn fmt::Display| Error::Decode(error.to_string());
    Ok(Record {
        id,
        data: serde_json::from_str(&row.data).map_err(|error| decode(&error))?,
        expiry_date: OffsetDateTime::from_unix_timestamp(row.expires_at.unix_ms() / 1000)
            .map_err(|error| decode(&error))?,
    })
}

fn backend(error: &service::Error) -> Error {
    Error::Backend(error.to_string())
}

#[async_trait]
impl SessionStore for ServiceSessions {
    async fn create(&self, new: &mut Record) -> Result<()> {
        let row = row(new)?;
        loop {
            let created = self.0.accounts().session_create(&new.id.to_string(), &row).await;
            if created.map_err(|error| backend(&error))? {
                return Ok(());
            }
            new.id = Id::default();
        }
    }

    async fn save(&self, changed: &Record) -> Result<()> {
        let saved = self.0.accounts().session_save(&changed.id.to_string(), &row(changed)?).await;
        saved.map_err(|error| backend(&error))
    }

    async fn load(&self, id: &Id) -> Result<Option<Record>> {
        let loaded = self.0.accounts().session_load(&id.to_string()).await;
        let row = loaded.map_err(|error| backend(&error))?;
        row.map(|row| record(*id, &row)).transpose()
    }

    async fn delete(&self, id: &Id) -> Result<()> {
        self.0.accounts().session_delete(&id.to_string()).await.map_err(|error| backend(&error))
    }
}
