//! Datagrams that IP has split: fragments in any order, some twice, some never.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use magicbyte::internals::be;

/// The largest payload of an IP packet, in bytes.
const MAX_DATAGRAM: usize = 65_535;
/// The memory of all incomplete datagrams, in bytes; beyond it, they are given up.
const MAX_HELD: usize = 16 << 20;
/// The memory of a fragment besides its bytes.
const OVERHEAD: usize = 256;
/// Fragments of a datagram, at most: networks let at least 576 bytes pass.
const MAX_PARTS: usize = 256;
const UDP: u8 = 17;

/// The datagram of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Datagram {
    pub(crate) ends: (IpAddr, IpAddr),
    pub(crate) protocol: u8,
    pub(crate) id: u32,
}

/// The place of a fragment in its datagram.
#[derive(Clone, Copy)]
pub(crate) struct Fragment {
    pub(crate) id: u32,
    /// In bytes.
    pub(crate) offset: usize,
    pub(crate) is_last: bool,
}

/// Datagrams of which some fragments are missing.
#[derive(Default)]
pub(crate) struct Fragments {
    waiting: HashMap<Datagram, Parts>,
    held: usize,
    /// Fragments that were given up, and may have belonged to a segment.
    lost: u64,
}

#[derive(Default)]
struct Parts {
    by_offset: BTreeMap<usize, Box<[u8]>>,
    size: Option<usize>,
    held: usize,
}

impl Fragments {
    /// Adds a fragment; returns the datagram's bytes if it is complete. Of fragments that come twice, the first
    /// counts.
    pub(crate) fn add(&mut self, datagram: Datagram, fragment: Fragment, bytes: &[u8]) -> Option<Vec<u8>> {
        let end = fragment.offset + bytes.len();
        if end > MAX_DATAGRAM {
            return None;
        }
        let parts = self.waiting.entry(datagram).or_default();
        if fragment.is_last {
            parts.size = Some(end);
        }
        if !parts.by_offset.contains_key(&fragment.offset) && parts.by_offset.len() < MAX_PARTS {
            parts.by_offset.insert(fragment.offset, bytes.into());
            parts.held += bytes.len() + OVERHEAD;
            self.held += bytes.len() + OVERHEAD;
        }
        let whole = parts.whole();
        if whole.is_some() {
            self.held -= self.waiting.remove(&datagram).map_or(0, |parts| parts.held);
        } else if self.held > MAX_HELD {
            self.give_up();
        }
        whole
    }

    /// The end of the capture: returns how many fragments may have belonged to segments.
    pub(crate) fn finish(&mut self) -> u64 {
        self.give_up();
        std::mem::take(&mut self.lost)
    }

    fn give_up(&mut self) {
        for (datagram, parts) in self.waiting.drain() {
            if datagram.protocol != UDP || parts.is_tunnel() {
                self.lost += parts.by_offset.len() as u64;
            }
        }
        self.held = 0;
    }
}

impl Parts {
    /// Their bytes, if none are missing.
    fn whole(&self) -> Option<Vec<u8>> {
        let size = self.size?;
        let mut end = 0;
        for (&offset, bytes) in &self.by_offset {
            if offset > end {
                return None;
            }
            end = end.max(offset + bytes.len());
        }
        if end < size {
            return None;
        }
        let mut whole = Vec::with_capacity(size);
        for (&offset, bytes) in &self.by_offset {
            let known = whole.len() - offset;
            whole.extend_from_slice(bytes.get(known..).unwrap_or_default());
        }
        whole.truncate(size);
        Some(whole)
    }

    /// True if the first fragment belongs to VXLAN or Geneve.
    fn is_tunnel(&self) -> bool {
        let first = self.by_offset.get(&0).and_then(|bytes| bytes.get(..4));
        first.is_some_and(|ports| matches!(be!(ports, 2, u16), 4789 | 4790 | 6081 | 8472))
    }
}
