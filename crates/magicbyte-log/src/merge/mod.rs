//! Merging the copies of a partition into one log.
//!
//! ```text
//! plans of the copies -> align (reads every copy once) -> Alignment -> plan_merge (pure) -> MergePlan
//!                                  ^                                        |
//!                                  +--- repair_holes (proven repairs) <-----+  holes
//! ```
//!
//! A [`MergePlan`](plan::MergePlan) consists of chunks, so that it is written like the plan of one log.

pub(crate) mod align;
mod copy_reader;
mod copy_scanner;
mod lineage;
pub(crate) mod model;
pub(crate) mod plan;
pub(crate) mod repair;
mod selection;
