//! Reads rows of a SQLite file with serde: the columns in order, like the JSON arrays that a server
//! returns.

use rusqlite::types::ValueRef;
use serde::de::value::Error as Unreadable;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, SeqAccess, Visitor,
};
use serde::{Deserializer, forward_to_deserialize_any};

use crate::error::{Error, Fault, Result};

pub(crate) fn read<T: DeserializeOwned>(row: &rusqlite::Row<'_>, table: &'static str) -> Result<T> {
    let mut columns = Columns { row, next: 0, is_word: false };
    T::deserialize(&mut columns).map_err(|_| columns.corrupt(table))
}

struct Columns<'r> {
    row: &'r rusqlite::Row<'r>,
    next: usize,
    /// Whether the last column that was read holds the text of an enum.
    is_word: bool,
}

impl<'r> Columns<'r> {
    /// Returns an error for the last column that was read. The error includes a text only if it is
    /// that of an enum: message texts and phone numbers must not get into the log.
    fn corrupt(&self, table: &'static str) -> Error {
        let place = self.next.saturating_sub(1);
        let column = self.row.as_ref().column_name(place);
        let column = column.unwrap_or("(past the last column)");
        let value = match self.row.get_ref(place) {
            Ok(ValueRef::Integer(value)) => value.to_string(),
            Ok(ValueRef::Text(text)) if self.is_word => String::from_utf8_lossy(text).into_owned(),
            Ok(ValueRef::Text(text)) => format!("a text of {} bytes", text.len()),
            Ok(value) => value.data_type().to_string(),
            Err(error) => error.to_string(),
        };
        Error::Failed(Fault::Corrupt { table, column: column.to_owned().into(), value })
    }

    /// Takes the value of the next column.
    fn take(&mut self) -> std::result::Result<ValueRef<'r>, Unreadable> {
        let value = self.row.get_ref(self.next);
        self.next += 1;
        value.map_err(Unreadable::custom)
    }
}

impl<'de> Deserializer<'de> for &mut Columns<'_> {
    type Error = Unreadable;

    fn deserialize_any<V: Visitor<'de>>(self, to: V) -> std::result::Result<V::Value, Unreadable> {
        self.is_word = false;
        match self.take()? {
            ValueRef::Null => to.visit_unit(),
            ValueRef::Integer(value) => to.visit_i64(value),
            ValueRef::Real(value) => to.visit_f64(value),
            ValueRef::Text(text) => {
                to.visit_str(std::str::from_utf8(text).map_err(Unreadable::custom)?)
            }
            ValueRef::Blob(bytes) => to.visit_bytes(bytes),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(
        self,
        to: V,
    ) -> std::result::Result<V::Value, Unreadable> {
        if self.take()? == ValueRef::Null {
            return to.visit_none();
        }
        self.next -= 1;
        to.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        to: V,
    ) -> std::result::Result<V::Value, Unreadable> {
        to.visit_newtype_struct(self)
    }

    /// Reads the fields of a struct from the following columns.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        to: V,
    ) -> std::result::Result<V::Value, Unreadable> {
        to.visit_seq(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _len: usize,
        to: V,
    ) -> std::result::Result<V::Value, Unreadable> {
        to.visit_seq(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        to: V,
    ) -> std::result::Result<V::Value, Unreadable> {
        self.is_word = true;
        let word = self.take()?;
        to.visit_enum(word.as_str().map_err(Unreadable::custom)?.into_deserializer())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple_struct map identifier ignored_any
    }
}

impl<'de> SeqAccess<'de> for &mut Columns<'_> {
    type Error = Unreadable;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> std::result::Result<Option<T::Value>, Unreadable> {
        seed.deserialize(&mut **self).map(Some)
    }
}

#[cfg(test)]
mod tests;
