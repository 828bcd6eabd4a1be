//! Options of reading a log.

use std::fmt;
use std::str::FromStr;

use magicbyte::DEFAULT_MAX_DECOMPRESSED_BYTES;
use magicbyte::state::IsolationLevel;

use crate::chunk::DEFAULT_CHUNK_BYTES;

/// The handling of damage by a reader. The names are those of Spark's sources.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum DamageMode {
    /// Damage is skipped and reported as a problem.
    #[serde(rename = "PERMISSIVE")]
    Permissive,
    /// The first damage is an error and ends reading.
    #[default]
    #[serde(rename = "FAILFAST")]
    FailFast,
}

/// A name that is not a damage mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDamageMode(String);

impl fmt::Display for UnknownDamageMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mode {:?}: expected \"PERMISSIVE\" or \"FAILFAST\"", self.0)
    }
}

impl std::error::Error for UnknownDamageMode {}

impl FromStr for DamageMode {
    type Err = UnknownDamageMode;

    /// Case-insensitive, as in Spark.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name.to_ascii_uppercase().as_str() {
            "PERMISSIVE" => Ok(Self::Permissive),
            "FAILFAST" => Ok(Self::FailFast),
            _ => Err(UnknownDamageMode(name.to_owned())),
        }
    }
}

/// Options of [`PartitionLog::batches`](crate::PartitionLog::batches).
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// The first offset to read.
    pub start_offset: Option<i64>,
    /// The offset to stop before.
    pub end_offset: Option<i64>,
    /// Reading starts at the first record with this timestamp (ms) or a later one, or before it at damage that
    /// may hide an earlier one. Damage is passed over only where the time index shows that it is older.
    pub start_timestamp: Option<i64>,
    /// The isolation level: which records are delivered.
    pub isolation_level: IsolationLevel,
    /// True if CRCs are checked.
    pub check_crcs: bool,
    /// The limit for one batch, stored or decompressed, in bytes.
    pub max_decompressed_bytes: usize,
    /// The handling of damage.
    pub mode: DamageMode,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            start_offset: None,
            end_offset: None,
            start_timestamp: None,
            isolation_level: IsolationLevel::ReadUncommitted,
            check_crcs: true,
            max_decompressed_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES,
            mode: DamageMode::FailFast,
        }
    }
}

/// Options of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanOptions {
    /// The isolation level: which records to deliver.
    pub isolation_level: IsolationLevel,
    /// The first offset to read.
    pub start_offset: Option<i64>,
    /// The offset to stop before.
    pub end_offset: Option<i64>,
    /// The approximate size of a chunk, in bytes of the file.
    pub chunk_bytes: u64,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            isolation_level: IsolationLevel::default(),
            start_offset: None,
            end_offset: None,
            chunk_bytes: DEFAULT_CHUNK_BYTES,
        }
    }
}
