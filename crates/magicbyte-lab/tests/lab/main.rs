//! Costs, and the experimental format.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod cost;
mod magic3;
