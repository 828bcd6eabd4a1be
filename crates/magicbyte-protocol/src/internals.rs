//! Parts of the protocol that the other crates of this workspace use. Any version may change them.

pub use crate::internal_topics::record::is_secret;
pub use crate::message::body::write_response_around;
pub use crate::message::fields::{AsValue, Fields, ValueRef};
pub use crate::message::frame::read_request_start;
pub use crate::message::read::MAX_ELEMENTS;
pub use crate::message::table::Field;
pub use crate::message::uuid;
pub use crate::message::write::{Gap, is_default};
