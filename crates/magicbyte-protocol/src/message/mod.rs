//! Kafka's protocol messages as data: requests and responses of all APIs in all versions, read and written.
//!
//! One reader and one writer follow a table of Kafka's own definitions, so any message is a structure of named values,
//! as in the JSON of Kafka's classes. Those that a client needs also have types of their own, in [`body`].
//!
//! ```
//! use magicbyte_protocol::message::{Message, MessageKind, Struct, Value, read_request, write_message};
//!
//! let (mut header, mut body) = (Struct::default(), Struct::default());
//! header.set("correlationId", Value::Int(7));
//! body.set("topics", Value::Null);
//! let request = Message { kind: MessageKind::Request, api_key: 3, api_version: 12, header, body };
//! let frame = write_message(&request)?;
//! let read = read_request(&frame)?;
//! assert_eq!(read.body.get("topics"), Some(&Value::Null));
//! assert_eq!(read.body.get("allowAutoTopicCreation"), Some(&Value::Bool(true)));
//! # Ok::<(), magicbyte::Error>(())
//! ```

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

pub use frame::{Api, Message, MessageKind, apis, read_request, read_response, write_message};
pub use value::{Struct, Value};
