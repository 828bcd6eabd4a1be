//! Shared by the programs and benchmarks: the work that they time, and the sets that they work on.
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "not a library for others"
)]

pub mod limits;
pub mod pass;
pub mod sets;
