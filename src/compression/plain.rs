//! Detection of compressed streams that contain more than their content. The format of every codec has places
//! for bytes that no reader returns: after the end of the stream, in skippable frames, in unchecked fields.
//! No producer writes any.

use crate::compression::codec::Compression;

/// True if every byte of `payload`, which decompressed to `content`, is needed for the content.
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
