//! The meaning of fields, in words.

use crate::compression::codec::Compression;
use crate::layout::Field;
use crate::record::batch_header;

/// The number of bytes of a key or value that are shown as text.
const QUOTED: usize = 40;

/// Says what the fields of one batch mean. It has to see them in their order, since the meaning of some depends on
/// fields before them.
///
/// ```
/// use magicbyte::layout::{BatchLayout, Meanings};
/// use magicbyte::{Compression, Decompressor, RecordsBuilder};
///
/// let mut builder = RecordsBuilder::v2(Compression::None);
/// builder.append(7, 1_700_000_000_000, None, Some(b"hello"), &[])?;
/// let mut layout = BatchLayout::new(builder.build()?.into(), Decompressor::new());
/// let mut meanings = Meanings::default();
/// let mut lines = Vec::new();
/// while let Some(field) = layout.next().transpose()? {
///     let bytes = &layout.bytes(field.section)[field.range.clone()];
///     let meaning = meanings.meaning(&field, bytes);
///     lines.push(format!("{}: {meaning}", meanings.label(&field)));
/// }
/// assert_eq!(lines[1], "batchLength: 61 from byte 12 on, 73 bytes in all");
/// assert_eq!(lines[19], "record 0: value: \"hello\"");
/// # Ok::<(), magicbyte::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Meanings {
    magic: Option<i64>,
    /// The attributes of the batch, or of the outermost message.
    attributes: u8,
    base_offset: i64,
    base_timestamp: i64,
}

impl Meanings {
    /// The name of a field with the record and the header that it is in, such as `record 0: header 1 key`.
    #[must_use]
    pub fn label(&self, field: &Field) -> String {
        let kind = if self.has_records() { "record" } else { "message" };
        let inside = field.record.map_or_else(String::new, |index| format!("{kind} {index}: "));
        match field.header {
            None => inside + field.name,
            Some(header) => {
                let name = field.name.strip_prefix("header").unwrap_or(field.name);
                let (first, rest) = name.split_at(1.min(name.len()));
                format!("{inside}header {header} {}{rest}", first.to_lowercase())
            }
        }
    }

    /// The meaning of the next field, whose bytes are `data`. Text from the batch is quoted as it is, with U+FFFD for
    /// what is not UTF-8: whoever shows it escapes invisible characters.
    pub fn meaning(&mut self, field: &Field, data: &[u8]) -> String {
        let is_inside = field.record.is_some();
        match field.number {
            None => self.bytes(field.name, data, is_inside),
            Some(number) => {
                if !is_inside {
                    self.note(field.name, number);
                }
                self.number(field, number, is_inside)
            }
        }
    }

    /// What the decompressed bytes are, such as `the records, decompressed from zstd`.
    #[must_use]
    pub fn payload(&self) -> String {
        let what = if self.has_records() { "the records" } else { "the wrapper's value" };
        format!("{what}, decompressed from {}", codec(self.attributes))
    }

    /// True for a batch of records, and not a message.
    fn has_records(&self) -> bool {
        self.magic == Some(2)
    }

    fn note(&mut self, name: &str, number: i64) {
        match name {
            "magic" => self.magic = Some(number),
            "attributes" => self.attributes = number as u8,
            "baseOffset" => self.base_offset = number,
            "baseTimestamp" => self.base_timestamp = number,
            _ => {}
        }
    }

    fn number(&self, field: &Field, number: i64, is_inside: bool) -> String {
        // Sums wrap, as Java's do.
        let offset = || self.base_offset.wrapping_add(number);
        let after = field.range.start + 4;
        match field.name {
            "attributes" if is_inside && self.has_records() => format!("{number}, unused"),
            "attributes" => attributes(number as u8),
            "crc" => {
                let covered = if self.has_records() {
                    format!("CRC-32C of byte {after} to the end")
                } else {
                    format!("CRC-32 of byte {after} on")
                };
                format!("{covered}: {}", verdict(number, field.computed_crc))
            }
            "offset" if is_inside => format!("{number} (magic 1: relative)"),
            "size" => format!("{number} bytes from byte {after} on"),
            "batchLength" => format!("{number} from byte 12 on, {} bytes in all", 12 + number),
            "partitionLeaderEpoch" => format!("{number}, not covered by the CRC"),
            "lastOffsetDelta" => format!("{number}: the last offset is {}", offset()),
            "baseTimestamp" if self.attributes & batch_header::DELETE_HORIZON != 0 => {
                format!("{}; the delete horizon", time(number))
            }
            "baseTimestamp" | "maxTimestamp" | "timestamp" => time(number),
            "producerId" | "producerEpoch" | "baseSequence" if number == -1 => "-1, none".to_owned(),
            "length" => format!("{number} bytes, from attributes to the last header"),
            "timestampDelta" => format!("{number}: {}", time(self.base_timestamp.wrapping_add(number))),
            "offsetDelta" => format!("{number}: offset {}", offset()),
            name if name.ends_with("Length") && number < 0 => format!("{number}, null"),
            name if name.ends_with("Length") => format!("{number} bytes"),
            _ => number.to_string(),
        }
    }

    /// The meaning of a field that is no number.
    fn bytes(&self, name: &str, data: &[u8], is_inside: bool) -> String {
        let is_payload = name == "value" && !is_inside && self.attributes & batch_header::COMPRESSION != 0;
        match (name, data) {
            ("rest", _) => format!("{} bytes after the last field", data.len()),
            _ if is_payload || name == "records" => {
                format!("{} bytes of {}", data.len(), codec(self.attributes))
            }
            ("key", &[a, b, c, d, ..])
                if self.has_records() && self.attributes & batch_header::CONTROL != 0 =>
            {
                let (version, kind) = (i16::from_be_bytes([a, b]), i16::from_be_bytes([c, d]));
                let name = match kind {
                    0 => " (ABORT)",
                    1 => " (COMMIT)",
                    _ => "",
                };
                format!("control record: version {version}, type {kind}{name}")
            }
            _ => quoted(data),
        }
    }
}

fn attributes(bits: u8) -> String {
    let time = if bits & batch_header::LOG_APPEND_TIME == 0 { "CreateTime" } else { "LogAppendTime" };
    let mut words = vec![codec(bits), time.to_owned()];
    let flags = [
        (batch_header::TRANSACTIONAL, "transactional"),
        (batch_header::CONTROL, "control"),
        (batch_header::DELETE_HORIZON, "delete horizon"),
    ];
    words.extend(flags.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, word)| (*word).to_owned()));
    words.join(", ")
}

fn codec(bits: u8) -> String {
    let id = bits & batch_header::COMPRESSION;
    Compression::from_id(id).map_or_else(|_| format!("codec {id}"), |codec| codec.name().to_owned())
}

fn verdict(stored: i64, computed: Option<u32>) -> String {
    match computed {
        Some(computed) if i64::from(computed) != stored => format!("wrong, computed 0x{computed:08x}"),
        _ => "correct".to_owned(),
    }
}

fn quoted(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(&data[..data.len().min(QUOTED)]);
    format!("\"{text}\"{}", if data.len() > QUOTED { "..." } else { "" })
}

fn time(millis: i64) -> String {
    match millis {
        -1 => "-1, no timestamp".to_owned(),
        _ => format!("{millis}: {}", iso_time(millis)),
    }
}

/// A time in milliseconds in ISO 8601, or as the milliseconds outside of the years 1 to 9999.
fn iso_time(millis: i64) -> String {
    const DAY: i64 = 86_400_000;
    let (year, month, day) = date(millis.div_euclid(DAY));
    if !(1..=9999).contains(&year) {
        return format!("{millis} ms");
    }
    let of_day = millis.rem_euclid(DAY);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Year, month and day of a day since 1970 (Howard Hinnant's `civil_from_days`).
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}
