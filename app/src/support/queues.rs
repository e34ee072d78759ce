//! The queues of staff whose cases have pages of their own. After a decision on the page of a case,
//! the page of the next case opens.

use domain::DeskAct;
#[cfg(feature = "ssr")]
use {
    super::links::{application_path, deposit_path},
    crate::problem::Problem,
    domain::decision::{ApplicationList, DepositList},
    service::Service,
};

/// A queue of cases.
#[derive(Clone, Copy)]
pub enum Queue {
    /// Applications that wait for activation.
    Activations,
    /// Requests for sender names. The page of a case is that of its application.
    SenderNames,
    /// Unmatched deposits.
    #[cfg(feature = "ssr")]
    Deposits,
}

impl Queue {
    /// Returns the queue that an action decides a case of, if there is one.
    pub const fn of(act: DeskAct) -> Option<Self> {
        match act {
            DeskAct::Approve => Some(Self::Activations),
            DeskAct::Accept | DeskAct::Reject => Some(Self::SenderNames),
            _ => None,
        }
    }

    /// Returns the address of the case that has waited longest, or of the queue if it is empty.
    ///
    /// # Errors
    /// `Cause::Failed` if the database can't be read.
    #[cfg(feature = "ssr")]
    pub async fn next_case(self, service: &Service) -> Result<String, Problem> {
        let (applications, money) = (service.applications(), service.money());
        let (next, list) = match self {
            Self::Activations => {
                let waiting = applications.application_list(ApplicationList::Waiting, None, 1);
                let next = waiting.await?.items.pop();
                (next.map(|next| application_path(next.reference)), "/support/applications")
            }
            Self::SenderNames => {
                let next = applications.sender_cases(None, 1).await?.items.pop();
                let path = next.map(|next| application_path(next.request.reference));
                (path, "/support/senders")
            }
            Self::Deposits => {
                let unmatched = money.deposit_list(DepositList::Unmatched, None, 1);
                let next = unmatched.await?.items.pop();
                (next.map(|next| deposit_path(&next.deposit.bank_id)), "/support/deposits")
            }
        };
        Ok(next.unwrap_or_else(|| list.to_owned()))
    }
}
