//! The bytes of batches by field, exact, in each format: as they are stored, and as the same records would take in another
//! magic. Pure arithmetic over sizes; nothing is encoded.

use std::ops::AddAssign;

use magicbyte::internals::{LOG_OVERHEAD, RECORD_OVERHEAD_V0, varint};
use magicbyte::{
    Batch, Compression, Decompressor, RECORD_BATCH_OVERHEAD, Record, RecordBatch, RecordIter, Records,
    Result, TimestampType,
};

/// A format whose costs are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Format {
    /// Messages without timestamps.
    #[serde(rename = "magic_0")]
    Magic0,
    /// Messages with timestamps.
    #[serde(rename = "magic_1")]
    Magic1,
    /// Record batches.
    #[serde(rename = "magic_2")]
    Magic2,
    /// KIP-931 as written, which was discarded: records without attributes; `baseTimestamp` as a varlong, `maxTimestamp` as
    /// a varlong relative to it, and `lastOffsetDelta` as a varint, after the other fields of the batch header.
    #[serde(rename = "kip_931")]
    Kip931,
}

impl Format {
    /// All of them, oldest first.
    pub const ALL: [Self; 4] = [Self::Magic0, Self::Magic1, Self::Magic2, Self::Kip931];
}

macro_rules! sums {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: u64,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }

        impl $name {
            /// The names of the fields, in order.
            pub const NAMES: &[&str] = &[$(stringify!($field)),*];

            /// The fields' values, in order.
            #[must_use]
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$field),*]
            }
        }
    };
}

sums! {
    /// Bytes by their content.
    pub struct FieldBytes {
        /// Offsets, offset deltas, and the last offset delta of a batch.
        pub offsets: u64,
        /// Sizes of batches, messages and records.
        pub sizes: u64,
        /// Checksums.
        pub crcs: u64,
        /// The magic.
        pub magic: u64,
        /// Attributes.
        pub attributes: u64,
        /// Timestamps and timestamp deltas.
        pub timestamps: u64,
        /// The partition leader epoch.
        pub leader_epoch: u64,
        /// Producer ID, producer epoch and base sequence.
        pub producer: u64,
        /// The number of records.
        pub records_count: u64,
        /// Lengths of keys.
        pub key_lengths: u64,
        /// Lengths of values.
        pub value_lengths: u64,
        /// The number of headers, and the lengths of their keys and values.
        pub header_lengths: u64,
        /// Keys.
        pub keys: u64,
        /// Values.
        pub values: u64,
        /// Keys of headers.
        pub header_keys: u64,
        /// Values of headers.
        pub header_values: u64,
        /// Bytes that no field needs: varints longer than the shortest form, and bytes after the last field.
        pub padding: u64,
    }
}

impl FieldBytes {
    /// The sum of all fields.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.values().iter().sum()
    }

    /// Keys, values and headers: the content that the producer sent.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.keys + self.values + self.header_keys + self.header_values
    }
}

/// The bytes of some batches in one format, uncompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Cost {
    /// Batch headers; of magic 0 and 1, the wrappers of compressed messages.
    pub batches: FieldBytes,
    /// Records, or messages.
    pub records: FieldBytes,
}

impl Cost {
    /// All bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.batches.total() + self.records.total()
    }
}

sums! {
    /// Sums over batches and their records from which their size in every format follows.
    ///
    /// ```
    /// use magicbyte_lab::cost::{Cost, Format, Tally};
    ///
    /// // A thousand values of 100 bytes, sent within a millisecond.
    /// let mut tally = Tally::default();
    /// for offset in 0..1000 {
    ///     tally.add_record(offset, 0, None, Some(100), std::iter::empty());
    /// }
    /// tally.end_batch(0, 0, 999);
    /// assert_eq!(Cost::of(&tally, Format::Magic1).total(), 134_000);
    /// assert_eq!(Cost::of(&tally, Format::Magic2).total(), 109_997);
    /// ```
    pub struct Tally {
        /// Batches: those of magic 2, wrappers, and messages outside a wrapper.
        pub batches: u64,
        /// Compressed batches.
        pub compressed_batches: u64,
        /// Records.
        pub records: u64,
        /// Headers of records.
        pub headers: u64,
        /// Bytes of keys.
        pub keys: u64,
        /// Bytes of values.
        pub values: u64,
        /// Bytes of header keys.
        pub header_keys: u64,
        /// Bytes of header values.
        pub header_values: u64,
        /// Magic 2: bytes of the records' lengths.
        pub lengths: u64,
        /// The same where a length does not count the attributes.
        pub lengths_without_attributes: u64,
        /// Magic 2: bytes of timestamp deltas.
        pub timestamp_deltas: u64,
        /// Magic 2: bytes of offset deltas.
        pub offset_deltas: u64,
        /// Magic 2: bytes of key lengths.
        pub key_lengths: u64,
        /// Magic 2: bytes of value lengths.
        pub value_lengths: u64,
        /// Magic 2: bytes of header counts, and of the lengths of header keys and values.
        pub header_lengths: u64,
        /// KIP-931: bytes of base timestamps.
        pub base_timestamps: u64,
        /// KIP-931: bytes of maximum timestamps.
        pub max_timestamps: u64,
        /// KIP-931: bytes of last offset deltas.
        pub last_offset_deltas: u64,
        /// Bytes that no field needs.
        pub padding: u64,
        /// Size of the batches as stored.
        pub stored: u64,
    }
}

impl Tally {
    /// Adds the batch and its records, which are read to their end; nothing is added if one of them is damaged. Cost: that
    /// of reading the records.
    ///
    /// # Errors
    /// The errors of [`Batch::records`] and its iterator.
    pub fn add(&mut self, batch: &Batch<'_>, decompressor: &mut Decompressor) -> Result<()> {
        self.add_visiting(batch, decompressor, |_| ())
    }

    /// Like [`add`](Self::add), but calls `visit` with every record.
    pub(crate) fn add_visiting(
        &mut self,
        batch: &Batch<'_>,
        decompressor: &mut Decompressor,
        visit: impl FnMut(&Record<'_>),
    ) -> Result<()> {
        let mut added = Self { stored: batch.size_in_bytes() as u64, ..Self::default() };
        match (batch, batch.records(decompressor)?) {
            (Batch::V2(header), Records::V2(records)) => added.add_v2(header, records, visit)?,
            (_, records) => added.add_messages(batch, records, visit)?,
        }
        *self += added;
        Ok(())
    }

    fn add_v2(
        &mut self,
        batch: &RecordBatch<'_>,
        mut records: RecordIter<'_>,
        mut visit: impl FnMut(&Record<'_>),
    ) -> Result<()> {
        let (base_offset, base_timestamp) = (batch.base_offset(), batch.base_timestamp());
        let payload = records.payload_size() as u64;
        let before = self.record_bytes();
        let mut position = records.position();
        while let Some(record) = records.next() {
            let record = record?;
            visit(&record);
            let size = records.position() - position;
            position = records.position();
            let mut sizes = RecordSizes::of(&record, record.offset().wrapping_sub(base_offset));
            sizes.timestamp_delta = match record.timestamp_type() {
                // The stored delta is not that of the record's timestamp: its size is what the other fields leave.
                TimestampType::LogAppendTime => body_of(size as u64).saturating_sub(sizes.body()).max(1),
                _ => varint(record.timestamp().wrapping_sub(base_timestamp)),
            };
            self.add_sizes(&sizes);
        }
        self.padding += payload - (self.record_bytes() - before);
        self.compressed_batches += u64::from(batch.compression()? != Compression::None);
        self.end_batch(base_timestamp, batch.max_timestamp(), batch.last_offset_delta().into());
        Ok(())
    }

    /// Adds one message, or the messages inside a wrapper.
    fn add_messages(
        &mut self,
        batch: &Batch<'_>,
        records: Records<'_>,
        mut visit: impl FnMut(&Record<'_>),
    ) -> Result<()> {
        let mut payload = records.payload_size() as u64;
        let mut base = None;
        let (mut last_offset, mut max_timestamp) = (0, NO_TIMESTAMP);
        let overhead = if batch.magic() == 0 { MESSAGE_V0 } else { MESSAGE_V1 };
        records.visit(|record| {
            visit(&record);
            let (base_offset, base_timestamp) = *base.get_or_insert((record.offset(), record.timestamp()));
            let mut sizes = RecordSizes::of(&record, record.offset().wrapping_sub(base_offset));
            sizes.timestamp_delta = varint(record.timestamp().wrapping_sub(base_timestamp));
            self.add_sizes(&sizes);
            payload = payload.saturating_sub(overhead + sizes.keys + sizes.values);
            (last_offset, max_timestamp) = (record.offset(), max_timestamp.max(record.timestamp()));
        })?;
        self.padding += payload;
        self.compressed_batches += u64::from(batch.compression()? != Compression::None);
        let (base_offset, base_timestamp) = base.unwrap_or_default();
        self.end_batch(base_timestamp, max_timestamp, last_offset.wrapping_sub(base_offset));
        Ok(())
    }

    /// Adds a record of the batch that [`end_batch`](Self::end_batch) ends. Deltas are relative to the batch's base, in offsets
    /// and ms; lengths are bytes, `None` for null; of a header, those of its key and value.
    pub fn add_record(
        &mut self,
        offset_delta: i64,
        timestamp_delta: i64,
        key: Option<usize>,
        value: Option<usize>,
        headers: impl Iterator<Item = (usize, Option<usize>)>,
    ) {
        let mut sizes = RecordSizes { offset_delta: varint(offset_delta), ..RecordSizes::default() };
        sizes.timestamp_delta = varint(timestamp_delta);
        sizes.content(key, value, headers);
        self.add_sizes(&sizes);
    }

    /// Adds the cost of a batch besides its records. Timestamps are in ms.
    pub fn end_batch(&mut self, base_timestamp: i64, max_timestamp: i64, last_offset_delta: i64) {
        self.batches += 1;
        self.base_timestamps += varint(base_timestamp);
        self.max_timestamps += varint(max_timestamp.wrapping_sub(base_timestamp));
        self.last_offset_deltas += varint(last_offset_delta);
    }

    #[inline]
    fn add_sizes(&mut self, sizes: &RecordSizes) {
        let body = sizes.body();
        self.records += 1;
        self.headers += sizes.headers;
        self.keys += sizes.keys;
        self.values += sizes.values;
        self.header_keys += sizes.header_keys;
        self.header_values += sizes.header_values;
        self.lengths += varint(body as i64);
        self.lengths_without_attributes += varint(body as i64 - ATTRIBUTES as i64);
        self.timestamp_deltas += sizes.timestamp_delta;
        self.offset_deltas += sizes.offset_delta;
        self.key_lengths += sizes.key_length;
        self.value_lengths += sizes.value_length;
        self.header_lengths += sizes.header_lengths;
    }

    /// The size of the records so far in magic 2, in bytes.
    fn record_bytes(&self) -> u64 {
        Cost::of(self, Format::Magic2).records.total()
    }
}

/// No timestamp, as in magic 0.
const NO_TIMESTAMP: i64 = -1;
/// Bytes of a magic 2 record's attributes.
const ATTRIBUTES: u64 = 1;
/// Bytes of a message without key and value: offset, size, CRC, magic, attributes, key length, value length.
const MESSAGE_V0: u64 = (LOG_OVERHEAD + RECORD_OVERHEAD_V0) as u64;
/// The same with a timestamp.
const MESSAGE_V1: u64 = MESSAGE_V0 + 8;

/// The fields of one record in magic 2.
#[derive(Clone, Copy, Default)]
struct RecordSizes {
    offset_delta: u64,
    timestamp_delta: u64,
    key_length: u64,
    value_length: u64,
    header_lengths: u64,
    headers: u64,
    keys: u64,
    values: u64,
    header_keys: u64,
    header_values: u64,
}

impl RecordSizes {
    /// Without the timestamp delta.
    #[inline]
    fn of(record: &Record<'_>, offset_delta: i64) -> Self {
        let mut sizes = Self { offset_delta: varint(offset_delta), ..Self::default() };
        let headers = record.headers().map(|header| (header.key.len(), header.value.map(<[u8]>::len)));
        sizes.content(record.key().map(<[u8]>::len), record.value().map(<[u8]>::len), headers);
        sizes
    }

    #[inline]
    fn content(
        &mut self,
        key: Option<usize>,
        value: Option<usize>,
        headers: impl Iterator<Item = (usize, Option<usize>)>,
    ) {
        (self.key_length, self.keys) = nullable(key);
        (self.value_length, self.values) = nullable(value);
        for (key, value) in headers {
            let ((key_length, key), (value_length, value)) = (nullable(Some(key)), nullable(value));
            self.header_lengths += key_length + value_length;
            self.header_keys += key;
            self.header_values += value;
            self.headers += 1;
        }
        self.header_lengths += varint(self.headers as i64);
    }

    /// All fields but the length.
    #[inline]
    fn body(&self) -> u64 {
        let fields = ATTRIBUTES + self.offset_delta + self.timestamp_delta;
        let lengths = self.key_length + self.value_length + self.header_lengths;
        fields + lengths + self.keys + self.values + self.header_keys + self.header_values
    }
}

/// The bytes of a length, and of the data that it counts.
#[inline]
fn nullable(length: Option<usize>) -> (u64, u64) {
    match length {
        Some(length) => (varint(length as i64), length as u64),
        None => (varint(-1), 0),
    }
}

/// The bytes of the shortest zigzag form.
#[inline]
fn varint(value: i64) -> u64 {
    varint::size(value) as u64
}

/// The body of a record of this size, its length field included.
fn body_of(size: u64) -> u64 {
    (1..=5)
        .map(|length| size.saturating_sub(length))
        .find(|&body| varint(body as i64) + body <= size)
        .unwrap_or(0)
}

impl Cost {
    /// The cost of these batches and their records in a format, uncompressed and without padding. Compressed batches are
    /// wrappers in magic 0 and 1. Headers are not counted there, since these have none; uncompressed messages are a batch
    /// each in magic 2, as [`up_convert`](magicbyte::convert::Converter::up_convert) writes them.
    #[must_use]
    pub fn of(tally: &Tally, format: Format) -> Self {
        match format {
            Format::Magic0 => Self::of_messages(tally, 0),
            Format::Magic1 => Self::of_messages(tally, 8),
            Format::Magic2 => Self::of_batches(tally),
            Format::Kip931 => {
                let mut cost = Self::of_batches(tally);
                cost.batches.offsets = 8 * tally.batches + tally.last_offset_deltas;
                cost.batches.timestamps = tally.base_timestamps + tally.max_timestamps;
                cost.records.sizes = tally.lengths_without_attributes;
                cost.records.attributes = 0;
                cost
            }
        }
    }

    fn of_messages(tally: &Tally, timestamp: u64) -> Self {
        let message = |count: u64| FieldBytes {
            offsets: 8 * count,
            sizes: 4 * count,
            crcs: 4 * count,
            magic: count,
            attributes: count,
            timestamps: timestamp * count,
            key_lengths: 4 * count,
            value_lengths: 4 * count,
            ..FieldBytes::default()
        };
        let records = FieldBytes { keys: tally.keys, values: tally.values, ..message(tally.records) };
        Self { batches: message(tally.compressed_batches), records }
    }

    fn of_batches(tally: &Tally) -> Self {
        let count = tally.batches;
        let batches = FieldBytes {
            offsets: (8 + 4) * count,
            sizes: 4 * count,
            leader_epoch: 4 * count,
            magic: count,
            crcs: 4 * count,
            attributes: 2 * count,
            timestamps: (8 + 8) * count,
            producer: (8 + 2 + 4) * count,
            records_count: 4 * count,
            ..FieldBytes::default()
        };
        debug_assert_eq!(batches.total(), RECORD_BATCH_OVERHEAD as u64 * count);
        let records = FieldBytes {
            offsets: tally.offset_deltas,
            sizes: tally.lengths,
            attributes: ATTRIBUTES * tally.records,
            timestamps: tally.timestamp_deltas,
            key_lengths: tally.key_lengths,
            value_lengths: tally.value_lengths,
            header_lengths: tally.header_lengths,
            keys: tally.keys,
            values: tally.values,
            header_keys: tally.header_keys,
            header_values: tally.header_values,
            ..FieldBytes::default()
        };
        Self { batches, records }
    }
}
