//! `Record`, its iterator, the exporter of its views, and the drop-ins' records, written against CPython's C
//! API.

pub(super) mod dropins;
pub(super) mod exporter;
pub(super) mod kind;
pub(super) mod record_object;
pub(super) mod types;
