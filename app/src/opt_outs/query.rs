//! The address of the page with an application's opt-outs.

use domain::{KeyKind, Reference};

use crate::ui::{address, query};

query! {
    /// The query of the page's address. Empty texts are left out.
    pub struct OptOutsQuery {
        /// The key whose list is shown: `live` or `test`. The default is the live key.
        pub key,
        /// The number to search for, as it was typed.
        pub number,
        /// The way to the page of the list: see [`crate::ui::pager`].
        pub page,
        /// The number whose removal has to be confirmed, with a plus sign.
        pub remove,
    }
}

impl OptOutsQuery {
    /// Returns a query for the whole list of a key.
    pub fn of(kind: KeyKind) -> Self {
        let key = match kind {
            KeyKind::Live => String::new(),
            KeyKind::Test => kind.as_str().to_owned(),
        };
        Self { key, ..Self::default() }
    }

    pub fn kind(&self) -> KeyKind {
        KeyKind::parse(&self.key).unwrap_or(KeyKind::Live)
    }

    /// Returns the address of the page with this query. `notice` is a further parameter with the
    /// value 1, or empty.
    pub fn address(&self, reference: Reference, notice: &str) -> String {
        let path = format!("/applications/{reference}/optouts");
        let parameters = [
            ("key", self.key.as_str()),
            ("number", &self.number),
            ("page", &self.page),
            ("remove", &self.remove),
            (notice, if notice.is_empty() { "" } else { "1" }),
        ];
        address(&path, parameters)
    }
}
