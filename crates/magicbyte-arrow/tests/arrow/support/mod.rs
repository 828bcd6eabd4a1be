//! Shared by these tests.

pub mod arrow;
