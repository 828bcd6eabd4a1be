//! The crate's error: its kind, and the place where it occurred.

use std::fmt;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error: its [`ErrorKind`], and as far as known the byte position, base offset, record and field.
///
/// It is one word wide, so that `Result<Record>` stays small.
///
/// ```
/// use magicbyte::{Batches, ErrorKind};
/// // A length field of 3 is too small for any batch.
/// let error = Batches::new(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]).next().unwrap().unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::InvalidSize { found: 3, .. }));
/// assert_eq!(error.position(), Some(0));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    position: Option<u64>,
    base_offset: Option<i64>,
    record_index: Option<u32>,
    field: Option<&'static str>,
}

/// The kind of an [`Error`]. Programs should match on it; the text of the error is for people.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input ends early, but may be the start of something valid: read at least this many more bytes.
    NeedMoreBytes {
        /// The number of missing bytes.
        needed: u64,
    },
    /// A size or length field is out of range.
    InvalidSize {
        /// The value read.
        found: i64,
        /// The smallest value allowed.
        min: i64,
        /// The largest value allowed.
        max: i64,
    },
    /// The stored checksum does not match the bytes.
    CrcMismatch {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The magic byte is not 0, 1 or 2, or is not allowed here.
    UnsupportedMagic(i8),
    /// The codec bits are not a codec of Kafka's.
    UnknownCompression(u8),
    /// A codec that Kafka does not use with this magic, or that is left out of this build.
    UnsupportedCompression(&'static str),
    /// The codec rejected its input; the text is the codec's reason.
    Decompression(String),
    /// The codec failed to compress; the text is the codec's reason.
    Compression(String),
    /// A compression level that the codec does not have, here or in Kafka.
    UnsupportedLevel {
        /// The codec's name.
        codec: &'static str,
        /// The level requested.
        level: i32,
        /// The supported levels.
        supported: &'static str,
    },
    /// The decompressed data exceeds the caller's limit.
    LimitExceeded {
        /// The limit in bytes: [`crate::Decompressor::with_limit`].
        limit: usize,
    },
    /// A varint has more bytes than its type allows.
    InvalidVarint,
    /// A record ends inside one of its fields.
    UnexpectedEnd,
    /// A record's fields take fewer bytes than the record's declared size.
    RecordSizeMismatch {
        /// Bytes the record declares.
        declared: usize,
        /// Bytes its fields take.
        consumed: usize,
    },
    /// A record of a compressed batch is larger than the topic allows (`max.decompressed.message.bytes`).
    RecordSizeLimitExceeded {
        /// Size in bytes that the record declares.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// A count is negative or larger than the remaining bytes can hold.
    InvalidCount(i64),
    /// Bytes remain after the last record of a batch.
    RecordsRemaining {
        /// The number of remaining bytes.
        bytes: usize,
    },
    /// The batch has fewer records than its header announces.
    TooFewRecords {
        /// Records announced.
        announced: u32,
    },
    /// A record breaks a rule of Kafka's; the text names the rule.
    InvalidRecord(&'static str),
    /// Options for a new batch that Kafka does not combine; the text names them.
    InvalidOptions(&'static str),
    /// The offset of a record to be written does not fit after the previous one.
    OffsetOutOfRange {
        /// The offset given.
        found: i64,
        /// The smallest offset possible here.
        min: i64,
        /// The largest offset possible here.
        max: i64,
    },
    /// A record to be written does not fit into its batch.
    RecordTooLarge {
        /// Size in bytes of the batch with the record, estimated if compressed.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The offsets of a batch do not fit between those of its neighbours in the log.
    OffsetOutOfOrder {
        /// The offset found.
        found: i64,
        /// The smallest offset possible here.
        expected: i64,
    },
    /// Bytes where a batch should begin that are not a batch.
    Garbage,
    /// Zeros between batches, as in a preallocated file whose tail was later written.
    Zeros,
    /// The file ends inside a batch. That is normal only at the end of the log.
    PartialBatch,
    /// The file is shorter than when it was listed.
    FileTruncated,
    /// The file that was listed is gone.
    FileMissing,
    /// A file cannot be read. The text is the reason, or describes the item that has the file's name instead.
    FileUnreadable(String),
    /// Offsets between two segments are in no file, although the log was never compacted.
    MissingSegment {
        /// The first missing offset.
        first: i64,
        /// The last missing offset (inclusive).
        last: i64,
    },
    /// An index, snapshot or checkpoint file breaks its format; the text explains how.
    InvalidSidecar(&'static str),
    /// A message of the protocol breaks its format; the text has its name, version and field, and explains how.
    InvalidMessage(String),
    /// An API of the protocol, or a version of it, that is not known; the text names it.
    UnsupportedVersion(String),
}

impl ErrorKind {
    /// A stable name of the kind, used in tables and as Python's `Error.kind`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NeedMoreBytes { .. } => "need_more_bytes",
            Self::InvalidSize { .. } => "invalid_size",
            Self::CrcMismatch { .. } => "crc_mismatch",
            Self::UnsupportedMagic(_) => "unsupported_magic",
            Self::UnknownCompression(_) => "unknown_compression",
            Self::UnsupportedCompression(_) => "unsupported_compression",
            Self::Decompression(_) => "decompression",
            Self::Compression(_) => "compression",
            Self::UnsupportedLevel { .. } => "unsupported_level",
            Self::LimitExceeded { .. } => "limit_exceeded",
            Self::InvalidVarint => "invalid_varint",
            Self::UnexpectedEnd => "unexpected_end",
            Self::RecordSizeMismatch { .. } => "record_size_mismatch",
            Self::RecordSizeLimitExceeded { .. } => "record_size_limit_exceeded",
            Self::InvalidCount(_) => "invalid_count",
            Self::RecordsRemaining { .. } => "records_remaining",
            Self::TooFewRecords { .. } => "too_few_records",
            Self::InvalidRecord(_) => "invalid_record",
            Self::InvalidOptions(_) => "invalid_options",
            Self::OffsetOutOfRange { .. } => "offset_out_of_range",
            Self::RecordTooLarge { .. } => "record_too_large",
            Self::OffsetOutOfOrder { .. } => "offset_out_of_order",
            Self::Garbage => "garbage",
            Self::Zeros => "zeros",
            Self::PartialBatch => "partial_batch",
            Self::FileTruncated => "file_truncated",
            Self::FileMissing => "file_missing",
            Self::FileUnreadable(_) => "file_unreadable",
            Self::MissingSegment { .. } => "missing_segment",
            Self::InvalidSidecar(_) => "invalid_sidecar",
            Self::InvalidMessage(_) => "invalid_message",
            Self::UnsupportedVersion(_) => "unsupported_version",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedMoreBytes { needed } => write!(f, "the input ends early: {needed} more bytes needed"),
            Self::InvalidSize { found, min, max } => write!(f, "size {found} is outside {min}..={max}"),
            Self::CrcMismatch { stored, computed } => {
                write!(f, "CRC mismatch: stored {stored:#010x}, computed {computed:#010x}")
            }
            Self::UnsupportedMagic(magic) => {
                write!(f, "magic {magic} is not supported here: expected 0, 1 or 2")
            }
            Self::UnknownCompression(id) => write!(f, "unknown compression type id {id}: expected 0 to 4"),
            Self::UnsupportedCompression(why) => write!(f, "unsupported compression: {why}"),
            Self::Decompression(why) => write!(f, "cannot decompress: {why}"),
            Self::Compression(why) => write!(f, "cannot compress: {why}"),
            Self::UnsupportedLevel { codec, level, supported } => {
                write!(f, "level {level} is not supported for {codec}: expected {supported}")
            }
            Self::LimitExceeded { limit } => {
                write!(f, "decompressed data exceeds the limit of {limit} bytes (max_decompressed_bytes)")
            }
            Self::InvalidVarint => write!(f, "varint is too long for its type"),
            Self::UnexpectedEnd => write!(f, "the record ends inside a field"),
            Self::RecordSizeLimitExceeded { size, limit } => {
                write!(f, "record size {size} is over max.decompressed.message.bytes, which is {limit}")
            }
            Self::RecordSizeMismatch { declared, consumed } => {
                write!(f, "the record declares {declared} bytes, its fields take {consumed}")
            }
            Self::InvalidCount(n) => write!(f, "count {n} is negative or more than the bytes can hold"),
            Self::RecordsRemaining { bytes } => write!(f, "{bytes} bytes remain after the last record"),
            Self::TooFewRecords { announced } => {
                write!(f, "the batch ends before its {announced} announced records")
            }
            Self::InvalidRecord(why) | Self::InvalidOptions(why) | Self::InvalidSidecar(why) => {
                f.write_str(why)
            }
            Self::FileUnreadable(why) | Self::InvalidMessage(why) | Self::UnsupportedVersion(why) => {
                f.write_str(why)
            }
            Self::OffsetOutOfRange { found, min, max } => {
                write!(f, "offset {found} is not allowed here: expected {min} to {max}")
            }
            Self::RecordTooLarge { size, limit } => {
                write!(
                    f,
                    "the batch would have {size} bytes with this record, more than its limit of {limit}"
                )
            }
            Self::OffsetOutOfOrder { found, expected } => {
                write!(f, "offset {found} does not fit between its neighbours: expected at least {expected}")
            }
            Self::Garbage => write!(f, "these bytes are not the start of a batch"),
            Self::Zeros => write!(f, "zeros where a batch should begin"),
            Self::PartialBatch => write!(f, "the file ends inside a batch"),
            Self::FileTruncated => write!(f, "the file became shorter while it was read"),
            Self::FileMissing => write!(f, "the file was deleted after it was listed"),
            Self::MissingSegment { first, last } => {
                write!(f, "offsets {first}..={last} are in no file: a segment is missing before this one")
            }
        }
    }
}

impl Error {
    /// An error of this kind, without position, offset, record or field.
    #[must_use]
    #[cold]
    pub fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, position: None, base_offset: None, record_index: None, field: None }))
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Byte position, from 0, of the batch (or entry) in the input or file.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.0.position
    }

    /// Base offset in the header of the batch; for a legacy wrapper, the offset of the wrapper.
    #[must_use]
    pub fn base_offset(&self) -> Option<i64> {
        self.0.base_offset
    }

    /// Index of the record in its batch, from 0.
    #[must_use]
    pub fn record_index(&self) -> Option<u32> {
        self.0.record_index
    }

    /// The field, in Kafka's spelling.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        self.0.field
    }

    /// True if more input could resolve the error: the input is incomplete rather than corrupt.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        matches!(self.0.kind, ErrorKind::NeedMoreBytes { .. })
    }

    // The location is filled in from the inside out: each part is set by the innermost caller that knows it.

    #[doc(hidden)]
    #[cold]
    #[must_use]
    pub fn in_field(mut self, field: &'static str) -> Self {
        self.0.field.get_or_insert(field);
        self
    }

    #[doc(hidden)]
    #[cold]
    #[must_use]
    pub fn at_record(mut self, index: u32) -> Self {
        self.0.record_index.get_or_insert(index);
        self
    }

    #[cold]
    pub(crate) fn in_batch(mut self, position: u64, base_offset: i64) -> Self {
        self.0.position.get_or_insert(position);
        self.0.base_offset.get_or_insert(base_offset);
        self
    }

    #[cold]
    pub(crate) fn in_batch_at_offset(mut self, base_offset: i64) -> Self {
        self.0.base_offset.get_or_insert(base_offset);
        self
    }

    #[doc(hidden)]
    #[cold]
    #[must_use]
    pub fn at_position(mut self, position: u64) -> Self {
        self.0.position.get_or_insert(position);
        self
    }

    /// The same error in a larger input, where this one starts at byte `bytes`.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    pub fn shifted_by(mut self, bytes: u64) -> Self {
        self.0.position = Some(bytes + self.0.position.unwrap_or(0));
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self::new(kind)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, position, base_offset, record_index, field } = &*self.0;
        write!(f, "{kind}")?;
        let mut separator = " (";
        let mut part = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            let written = write!(f, "{separator}{text}");
            separator = ", ";
            written
        };
        if let Some(field) = field {
            part(f, format_args!("field {field}"))?;
        }
        if let Some(index) = record_index {
            part(f, format_args!("record {index}"))?;
        }
        if let Some(offset) = base_offset {
            part(f, format_args!("batch at offset {offset}"))?;
        }
        if let Some(position) = position {
            part(f, format_args!("byte {position}"))?;
        }
        if separator == ", " { f.write_str(")") } else { Ok(()) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self})", self.0.kind)
    }
}

impl std::error::Error for Error {}
