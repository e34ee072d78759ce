//! Sends due mails to the mail server. Without a mail server, they are kept.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::MailState;
use service::{OutgoingMail, Result};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::work::{Next, Work};
use crate::mail::{Mailer, NotSent};
use crate::worker::context::Context;

/// The number of mails that are sent at once, each over a connection of its own.
const AT_A_TIME: usize = 8;
/// How long pending mails may take at shutdown.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Mails {
    mailer: Option<Arc<Mailer>>,
    /// The mails that are being sent. A slow mail doesn't delay the others.
    sending: JoinSet<()>,
}

impl Mails {
    pub(super) fn new(mailer: Option<Arc<Mailer>>) -> Self {
        let sending = JoinSet::new();
        Self { mailer, sending }
    }
}

impl Drop for Mails {
    fn drop(&mut self) {
        // At shutdown, these mails have `STOP_TIMEOUT` to finish.
        self.sending.detach_all();
    }
}

#[async_trait]
impl Work for Mails {
    async fn run(&mut self, context: &Context, _woken: bool) -> Result<Next> {
        let service = &context.service;
        let Some(mailer) = &self.mailer else {
            service.operations().keep_mails().await?;
            return Ok(Next::AfterInterval);
        };
        while self.sending.try_join_next().is_some() {}
        let free = AT_A_TIME - self.sending.len();
        if free == 0 {
            return Ok(Next::AfterInterval);
        }
        let mails = service.operations().claim_mails(free.cast_signed() as i64).await?;
        let all_taken = mails.len() < free;
        for mail in mails {
            let (context, mailer) = (context.clone(), Arc::clone(mailer));
            self.sending.spawn(async move {
                if let Err(error) = send(&context, &mailer, &mail).await {
                    let id = mail.id;
                    tracing::error!(id, detail = ?error, "the outcome of a mail can't be stored");
                }
            });
        }
        Ok(if all_taken { Next::AfterInterval } else { Next::AtOnce })
    }
}

/// Sends a mail and stores the outcome.
async fn send(context: &Context, mailer: &Mailer, mail: &OutgoingMail) -> Result<()> {
    let service = &context.service;
    let sent = tokio::select! {
        sent = mailer.send(mail) => sent,
        () = stopped(&context.shutdown) => Err(NotSent {
            why: "the process was stopped meanwhile".to_owned(),
            for_good: false,
        }),
    };
    let NotSent { why, for_good } = match sent {
        Ok(()) => return service.operations().mail_sent(mail).await,
        Err(not_sent) => not_sent,
    };
    // The error isn't logged, because it may quote the mail. It is listed with the mail.
    let (id, attempts) = (mail.id, mail.attempts);
    if service.operations().mail_not_sent(mail, &why, for_good).await? == MailState::Failed {
        tracing::error!(id, attempts, "gave up on a mail; `heliograph mail list` shows why");
    } else {
        tracing::warn!(id, attempts, "a mail wasn't sent; it will be retried");
    }
    Ok(())
}

async fn stopped(shutdown: &CancellationToken) {
    shutdown.cancelled().await;
    tokio::time::sleep(STOP_TIMEOUT).await;
}
