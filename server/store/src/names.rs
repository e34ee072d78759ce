//! Braces in SQL. They hold names that stand for values of the domain:
//!
//! - `{delivered}` and so on: the code of a status.
//! - `{charge}` and so on: the code of a transfer's kind.
//! - `{REVENUE}` and so on: the number of one of the service's own ledger accounts.
//! - `{first_status}`, `{first_kind}`: the least code.
//! - `{batch_done}`: the code of the event's type.
//! - `{slot_bits}`: the bits of an ID that hold the node's slot. `{id_epoch}`, `{id_low_bits}`: the
//!   parts of `compose_id`.
//! - `{statuses}`, `{transfer_kinds}`: the rows `(code, 'name')` of all of them, after `VALUES`.
//! - `{ids}`: the array of the IDs that PostgreSQL gets in `$1`.
//! - `{delivery_times}`: the rows `(limit)` of the delivery time buckets, after `VALUES`.
//!
//! `{values int text common shard}` stands for the values of rows to insert: for each row a number
//! and a text, then a value that all rows share, then the shard on PostgreSQL. A digit is a value,
//! too.
//!
//! Braces whose text begins with a space or a comma hold a part for PostgreSQL only, such as
//! `{ AND shard = $shard}`. There `$shard` stands for the parameter after all others.

use domain::ledger::{LedgerAccount, TransferKind};
use domain::quarter::DELIVERY_TIMES_MS;
use domain::{EventType, MessageStatus, ids};

const STATUSES: usize = MessageStatus::ALL.len();
const KINDS: usize = TransferKind::ALL.len();
const ACCOUNTS: usize = LedgerAccount::OWN.len();
const OTHERS: [(&str, i64); 6] = [
    ("first_status", MessageStatus::ALL[0].code()),
    ("first_kind", TransferKind::ALL[0].code()),
    ("batch_done", EventType::BatchDone.code()),
    ("slot_bits", ids::ID_SLOT_BITS),
    ("id_epoch", ids::ID_EPOCH_UNIX_MS),
    ("id_low_bits", ids::ID_LOW_BITS as i64),
];

/// The statuses, the kinds of transfers, the service's own ledger accounts, and the others.
const NUMBERS: [(&str, i64); STATUSES + KINDS + ACCOUNTS + OTHERS.len()] = {
    let mut numbers = [("", 0); STATUSES + KINDS + ACCOUNTS + OTHERS.len()];
    let mut i = 0;
    while i < numbers.len() {
        numbers[i] = if i < STATUSES {
            (MessageStatus::ALL[i].as_str(), MessageStatus::ALL[i].code())
        } else if i < STATUSES + KINDS {
            let kind = TransferKind::ALL[i - STATUSES];
            (kind.as_str(), kind.code())
        } else if i < STATUSES + KINDS + ACCOUNTS {
            let (name, account) = LedgerAccount::OWN[i - STATUSES - KINDS];
            (name, account.0)
        } else {
            OTHERS[i - STATUSES - KINDS - ACCOUNTS]
        };
        i += 1;
    }
    numbers
};

/// Replaces the parts in braces of a text that is known when the program is compiled. Leaves out
/// the parts for PostgreSQL, unless `$on_postgres` is true.
macro_rules! with_names {
    ($text:expr) => {
        with_names!($text, false)
    };
    ($text:expr, $on_postgres:literal) => {{
        const TEXT: &str = $text;
        const LENGTH: usize = $crate::names::replaced::<0>(TEXT, $on_postgres).1;
        const BYTES: [u8; LENGTH] = $crate::names::replaced::<LENGTH>(TEXT, $on_postgres).0;
        match str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => unreachable!(),
        }
    }};
}
pub(crate) use with_names;

/// Replaces the parts in braces. Returns the new text, which is complete if `N` is its length, and
/// its length.
pub(crate) const fn replaced<const N: usize>(text: &str, on_postgres: bool) -> ([u8; N], usize) {
    let bytes = text.as_bytes();
    let shard = greatest_parameter(bytes) + 1;
    let mut out = Out([0; N], 0);
    let mut at = 0;
    while at < bytes.len() {
        let used = match bytes[at] {
            b'{' if at + 1 < bytes.len() && matches!(bytes[at + 1], b' ' | b',') => {
                out.part(bytes, at + 1, on_postgres, shard)
            }
            b'{' if begins_with(bytes, at + 1, "values ") => {
                out.rows_to_insert(bytes, at + 1, on_postgres)
            }
            b'{' => out.value(bytes, at + 1),
            _ => 0,
        };
        if used == 0 {
            out.push(bytes[at]);
            at += 1;
        } else {
            at += used + 2;
        }
    }
    (out.0, out.1)
}

struct Out<const N: usize>([u8; N], usize);

impl<const N: usize> Out<N> {
    const fn push(&mut self, byte: u8) {
        if self.1 < N {
            self.0[self.1] = byte;
        }
        self.1 += 1;
    }

    const fn text(&mut self, text: &str) {
        let mut i = 0;
        while i < text.len() {
            self.push(text.as_bytes()[i]);
            i += 1;
        }
    }

    const fn number(&mut self, number: i64) {
        if number < 0 {
            self.push(b'-');
            return self.number(-number);
        }
        if number >= 10 {
            self.number(number / 10);
        }
        self.push(b'0' + (number % 10).to_le_bytes()[0]);
    }

    /// Writes the part for PostgreSQL at `at`, unless the text is for SQLite. Returns the length of
    /// the part.
    const fn part(&mut self, bytes: &[u8], at: usize, on_postgres: bool, shard: i64) -> usize {
        let mut end = at;
        while bytes[end] != b'}' {
            let is_shard = bytes[end] == b'$' && bytes[end + 1] == b's';
            if on_postgres {
                self.push(bytes[end]);
                if is_shard {
                    self.number(shard);
                }
            }
            end += if is_shard { "$shard".len() } else { 1 };
        }
        end - at
    }

    /// Writes the values of rows to insert, whose kinds stand at `at`. SQLite runs the statement
    /// for each row, and PostgreSQL gets all rows in `$1`. Returns the length of the kinds.
    const fn rows_to_insert(&mut self, bytes: &[u8], at: usize, on_postgres: bool) -> usize {
        let (mut of_row, mut common, mut in_shard) = (0, 0, false);
        let mut end = at + "values".len();
        self.text(if on_postgres { "SELECT " } else { "VALUES (" });
        while bytes[end] != b'}' {
            let kind = bytes[end + 1];
            if on_postgres || kind != b's' {
                self.text(if end > at + "values".len() { ", " } else { "" });
            }
            match (kind, on_postgres) {
                (b'0'..=b'9', _) => self.push(kind),
                (b's', _) => in_shard = true,
                (b'c', true) => {
                    self.push(b'$');
                    self.number(2 + common);
                    common += 1;
                }
                (_, true) => {
                    self.text(if kind == b'i' { "(value ->> " } else { "value ->> " });
                    self.number(of_row);
                    self.text(if kind == b'i' { ")::bigint" } else { "" });
                    of_row += 1;
                }
                (_, false) => {
                    of_row += 1;
                    self.push(b'?');
                    self.number(of_row);
                }
            }
            end += 1;
            while bytes[end] != b' ' && bytes[end] != b'}' {
                end += 1;
            }
        }
        match (on_postgres, in_shard) {
            (false, _) => self.push(b')'),
            (true, false) => self.text(" FROM jsonb_array_elements($1::text::jsonb)"),
            (true, true) => {
                self.text("at.shard FROM jsonb_array_elements($1::text::jsonb) ");
                self.text("CROSS JOIN (SELECT shard FROM applications WHERE shard = $");
                self.number(2 + common);
                self.text(" LIMIT 1) AS at");
            }
        }
        end - at
    }

    /// Writes the value of the name at `at`, which a brace must follow. Returns the length of the
    /// name, or 0 if there is no name.
    const fn value(&mut self, bytes: &[u8], at: usize) -> usize {
        let mut i = 0;
        while i < NUMBERS.len() {
            let (name, number) = NUMBERS[i];
            if is_at(bytes, at, name) {
                self.number(number);
                return name.len();
            }
            i += 1;
        }
        if is_at(bytes, at, "statuses") {
            self.rows(0, STATUSES);
            return "statuses".len();
        }
        if is_at(bytes, at, "transfer_kinds") {
            self.rows(STATUSES, STATUSES + KINDS);
            return "transfer_kinds".len();
        }
        if is_at(bytes, at, "ids") {
            self.text(
                "ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb))",
            );
            return "ids".len();
        }
        if is_at(bytes, at, "delivery_times") {
            self.delivery_times();
            return "delivery_times".len();
        }
        0
    }

    /// Writes the rows `(code, 'name')` of some of the numbers.
    const fn rows(&mut self, from: usize, to: usize) {
        let mut i = from;
        while i < to {
            let (name, number) = NUMBERS[i];
            self.text(if i == from { "(" } else { ", (" });
            self.number(number);
            self.text(", '");
            self.text(name);
            self.text("')");
            i += 1;
        }
    }

    const fn delivery_times(&mut self) {
        let mut i = 0;
        while i < DELIVERY_TIMES_MS.len() {
            self.text(if i == 0 { "(" } else { ", (" });
            self.number(DELIVERY_TIMES_MS[i]);
            self.text(")");
            i += 1;
        }
    }
}

/// Returns the greatest N of all `$N` in a text, or 0.
const fn greatest_parameter(bytes: &[u8]) -> i64 {
    let (mut greatest, mut number, mut at) = (0, 0, 0);
    let mut in_parameter = false;
    while at < bytes.len() {
        in_parameter = bytes[at] == b'$' || (in_parameter && bytes[at].is_ascii_digit());
        number = match bytes[at] {
            digit if in_parameter && digit != b'$' => number * 10 + (digit - b'0') as i64,
            _ => 0,
        };
        if number > greatest {
            greatest = number;
        }
        at += 1;
    }
    greatest
}

const fn is_at(bytes: &[u8], at: usize, name: &str) -> bool {
    let end = at + name.len();
    bytes.len() > end && bytes[end] == b'}' && begins_with(bytes, at, name)
}

const fn begins_with(bytes: &[u8], at: usize, name: &str) -> bool {
    if bytes.len() < at + name.len() {
        return false;
    }
    let mut i = 0;
    while i < name.len() {
        if bytes[at + i] != name.as_bytes()[i] {
            return false;
        }
        i += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_replaced_by_values() {
        let text =
            with_names!("status < {delivered} AND list = '{}' AND x IN ({sending}, {unknown})");
        assert_eq!(text, "status < 5 AND list = '{}' AND x IN (2, 3)");
        assert!(
            with_names!("VALUES {statuses}").starts_with("VALUES (0, 'scheduled'), (1, 'queued')")
        );
        assert_eq!(
            with_names!("kind = {charge} AND credit_account = {REVENUE}"),
            "kind = 2 AND credit_account = -3"
        );
        assert_eq!(with_names!("BETWEEN {first_kind} AND 5"), "BETWEEN 0 AND 5");
        assert!(with_names!("VALUES {transfer_kinds}").ends_with(", (5, 'return')"));
        assert!(with_names!("VALUES {delivery_times}").ends_with(", (21600000), (86400000)"));
        assert_eq!(with_names!("{nothing} {delivered"), "{nothing} {delivered");
    }

    #[test]
    fn rows_to_insert_are_values_or_elements_of_a_parameter() {
        const INSERTED: &str =
            "INSERT INTO t (a, b, c, d{, shard}) {values int text 0 common shard}";
        assert_eq!(with_names!(INSERTED), "INSERT INTO t (a, b, c, d) VALUES (?1, ?2, 0, ?3)");
        assert_eq!(
            with_names!(INSERTED, true),
            "INSERT INTO t (a, b, c, d, shard) SELECT (value ->> 0)::bigint, value ->> 1, 0, $2, \
             at.shard FROM jsonb_array_elements($1::text::jsonb) \
             CROSS JOIN (SELECT shard FROM applications WHERE shard = $3 LIMIT 1) AS at"
        );
    }

    #[test]
    fn parts_for_postgresql_are_left_out_for_sqlite() {
        assert_eq!(with_names!("id = $1{ AND shard = $shard} LIMIT 1"), "id = $1 LIMIT 1");
        let of_postgres = with_names!("(id{, shard}) VALUES ($10, $9{, $shard})", true);
        assert_eq!(of_postgres, "(id, shard) VALUES ($10, $9, $11)");
    }
}
