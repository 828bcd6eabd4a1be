//! Whether a stream holds nothing but its content. Every codec's format has room for bytes that no reader
//! shows: after the stream's end, in frames to be skipped, in fields that nobody checks. No producer
//! writes any.

use crate::compression::codec::Compression;

/// Whether each byte of `payload`, which decompressed to `content`, is there for the content's sake.
pub(crate) fn is_plain(codec: Compression, payload: &[u8], content: &[u8]) -> bool {
    match codec {
        Compression::None => true,
        #[cfg(feature = "gzip")]
        Compression::Gzip => crate::compression::gzip::is_plain(payload, content),
        #[cfg(feature = "snappy")]
        Compression::Snappy => crate::compression::snappy::is_plain(payload),
        #[cfg(feature = "lz4")]
        Compression::Lz4 => crate::compression::lz4::is_plain(payload, content),
        #[cfg(feature = "zstd")]
        Compression::Zstd => crate::compression::zstd::is_plain(payload),
        #[allow(unreachable_patterns, reason = "reached when a codec's feature is off")]
        _ => {
            let _ = (payload, content);
            false
        }
    }
}
