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
        r"Writes the batches from `position` in the first of adjacent Chunks on, `window_bytes` after
decompression, with each
layout (codec, level, largest batch before compression), and with a zstd dictionary if asked: a Window."
    };
}
pub(crate) use lab;
