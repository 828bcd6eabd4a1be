//! The docstrings of `_stubs/lab.pyi`. Written by `make docstrings`.

macro_rules! lab {
    (chunk_cost) => {
        r"Decodes every record of a Chunk: a ChunkCost."
    };
    (cost_report) => {
        r"Adds up the ChunkCosts: a CostReport."
    };
    (batches_cost) => {
        r"Decodes every record of batches one after the other: a CostReport."
    };
    (try_layouts) => {
        r"Writes a window of batches with each layout, and optionally with a zstd dictionary: a Window.

The window begins at `position` in the first of adjacent Chunks; it has `window_bytes` decompressed.
A layout is (codec, level, maximum size of a batch before compression)."
    };
}
pub(crate) use lab;
