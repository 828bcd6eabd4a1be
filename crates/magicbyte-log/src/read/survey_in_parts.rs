//! A survey of a segment that is decoded while it is scanned.

use crate::error::LogResult;
use crate::listing::Segment;
use crate::read::header_scan::HeaderScan;
use crate::read::survey::Survey;

/// The survey of a segment that is decoded next, from its first to its last byte, while the survey goes on: of a store, all of
/// it is fetched, ahead of the scan, and kept for the decoding.
///
/// An iterator over what is certain so far, each time a part of the segment was scanned, and last the survey of all of it. Parts
/// have offsets and borders only, enough for a plan that is `read_uncommitted`. Ends at the first error, one of those of
/// [`survey_segment`](crate::steps::survey_segment).
pub struct SurveyInParts {
    /// None at the end.
    scan: Option<HeaderScan<()>>,
    /// At least this many bytes, from one part to the next.
    part_bytes: u64,
    /// Where the last part ended.
    given: u64,
}

impl SurveyInParts {
    /// Opens a segment; a part is at least `part_bytes` longer than the one before.
    ///
    /// # Errors
    /// The errors of [`survey_segment`](crate::steps::survey_segment).
    pub fn begin(segment: &Segment, part_bytes: u64) -> LogResult<Self> {
        Ok(Self { scan: Some(HeaderScan::begin(segment, (), true)?), part_bytes, given: 0 })
    }
}

impl Iterator for SurveyInParts {
    type Item = LogResult<Survey>;

    fn next(&mut self) -> Option<LogResult<Survey>> {
        let mut scan = self.scan.take()?;
        loop {
            match scan.step() {
                Ok(true) => {}
                Ok(false) => return Some(scan.end().map(|(survey, ())| survey)),
                Err(error) => return Some(Err(error)),
            }
            if let Some((end, part)) = scan.part(self.given.saturating_add(self.part_bytes)) {
                (self.given, self.scan) = (end, Some(scan));
                return Some(Ok(part));
            }
        }
    }
}

impl std::fmt::Debug for SurveyInParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SurveyInParts").field("given", &self.given).finish_non_exhaustive()
    }
}
