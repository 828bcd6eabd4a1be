//! DescribeLogDirs: the sizes of the logs, by their directories. User interfaces send this request.

use std::collections::{BTreeMap, HashMap, HashSet};

use magicbyte_protocol::message::body::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use magicbyte_protocol::message::body::{DescribeLogDirsRequest, DescribeLogDirsResponse};

use crate::archive::Archive;
use crate::memory::{Budget, Unanswered};
use crate::partition::Partition;
use crate::response::{array, push};

/// Responds to DescribeLogDirs.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn describe_log_dirs<'a>(
    archive: &'a Archive,
    budget: &Budget<'_>,
    request: &DescribeLogDirsRequest<'_>,
) -> Result<DescribeLogDirsResponse<'a>, Unanswered> {
    let requested = request.topics.as_ref().map(|topics| {
        let mut requested: HashMap<&str, HashSet<i32>> = HashMap::new();
        for topic in topics {
            requested.entry(&topic.topic).or_default().extend(&topic.partitions);
        }
        requested
    });
    let mut log_dirs: BTreeMap<&str, Vec<DescribeLogDirsTopic<'_>>> = BTreeMap::new();
    for topic in archive.topics.values() {
        let is_requested = |partition| match &requested {
            Some(requested) => requested.get(&*topic.name).is_some_and(|known| known.contains(partition)),
            None => true,
        };
        let mut partitions: BTreeMap<&str, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
        for (index, partition) in &topic.partitions {
            let Partition::Directory(directory) = partition else { continue };
            log_dirs.entry(&directory.log_dir).or_default();
            if is_requested(index) {
                let described = DescribeLogDirsPartition {
                    partition_index: *index,
                    partition_size: directory.size() as i64,
                    ..Default::default()
                };
                push(budget, partitions.entry(&directory.log_dir).or_default(), described)?;
            }
        }
        for (log_dir, partitions) in partitions {
            let described = DescribeLogDirsTopic { name: (&*topic.name).into(), partitions };
            push(budget, log_dirs.entry(log_dir).or_default(), described)?;
        }
    }
    let results = log_dirs.into_iter().map(|(log_dir, topics)| {
        Ok(DescribeLogDirsResult { log_dir: log_dir.into(), topics, ..Default::default() })
    });
    Ok(DescribeLogDirsResponse { results: array(budget, results)?, ..Default::default() })
}
