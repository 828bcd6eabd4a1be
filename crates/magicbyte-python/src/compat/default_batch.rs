//! The clients' `DefaultRecordBatch`: reading a batch of magic 2.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ::bytes::Bytes;
use pyo3::exceptions::{PyAssertionError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use magicbyte::internals::batch_header::CONTROL;
use magicbyte::internals::be;
use magicbyte::{Batch, Error, ErrorKind, RECORD_BATCH_OVERHEAD, RecordBatch};

use crate::compat::client::{Client, set_constants};
use crate::compat::memory_records;
use crate::compat::records::{AIOKAFKA_RECORD, KAFKA_PYTHON_CONTROL_RECORD, KAFKA_PYTHON_RECORD};
use crate::indexed_batch::IndexedBatch;
use crate::objects::kind::Kind;
use crate::objects::record_object;
use crate::{docs::docstring, panics};

impl Client {
    pub(super) fn default_batch(self, py: Python<'_>, data: Bytes) -> PyResult<Py<PyAny>> {
        let base = PyClassInitializer::from(DefaultBatch::new(py, self, data)?);
        Ok(match self {
            Self::Aiokafka => Py::new(py, base.add_subclass(AiokafkaDefaultBatch))?.into_any(),
            Self::KafkaPython => Py::new(py, base.add_subclass(KafkaPythonDefaultBatch))?.into_any(),
        })
    }
}

#[doc = docstring!(compat_batches, _DefaultRecordBatch)]
#[pyclass(frozen, subclass, name = "_DefaultRecordBatch", module = "magicbyte.compat._core")]
pub(super) struct DefaultBatch {
    client: Client,
    /// At least a header.
    data: Bytes,
    /// The type of its records.
    kind: &'static Kind,
    indexed: PyOnceLock<Py<IndexedBatch>>,
    /// The index of the next record. Written with the GIL held.
    next: AtomicUsize,
    iterated: AtomicBool,
}

impl DefaultBatch {
    fn new(py: Python<'_>, client: Client, data: Bytes) -> PyResult<Self> {
        if data.len() < RECORD_BATCH_OVERHEAD {
            let (found, min) = (data.len() as i64, RECORD_BATCH_OVERHEAD as i64);
            let short = ErrorKind::InvalidSize { found, min, max: i32::MAX.into() };
            return Err(client.corrupt(py, &short.into()));
        }
        let kind = match client {
            Client::Aiokafka => &AIOKAFKA_RECORD,
            Client::KafkaPython if data[22] & CONTROL != 0 => &KAFKA_PYTHON_CONTROL_RECORD,
            Client::KafkaPython => &KAFKA_PYTHON_RECORD,
        };
        let (indexed, next, iterated) = (PyOnceLock::new(), AtomicUsize::new(0), AtomicBool::new(false));
        Ok(Self { client, data, kind, indexed, next, iterated })
    }

    fn header(&self, py: Python<'_>) -> PyResult<RecordBatch<'_>> {
        panics::here();
        RecordBatch::from_frame(&self.data, 0).map_err(|error| self.client.corrupt(py, &error))
    }

    fn index(&self, py: Python<'_>) -> PyResult<Py<IndexedBatch>> {
        let header = self.header(py)?;
        if self.data[16] != 2 {
            let magic = Error::from(ErrorKind::UnsupportedMagic(self.data[16] as i8));
            return Err(self.client.corrupt(py, &magic));
        }
        if header.record_count() != 0 {
            self.client.check_codec(py, header.attributes() as u8 & 7, 2)?;
        }
        Py::new(py, self.client.index(py, &self.data, false)?)
    }

    #[inline]
    fn indexed<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, IndexedBatch>> {
        panics::here();
        Ok(self.indexed.get_or_try_init(py, || self.index(py))?.bind(py))
    }
}

#[pymethods]
impl DefaultBatch {
    #[classattr]
    const CODEC_MASK: u8 = 7;
    #[classattr]
    const CODEC_NONE: u8 = 0;
    #[classattr]
    const CODEC_GZIP: u8 = 1;
    #[classattr]
    const CODEC_SNAPPY: u8 = 2;
    #[classattr]
    const CODEC_LZ4: u8 = 3;
    #[classattr]
    const CODEC_ZSTD: u8 = 4;

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.base_offset)]
    #[getter]
    fn base_offset(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.header(py)?.base_offset())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.magic)]
    #[getter]
    fn magic(&self) -> i8 {
        self.data[16] as i8
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.crc)]
    #[getter]
    fn crc(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.header(py)?.crc())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.attributes)]
    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<i16> {
        Ok(self.header(py)?.attributes())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.compression_type)]
    #[getter]
    fn compression_type(&self, py: Python<'_>) -> PyResult<i16> {
        Ok(self.header(py)?.attributes() & 7)
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.timestamp_type)]
    #[getter]
    fn timestamp_type(&self, py: Python<'_>) -> PyResult<i8> {
        Ok(self.header(py)?.timestamp_type() as i8)
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.is_transactional)]
    #[getter]
    fn is_transactional(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.header(py)?.is_transactional())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.is_control_batch)]
    #[getter]
    fn is_control_batch(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.header(py)?.is_control())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.last_offset_delta)]
    #[getter]
    fn last_offset_delta(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.header(py)?.last_offset_delta())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.first_timestamp)]
    #[getter]
    fn first_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.header(py)?.base_timestamp())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.max_timestamp)]
    #[getter]
    fn max_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.header(py)?.max_timestamp())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.producer_id)]
    #[getter]
    fn producer_id(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.header(py)?.producer_id())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.producer_epoch)]
    #[getter]
    fn producer_epoch(&self, py: Python<'_>) -> PyResult<i16> {
        Ok(self.header(py)?.producer_epoch())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.base_sequence)]
    #[getter]
    fn base_sequence(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.header(py)?.base_sequence())
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.next_offset)]
    #[getter]
    fn next_offset(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.header(py)?.last_offset().wrapping_add(1))
    }

    #[doc = docstring!(compat_batches, _DefaultRecordBatch.validate_crc)]
    fn validate_crc(&self, py: Python<'_>) -> PyResult<bool> {
        if self.iterated.load(Ordering::Relaxed) {
            return Err(PyAssertionError::new_err("Validate should be called before iteration"));
        }
        panics::here();
        Ok(py.detach(|| Batch::from_frame(&self.data, 0).is_ok_and(|batch| batch.verify().is_ok())))
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let batch = slf.get();
        let indexed = batch.indexed(slf.py())?.get();
        // kafka-python's continues, and ends only once.
        if batch.client == Client::Aiokafka && batch.next.load(Ordering::Relaxed) > 0 {
            let ended = batch.next.load(Ordering::Relaxed) == indexed.entries.len();
            if !ended || indexed.failure.is_some() {
                return Err(PyAssertionError::new_err(()));
            }
            batch.next.store(0, Ordering::Relaxed);
        }
        batch.iterated.store(true, Ordering::Relaxed);
        Ok(slf)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let indexed = self.indexed(py)?;
        let next = self.next.load(Ordering::Relaxed);
        if let Some(record) = record_object::record_at(indexed, next, self.kind)? {
            self.next.store(next + 1, Ordering::Relaxed);
            return Ok(Some(record));
        }
        indexed.get().failure.as_ref().map_or(Ok(None), |failure| Err(failure(py)))
    }
}

#[doc = docstring!(compat_batches, AiokafkaDefaultRecordBatch)]
#[pyclass(frozen, subclass, extends = DefaultBatch, name = "DefaultRecordBatch", module = "magicbyte.compat.aiokafka")]
struct AiokafkaDefaultBatch;

#[pymethods]
impl AiokafkaDefaultBatch {
    #[new]
    fn new(buffer: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        Ok(PyClassInitializer::from(DefaultBatch::new(
            buffer.py(),
            Client::Aiokafka,
            memory_records::buffer("buffer", buffer)?,
        )?)
        .add_subclass(Self))
    }
}

/// The constants of kafka-python's `DefaultRecordBase`.
pub(super) const CONSTANTS: &[(&str, i64)] = &[
    ("CODEC_MASK", 7),
    ("CODEC_NONE", 0),
    ("CODEC_GZIP", 1),
    ("CODEC_SNAPPY", 2),
    ("CODEC_LZ4", 3),
    ("CODEC_ZSTD", 4),
    ("TIMESTAMP_TYPE_MASK", 8),
    ("TRANSACTIONAL_MASK", 16),
    ("CONTROL_MASK", 32),
    ("ATTRIBUTES_OFFSET", 21),
    ("CRC_OFFSET", 17),
    ("AFTER_LEN_OFFSET", 12),
    ("LOG_APPEND_TIME", 1),
    ("CREATE_TIME", 0),
    ("NO_PRODUCER_ID", -1),
    ("NO_SEQUENCE", -1),
    ("MAX_INT", i32::MAX as i64),
];
pub(super) const STRUCTS: &[(&str, &str)] = &[("HEADER_STRUCT", ">qiibIhiqqqhii")];

#[doc = docstring!(compat_batches, KafkaPythonDefaultRecordBatch)]
#[pyclass(frozen, subclass, extends = DefaultBatch, name = "DefaultRecordBatch", module = "magicbyte.compat.kafka_python")]
struct KafkaPythonDefaultBatch;

#[pymethods]
impl KafkaPythonDefaultBatch {
    #[new]
    fn new(buffer: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        Ok(PyClassInitializer::from(DefaultBatch::new(
            buffer.py(),
            Client::KafkaPython,
            memory_records::buffer("buffer", buffer)?,
        )?)
        .add_subclass(Self))
    }

    #[doc = docstring!(compat_batches, KafkaPythonDefaultRecordBatch.next)]
    fn next(slf: PyRef<'_, Self>) -> PyResult<Py<PyAny>> {
        slf.as_super().__next__(slf.py())?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    #[doc = docstring!(compat_batches, KafkaPythonDefaultRecordBatch.size_in_bytes)]
    #[getter]
    fn size_in_bytes(slf: PyRef<'_, Self>) -> i64 {
        i64::from(be!(&slf.as_super().data, 8, i32)) + 12
    }

    #[doc = docstring!(compat_batches, KafkaPythonDefaultRecordBatch.leader_epoch)]
    #[getter]
    fn leader_epoch(slf: PyRef<'_, Self>) -> PyResult<i32> {
        Ok(slf.as_super().header(slf.py())?.partition_leader_epoch())
    }

    #[doc = docstring!(compat_batches, KafkaPythonDefaultRecordBatch.last_offset)]
    #[getter]
    fn last_offset(slf: PyRef<'_, Self>) -> PyResult<i64> {
        Ok(slf.as_super().header(slf.py())?.last_offset())
    }

    #[doc = docstring!(compat_batches, KafkaPythonDefaultRecordBatch.has_producer_id)]
    fn has_producer_id(slf: PyRef<'_, Self>) -> PyResult<bool> {
        Ok(slf.as_super().header(slf.py())?.producer_id() > -1)
    }

    #[doc = docstring!(compat_batches, KafkaPythonDefaultRecordBatch.has_sequence)]
    #[getter]
    fn has_sequence(slf: PyRef<'_, Self>) -> PyResult<bool> {
        Ok(slf.as_super().header(slf.py())?.base_sequence() != -1)
    }

    #[doc = docstring!(compat_batches, KafkaPythonDefaultRecordBatch.last_sequence)]
    #[getter]
    fn last_sequence(slf: PyRef<'_, Self>) -> PyResult<i32> {
        Ok(slf.as_super().header(slf.py())?.last_sequence())
    }

    #[doc = docstring!(compat_batches, KafkaPythonDefaultRecordBatch.records_count)]
    #[getter]
    fn records_count(slf: PyRef<'_, Self>) -> PyResult<i32> {
        Ok(slf.as_super().header(slf.py())?.record_count())
    }

    fn __str__(slf: PyRef<'_, Self>) -> PyResult<String> {
        let batch = slf.as_super().header(slf.py())?;
        Ok(format!(
            "DefaultRecordBatch(magic={}, base_offset={}, last_offset_delta={}, first_timestamp={}, \
             max_timestamp={}, is_transactional={}, producer_id={}, producer_epoch={}, base_sequence={}, \
             records_count={})",
            slf.as_super().magic(),
            batch.base_offset(),
            batch.last_offset_delta(),
            batch.base_timestamp(),
            batch.max_timestamp(),
            if batch.is_transactional() { "True" } else { "False" },
            batch.producer_id(),
            batch.producer_epoch(),
            batch.base_sequence(),
            batch.record_count(),
        ))
    }
}

pub(super) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("_DefaultRecordBatch", py.get_type::<DefaultBatch>())?;
    module.add("AiokafkaDefaultRecordBatch", py.get_type::<AiokafkaDefaultBatch>())?;
    let of_kafka_python = py.get_type::<KafkaPythonDefaultBatch>();
    set_constants(&of_kafka_python, CONSTANTS, STRUCTS)?;
    module.add("KafkaPythonDefaultRecordBatch", of_kafka_python)
}
