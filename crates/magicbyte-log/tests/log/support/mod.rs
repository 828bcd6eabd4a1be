//! Shared by these tests.

pub mod damage;
pub mod rows;
