//! The position of each key's last record. Spilled keys are reduced to sorted lists of positions, and these
//! lists to one bit per record of a chunk.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::cleaner::key_map::{KeyMap, KeyMapOptions, put_file};
use crate::error::{LogError, LogResult};
use crate::storage::local;

/// The bits of a record's number within its chunk: far more than a file can hold.
const RECORD_BITS: u32 = 40;

/// The position of a record in its log: the chunk's number, then the record's number in the chunk.
pub(crate) fn record_position(chunk: u32, record: u64) -> LogResult<u64> {
    if chunk >> (64 - RECORD_BITS) != 0 || record >> RECORD_BITS != 0 {
        return Err(LogError::Usage(
            "too many chunks or records: at most 2^24 chunks of 2^40 records".into(),
        ));
    }
    Ok(u64::from(chunk) << RECORD_BITS | record)
}

/// Reduces the files that the tasks of a log spilled for one part of the hash. Writes sorted lists of the
/// positions of last records into `directory`; each list has at most as many as fit in one map.
///
/// # Errors
/// [`LogError::Io`].
pub fn reduce_keys(
    files: &[PathBuf],
    directory: impl AsRef<Path>,
    options: KeyMapOptions,
) -> LogResult<Vec<PathBuf>> {
    let directory = directory.as_ref();
    let mut lists = Vec::new();
    reduce(files, directory, options, 1, &mut lists)?;
    Ok(lists)
}

fn reduce(
    files: &[PathBuf],
    directory: &Path,
    options: KeyMapOptions,
    depth: u32,
    lists: &mut Vec<PathBuf>,
) -> LogResult<()> {
    let mut map = KeyMap::new(directory, options, depth);
    for file in files {
        put_file(&mut map, file)?;
        // The tasks' own files are kept, since another attempt may need them.
        if depth > 1 {
            fs::remove_file(file).map_err(|e| LogError::io(file, e))?;
        }
    }
    if map.is_whole() {
        let mut positions = map.into_positions();
        positions.sort_unstable();
        fs::create_dir_all(directory).map_err(|e| LogError::io(directory, e))?;
        let path = directory.join("positions");
        write_list(&path, &positions).map_err(|e| LogError::io(&path, e))?;
        lists.push(path);
        return Ok(());
    }
    for (part, file) in map.into_files()?.into_iter().enumerate() {
        if let Some(file) = file {
            reduce(&[file], &directory.join(format!("{part:02}")), options, depth + 1, lists)?;
        }
    }
    Ok(())
}

fn write_list(path: &Path, positions: &[u64]) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 16, File::create_new(path)?);
    positions.iter().try_for_each(|position| file.write_all(&position.to_le_bytes()))?;
    file.flush()
}

/// The records of a chunk that are the last of their key: one bit per record.
#[derive(Debug, Default)]
pub(crate) struct LastRecords {
    bits: Vec<u64>,
}

impl LastRecords {
    /// The last records of a chunk with this many records, from all lists of its log.
    pub(crate) fn of(chunk: u32, records: u64, lists: &[PathBuf]) -> LogResult<Self> {
        let mut last = Self { bits: vec![0; records.div_ceil(64) as usize] };
        for path in lists {
            last.add(path, chunk, records).map_err(|e| LogError::io(path, e))?;
        }
        Ok(last)
    }

    fn add(&mut self, path: &Path, chunk: u32, records: u64) -> std::io::Result<()> {
        let mut file = local::open_regular(path)?;
        let first = u64::from(chunk) << RECORD_BITS;
        let end = file.metadata()?.len() / 8;
        let (mut low, mut high) = (0, end);
        let mut bytes = [0; 8];
        while low < high {
            let middle = low.midpoint(high);
            file.seek(SeekFrom::Start(middle * 8))?;
            file.read_exact(&mut bytes)?;
            if u64::from_le_bytes(bytes) < first { low = middle + 1 } else { high = middle }
        }
        file.seek(SeekFrom::Start(low * 8))?;
        let mut file = BufReader::with_capacity(1 << 16, file);
        for _ in low..end {
            file.read_exact(&mut bytes)?;
            let record = u64::from_le_bytes(bytes) - first;
            if record >= records {
                break;
            }
            self.bits[(record / 64) as usize] |= 1 << (record % 64);
        }
        Ok(())
    }

    /// True if the record is the last of its key.
    #[inline]
    pub(crate) fn contains(&self, record: u64) -> bool {
        self.bits.get((record / 64) as usize).is_some_and(|bits| bits >> (record % 64) & 1 != 0)
    }
}
