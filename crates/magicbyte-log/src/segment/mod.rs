//! One segment file: a walk that puts every byte in a batch, a quarantined range or the tail.

pub(crate) mod blocks;
pub(crate) mod limits;
pub(crate) mod reader;
pub(crate) mod salvage;
pub(crate) mod wrapper;
