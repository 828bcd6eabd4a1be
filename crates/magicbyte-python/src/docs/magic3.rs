//! The docstrings of `_stubs/magic3.pyi`. Written by `make docstrings`.

macro_rules! magic3 {
    (magic3_encode) => {
        r"Writes whole magic 2 batches as experimental ones that follow the ideas, with a codec."
    };
    (magic3_to_magic_2) => {
        r"Writes experimental batches as magic 2, each with its codec."
    };
    (magic3_validate) => {
        r"Checks what a broker checks of a producer's batch: for each one records, largest timestamp, records
without a key, bytes decompressed."
    };
    (compare_format) => {
        r"Writes uncompressed magic 2 batches in a format, reads and validates them: a Comparison."
    };
}
pub(crate) use magic3;
