//! The fields of a piece with their bytes and meanings.

use magicbyte::Decompressor;
use magicbyte::layout::{BatchLayout, Meanings, Section};
use magicbyte_log::internals::repair;
use serde::Serialize;

/// The position of the magic in a batch and in a message.
const MAGIC: usize = 16;
/// The number of bytes of a field that are shown.
const SHOWN: usize = 256;

/// Some fields of a piece, and the damage in it.
#[derive(Debug, Default, Serialize)]
pub struct Fields {
    /// The fields from the first requested one on.
    pub fields: Vec<FieldView>,
    /// True if there are more.
    pub more: bool,
    /// What the decompressed bytes are, once there is a field in them.
    pub payload: Option<String>,
    /// Why the bytes after the last field make no sense.
    pub error: Option<String>,
    /// What explains the damage and is proven by the CRC.
    pub repair: Option<Flip>,
}

/// A field, and its first bytes.
#[derive(Debug, Serialize)]
pub struct FieldView {
    /// True if it is in the decompressed payload.
    pub is_decompressed: bool,
    /// Its position in the batch, or in the payload.
    pub start: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Its first bytes, at most 256, as hexadecimal digits.
    pub bytes: String,
    /// Its name in Kafka, with `batch`, `record` or `message` in front, as the page's rules have it.
    pub key: String,
    /// Its name with the record and the header that it is in.
    pub label: String,
    /// Its meaning.
    pub meaning: String,
    /// True for a checksum that does not hold.
    pub is_wrong: bool,
}

/// A change that makes a damaged batch whole.
#[derive(Debug, Serialize)]
pub struct Flip {
    /// The first byte that changes, from the start of the batch.
    pub at: usize,
    /// What changes.
    pub change: String,
}

impl Fields {
    /// At most `count` fields of a piece from the one with the index `first` on.
    pub(crate) fn read(data: Vec<u8>, limit: usize, first: usize, count: usize) -> Self {
        let mut read = Self::default();
        let mut meanings = Meanings::default();
        let mut wrong = false;
        let has_records = data.get(MAGIC) == Some(&2);
        let mut layout = BatchLayout::new(data.clone().into(), Decompressor::with_limit(limit));
        for index in 0.. {
            let field = match layout.next() {
                None => break,
                Some(Err(error)) => {
                    read.error = Some(error.to_string());
                    break;
                }
                Some(Ok(field)) => field,
            };
            // Fields before the first one are needed for the meanings of others.
            let bytes = &layout.bytes(field.section)[field.range.clone()];
            let label = meanings.label(&field);
            let meaning = meanings.meaning(&field, bytes);
            let is_wrong = field.computed_crc.is_some_and(|computed| field.number != Some(computed.into()));
            wrong |= is_wrong;
            let is_decompressed = field.section == Section::Decompressed;
            if is_decompressed {
                read.payload.get_or_insert_with(|| meanings.payload());
            }
            if index >= first + count {
                read.more = true;
                break;
            }
            if index >= first {
                let kind = match (has_records, field.record) {
                    (true, None) => "batch",
                    (true, Some(_)) => "record",
                    (false, _) => "message",
                };
                read.fields.push(FieldView {
                    is_decompressed,
                    start: field.range.start,
                    size: field.range.len(),
                    bytes: hex::encode(&bytes[..bytes.len().min(SHOWN)]),
                    key: format!("{kind}.{}", field.name),
                    label,
                    meaning,
                    is_wrong,
                });
            }
        }
        if wrong || read.error.is_some() {
            read.repair = repair(&data, &mut Decompressor::with_limit(limit))
                .filter(magicbyte_log::Repair::is_proven)
                .map(|repair| Flip { at: repair.at, change: repair.change });
        }
        read
    }
}
