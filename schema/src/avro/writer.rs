//! The payloads of one writer's schema, read as the reader's.

use arrow_array::ArrayRef;
use arrow_avro::reader::{Decoder, DecoderMode, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use arrow_schema::ArrowError;

use super::columns::converted;
use super::plan::Plan;
use super::types::Types;
use super::walk;
use crate::decoded::RowError;
use crate::error::{Result, SchemaError};
use crate::payload::Payload;

/// A writer's schema.
pub(super) struct Writer {
    pub(super) types: Types,
    /// How its payloads are read; None if arrow-avro reads them.
    pub(super) plan: Option<Plan>,
    /// As arrow-avro reads it.
    schema: String,
    /// None before its first row, and after an error, which leaves a decoder in the middle of a row.
    decoder: Option<Decoder>,
}

/// The reader's schema.
pub(super) struct Reader {
    pub(super) types: Types,
    /// Whether all its columns are some that a plan can fill.
    has_plans: bool,
    schema: String,
}

/// Rows that were decoded together.
pub(super) struct Piece {
    pub(super) rows: Vec<u32>,
    pub(super) values: ArrayRef,
}

impl Reader {
    pub(super) fn new(types: Types, has_plans: bool) -> Self {
        let schema = types.wrapped();
        Self { types, has_plans, schema }
    }
}

impl Writer {
    /// A writer for text, which needs no decoder.
    pub(super) fn of_text(types: Types) -> Self {
        Self { types, plan: None, schema: String::new(), decoder: None }
    }

    /// Fails if the writer's schema cannot be read as the reader's.
    pub(super) fn new(types: Types, reader: &Reader) -> Result<Self> {
        if types.is_recursive {
            return Err(SchemaError::new(
                "a type of the writer's schema contains itself, and none of the reader's does",
            ));
        }
        let schema = types.wrapped();
        let plan = reader.has_plans.then(|| Plan::new(&types, &reader.types)).flatten();
        let writer = Self { types, plan, schema, decoder: None };
        match writer.build(reader) {
            Ok(_) => Ok(writer),
            Err(error) => {
                Err(SchemaError::new(format!("the schema cannot be read as the reader's: {error}")))
            }
        }
    }

    fn build(&self, reader: &Reader) -> std::result::Result<Decoder, ArrowError> {
        // The only schema of its store; the number is never seen in payloads.
        let number = Fingerprint::Id(0);
        let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
        store.set(number, AvroSchema::new(self.schema.clone()))?;
        let mut builder = ReaderBuilder::new()
            .with_writer_schema_store(store)
            .with_active_fingerprint(number)
            .with_decoder_mode(DecoderMode::UnframedDatum)
            .with_batch_size(usize::MAX);
        // Without resolving, if there is nothing to resolve.
        if self.schema != reader.schema {
            builder = builder.with_reader_schema(AvroSchema::new(reader.schema.clone()));
        }
        builder.build_decoder()
    }

    /// What is wrong with a payload that the plan could not read.
    pub(super) fn fault(&self, row: usize, payload: &[u8]) -> RowError {
        match walk::check(&self.types, payload) {
            Err(fault) => RowError { row, position: Some(fault.position), reason: fault.reason },
            Ok(()) => {
                RowError { row, position: None, reason: "cannot be read as the reader's schema".into() }
            }
        }
    }

    /// Decodes these rows of `payloads`, none of which is null, by arrow-avro.
    pub(super) fn decode(
        &mut self,
        reader: &Reader,
        payloads: &[Payload<'_>],
        mut rows: Vec<u32>,
        pieces: &mut Vec<Piece>,
        errors: &mut Vec<RowError>,
    ) {
        rows.retain(|&row| {
            let checked = walk::check(&self.types, bytes(payloads, row));
            match checked {
                Ok(()) => true,
                Err(fault) => {
                    let (row, position) = (row as usize, Some(fault.position));
                    errors.push(RowError { row, position, reason: fault.reason });
                    false
                }
            }
        });
        // What remains can only differ from the reader's schema: halves of the rows, until those are found.
        let mut open = vec![rows];
        while let Some(mut rows) = open.pop() {
            if rows.is_empty() {
                continue;
            }
            match self.decode_all(reader, payloads, &rows) {
                Ok(values) => pieces.push(Piece { rows, values }),
                Err(error) if rows.len() == 1 => {
                    let reason = format!("cannot be read as the reader's schema: {error}");
                    errors.push(RowError { row: rows[0] as usize, position: None, reason });
                }
                Err(_) => {
                    let second = rows.split_off(rows.len() / 2);
                    open.push(second);
                    open.push(rows);
                }
            }
        }
    }

    fn decode_all(
        &mut self,
        reader: &Reader,
        payloads: &[Payload<'_>],
        rows: &[u32],
    ) -> std::result::Result<ArrayRef, ArrowError> {
        let mut decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => self.build(reader)?,
        };
        for &row in rows {
            decoder.decode(bytes(payloads, row))?;
        }
        let batch = decoder.flush()?;
        let Some(batch) = batch else {
            return Err(ArrowError::ComputeError("no rows".into()));
        };
        let values = converted(&reader.types, reader.types.root, batch.column(0))?;
        self.decoder = Some(decoder);
        Ok(values)
    }
}

fn bytes<'a>(payloads: &[Payload<'a>], row: u32) -> &'a [u8] {
    payloads[row as usize].bytes.unwrap_or_default()
}
