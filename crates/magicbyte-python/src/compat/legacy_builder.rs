//! The clients' `LegacyRecordBatchBuilder`: building messages of magic 0 and 1, with or without a wrapper.

use pyo3::exceptions::{PyAssertionError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use magicbyte::internals::{LOG_OVERHEAD, MessageSetBuilder, RECORD_OVERHEAD_V0, be, representable};
use magicbyte::{Compression, Error};

use crate::compat::builders::{LegacyMetadata, compressed, nullable, refused, supported, timestamp_or_now};
use crate::compat::client::{Client, number, set_constants};
use crate::compat::legacy_batch::{CONSTANTS, STRUCTS};
use crate::gil_cell::GilCell;
use crate::{docs::docstring, panics};

/// Magic 1 also has a timestamp.
const RECORD_OVERHEAD_V1: usize = RECORD_OVERHEAD_V0 + 8;

fn overhead(magic: i8) -> usize {
    if magic == 0 { RECORD_OVERHEAD_V0 } else { RECORD_OVERHEAD_V1 }
}

#[doc = docstring!(compat_builders, _LegacyRecordBatchBuilder)]
#[pyclass(frozen, subclass, name = "_LegacyRecordBatchBuilder", module = "magicbyte.compat._core")]
pub(super) struct LegacyBuilder {
    client: Client,
    magic: i8,
    codec: u8,
    batch_size: i64,
    state: GilCell<State>,
}

struct State {
    set: MessageSetBuilder,
    /// The finished set, until the builder changes. Dropping it runs no Python code.
    built: Option<Py<PyByteArray>>,
    /// True if the builder has changed since `build` began.
    changed: bool,
}

impl LegacyBuilder {
    fn new(client: Client, magic: i8, codec: u8, batch_size: i64) -> Self {
        panics::here();
        // A codec that legacy messages do not support is refused when the set is built.
        let inner = Compression::from_id(codec).unwrap_or(Compression::None);
        let mut set = MessageSetBuilder::new(magic, inner);
        set.start(0, None);
        Self {
            client,
            magic,
            codec,
            batch_size,
            state: GilCell::new(State { set, built: None, changed: false }),
        }
    }

    /// Size of a message including its offset and size fields.
    fn message_size(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        Ok(LOG_OVERHEAD + overhead(self.magic) + content_size(self.client, key, value)?)
    }
}

fn content_size(client: Client, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let (key, value) = (nullable(client, "key", key)?, nullable(client, "value", value)?);
    Ok(key.map_or(0, |key| key.len()) + value.map_or(0, |value| value.len()))
}

#[pymethods]
impl LegacyBuilder {
    #[classattr]
    const CODEC_MASK: u8 = 7;
    #[classattr]
    const CODEC_GZIP: u8 = 1;
    #[classattr]
    const CODEC_SNAPPY: u8 = 2;
    #[classattr]
    const CODEC_LZ4: u8 = 3;

    #[doc = docstring!(compat_builders, _LegacyRecordBatchBuilder.append)]
    #[pyo3(signature = (offset, timestamp, key, value, headers = None))]
    fn append(
        &self,
        offset: &Bound<'_, PyAny>,
        timestamp: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        if let Some(headers) = headers
            && self.client == Client::KafkaPython
            && headers.is_truthy()?
        {
            return Err(PyAssertionError::new_err("Headers not supported in v0/v1"));
        }
        let (py, offset) = (offset.py(), number(self.client, offset)?);
        let timestamp = if self.magic == 0 { -1 } else { timestamp_or_now(self.client, timestamp)? };
        let (key, value) = (nullable(self.client, "key", key)?, nullable(self.client, "value", value)?);
        let appended = self.state.with(py, |state| {
            let message = state.set.fields((offset, timestamp), (key.as_deref(), value.as_deref()));
            let size = message.size();
            if offset != 0 && (state.set.messages_size() + size) as i64 >= self.batch_size {
                return Ok(None);
            }
            representable(offset, state.set.messages_size() + size)?;
            let start = state.set.messages_size();
            state.set.append(offset, &message)?;
            (state.built, state.changed) = (None, true);
            Ok(Some((be!(&state.set.messages()[start..], LOG_OVERHEAD, u32), size)))
        });
        let Some((crc, size)) = appended.map_err(|error: Error| refused(&error))? else { return Ok(None) };
        LegacyMetadata::make(py, offset, crc, size, timestamp).map(Some)
    }

    #[doc = docstring!(compat_builders, _LegacyRecordBatchBuilder.size)]
    fn size(&self, py: Python<'_>) -> usize {
        self.state.with(py, |state| {
            state.built.as_ref().map_or_else(|| state.set.messages_size(), |built| built.bind(py).len())
        })
    }

    #[doc = docstring!(compat_builders, _LegacyRecordBatchBuilder.build)]
    fn build(&self, py: Python<'_>) -> PyResult<Py<PyByteArray>> {
        let built = |state: &mut State| state.built.as_ref().map(|built| built.clone_ref(py));
        if let Some(built) = self.state.with(py, built) {
            return Ok(built);
        }
        self.client.check_codec(py, self.codec, self.magic)?;
        let codec = Compression::from_id(self.codec).map_err(|error| refused(&error))?;
        let stored = |state: &mut State| {
            state.changed = false;
            let count = state.set.count();
            let is_stored = codec == Compression::None || count == 0;
            (count, is_stored.then(|| PyByteArray::new(py, state.set.messages()).unbind()))
        };
        let (count, made) = match self.state.with(py, stored) {
            (count, Some(stored)) => (count, stored),
            (_, None) => {
                let finished = self.state.with_detached(py, |state| {
                    state.changed = false;
                    let set = &state.set;
                    let finished =
                        compressed(codec, |compressor, out| set.finish(compressor, out).map(drop))?;
                    Ok((set.count(), finished))
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

#[doc = docstring!(compat_builders, AiokafkaLegacyRecordBatchBuilder)]
#[pyclass(
    frozen,
    subclass,
    extends = LegacyBuilder,
    name = "LegacyRecordBatchBuilder",
    module = "magicbyte.compat.aiokafka"
)]
struct AiokafkaLegacyBuilder;

#[pymethods]
impl AiokafkaLegacyBuilder {
    #[new]
    fn new(magic: i8, compression_type: i8, batch_size: i64) -> PyResult<PyClassInitializer<Self>> {
        if !matches!(magic, 0 | 1) {
            return Err(PyAssertionError::new_err(()));
        }
        Ok(PyClassInitializer::from(LegacyBuilder::new(
            Client::Aiokafka,
            magic,
            compression_type as u8,
            batch_size,
        ))
        .add_subclass(Self))
    }

    #[doc = docstring!(compat_builders, AiokafkaLegacyRecordBatchBuilder.size_in_bytes)]
    fn size_in_bytes(
        slf: PyRef<'_, Self>,
        offset: &Bound<'_, PyAny>,
        timestamp: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let _ = (offset, timestamp);
        slf.as_super().message_size(key, value)
    }

    #[doc = docstring!(compat_builders, AiokafkaLegacyRecordBatchBuilder.record_overhead)]
    #[staticmethod]
    fn record_overhead(magic: i8) -> usize {
        overhead(magic)
    }
}

#[doc = docstring!(compat_builders, KafkaPythonLegacyRecordBatchBuilder)]
#[pyclass(
    frozen,
    subclass,
    extends = LegacyBuilder,
    name = "LegacyRecordBatchBuilder",
    module = "magicbyte.compat.kafka_python"
)]
struct KafkaPythonLegacyBuilder;

#[pymethods]
impl KafkaPythonLegacyBuilder {
    #[new]
    fn new(magic: i64, compression_type: i64, batch_size: i64) -> PyResult<PyClassInitializer<Self>> {
        let codec = u8::try_from(compression_type)
            .map_err(|_| PyOverflowError::new_err("compression_type is not a codec"))?;
        Ok(PyClassInitializer::from(LegacyBuilder::new(
            Client::KafkaPython,
            supported(magic)?,
            codec,
            batch_size,
        ))
        .add_subclass(Self))
    }

    #[doc = docstring!(compat_builders, KafkaPythonLegacyRecordBatchBuilder.size_in_bytes)]
    #[pyo3(signature = (offset, timestamp, key, value, headers = None))]
    fn size_in_bytes(
        slf: PyRef<'_, Self>,
        offset: &Bound<'_, PyAny>,
        timestamp: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let _ = (offset, timestamp);
        if headers.map(|headers| headers.is_truthy()).transpose()?.unwrap_or(false) {
            return Err(PyAssertionError::new_err("Headers not supported in v0/v1"));
        }
        slf.as_super().message_size(key, value)
    }

    #[doc = docstring!(compat_builders, KafkaPythonLegacyRecordBatchBuilder.record_size)]
    #[staticmethod]
    fn record_size(magic: i64, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        Ok(overhead(supported(magic)?) + content_size(Client::KafkaPython, key, value)?)
    }

    #[doc = docstring!(compat_builders, KafkaPythonLegacyRecordBatchBuilder.record_overhead)]
    #[staticmethod]
    fn record_overhead(magic: i64) -> PyResult<usize> {
        Ok(overhead(supported(magic)?))
    }

    #[doc = docstring!(compat_builders, KafkaPythonLegacyRecordBatchBuilder.estimate_size_in_bytes)]
    #[staticmethod]
    fn estimate_size_in_bytes(
        magic: i64,
        compression_type: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let overhead = overhead(supported(magic)?);
        let wrapper = if compression_type.is_truthy()? { overhead } else { 0 };
        Ok(LOG_OVERHEAD + wrapper + overhead + content_size(Client::KafkaPython, key, value)?)
    }
}

pub(super) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("_LegacyRecordBatchBuilder", py.get_type::<LegacyBuilder>())?;
    module.add("AiokafkaLegacyRecordBatchBuilder", py.get_type::<AiokafkaLegacyBuilder>())?;
    let of_kafka_python = py.get_type::<KafkaPythonLegacyBuilder>();
    set_constants(&of_kafka_python, CONSTANTS, STRUCTS)?;
    module.add("KafkaPythonLegacyRecordBatchBuilder", of_kafka_python)
}
