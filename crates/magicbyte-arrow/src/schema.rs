//! The schemas of the tables: the one place that defines the names and types of columns.

use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use magicbyte_log::LogError;

/// The timestamp that a batch stores for a record without one (Kafka's `RecordBatch.NO_TIMESTAMP`); NULL in
/// tables.
pub(crate) const NO_TIMESTAMP: i64 = -1;

/// A column of the table `records`. Columns that Spark's Kafka source has too have the same name.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the documentation: see `NAMES`")]
pub enum RecordColumn {
    Key,
    Value,
    Topic,
    Partition,
    Offset,
    Timestamp,
    TimestampType,
    Headers,
    TimestampMillis,
    Magic,
    Compression,
    ProducerId,
    ProducerEpoch,
    Sequence,
    IsTransactional,
    LeaderEpoch,
    Segment,
    Position,
}

use RecordColumn as C;

const NAMES: [(RecordColumn, &str); 18] = [
    (C::Key, "key"),
    (C::Value, "value"),
    (C::Topic, "topic"),
    (C::Partition, "partition"),
    (C::Offset, "offset"),
    (C::Timestamp, "timestamp"),
    (C::TimestampType, "timestampType"),
    (C::Headers, "headers"),
    (C::TimestampMillis, "timestampMillis"),
    (C::Magic, "magic"),
    (C::Compression, "compression"),
    (C::ProducerId, "producerId"),
    (C::ProducerEpoch, "producerEpoch"),
    (C::Sequence, "sequence"),
    (C::IsTransactional, "isTransactional"),
    (C::LeaderEpoch, "leaderEpoch"),
    (C::Segment, "segment"),
    (C::Position, "position"),
];

impl RecordColumn {
    /// The columns that a Kafka consumer sees of a record.
    pub const CONSUMED: [Self; 6] = [C::Offset, C::Timestamp, C::TimestampType, C::Key, C::Value, C::Headers];

    /// True if all records of a batch share the value.
    pub(super) fn is_batch_field(self) -> bool {
        matches!(
            self,
            C::Magic
                | C::Compression
                | C::ProducerId
                | C::ProducerEpoch
                | C::IsTransactional
                | C::LeaderEpoch
                | C::Segment
                | C::Position
        )
    }

    /// True if the records have to be read for the column.
    pub(super) fn needs_records(self) -> bool {
        !self.is_batch_field() && !matches!(self, C::Topic | C::Partition)
    }

    /// The column's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    fn data_type(self, flavour: Flavour) -> DataType {
        match self {
            C::Value if flavour == Flavour::Views => DataType::BinaryView,
            C::Key | C::Value => DataType::Binary,
            C::Topic | C::Compression | C::Segment => DataType::Utf8,
            C::Partition | C::TimestampType | C::Magic | C::ProducerEpoch | C::Sequence | C::LeaderEpoch => {
                DataType::Int32
            }
            C::Offset | C::TimestampMillis | C::ProducerId | C::Position => DataType::Int64,
            C::Timestamp => DataType::Timestamp(flavour.time_unit(), Some("UTC".into())),
            C::IsTransactional => DataType::Boolean,
            C::Headers => {
                DataType::List(Arc::new(Field::new("element", DataType::Struct(header_fields()), true)))
            }
        }
    }
}

impl FromStr for RecordColumn {
    type Err = LogError;

    fn from_str(name: &str) -> Result<Self, LogError> {
        NAMES.iter().find(|(_, n)| *n == name).map(|(column, _)| *column).ok_or_else(|| {
            let known: Vec<_> = NAMES.iter().map(|(_, n)| *n).collect();
            LogError::Usage(format!(
                "no column {name:?} in the table records: expected one of {}",
                known.join(", ")
            ))
        })
    }
}

pub(super) fn header_fields() -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)])
}

/// The types of timestamps and values.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// The types that Spark's Python data source requires: timestamps in microseconds. Kafka timestamps
    /// outside their range are null.
    Spark,
    /// Timestamps in milliseconds, which can represent every Kafka timestamp. As in every flavour, a record
    /// without a timestamp (-1) has null.
    Millis,
    /// Like `Millis`, with values as `binary_view`. Values of at most 12 bytes are inline. Values in batches
    /// of large records are views into the batch as read or decompressed, which they keep in memory. Other
    /// values are copied.
    Views,
}

impl Flavour {
    pub(super) fn time_unit(self) -> TimeUnit {
        match self {
            Self::Spark => TimeUnit::Microsecond,
            Self::Millis | Self::Views => TimeUnit::Millisecond,
        }
    }
}

/// The tables that a log is decoded into.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// One row per record.
    Records,
    /// One row per batch.
    Batches,
    /// One row per problem.
    Problems,
}

impl FromStr for Table {
    type Err = LogError;

    fn from_str(name: &str) -> Result<Self, LogError> {
        match name {
            "records" => Ok(Self::Records),
            "batches" => Ok(Self::Batches),
            "problems" => Ok(Self::Problems),
            other => {
                Err(LogError::Usage(format!("no table {other:?}: expected records, batches or problems")))
            }
        }
    }
}

/// The schema of `records` with these columns, in this order. All are nullable, as in Spark.
#[must_use]
pub fn records_schema(columns: &[RecordColumn], flavour: Flavour) -> SchemaRef {
    let field = |column: &RecordColumn| Field::new(column.name(), column.data_type(flavour), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// The columns and the flavour with exactly the types of this schema, apart from the names of fields inside
/// lists; `None` if there are none.
#[must_use]
pub fn columns_of(schema: &Schema) -> Option<(Vec<RecordColumn>, Flavour)> {
    let columns: Option<Vec<RecordColumn>> =
        schema.fields().iter().map(|field| field.name().parse().ok()).collect();
    let columns = columns?;
    let fits = |flavour: &Flavour| {
        let ours = columns.iter().map(|column| column.data_type(*flavour));
        ours.zip(schema.fields()).all(|(ours, field)| ours.equals_datatype(field.data_type()))
    };
    let flavour = [Flavour::Millis, Flavour::Views, Flavour::Spark].into_iter().find(fits)?;
    Some((columns, flavour))
}

fn schema_of(fields: &[(&str, DataType)]) -> SchemaRef {
    let field = |(name, data_type): &(&str, DataType)| Field::new(*name, data_type.clone(), true);
    Arc::new(Schema::new(fields.iter().map(field).collect::<Vec<_>>()))
}

/// The schema of `batches`.
#[must_use]
pub fn batches_schema() -> SchemaRef {
    use DataType::{Boolean, Int32, Int64, Utf8};
    schema_of(&[
        ("topic", Utf8),
        ("partition", Int32),
        ("segment", Utf8),
        ("position", Int64),
        ("size", Int64),
        ("baseOffset", Int64),
        ("lastOffset", Int64),
        ("count", Int64),
        ("magic", Int32),
        ("compression", Utf8),
        ("crc", Int64),
        ("isValid", Boolean),
        ("timestampType", Int32),
        ("baseTimestamp", Int64),
        ("maxTimestamp", Int64),
        ("deleteHorizonMs", Int64),
        ("producerId", Int64),
        ("producerEpoch", Int32),
        ("baseSequence", Int32),
        ("lastSequence", Int32),
        ("isTransactional", Boolean),
        ("isControl", Boolean),
        ("controlType", Utf8),
        ("partitionLeaderEpoch", Int32),
        ("uncompressedSize", Int64),
    ])
}

/// The schema of [`BatchHeaders`](crate::BatchHeaders). `nextSequence` is the base sequence of the producer's next batch,
/// -1 without a producer ID; `follows` is true if the producer's last batch in the segment has the batch's
/// `baseSequence` as its `nextSequence`, and the same epoch; `followed` is true if the next batch does the same, and both
/// are among the same 65,536 rows. Offsets are inclusive, timestamps milliseconds, sizes bytes.
#[must_use]
pub fn batch_headers_schema() -> SchemaRef {
    use DataType::{Boolean, Int16, Int32, Int64, UInt32};
    schema_of(&[
        ("position", Int64),
        ("size", Int32),
        ("baseOffset", Int64),
        ("lastOffset", Int64),
        ("count", Int32),
        ("crc", UInt32),
        ("attributes", Int16),
        ("baseTimestamp", Int64),
        ("maxTimestamp", Int64),
        ("producerId", Int64),
        ("producerEpoch", Int16),
        ("baseSequence", Int32),
        ("nextSequence", Int32),
        ("follows", Boolean),
        ("followed", Boolean),
    ])
}

/// The schema of `problems`.
#[must_use]
pub fn problems_schema() -> SchemaRef {
    use DataType::{Int32, Int64, Utf8};
    schema_of(&[
        ("topic", Utf8),
        ("partition", Int32),
        ("segment", Utf8),
        ("kind", Utf8),
        ("start", Int64),
        ("end", Int64),
        ("baseOffset", Int64),
        ("recordIndex", Int64),
        ("field", Utf8),
        ("firstLostOffset", Int64),
        ("lastLostOffset", Int64),
        ("message", Utf8),
    ])
}
