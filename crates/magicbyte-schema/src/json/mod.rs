//! JSON payloads to columns: plain ones by a reader of our own, which takes half the time, others by
//! [serde_json](https://docs.rs/serde_json), which also says what is wrong with a payload.

#[cfg(test)]
mod agreement;
mod decoder;
mod documents;
mod encoder;
mod metered;
mod quick;
mod shape;
mod validation;
mod value;

pub use decoder::JsonDecoder;
pub use encoder::JsonEncoder;
