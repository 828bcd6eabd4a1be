//! Building batches of any magic under Kafka's rules (`MemoryRecordsBuilder`).

mod compression_ratio;
mod options;
mod size;

use crate::batch::Batch;
use crate::builder::compression_ratio::CompressionRatio;
use crate::builder::options::Options;
use crate::bytes::prefetch::prefetch_after;
use crate::compression::codec::Compression;
use crate::compression::compressor::Compressor;
use crate::error::{Error, ErrorKind, Result};
use crate::legacy::builder::MessageSetBuilder;
use crate::record::Record;
use crate::record::batch_header::{BatchHeader, DELETE_HORIZON, RECORD_BATCH_OVERHEAD};
use crate::record::builder::{BatchBuilder, offset_between};
use crate::record::control::{ControlRecord, ControlType};
use crate::record::encode::HeaderFields;
use crate::record::header::Header;
use crate::record::iter::sequence_of;
use crate::record::producer_state::{NONE, ProducerState};

/// The distance in bytes after a value to prefetch: values allocated in succession mostly lie next to each
/// other.
const PREFETCH_DISTANCE: usize = 2 << 10;

/// Builds one batch after another, reusing buffers and codec contexts.
///
/// Options are chained and apply to every batch, except for [`base_offset`](Self::base_offset), which applies
/// to the next one only, and the base sequence, which advances with each batch. Options that Kafka does not
/// combine are an error of the first [`append`](Self::append), or of [`build`](Self::build). A failed
/// `append` leaves the batch unchanged.
///
/// A producer fills batches with [`try_append`](Self::try_append) and [`next_offset`](Self::next_offset), and
/// sets another producer or transaction with [`set_producer_state`](Self::set_producer_state).
///
/// Uncompressed and snappy batches are byte for byte the batches that Kafka writes for the same records.
/// Kafka can read batches with the other codecs, but would compress them differently.
///
/// ```
/// # use magicbyte::{Batches, Compression, Decompressor, Header, RecordsBuilder};
/// let mut builder = RecordsBuilder::v2(Compression::None).producer(4711, 0, 0);
/// let headers = [Header { key: b"trace", value: Some(b"1") }];
/// builder.append(100, 1_700_000_000_000, Some(b"key"), Some(b"value"), &headers)?;
/// builder.append(101, 1_700_000_000_001, Some(b"key"), None, &[])?;
/// let bytes = builder.build()?;
///
/// let batch = Batches::new(&bytes).next().unwrap()?;
/// batch.verify()?;
/// assert_eq!(batch.last_offset(), 101);
/// # Ok::<(), magicbyte::Error>(())
/// ```
#[derive(Debug)]
pub struct RecordsBuilder {
    magic: i8,
    codec: Compression,
    level: Option<i32>,
    options: Options,
    /// Created when the first batch is built.
    compressor: Option<Compressor>,
    records: Growing,
    compression_ratio: CompressionRatio,
}

/// The records of the batch so far.
#[derive(Debug)]
enum Growing {
    V2(BatchBuilder),
    Legacy(MessageSetBuilder),
}

impl RecordsBuilder {
    /// A builder of magic 2 batches.
    #[must_use]
    pub fn v2(codec: Compression) -> Self {
        Self::new(2, codec, Growing::V2(BatchBuilder::new()))
    }

    /// A builder of magic 1: one message per record, or one compressed wrapper with relative offsets.
    #[must_use]
    pub fn v1(codec: Compression) -> Self {
        Self::new(1, codec, Growing::Legacy(MessageSetBuilder::new(1, codec)))
    }

    /// A builder of magic 0, which has no timestamps. Offsets inside a wrapper are absolute.
    #[must_use]
    pub fn v0(codec: Compression) -> Self {
        Self::new(0, codec, Growing::Legacy(MessageSetBuilder::new(0, codec)))
    }

    /// A builder of the given magic: 0, 1 or 2.
    #[doc(hidden)]
    #[must_use]
    pub fn of(magic: i8, codec: Compression) -> Self {
        match magic {
            0 => Self::v0(codec),
            1 => Self::v1(codec),
            _ => Self::v2(codec),
        }
    }

    fn new(magic: i8, codec: Compression, records: Growing) -> Self {
        let options = Options::default();
        let compression_ratio = CompressionRatio::default();
        Self { magic, codec, level: None, options, compressor: None, records, compression_ratio }
    }

    /// Starts a batch as a leader rewrites it: with the producer and transaction flag of `like`. Records that
    /// were appended but not built are dropped.
    #[doc(hidden)]
    pub fn restart(
        &mut self,
        base_offset: i64,
        partition_leader_epoch: i32,
        append_time: Option<i64>,
        like: &Batch<'_>,
    ) {
        let producer = match like {
            Batch::V2(v2) => v2.producer_state(),
            Batch::Legacy(_) => ProducerState::NONE,
        };
        self.next_batch();
        self.options = Options {
            base_offset: Some(base_offset),
            partition_leader_epoch,
            append_time,
            producer,
            ..Options::default()
        };
    }

    /// 0, 1 or 2.
    #[must_use]
    pub fn magic(&self) -> i8 {
        self.magic
    }

    /// The codec.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.codec
    }

    /// The number of records in the batch so far.
    #[must_use]
    pub fn record_count(&self) -> u32 {
        let count = match &self.records {
            Growing::V2(batch) => batch.count(),
            Growing::Legacy(set) => set.count(),
        };
        count as u32
    }

    /// The compression level, within [`Compression::levels`]; Kafka's default if not set.
    #[must_use]
    pub fn level(mut self, level: i32) -> Self {
        self.level = Some(level);
        self
    }

    /// Base offset of the next batch, if it is lower than the offset of its first record.
    #[must_use]
    pub fn base_offset(mut self, offset: i64) -> Self {
        self.options.base_offset = Some(offset);
        self
    }

    /// The id and epoch of an idempotent producer, and the sequence number of the next batch's first record
    /// (-1 in control batches). Magic 2 only.
    #[must_use]
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        let is_transactional = self.options.producer.is_transactional;
        self.options.producer =
            ProducerState { is_transactional, ..ProducerState::new(id, epoch, base_sequence) };
        self
    }

    /// The batch belongs to a transaction of its producer. Magic 2 only.
    #[must_use]
    pub fn transactional(mut self) -> Self {
        self.options.producer.is_transactional = true;
        self
    }

    /// The batch holds control records: see [`append_control`](Self::append_control). Magic 2 only.
    #[must_use]
    pub fn control(mut self) -> Self {
        self.options.control = true;
        self
    }

    /// Epoch of the leader that appends the batch. Ignored below magic 2, which has no such field.
    #[must_use]
    pub fn partition_leader_epoch(mut self, epoch: i32) -> Self {
        self.options.partition_leader_epoch = epoch;
        self
    }

    /// The time (ms) from which the cleaner may drop tombstones or the marker. It is stored as the base
    /// timestamp. Magic 2 only.
    #[must_use]
    pub fn delete_horizon_ms(mut self, time: i64) -> Self {
        self.options.delete_horizon_ms = Some(time);
        self
    }

    /// The broker's time (ms), which readers see in place of every record's timestamp (`LogAppendTime`).
    /// Magic 2 still stores the timestamps of the records; magic 0 has no timestamps.
    #[must_use]
    pub fn log_append_time(mut self, time: i64) -> Self {
        self.options.append_time = Some(time);
        self
    }

    /// The maximum size of a batch in bytes, 2^31-1 by default. As in Kafka, a batch's first record is taken
    /// whatever its size, up to 2^31-1 bytes. For a compressed batch the limit applies to the estimated size;
    /// a last record that compresses badly can exceed it.
    #[must_use]
    pub fn max_size_in_bytes(mut self, size: usize) -> Self {
        self.options.max_size = size.min(i32::MAX as usize);
        self
    }

    /// The producer of the batch so far and of those after it, with the base sequence of this batch.
    #[must_use]
    pub fn producer_state(&self) -> ProducerState {
        self.options.producer
    }

    /// Sets the producer of the batch so far and of those after it, and whether they belong to a transaction.
    /// Magic 2 only. [`convert::set_producer_state`](crate::convert::set_producer_state) does the same to a
    /// batch that is built.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`]; the state is then unchanged.
    pub fn set_producer_state(&mut self, state: ProducerState) -> Result<()> {
        let options = Options { producer: state, ..self.options };
        options.check(self.magic, self.codec)?;
        self.options = options;
        Ok(())
    }

    /// The offset after the last record of the batch so far. For the first record it is
    /// [`base_offset`](Self::base_offset), or 0, where the batches of a produce request start.
    #[must_use]
    #[inline]
    pub fn next_offset(&self) -> i64 {
        match &self.records {
            _ if self.record_count() == 0 => self.options.base_offset.unwrap_or(0),
            Growing::V2(batch) => batch.last_offset().saturating_add(1),
            Growing::Legacy(set) => set.last_offset().saturating_add(1),
        }
    }

    /// Appends one record. Offsets must increase; gaps are kept. A timestamp is in ms, -1 for none; magic 0
    /// drops it.
    ///
    /// # Errors
    /// With the record's index and field: [`ErrorKind::OffsetOutOfRange`] for an offset that is not greater
    /// than the last one or is more than 2^31-1 from the base, [`ErrorKind::InvalidRecord`] for a record that
    /// Kafka refuses (a timestamp below -1, headers below magic 2, a control batch's record whose key is not
    /// a control record's), [`ErrorKind::RecordTooLarge`]. For the first record also
    /// [`ErrorKind::InvalidOptions`] and [`ErrorKind::UnsupportedCompression`].
    #[inline]
    pub fn append(
        &mut self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<()> {
        self.append_fields((offset, timestamp), 0, (key, value), HeaderFields::List(headers))
    }

    /// Appends one record if the batch has room for it, as [`has_room_for`](Self::has_room_for) judges. If
    /// this returns false, the batch is unchanged and should be built first.
    ///
    /// # Errors
    /// The errors of [`append`](Self::append); [`ErrorKind::RecordTooLarge`] only for a record that no batch
    /// can hold.
    ///
    /// ```
    /// # use magicbyte::{Compression, RecordsBuilder};
    /// let mut builder = RecordsBuilder::v2(Compression::Lz4).max_size_in_bytes(16 << 10);
    /// let mut batches = Vec::new();
    /// for value in [&[1; 20_000][..], &[2; 9_000], &[3; 9_000]] {
    ///     while !builder.try_append(builder.next_offset(), 1_700_000_000_000, None, Some(value), &[])? {
    ///         batches.push(builder.build()?);
    ///     }
    /// }
    /// batches.push(builder.build()?);
    /// assert_eq!(batches.len(), 3);
    /// # Ok::<(), magicbyte::Error>(())
    /// ```
    #[inline]
    pub fn try_append(
        &mut self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<bool> {
        match self.append(offset, timestamp, key, value, headers) {
            Err(error) if self.is_full(&error) => Ok(false),
            appended => appended.map(|()| true),
        }
    }

    /// Appends a record of another batch with its offset, timestamp, key, value and headers and, in magic 2,
    /// its attributes byte.
    ///
    /// # Errors
    /// The errors of [`append`](Self::append).
    pub fn append_record(&mut self, record: &Record<'_>) -> Result<()> {
        let offset_and_timestamp = (record.offset, record.timestamp);
        let key_and_value = (record.key, record.value);
        let headers = HeaderFields::Stored(record.headers);
        self.append_fields(offset_and_timestamp, record.attributes, key_and_value, headers)
    }

    /// Appends a record of another batch at the given offset, as a leader does that rewrites a batch: with
    /// timestamp, key, value and headers.
    ///
    /// # Errors
    /// The errors of [`append`](Self::append).
    #[doc(hidden)]
    #[inline]
    pub fn append_at(&mut self, offset: i64, record: &Record<'_>) -> Result<()> {
        let key_and_value = (record.key, record.value);
        self.append_fields((offset, record.timestamp), 0, key_and_value, HeaderFields::Stored(record.headers))
    }

    /// Appends a control record to a [`control`](Self::control) batch.
    ///
    /// # Errors
    /// The errors of [`append`](Self::append); [`ErrorKind::InvalidOptions`] for an end-of-transaction marker
    /// in a batch that has no producer or is not transactional; [`ErrorKind::InvalidRecord`] for a record of
    /// unknown type.
    pub fn append_control(&mut self, offset: i64, timestamp: i64, record: &ControlRecord) -> Result<()> {
        let is_marker = matches!(record, ControlRecord::EndTransaction { .. });
        if is_marker && !self.options.producer.is_transactional {
            let kind = ErrorKind::InvalidOptions("an end-of-transaction marker needs a transactional batch");
            return Err(self.at_next(Error::new(kind)));
        }
        let (key, value) = record.to_key_and_value().map_err(|e| self.at_next(e))?;
        self.append(offset, timestamp, Some(&key), Some(&value), &[])
    }

    #[inline(always)]
    fn append_fields(
        &mut self,
        offset_and_timestamp: (i64, i64),
        attributes: i8,
        key_and_value: (Option<&[u8]>, Option<&[u8]>),
        headers: HeaderFields<'_>,
    ) -> Result<()> {
        self.append_unplaced(offset_and_timestamp, attributes, key_and_value, headers)
            .map_err(|e| self.at_next(e))
    }

    /// Appends one record; the place of an error is still to be given.
    #[inline(always)]
    fn append_unplaced(
        &mut self,
        (offset, timestamp): (i64, i64),
        attributes: i8,
        (key, value): (Option<&[u8]>, Option<&[u8]>),
        headers: HeaderFields<'_>,
    ) -> Result<()> {
        if timestamp < i64::from(NONE) {
            return Err(invalid("a timestamp must be -1 (none) or non-negative", "timestamp"));
        }
        if self.magic < 2 && !headers.is_empty() {
            return Err(invalid("headers need magic 2", "headers"));
        }
        if self.options.control
            && let ControlType::Unknown(_) = ControlType::parse(key.unwrap_or_default())?
        {
            return Err(invalid("a control record of unknown type cannot be written", "key"));
        }
        if self.record_count() == 0 {
            self.start(offset, timestamp)?;
        }
        let max_size = self.max_size_of_next();
        prefetch_after(value.unwrap_or_default(), PREFETCH_DISTANCE);
        match &mut self.records {
            Growing::V2(batch) => {
                batch.check_offset(offset)?;
                let record = batch.fields((offset, timestamp), attributes, (key, value), headers);
                if record.size() > max_size {
                    return Err(self.too_large(record.size()));
                }
                batch.append(&record);
            }
            Growing::Legacy(set) => {
                set.check_offset(offset)?;
                let message = set.fields((offset, timestamp), (key, value));
                if message.size() > max_size {
                    return Err(self.too_large(message.size()));
                }
                set.append(offset, &message)?;
            }
        }
        Ok(())
    }

    /// Starts a batch with its first record's offset and timestamp.
    fn start(&mut self, offset: i64, timestamp: i64) -> Result<()> {
        self.options.check(self.magic, self.codec)?;
        let base_offset = self.options.base_offset.unwrap_or(offset);
        if self.magic == 1 && self.codec != Compression::None && base_offset < 0 {
            // The wrapper's offset would be lower than the last relative one inside, which no reader accepts.
            let kind = ErrorKind::OffsetOutOfRange { found: base_offset, min: 0, max: i64::MAX };
            return Err(Error::new(kind).in_field("offset"));
        }
        match &mut self.records {
            Growing::V2(batch) => {
                batch.start(base_offset, self.options.delete_horizon_ms.unwrap_or(timestamp));
            }
            Growing::Legacy(set) => set.start(base_offset, self.options.append_time),
        }
        Ok(())
    }

    /// Checks the options without any records, as [`append`](Self::append) and [`build`](Self::build) will.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`], [`ErrorKind::UnsupportedCompression`],
    /// [`ErrorKind::UnsupportedLevel`].
    pub fn validate(&mut self) -> Result<()> {
        self.options.check(self.magic, self.codec)?;
        get_or_create(&mut self.compressor, self.codec, self.level).map(drop)
    }

    /// The finished batch; empty if there are no records, as in Kafka. The builder is then ready for the next
    /// batch.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`], [`ErrorKind::UnsupportedLevel`], and the errors of
    /// [`Compressor::compress`].
    /// The builder keeps its records.
    pub fn build(&mut self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.build_into(&mut out)?;
        Ok(out)
    }

    /// Calls `take` with the finished batch in the buffer where it was collected, if it is uncompressed and
    /// of magic 2. `None` for any other batch, which needs a separate buffer:
    /// [`build_into`](Self::build_into).
    #[doc(hidden)]
    pub fn build_stored<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        self.options.check(self.magic, self.codec)?;
        let taken = match &mut self.records {
            Growing::V2(batch) if self.codec == Compression::None && batch.count() > 0 => {
                let header = self.options.header(batch);
                take(batch.finish_stored(header)?)
            }
            _ => return Ok(None),
        };
        self.next_batch();
        Ok(Some(taken))
    }

    /// Appends the finished batch to `out`; otherwise as [`build`](Self::build).
    ///
    /// # Errors
    /// The errors of [`build`](Self::build); `out` is left unchanged.
    pub fn build_into(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.options.check(self.magic, self.codec)?;
        if self.record_count() == 0 {
            return Ok(());
        }
        let raw = self.raw_size();
        let compressor = get_or_create(&mut self.compressor, self.codec, self.level)?;
        let written = match &mut self.records {
            Growing::V2(batch) if self.codec == Compression::None => {
                batch.finish_stored_into(self.options.header(batch), out)?
            }
            Growing::V2(batch) => batch.finish(self.options.header(batch), compressor, out)?,
            Growing::Legacy(set) => set.finish(compressor, out)?,
        };
        self.compression_ratio.observe(written as f32 / raw as f32);
        self.next_batch();
        Ok(())
    }

    fn next_batch(&mut self) {
        let sequences = match &mut self.records {
            Growing::V2(batch) => {
                let sequences = batch.last_offset().wrapping_sub(batch.base_offset()) as i32;
                batch.start(0, 0);
                sequences
            }
            Growing::Legacy(set) => {
                set.start(0, None);
                0
            }
        };
        self.options.base_offset = None;
        let sequence = &mut self.options.producer.base_sequence;
        *sequence = sequence_of(sequence_of(*sequence, sequences), 1);
    }

    /// The empty batch that compaction leaves when it drops all records
    /// (`DefaultRecordBatch.writeEmptyHeader`): 61 bytes with this builder's base offset, producer, flags and
    /// leader epoch. `last_offset` is inclusive, `max_timestamp` in ms. Magic 2 only.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`]; [`ErrorKind::OffsetOutOfRange`] for a last offset below the base or
    /// more than 2^31-1 above it.
    pub fn empty_batch(&self, last_offset: i64, max_timestamp: i64) -> Result<Vec<u8>> {
        self.options.check(self.magic, self.codec)?;
        if self.magic < 2 {
            return Err(ErrorKind::InvalidOptions("an empty batch needs magic 2").into());
        }
        let base_offset = self.options.base_offset.unwrap_or(last_offset);
        offset_between(last_offset, base_offset, None)?;
        let header = BatchHeader {
            base_offset,
            last_offset_delta: last_offset.wrapping_sub(base_offset) as i32,
            max_timestamp,
            record_count: 0,
            attributes: self.options.attributes() & !i16::from(DELETE_HORIZON),
            base_timestamp: NONE.into(),
            partition_leader_epoch: self.options.partition_leader_epoch,
            producer_id: self.options.producer.producer_id,
            producer_epoch: self.options.producer.producer_epoch,
            base_sequence: self.options.producer.base_sequence,
        };
        let mut batch = vec![0; RECORD_BATCH_OVERHEAD];
        header.write(&mut batch);
        Ok(batch)
    }

    #[cold]
    fn at_next(&self, error: Error) -> Error {
        error.at_record(self.record_count())
    }
}

/// The compressor, created when first needed.
fn get_or_create(
    slot: &mut Option<Compressor>,
    codec: Compression,
    level: Option<i32>,
) -> Result<&mut Compressor> {
    Ok(match slot {
        Some(compressor) => compressor,
        none => none.insert(Compressor::with_level(codec, level)?),
    })
}

#[cold]
fn invalid(why: &'static str, field: &'static str) -> Error {
    Error::new(ErrorKind::InvalidRecord(why)).in_field(field)
}
