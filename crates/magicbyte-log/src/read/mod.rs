//! Reading a partition: survey, plan, chunks, and the accounts that prove nothing was lost.

pub(crate) mod accounting;
pub(crate) mod chunk_reader;
pub(crate) mod header_scan;
pub(crate) mod header_visitor;
mod last_records;
pub(crate) mod live;
mod live_log;
pub(crate) mod name_order;
pub(crate) mod offset_ranges;
pub(crate) mod options;
pub(crate) mod partition_log;
pub(crate) mod plan;
pub(crate) mod producer_replay;
pub(crate) mod rescue;
pub(crate) mod seek;
pub(crate) mod survey;
pub(crate) mod survey_in_parts;
pub(crate) mod timestamps;
pub(crate) mod trim;
