//! Kafka's protocol messages as data: requests and responses of all APIs in all versions, read and written.
//!
//! One reader and one writer follow a table of Kafka's own definitions, so any message is a structure of named values,
//! as in the JSON of Kafka's classes. Each also has a type of its own, in [`body`]. [`ApiKey`] has the names, keys and
//! versions of all.
//!
//! ```
//! use magicbyte_protocol::message::{ApiKey, Message, MessageKind, Struct, Value, read_request, write_message};
//!
//! let (kind, api_key) = (MessageKind::Request, ApiKey::Metadata as i16);
//! let header = Struct::from([("correlationId", Value::from(7))]);
//! let topic = Struct::from([("name", Value::from("orders"))]);
//! let body = Struct::from([("topics", Value::from(vec![topic]))]);
//! let frame = write_message(&Message { kind, api_key, api_version: 12, header, body })?;
//!
//! let read = read_request(&frame)?;
//! assert_eq!(read.body.at::<&str>("topics[0].name")?, "orders");
//! assert!(read.body.at::<bool>("allowAutoTopicCreation")?, "Kafka's default");
//! # Ok::<(), magicbyte::Error>(())
//! ```

mod api_key;
mod at;
pub mod body;
pub(crate) mod fields;
pub(crate) mod frame;
mod from_value;
pub(crate) mod header;
mod path;
pub(crate) mod read;
mod records;
pub(crate) mod secrets;
pub(crate) mod table;
#[doc(hidden)]
pub mod uuid;
pub(crate) mod value;
pub(crate) mod write;

pub use api_key::ApiKey;
pub use at::ViewOf;
pub use frame::{Message, MessageKind, read_request, read_response, write_message};
pub use value::{Struct, Value};
