//! A macro for enums whose variants have stable codes. Forms, the API and the database use the
//! codes.

/// Declares an enum and the code of each variant. The enum gets:
///
/// - `ALL`: every variant, in order of declaration.
/// - `as_str` and `Display`: the code.
/// - `parse`: the variant with a code. `@only_written` before the enum leaves it out.
/// - a method for each column, if the name is followed by columns. Each variant then has a value
///   per column after its code, and ends with a semicolon.
macro_rules! words {
    (
        @only_written
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$about_variant:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$about_variant])* $variant,)+
        }

        impl $name {
            /// Every variant, in order of declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns the stable code.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
    (
        @only_written
        $(#[$about:meta])*
        pub enum $name:ident [$($columns:tt)+] {
            $(
                $(#[$about_variant:meta])*
                $variant:ident = $word:literal, $($cell:expr),+;
            )+
        }
    ) => {
        words! {
            @only_written
            $(#[$about])*
            pub enum $name {
                $($(#[$about_variant])* $variant = $word,)+
            }
        }
        $crate::words::columns! { $name [$($columns)+] $($variant [$($cell,)+])+ }
    };
    ($(#[$about:meta])* pub enum $name:ident $($columns_and_variants:tt)+) => {
        words! { @only_written $(#[$about])* pub enum $name $($columns_and_variants)+ }

        impl $name {
            /// Parses the code.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.as_str() == text)
            }
        }
    };
}

/// Declares a method for the first column, and then for the other columns.
macro_rules! columns {
    ($name:ident [] $($variant:ident [])+) => {};
    (
        $name:ident [$(#[$about:meta])* $vis:vis $column:ident: $type:ty, $($others:tt)*]
        $($variant:ident [$cell:expr, $($other_cells:tt)*])+
    ) => {
        impl $name {
            $(#[$about])*
            $vis const fn $column(self) -> $type {
                match self {
                    $(Self::$variant => $cell,)+
                }
            }
        }

        $crate::words::columns! { $name [$($others)*] $($variant [$($other_cells)*])+ }
    };
}

/// Makes serde write a type as the text that it displays, and read that text. `$parse` returns a
/// `Result`.
macro_rules! serde_as_text {
    ($name:ident, $parse:expr) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                $parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use {columns, serde_as_text, words};
