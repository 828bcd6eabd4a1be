//! The member that sends a request about a group, and the parts that requests of both protocols share.

use std::time::Duration;

use magicbyte_broker::ErrorCode;

/// A result whose error is Kafka's.
pub(super) type Result<T> = std::result::Result<T, ErrorCode>;

/// The member that a request comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    pub(super) member_id: &'a str,
    pub(super) instance_id: Option<&'a str>,
    pub(super) generation: i32,
}

/// A time of a request in milliseconds; negative ones count as 0.
pub(super) fn millis(ms: i64) -> Duration {
    Duration::from_millis(ms.max(0) as u64)
}
