//! Enums whose variants have words, which forms, the API and the database use.

/// Declares an enum with the word of each variant beside it. It gets `ALL`, every variant in the
/// order of the declaration; `as_str` and `Display`, the word; and, unless `@only_written` stands
/// before it, `parse`, which reads the word.
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
            /// Every variant, in the order of the declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word, which is stable.
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
    ($(#[$about:meta])* pub enum $name:ident $variants:tt) => {
        words! { @only_written $(#[$about])* pub enum $name $variants }

        impl $name {
            /// Reads the word.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.as_str() == text)
            }
        }
    };
}
pub(crate) use words;
