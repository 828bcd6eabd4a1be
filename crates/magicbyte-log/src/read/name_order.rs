//! A check that the names of segments match their offsets. A broker's names do; after a restore, a
//! file may have the name of another file. Only the headers of the first batches are read.

use crate::error::LogResult;
use crate::listing::Segment;
use crate::read::seek::first_stored_offset;

/// True if each segment begins between its name and the name of the next segment, so that the order of names
/// is the order of offsets. `segments` are in the order of their names.
///
/// Cost: reads the first header of each segment. Segments in a store that were written in the order of their
/// names are exempt: a request costs more there, and a file cannot be renamed without being written.
///
/// # Errors
/// [`LogError::Io`](crate::LogError::Io) if no file can be opened or memory is exhausted.
pub fn is_in_name_order(segments: &[Segment]) -> LogResult<bool> {
    for (index, segment) in segments.iter().enumerate() {
        let next = segments.get(index + 1);
        if segment.is_checkpoint || next.is_some_and(|next| next.is_checkpoint) {
            continue;
        }
        let end = next.map_or(i64::MAX, |next| next.base_offset);
        if let Some(first) = first_offset(segment, next)?
            && !(segment.base_offset..end).contains(&first)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The segments that may hold this offset or later offsets, by their names or by their first batches.
/// `segments` are in the order of their names.
///
/// Cost: the cost of [`is_in_name_order`] for the segments before the segment whose name leads to the offset.
///
/// # Errors
/// The errors of [`is_in_name_order`].
pub fn segments_from(segments: &[Segment], offset: i64) -> LogResult<Vec<Segment>> {
    let named = segments.partition_point(|segment| segment.base_offset <= offset).saturating_sub(1);
    let Some(last) = segments.get(named) else { return Ok(Vec::new()) };
    let mut begins = Vec::with_capacity(named + 1);
    for segment in &segments[..=named] {
        begins.push(first_offset(segment, Some(last))?.unwrap_or(segment.base_offset));
    }
    let holder = begins.iter().copied().filter(|&begin| begin <= offset).max().unwrap_or(i64::MIN);
    let kept = segments.iter().enumerate().filter(|&(index, _)| index >= named || begins[index] >= holder);
    Ok(kept.map(|(_, segment)| segment.clone()).collect())
}

/// The offset in the segment's first header. None if it has no header, or if its name is trusted because it
/// was written before the `later` segment.
fn first_offset(segment: &Segment, later: Option<&Segment>) -> LogResult<Option<i64>> {
    let is_trusted =
        segment.location.is_remote() && later.is_none_or(|later| segment.modified_ms <= later.modified_ms);
    if is_trusted || segment.is_checkpoint { Ok(None) } else { first_stored_offset(segment) }
}
