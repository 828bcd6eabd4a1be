//! The docstrings of `_stubs/convert.pyi`. Written by `make docstrings`.

macro_rules! convert {
    (Converter) => {
        r#"Converts any number of inputs, reusing codec contexts and buffers.

Every method takes complete batches, one after another, and returns all of them as new `bytes`, or
raises an error that names the byte, the batch and the record. Releases the GIL; concurrent calls wait
for each other.

Args:
    compression: the codec to write; None keeps each batch's, at Kafka's default level.
    level: of `compression`, as in `RecordsBuilder`; None for Kafka's default.
    max_decompressed_bytes: the limit for one batch after decompression.

Raises:
    UnsupportedCompressionError: for a codec or level that cannot be written.
    Error: for a level without a codec (`kind` is "invalid_options")."#
    };
    (Converter.up_convert) => {
        r"Rewrites every batch as magic 2, by the rules of Kafka 4's cleaner, without dropping anything.

A compressed wrapper becomes one batch, and so does an uncompressed message. Magic 0 has no
timestamps, so they become -1. Batches of magic 2 change only their codec."
    };
    (Converter.down_convert) => {
        r"Rewrites every batch as magic 0 or 1, as brokers up to 3.9 did (`RecordsUtil.downConvert`).

Drops control batches, batches without records, headers, producers and transactions, as counted by
the losses. A batch whose magic is not larger changes only its codec.

Raises UnsupportedCompressionError where zstd would be written."
    };
    (Converter.recompress) => {
        r"Recompresses the records of every batch as bytes, leaving the rest of the batch unchanged.

Compressing an uncompressed batch and decompressing it again yields the same bytes. Without a codec
a compressed message of magic 0 or 1 becomes its inner messages; with one, a single message gets a
wrapper."
    };
    (Converter.merge) => {
        r#"Merges consecutive batches of magic 2 into one, with the converter's codec or the first batch's.

Raises Error (`kind` "invalid_options") for batches that cannot be merged: with different flags,
producers, leader epochs, append times or delete horizons, a gap in a producer's sequences, control
batches, batches without records."#
    };
    (Converter.split) => {
        r"Splits every batch of magic 2 into batches of at most this size before compression.

A larger record gets a batch of its own. Control batches stay as they are. Sequences continue."
    };
    (Converter.rebatch) => {
        r"Packs records tightly into batches of magic 2 of at most this size before compression.

Only batches without a producer, transaction or delete horizon are packed; all others are converted
in place, as by `up_convert`."
    };
    (Converter.assign_offsets) => {
        r"Rewrites one batch of magic 0 with offsets from `base_offset` on, as brokers did for producers.

Offsets inside a wrapper are absolute, so it is recompressed. For any other batch use
`set_last_offset`."
    };
    (set_last_offset) => {
        r"See `magicbyte.convert.set_last_offset`."
    };
    (set_partition_leader_epoch) => {
        r"See `magicbyte.convert.set_partition_leader_epoch`."
    };
    (set_max_timestamp) => {
        r"See `magicbyte.convert.set_max_timestamp`."
    };
}
pub(crate) use convert;
