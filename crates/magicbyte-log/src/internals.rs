//! Parts of this crate that the other crates of this workspace use. Any version may change them.

pub use crate::process::Process;
pub use crate::read::chunk_reader::Step;
pub use crate::read::header_scan::{HeaderScan, survey_with};
pub use crate::read::header_visitor::{Content, HeaderVisitor};
pub use crate::read::producer_replay::ProducerReplay;
pub use crate::read::rescue::repair;
pub use crate::read::timestamps::{FoundRecord, record_for_timestamp};
pub use crate::storage::file_info::{Found, Other, changed};
pub use crate::storage::local::{open_pinned, open_regular};
pub use crate::storage::location::entries_as_they_are;
pub use crate::storage::open_file::OpenFile;
pub use crate::storage::pin::is_same_file;
pub use crate::storage::positioned::read_at;
pub use crate::storage::remote::cause;
