//! Directories: read, damaged, written, cleaned, rebuilt.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod compact;
mod examples;
mod follower_log;
mod history;
mod hostile_log;
mod last_records;
mod live;
mod log_json;
mod merge;
mod partition_log;
mod partition_writer;
mod rebuild;
mod redact;
mod rescue;
mod rewrite;
mod runs;
mod salvage;
mod salvage_embedded;
mod stores;
mod support;
mod trim;
