//! Rewriting the records of an append with the leader's offsets
//! (`LogValidator.buildRecordsAndAssignOffsets`).

use magicbyte::{Batch, Compression, Compressor, RecordsBuilder, Result, TimestampType};

use crate::append::{Append, ConversionStats};
use crate::append_config::AppendConfig;

/// Rewrites appends; keeps a builder for each codec used so far.
#[derive(Debug)]
pub(super) struct Rewriter {
    magic: i8,
    append_time: bool,
    builders: [Option<RecordsBuilder>; Compression::ALL.len()],
    codec: Compression,
    next_offset: i64,
}

impl Rewriter {
    pub(super) fn new(config: &AppendConfig) -> Result<Self> {
        let mut builders: [Option<RecordsBuilder>; Compression::ALL.len()] = Default::default();
        if let Some((codec, level)) = config.compression.fixed() {
            Compressor::with_level(codec, level)?;
            let builder = RecordsBuilder::of(config.message_format, codec);
            builders[codec as usize] = Some(match level {
                Some(level) => builder.level(level),
                None => builder,
            });
        }
        let append_time = config.timestamp_type == TimestampType::LogAppendTime;
        Ok(Self {
            magic: config.message_format,
            append_time,
            builders,
            codec: Compression::None,
            next_offset: 0,
        })
    }

    fn builder(&mut self) -> &mut RecordsBuilder {
        self.builders[self.codec as usize].get_or_insert_with(|| RecordsBuilder::of(self.magic, self.codec))
    }

    /// Starts an append; it gets the producer and transaction flag of `first`, its first batch.
    pub(super) fn start(&mut self, codec: Compression, append: &Append, first: &Batch<'_>) {
        (self.codec, self.next_offset) = (codec, append.next_offset);
        let append_time = self.append_time.then_some(append.now);
        self.builder().restart(append.next_offset, append.leader_epoch, append_time, first);
    }

    /// Appends the records of a batch, which have been checked.
    pub(super) fn append(&mut self, batch: &Batch<'_>, payload: &[u8]) -> Result<()> {
        let mut next_offset = self.next_offset;
        let builder = self.builder();
        for record in batch.records_in(payload)?.without_crc_check() {
            builder.append_at(next_offset, &record?).map_err(|e| batch.place(e))?;
            next_offset = next_offset.saturating_add(1);
        }
        self.next_offset = next_offset;
        Ok(())
    }

    /// Returns the bytes of the append, and the cost of rewriting it.
    pub(super) fn finish(&mut self) -> Result<(Vec<u8>, ConversionStats)> {
        let builder = self.builder();
        let stats = ConversionStats {
            temporary_memory_bytes: builder.uncompressed_size() as u64,
            records_converted: builder.record_count().into(),
        };
        Ok((builder.build()?, stats))
    }
}
