//! The docstrings of `_stubs/log.pyi`. Written by `make docstrings`.

macro_rules! log {
    (PartitionLogCore) => {
        r"A partition's directory."
    };
    (PartitionLogCore.of_listing) => {
        r"Creates the log of a PartitionListing (JSON), whose files may be in several directories."
    };
    (PartitionLogCore.listing) => {
        r"The contents of the directory: a PartitionListing as JSON."
    };
    (PartitionLogCore.verify) => {
        r"Decodes everything and accounts for every byte: a PartitionReconciliation as JSON."
    };
    (PartitionLogCore.offset_for_timestamp) => {
        r"The first offset whose record has this timestamp (ms) or a later one."
    };
    (PartitionLogCore.to_arrow) => {
        r"The selected data records as columns."
    };
    (PartitionLogCore.batches) => {
        r"The batches that hold the selected records."
    };
    (LogBatchesCore) => {
        r"Iterates over (batch, segment file, start offset, end offset (exclusive), is data)."
    };
    (LogBatchesCore.problems) => {
        r"The first `LISTED` problems so far, as JSON."
    };
    (LogBatchesCore.problems_left_out) => {
        r"The number of further problems."
    };
    (LogBatchesCore.end_offset) => {
        r"The end of the read (exclusive): the requested end, or the last stable offset."
    };
    (RescuerCore) => {
        r"Iterates over a segment's quarantined ranges: (position, data, kind, message, repair, suspects).

A repair is (batch, first byte changed, description of the change, chance of another cause, True if
proven), a suspect (offset, timestamp, key, value, headers)."
    };
}
pub(crate) use log;
