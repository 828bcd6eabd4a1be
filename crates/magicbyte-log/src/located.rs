//! Plain data of another process, which has the paths of files, but not their stores.

use crate::chunk::Chunk;
use crate::cleaner::plan::{CleanerChunk, SegmentGroup};
use crate::listing::{Listing, Segment};
use crate::read::plan::Plan;
use crate::read::survey::Survey;
use crate::storage::mounted::Stores;

/// Plain data that names files. Deserialized, it reads local files; its URLs need stores.
pub trait Located {
    /// Resolves the URLs by the stores of this process.
    fn locate(&mut self, stores: &Stores);
}

impl Located for Segment {
    fn locate(&mut self, stores: &Stores) {
        self.location.locate(stores);
    }
}

impl Located for Survey {
    fn locate(&mut self, stores: &Stores) {
        self.segment.locate(stores);
    }
}

impl Located for Listing {
    fn locate(&mut self, stores: &Stores) {
        self.location.locate(stores);
        self.segments.iter_mut().for_each(|segment| segment.locate(stores));
    }
}

impl Located for Chunk {
    fn locate(&mut self, stores: &Stores) {
        self.location.locate(stores);
    }
}

impl Located for Plan {
    fn locate(&mut self, stores: &Stores) {
        self.segments.iter_mut().for_each(|planned| planned.segment.locate(stores));
        self.chunks.iter_mut().for_each(|chunk| chunk.locate(stores));
    }
}

impl Located for CleanerChunk {
    fn locate(&mut self, stores: &Stores) {
        self.chunk.locate(stores);
    }
}

impl Located for SegmentGroup {
    fn locate(&mut self, stores: &Stores) {
        self.chunks.iter_mut().for_each(|chunk| chunk.locate(stores));
    }
}
