//! The clients' `DefaultRecordBatchBuilder`: building batches of magic 2.

use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use magicbyte::internals::batch_header::TRANSACTIONAL;
use magicbyte::internals::{BatchBuilder, BatchHeader, HeaderFields, RecordFields, Varint, representable};
use magicbyte::{Compression, Error, RECORD_BATCH_OVERHEAD};

use crate::builder::borrowed;
use crate::compat::builders::{
    DefaultMetadata, compressed, header_content, header_pairs, nullable, refused, timestamp_or_now,
};
use crate::compat::client::{Client, integer, number, set_constants};
use crate::compat::default_batch::{CONSTANTS, STRUCTS};
use crate::gil_cell::GilCell;
use crate::{docs::docstring, panics};

/// The largest size of length, attributes, timestamp and offset deltas (`DefaultRecord.MAX_RECORD_OVERHEAD`).
const MAX_RECORD_OVERHEAD: usize = 21;

#[doc = docstring!(compat_builders, _DefaultRecordBatchBuilder)]
#[pyclass(frozen, subclass, name = "_DefaultRecordBatchBuilder", module = "magicbyte.compat._core")]
pub(super) struct DefaultBuilder {
    client: Client,
    codec: u8,
    batch_size: i64,
    state: GilCell<State>,
}

struct State {
    batch: BatchBuilder,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    transactional: bool,
    /// The finished batch, until the builder changes. Dropping it runs no Python code.
    built: Option<Py<PyByteArray>>,
    /// True if the builder has changed since `build` began.
    changed: bool,
}

impl State {
    /// Uncompressed size of the batch.
    fn size(&self) -> usize {
        RECORD_BATCH_OVERHEAD + self.batch.records_size()
    }

    fn header(&self) -> BatchHeader {
        let records = self.batch.header();
        let (last_offset_delta, base_timestamp, max_timestamp) = match records.record_count {
            // It ends at its base offset, as in aiokafka; a refused first record does not leave its timestamp.
            0 => (0, -1, -1),
            _ => (records.last_offset_delta, records.base_timestamp, self.max_timestamp),
        };
        BatchHeader {
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            attributes: if self.transactional { TRANSACTIONAL.into() } else { 0 },
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            ..records
        }
    }
}

impl DefaultBuilder {
    #[expect(clippy::too_many_arguments, reason = "the arguments of the originals")]
    fn new(
        client: Client,
        magic: i64,
        compression_type: i64,
        transactional: bool,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        batch_size: i64,
    ) -> PyResult<Self> {
        panics::here();
        if magic < 2 {
            return Err(PyAssertionError::new_err(()));
        }
        let state = State {
            batch: BatchBuilder::new(),
            max_timestamp: -1,
            producer_id,
            producer_epoch,
            base_sequence,
            transactional,
            built: None,
            changed: false,
        };
        Ok(Self { client, codec: compression_type as u8 & 7, batch_size, state: GilCell::new(state) })
    }

    fn set_producer(&self, py: Python<'_>, producer_id: i64, producer_epoch: i16, base_sequence: i32) {
        self.state.with(py, |state| {
            state.producer_id = producer_id;
            state.producer_epoch = producer_epoch;
            state.base_sequence = base_sequence;
            (state.built, state.changed) = (None, true);
        });
    }

    /// True if a record of this size may be appended, by the client's rule.
    fn has_room(&self, state: &State, offset: i64, size: usize) -> bool {
        let size = (state.size() + size) as i64;
        match self.client {
            Client::Aiokafka => offset == 0 || size < self.batch_size,
            Client::KafkaPython => state.batch.count() == 0 || size <= self.batch_size,
        }
    }

    fn append_fields(
        &self,
        py: Python<'_>,
        (offset, timestamp): (i64, i64),
        content: (Option<&[u8]>, Option<&[u8]>),
        headers: HeaderFields<'_>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let appended = self.state.with(py, |state| {
            if state.batch.count() == 0 {
                state.batch.start(0, timestamp);
                state.max_timestamp = timestamp;
            }
            let record = state.batch.fields((offset, timestamp), 0, content, headers);
            let size = record.size();
            if !self.has_room(state, offset, size) {
                return Ok(None);
            }
            representable(offset, state.size() + size)?;
            state.batch.append(&record);
            state.max_timestamp = state.max_timestamp.max(timestamp);
            (state.built, state.changed) = (None, true);
            Ok(Some(size))
        });
        let Some(size) = appended.map_err(|error: Error| refused(&error))? else { return Ok(None) };
        DefaultMetadata::make(py, offset, size, timestamp).map(Some)
    }
}

#[pymethods]
impl DefaultBuilder {
    #[doc = docstring!(compat_builders, _DefaultRecordBatchBuilder.producer_id)]
    #[getter]
    fn producer_id(&self, py: Python<'_>) -> i64 {
        self.state.with(py, |state| state.producer_id)
    }

    #[doc = docstring!(compat_builders, _DefaultRecordBatchBuilder.producer_epoch)]
    #[getter]
    fn producer_epoch(&self, py: Python<'_>) -> i16 {
        self.state.with(py, |state| state.producer_epoch)
    }

    #[doc = docstring!(compat_builders, _DefaultRecordBatchBuilder.base_sequence)]
    #[getter]
    fn base_sequence(&self, py: Python<'_>) -> i32 {
        self.state.with(py, |state| state.base_sequence)
    }

    #[doc = docstring!(compat_builders, _DefaultRecordBatchBuilder.append)]
    fn append(
        &self,
        offset: &Bound<'_, PyAny>,
        timestamp: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let place = (number(self.client, offset)?, timestamp_or_now(self.client, timestamp)?);
        let (key, value) = (nullable(self.client, "key", key)?, nullable(self.client, "value", value)?);
        let content = (key.as_deref(), value.as_deref());
        let pairs = header_pairs(self.client, headers)?;
        if pairs.is_empty() {
            return self.append_fields(offset.py(), place, content, HeaderFields::List(&[]));
        }
        let headers: Vec<_> =
            pairs.iter().map(|pair| header_content(self.client, pair)).collect::<PyResult<_>>()?;
        self.append_fields(offset.py(), place, content, HeaderFields::List(&borrowed(&headers)))
    }

    #[doc = docstring!(compat_builders, _DefaultRecordBatchBuilder.size)]
    fn size(&self, py: Python<'_>) -> usize {
        self.state
            .with(py, |state| state.built.as_ref().map_or_else(|| state.size(), |built| built.bind(py).len()))
    }

    #[doc = docstring!(compat_builders, _DefaultRecordBatchBuilder.build)]
    fn build(&self, py: Python<'_>) -> PyResult<Py<PyByteArray>> {
        let built = |state: &mut State| state.built.as_ref().map(|built| built.clone_ref(py));
        if let Some(built) = self.state.with(py, built) {
            return Ok(built);
        }
        self.client.check_codec(py, self.codec, 2)?;
        let codec = Compression::from_id(self.codec).map_err(|error| refused(&error))?;
        let stored = |state: &mut State| {
            state.changed = false;
            let header = state.header();
            let count = header.record_count;
            // Without records there is nothing to compress, and Kafka writes no codec.
            if codec != Compression::None && count != 0 {
                return Ok(None);
            }
            let batch = PyByteArray::new(py, state.batch.finish_stored(header)?).unbind();
            Ok(Some((count, batch)))
        };
        let (count, made) = match self.state.with(py, stored).map_err(|error: Error| refused(&error))? {
            Some(stored) => stored,
            None => {
                let finished = self.state.with_detached(py, |state| {
                    state.changed = false;
                    let (header, batch) = (state.header(), &state.batch);
                    let count = header.record_count;
                    let finish =
                        |compressor: &mut _, out: &mut _| batch.finish(header, compressor, out).map(drop);
                    Ok((count, compressed(codec, finish)?))
                });
                let (count, finished) = finished.map_err(|error: Error| refused(&error))?;
                (count, finished.into_bytearray(py))
            }
        };
        self.client.counts().built(count);
        Ok(self.state.with(py, |state| match state.changed {
            true => made,
            false => state.built.get_or_insert(made).clone_ref(py),
        }))
    }
}

/// Size of key, value and headers including their lengths.
fn content_size(
    client: Client,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    headers: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    let (key, value) = (nullable(client, "key", key)?, nullable(client, "value", value)?);
    let pairs = header_pairs(client, headers)?;
    let headers: Vec<_> = pairs.iter().map(|pair| header_content(client, pair)).collect::<PyResult<_>>()?;
    let headers = borrowed(&headers);
    let content = (key.as_deref(), value.as_deref());
    let record = RecordFields::new(0, (0, 0), content, HeaderFields::List(&headers));
    // Attributes and the two deltas take a byte each.
    Ok(record.body_size() - 3)
}

/// Upper bound for the size of a batch with this single record.
fn most_bytes(
    client: Client,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    headers: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    Ok(RECORD_BATCH_OVERHEAD + MAX_RECORD_OVERHEAD + content_size(client, key, value, headers)?)
}

/// Size of a record with these deltas and this much content.
fn record_size(offset_delta: i64, timestamp_delta: i64, content: usize) -> usize {
    let body = 1 + Varint::of(offset_delta).size() + Varint::of(timestamp_delta).size() + content;
    body + Varint::of(body as i64).size()
}

#[doc = docstring!(compat_builders, AiokafkaDefaultRecordBatchBuilder)]
#[pyclass(
    frozen,
    subclass,
    extends = DefaultBuilder,
    name = "DefaultRecordBatchBuilder",
    module = "magicbyte.compat.aiokafka"
)]
struct AiokafkaDefaultBuilder;

#[pymethods]
impl AiokafkaDefaultBuilder {
    #[new]
    fn new(
        magic: i8,
        compression_type: i8,
        is_transactional: i8,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        batch_size: i64,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (magic, codec, transactional) = (magic.into(), compression_type.into(), is_transactional != 0);
        let (id, epoch, sequence) = (producer_id, producer_epoch, base_sequence);
        let client = Client::Aiokafka;
        Ok(PyClassInitializer::from(DefaultBuilder::new(
            client,
            magic,
            codec,
            transactional,
            id,
            epoch,
            sequence,
            batch_size,
        )?)
        .add_subclass(Self))
    }

    #[doc = docstring!(compat_builders, AiokafkaDefaultRecordBatchBuilder.set_producer_state)]
    fn set_producer_state(slf: PyRef<'_, Self>, producer_id: i64, producer_epoch: i16, base_sequence: i32) {
        slf.as_super().set_producer(slf.py(), producer_id, producer_epoch, base_sequence);
    }

    #[doc = docstring!(compat_builders, AiokafkaDefaultRecordBatchBuilder.size_in_bytes)]
    fn size_in_bytes(
        slf: PyRef<'_, Self>,
        offset: &Bound<'_, PyAny>,
        timestamp: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let (offset, timestamp) = (integer(offset)?, integer(timestamp)?);
        let content = content_size(Client::Aiokafka, key, value, headers)?;
        let first = slf.as_super().state.with(slf.py(), |state| match state.batch.count() {
            0 => timestamp,
            _ => state.batch.header().base_timestamp,
        });
        Ok(record_size(offset, timestamp.wrapping_sub(first), content))
    }

    #[doc = docstring!(compat_builders, AiokafkaDefaultRecordBatchBuilder.size_of)]
    #[staticmethod]
    fn size_of(
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        content_size(Client::Aiokafka, key, value, headers)
    }

    #[doc = docstring!(compat_builders, AiokafkaDefaultRecordBatchBuilder.estimate_size_in_bytes)]
    #[staticmethod]
    fn estimate_size_in_bytes(
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        most_bytes(Client::Aiokafka, key, value, headers)
    }
}

#[doc = docstring!(compat_builders, KafkaPythonDefaultRecordBatchBuilder)]
#[pyclass(
    frozen,
    subclass,
    extends = DefaultBuilder,
    name = "DefaultRecordBatchBuilder",
    module = "magicbyte.compat.kafka_python"
)]
struct KafkaPythonDefaultBuilder;

#[pymethods]
impl KafkaPythonDefaultBuilder {
    #[classattr]
    const MAX_RECORD_OVERHEAD: usize = MAX_RECORD_OVERHEAD;

    #[new]
    fn new(
        magic: i64,
        compression_type: i64,
        is_transactional: &Bound<'_, PyAny>,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        batch_size: i64,
    ) -> PyResult<PyClassInitializer<Self>> {
        let transactional = is_transactional.is_truthy()?;
        let (codec, id, epoch, sequence) = (compression_type, producer_id, producer_epoch, base_sequence);
        let client = Client::KafkaPython;
        Ok(PyClassInitializer::from(DefaultBuilder::new(
            client,
            magic,
            codec,
            transactional,
            id,
            epoch,
            sequence,
            batch_size,
        )?)
        .add_subclass(Self))
    }

    #[doc = docstring!(compat_builders, KafkaPythonDefaultRecordBatchBuilder.set_producer_state)]
    fn set_producer_state(
        slf: PyRef<'_, Self>,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        is_transactional: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let transactional = is_transactional.is_truthy()?;
        let refused = |why| Err(PyAssertionError::new_err(why));
        match (producer_id, producer_epoch, base_sequence) {
            (-1, ..) if transactional => {
                return refused("Cannot write transactional messages without a valid producer ID");
            }
            (-1, ..) => {}
            (_, -1, _) => return refused("Invalid negative producer epoch"),
            (_, _, -1) => return refused("Invalid negative sequence number"),
            _ => {}
        }
        slf.as_super().set_producer(slf.py(), producer_id, producer_epoch, base_sequence);
        slf.as_super().state.with(slf.py(), |state| {
            state.transactional = transactional;
            (state.built, state.changed) = (None, true);
        });
        Ok(())
    }

    #[doc = docstring!(compat_builders, KafkaPythonDefaultRecordBatchBuilder._producer_id)]
    #[getter(_producer_id)]
    fn own_producer_id(slf: PyRef<'_, Self>) -> i64 {
        slf.as_super().producer_id(slf.py())
    }

    #[doc = docstring!(compat_builders, KafkaPythonDefaultRecordBatchBuilder._producer_epoch)]
    #[getter(_producer_epoch)]
    fn own_producer_epoch(slf: PyRef<'_, Self>) -> i16 {
        slf.as_super().producer_epoch(slf.py())
    }

    #[doc = docstring!(compat_builders, KafkaPythonDefaultRecordBatchBuilder._base_sequence)]
    #[getter(_base_sequence)]
    fn own_base_sequence(slf: PyRef<'_, Self>) -> i32 {
        slf.as_super().base_sequence(slf.py())
    }

    #[doc = docstring!(compat_builders, KafkaPythonDefaultRecordBatchBuilder.header_size_in_bytes)]
    #[staticmethod]
    fn header_size_in_bytes() -> usize {
        RECORD_BATCH_OVERHEAD
    }

    #[doc = docstring!(compat_builders, KafkaPythonDefaultRecordBatchBuilder.size_in_bytes)]
    #[staticmethod]
    fn size_in_bytes(
        offset_delta: i64,
        timestamp_delta: i64,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let content = content_size(Client::KafkaPython, key, value, headers)?;
        Ok(record_size(offset_delta, timestamp_delta, content))
    }

    #[doc = docstring!(compat_builders, KafkaPythonDefaultRecordBatchBuilder.size_of)]
    #[staticmethod]
    fn size_of(
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        content_size(Client::KafkaPython, key, value, headers)
    }

    #[doc = docstring!(compat_builders, KafkaPythonDefaultRecordBatchBuilder.estimate_size_in_bytes)]
    #[staticmethod]
    fn estimate_size_in_bytes(
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        most_bytes(Client::KafkaPython, key, value, headers)
    }

    fn __str__(slf: PyRef<'_, Self>) -> String {
        let builder = slf.as_super();
        let header = builder.state.with(slf.py(), |state| state.header());
        format!(
            "DefaultRecordBatchBuilder(magic=2, base_offset=0, last_offset_delta={}, first_timestamp={}, \
             max_timestamp={}, is_transactional={}, producer_id={}, producer_epoch={}, base_sequence={}, \
             records_count={})",
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            if header.attributes == 0 { "False" } else { "True" },
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
        )
    }
}

pub(super) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("_DefaultRecordBatchBuilder", py.get_type::<DefaultBuilder>())?;
    module.add("AiokafkaDefaultRecordBatchBuilder", py.get_type::<AiokafkaDefaultBuilder>())?;
    let of_kafka_python = py.get_type::<KafkaPythonDefaultBuilder>();
    set_constants(&of_kafka_python, CONSTANTS, STRUCTS)?;
    module.add("KafkaPythonDefaultRecordBatchBuilder", of_kafka_python)
}
