//! The limits of the resources that clients can take: memory in bytes, and time.

use std::time::Duration;

/// Memory of each connection for requests and responses, in bytes: requests and responses of ordinary size never wait.
pub(super) const OWN_MEMORY: usize = 1 << 20;
/// Memory that all connections share for larger requests and responses, in bytes.
pub(super) const SHARED_MEMORY: usize = 512 << 20;
/// Memory that the values of one response may take, in bytes, unless the archive has very many partitions.
pub(super) const MAX_RESPONSE_MEMORY: usize = 96 << 20;
/// Memory that a partition may take in a response that has all of them, in bytes.
pub(super) const PARTITION_MEMORY: usize = 1 << 10;
/// The maximum memory that the values of a request take for each of its bytes.
pub(super) const REQUEST_FACTOR: usize = 200;
/// Size of requests that each connection may send at any time, in bytes.
pub(super) const OWN_REQUESTS: usize = 64 << 10;
/// Bytes of larger requests that all connections may have under way.
pub(super) const SHARED_REQUESTS: usize = 64 << 20;
/// The maximum time that a request may be under way while others may wait for its memory.
pub(super) const MAX_ARRIVAL: Duration = Duration::from_secs(30);
/// The maximum time that a client may take for a response while others may wait for its memory.
pub(super) const MAX_DELIVERY: Duration = Duration::from_mins(1);
/// Records in one response to Fetch, in bytes.
pub(super) const MAX_FETCH_BYTES: u64 = 16 << 20;
/// Records of one response to Fetch that are in memory rather than in files, in bytes, unless a single batch is larger.
pub(super) const MAX_FETCH_MEMORY: u64 = 1 << 20;
/// Open files of one response to Fetch.
pub(super) const MAX_FETCH_FILES: usize = 32;
/// The maximum time that Fetch waits for records.
pub(super) const MAX_FETCH_WAIT: Duration = Duration::from_mins(1);
/// Memory of all fetch sessions, in bytes.
pub(super) const MAX_SESSION_MEMORY: usize = 32 << 20;
/// Memory of all groups that clients have made, in bytes: members, ids that wait for their members, offsets.
pub(super) const MAX_GROUP_MEMORY: usize = 64 << 20;
/// Members of one group.
pub(super) const MAX_MEMBERS: usize = 250;
/// Memory of one member of a group, in bytes.
pub(super) const MAX_MEMBER_MEMORY: usize = 4 << 20;
/// Memory of the ids that a group has given to members that have not joined yet, in bytes.
pub(super) const MAX_PENDING_MEMORY: usize = 128 << 10;
/// A client's text that an answer repeats, in bytes.
const MAX_REPEATED: usize = 1 << 10;

/// The start of a client's text, for an answer that repeats it: with all of a long text, the field would not hold it.
pub(super) fn repeated(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_REPEATED)]
}
