//! Columns and lines of logs and buffers, and rows that become batches.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod columns;
mod digest;
mod examples;
mod lines;
mod rows;
mod support;
mod tables;
