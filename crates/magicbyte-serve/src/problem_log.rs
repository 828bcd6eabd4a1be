//! The topic `__magicbyte_problems`: the damage met so far, one JSON record each.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use ::bytes::Bytes;

use magicbyte::{Compression, RecordsBuilder};
use magicbyte_log::Problem;

use crate::lock::lock;

/// The topic's name.
pub const PROBLEMS_TOPIC: &str = "__magicbyte_problems";

/// The maximum number of problems; further problems are left out.
const MOST: usize = 10_000;

/// The identity of a problem.
type Place = (String, i32, Option<String>, Option<u64>, String);

/// A log in memory that grows as damage is met.
#[derive(Debug, Default)]
pub(super) struct ProblemLog(Mutex<Problems>);

#[derive(Debug, Default)]
struct Problems {
    seen: HashSet<Place>,
    /// One batch for each record; its index is its offset.
    batches: Vec<(i64, Bytes)>,
}

impl ProblemLog {
    /// Adds a problem, unless it is known. Returns whether it was added.
    pub(super) fn add(&self, problem: &Problem) -> bool {
        let mut problems = lock(&self.0);
        let Problem { topic, partition, segment, start, kind, .. } = problem.clone();
        if problems.batches.len() >= MOST || !problems.seen.insert((topic, partition, segment, start, kind)) {
            return false;
        }
        let Ok(value) = serde_json::to_vec(problem) else { return false };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        let key = format!("{}-{}", problem.topic, problem.partition);
        let mut builder = RecordsBuilder::v2(Compression::None);
        let offset = problems.batches.len() as i64;
        let appended = builder.append(offset, now, Some(key.as_bytes()), Some(&value), &[]);
        let Some(batch) = appended.ok().and_then(|()| builder.build().ok()) else { return false };
        problems.batches.push((now, batch.into()));
        true
    }

    /// The offset of the next record.
    pub(super) fn end(&self) -> i64 {
        lock(&self.0).batches.len() as i64
    }

    /// The batches from this offset on, at most `max_bytes` but one at least.
    pub(super) fn read(&self, offset: i64, max_bytes: usize) -> Vec<Bytes> {
        let problems = lock(&self.0);
        let mut left = max_bytes;
        let from = (offset.max(0) as usize).min(problems.batches.len());
        let mut batches = Vec::new();
        for (_, batch) in &problems.batches[from..] {
            if batch.len() > left && !batches.is_empty() {
                break;
            }
            left = left.saturating_sub(batch.len());
            batches.push(batch.clone());
        }
        batches
    }

    /// Offset and timestamp (ms) of the first record with this timestamp or a later one.
    pub(super) fn find_by_time(&self, timestamp: i64) -> Option<(i64, i64)> {
        let problems = lock(&self.0);
        let index = problems.batches.iter().position(|(time, _)| *time >= timestamp)?;
        Some((index as i64, problems.batches[index].0))
    }

    /// Offset and timestamp (ms) of the first record with the largest timestamp.
    pub(super) fn find_max_timestamp(&self) -> Option<(i64, i64)> {
        let max = lock(&self.0).batches.iter().map(|(time, _)| *time).max()?;
        self.find_by_time(max)
    }
}
