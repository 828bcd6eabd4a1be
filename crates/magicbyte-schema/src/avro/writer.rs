//! The payloads of one writer's schema, read as the reader's.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ArrayRef;
use arrow_avro::reader::{Decoder, DecoderMode, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use arrow_schema::ArrowError;

use super::columns::{converted, with_plain_numbers};
use super::costs::Costs;
use super::plan::Plan;
use super::types::Types;
use super::walk;
use crate::budget::Budget;
use crate::decoded::RowError;
use crate::error::{Result, SchemaError};
use crate::payload::Payload;

/// A writer's schema.
pub(super) struct Writer {
    pub(super) types: Types,
    /// The plan for reading its payloads; None if arrow-avro reads them.
    pub(super) plan: Option<Plan>,
    /// The costs of its values, if arrow-avro reads them.
    costs: Costs,
    /// The schema in the form that arrow-avro reads.
    schema: String,
}

/// The reader's schema.
pub(super) struct Reader {
    pub(super) types: Types,
    /// True if a plan can fill every column of the schema.
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
        Self { types, plan: None, costs: Costs::NONE, schema: String::new() }
    }

    /// Fails if the writer's schema cannot be read as the reader's.
    pub(super) fn new(types: Types, reader: &Reader) -> Result<Self> {
        if types.is_recursive {
            return Err(SchemaError::new(
                "a type of the writer's schema contains itself, and none of the reader's does",
            ));
        }
        let types = with_plain_numbers(types);
        let schema = types.wrapped();
        let plan = reader.has_plans.then(|| Plan::new(&types, &reader.types)).flatten();
        let costs = if plan.is_some() { Costs::NONE } else { Costs::new(&types, &reader.types) };
        let writer = Self { types, plan, costs, schema };
        match caught(|| writer.build(reader)) {
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

    /// Fails if a payload is not a value of the schema, or costs more than the budget has.
    pub(super) fn check(
        &self,
        row: usize,
        payload: &[u8],
        budget: &mut Budget,
    ) -> std::result::Result<(), RowError> {
        let checked = walk::check(&self.types, payload, &self.costs, budget);
        checked.map_err(|fault| RowError { row, position: Some(fault.position), reason: fault.reason })
    }

    /// The error of a payload that the plan could not read.
    pub(super) fn fault(&self, row: usize, payload: &[u8], budget: &mut Budget) -> RowError {
        match self.check(row, payload, budget) {
            Err(error) => error,
            Ok(()) => {
                RowError { row, position: None, reason: "cannot be read as the reader's schema".into() }
            }
        }
    }

    /// Decodes these rows of `payloads`, which were checked, by arrow-avro. `decoder` is one that it kept from an earlier
    /// call: None after an error, which leaves a decoder in the middle of a row.
    pub(super) fn decode(
        &self,
        reader: &Reader,
        payloads: &[Payload<'_>],
        rows: Vec<u32>,
        decoder: &mut Option<Decoder>,
        pieces: &mut Vec<Piece>,
        errors: &mut Vec<RowError>,
    ) {
        // They can only differ from the reader's schema: halves of the rows, until those are found.
        let mut open = vec![rows];
        while let Some(mut rows) = open.pop() {
            if rows.is_empty() {
                continue;
            }
            match caught(|| self.decode_all(reader, payloads, &rows, decoder)) {
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
        &self,
        reader: &Reader,
        payloads: &[Payload<'_>],
        rows: &[u32],
        kept: &mut Option<Decoder>,
    ) -> std::result::Result<ArrayRef, ArrowError> {
        let mut decoder = match kept.take() {
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
        *kept = Some(decoder);
        Ok(values)
    }
}

/// The result of arrow-avro's work; a panic of it is an error of the rows or of the schema, and ends no process.
fn caught<T>(
    work: impl FnOnce() -> std::result::Result<T, ArrowError>,
) -> std::result::Result<T, ArrowError> {
    // A decoder that panicked is not used again.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ArrowError::AvroError("the library arrow-avro panicked".into())))
}

fn bytes<'a>(payloads: &[Payload<'a>], row: u32) -> &'a [u8] {
    payloads[row as usize].bytes.unwrap_or_default()
}
