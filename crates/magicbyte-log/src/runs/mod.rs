//! Batches without a directory: runs of them in files of any kind, and the marks by which a run is recognized in
//! a partition that has its name.

pub(crate) mod batch_run;
pub(crate) mod marks;
