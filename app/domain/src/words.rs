//! A macro for enums whose variants have stable codes. Forms, the API and the database use the
//! codes.

/// Declares an enum and the code of each variant. The enum gets:
///
/// - `ALL`: every variant, in order of declaration.
/// - `as_str` and `Display`: the code.
/// - `parse`: the variant with a code. `@only_written` before the enum leaves it out.
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
    ($(#[$about:meta])* pub enum $name:ident $variants:tt) => {
        words! { @only_written $(#[$about])* pub enum $name $variants }

        impl $name {
            /// Parses the code.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.as_str() == text)
            }
        }
    };
}
pub(crate) use words;
