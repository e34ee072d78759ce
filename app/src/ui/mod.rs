//! The components that the portal's pages share.

mod copy;
mod fact;
mod field;
#[cfg(feature = "hydrate")]
mod follow;
mod form;
mod frame;
mod loaded;
mod mark;
mod state;
mod table;

pub use copy::SecretField;
pub use fact::{Fact, optional_fact};
pub use field::{Choice, Field};
#[cfg(feature = "hydrate")]
pub use follow::follow;
pub use form::{AcceptedNotice, FormAlert, FormState, PostForm, SubmitButton};
pub use frame::{Frame, LostPage};
pub use loaded::{Loaded, NotFound, Page, mark_live};
pub use mark::Mark;
pub use state::{Moment, StateMark};
pub use table::{BUTTONS, Table, TableRegion};
