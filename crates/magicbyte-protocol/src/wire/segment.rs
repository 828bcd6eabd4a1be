//! Packets of a capture, and the TCP segments in them.

use std::net::SocketAddr;

use pcap_parser::Linktype;

/// A packet of a capture.
pub(crate) struct Packet<'a> {
    pub(crate) link: Linktype,
    /// In microseconds since 1970.
    pub(crate) time: Option<i64>,
    pub(crate) data: &'a [u8],
}

/// A TCP segment.
#[expect(clippy::struct_excessive_bools, reason = "three of them are the flags of TCP")]
pub(crate) struct Segment<'a> {
    /// The time of capture, in microseconds since 1970; None if the file does not say.
    pub(crate) time: Option<i64>,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) sequence: u32,
    /// The next byte that the sender expects.
    pub(crate) acknowledged: Option<u32>,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    pub(crate) payload: &'a [u8],
    /// True if the payload was not captured in full.
    pub(crate) is_cut: bool,
}
