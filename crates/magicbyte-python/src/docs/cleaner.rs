//! The docstrings of `_stubs/cleaner.pyi`. Written by `make docstrings`.

macro_rules! cleaner {
    (plan_compaction) => {
        r"Decides what to clean in a log and how to group its segments: a Compaction.

`plan` covers the whole log, `listing` is its directory's; times are in ms. Only entire segments are
cleaned, up to the last stable offset and `until_offset`, and the last segment only with `all`."
    };
    (plan_redaction) => {
        r"The Compaction that rewrites every segment of a log on its own."
    };
    (index_keys) => {
        r#"The first pass, over a run of CleanerChunks: an IndexedKeys.

With a directory the keys are written to files in it, one for each part of the hash, from a map of
`memory_bytes`. `seed` is random, but the same for all tasks of a log.

Raises:
    Error: With "FAILFAST", at the first damage.
    OSError: A file could not be read or written."#
    };
    (reduce_keys) => {
        r"Reduces the files of one part of the hash to sorted lists of the places of each key's last record."
    };
    (producer_summary) => {
        r"A log's producers and transactions, for each group of offsets (first, last).

`producers` are those of each IndexedKeys, in offset order; producers last heard from at or before
`expired_until` (ms) are forgotten."
    };
    (compact_group) => {
        r#"The second pass, over a group of segments: writes them as one without superseded or expired records.

Returns JSON: `results`, a ChunkResult as text for each chunk, the first `problems` and
`problems_left_out`, `segments` for `finish_partition` with their `batches` and `size`, `counts`,
`redacted`.

Raises:
    Error: With "FAILFAST", at the first damage or the first batch that could only be copied.
    ValueError: The files have changed since the first pass.
    OSError: A file could not be read or written."#
    };
    (KeySet) => {
        r"Keys to be forgotten: about a hundred bytes of memory for each, besides the key itself."
    };
    (KeySet.find) => {
        r"Where one of the keys first occurs in `data`, ignoring keys with less than eight non-zero bytes."
    };
    (redact_group) => {
        r"Like `compact_group`, but without the records that have one of these keys, or that `indexed` selects.

A chunk's `selected` are pairs of a batch's position and runs of records in it (first and last number),
in order. With `tombstones` these records stay, without value and headers. The result also has
`matched`, the keys that were found: one bit for each key, 64 to a number."
    };
    (check_segment) => {
        r"Reads a segment that `redact_group` wrote and looks for what should not be there.

Returns JSON: `leaks`, the number of places that hold one of the keys or bytes that no reader returns,
with `first_leaks`; `in_keys`, `in_values` and `in_headers`, the number of records that hold one of the
keys elsewhere.

Raises:
    OSError: The file could not be read."
    };
}
pub(crate) use cleaner;
