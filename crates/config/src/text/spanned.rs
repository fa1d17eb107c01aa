//! A value with its place in the text: [`toml::Spanned`], with the schema of the value.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

// No doc comment: it would be the description of every value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(with = "T")]
pub struct Spanned<T>(toml::Spanned<T>);

impl<T> Spanned<T> {
    pub fn new(place: Range<usize>, value: T) -> Self {
        Spanned(toml::Spanned::new(place, value))
    }

    /// The bytes of the text.
    pub fn span(&self) -> Range<usize> {
        self.0.span()
    }

    pub fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}
