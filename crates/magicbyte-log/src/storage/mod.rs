//! The only module that lists directories and opens files for reading. A path becomes a
//! [`Location`](location::Location) once, with the [`Store`](store::Store) that has its files. Stores are
//! stacked, and each knows only the store inside it:
//!
//! ```text
//! Tiered                segments in tiered storage, as the files of a partition (feature `tiered`)
//!   Unpacked            compressed segments, as their content
//!     Archive           the inside of an archive, where the path leads into one
//!       Local, Mounted  the local file system, or the remote store that is mounted at the URL
//! InMemory              bytes that were fetched from a running cluster
//! ```

mod archive;
pub(crate) mod file_info;
mod in_memory;
pub(crate) mod local;
pub(crate) mod location;
pub(crate) mod mounted;
pub(crate) mod open_file;
pub(crate) mod pin;
pub(crate) mod positioned;
mod range_cache;
mod ranges;
pub(crate) mod remote;
pub(crate) mod remote_names;
pub(crate) mod sidecars;
mod sparse;
mod store;
#[cfg(feature = "tiered")]
pub(crate) mod tiered;
mod unpacked;

pub(crate) use archive::without_archive_ending;
