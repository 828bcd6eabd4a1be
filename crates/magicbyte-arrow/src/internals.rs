//! Parts of this crate that the bindings use. Any version may change them.

#[cfg(feature = "schemas")]
pub use crate::payload_decoder::texts;
