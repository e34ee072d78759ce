//! Components that the portal's pages share.

mod address;
mod confirmation;
mod copy;
mod date_time;
mod downloads;
mod duration;
mod fact;
mod field;
#[cfg(feature = "hydrate")]
mod focus;
#[cfg(feature = "hydrate")]
mod follow;
mod form;
mod frame;
mod loaded;
mod mark;
mod pager;
mod passkey;
mod password;
mod session_notice;
mod side;
mod state;
mod step_up;
mod table;

pub(crate) use address::query;
pub use address::{address, in_path, next_link, parameter, tabs};
pub use confirmation::{Confirmation, ConfirmationForm, confirmed_facts};
pub use copy::{Copying, SecretField};
pub use date_time::{DateTime, in_zone};
pub use downloads::Downloads;
pub use duration::{answered_within, within};
pub use fact::{Fact, optional_fact};
pub use field::{Choice, Field, FileField, TextArea, text_in_area};
#[cfg(feature = "hydrate")]
pub use follow::{follow, follow_by};
pub use form::{
    AcceptedNotice, FormAlert, FormState, Notice, NoticeSlot, PostForm, SearchForm, SubmitButton,
    Submits, about_text,
};
#[cfg(feature = "ssr")]
pub use frame::PlainHeader;
pub use frame::{Frame, LostPage};
pub use loaded::{Loaded, NotFound, Page, mark_live, set_title};
pub use mark::Mark;
#[cfg(feature = "ssr")]
pub use pager::last;
pub use pager::pager;
#[cfg(feature = "hydrate")]
pub use passkey::make as make_passkey;
pub use passkey::{PasskeyButton, passkeys_run};
pub use password::PasswordBox;
pub use session_notice::SessionNotice;
pub use side::Parts;
pub use state::{State, StateMark};
pub use step_up::StepUpField;
pub use table::{BUTTONS, Table, TableRegion};
