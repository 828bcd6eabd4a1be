//! The clients' `LegacyRecordBatch`: reading an outermost message of magic 0 or 1.

use std::sync::atomic::{AtomicBool, Ordering};

use ::bytes::Bytes;
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;

use magicbyte::internals::{LOG_OVERHEAD, RECORD_OVERHEAD_V0, be};
use magicbyte::{Batch, LegacyBatch};

use crate::compat::client::{Client, set_constants};
use crate::compat::memory_records;
use crate::compat::records::{AIOKAFKA_LEGACY_RECORD, KAFKA_PYTHON_LEGACY_RECORD};
use crate::objects::record_object;
use crate::{docs::docstring, panics};

impl Client {
    pub(super) fn legacy_batch(self, py: Python<'_>, data: Bytes) -> PyResult<Py<PyAny>> {
        let base = PyClassInitializer::from(LegacyMessage { client: self, data, check_crcs: false.into() });
        Ok(match self {
            Self::Aiokafka => Py::new(py, base.add_subclass(AiokafkaLegacyBatch))?.into_any(),
            Self::KafkaPython => Py::new(py, base.add_subclass(KafkaPythonLegacyBatch))?.into_any(),
        })
    }
}

#[doc = docstring!(compat_batches, _LegacyRecordBatch)]
#[pyclass(frozen, subclass, name = "_LegacyRecordBatch", module = "magicbyte.compat._core")]
pub(super) struct LegacyMessage {
    client: Client,
    /// A whole frame.
    data: Bytes,
    /// True if the outer CRC was checked. The inner CRCs are then checked, too, as in Kafka's consumer.
    check_crcs: AtomicBool,
}

impl LegacyMessage {
    fn new(py: Python<'_>, client: Client, mut data: Bytes, magic: i64) -> PyResult<Self> {
        if data.len() >= LOG_OVERHEAD + RECORD_OVERHEAD_V0 {
            let size = i64::from(be!(&data, 8, i32)) + LOG_OVERHEAD as i64;
            match client {
                // Only the first of several messages is read.
                Client::Aiokafka => data.truncate(usize::try_from(size).unwrap_or(usize::MAX)),
                Client::KafkaPython if size == data.len() as i64 => {}
                Client::KafkaPython => return Err(PyAssertionError::new_err(())),
            }
        }
        match Batch::from_frame(&data, 0) {
            Ok(Batch::Legacy(message)) if i64::from(message.magic()) == magic => {
                Ok(Self { client, data, check_crcs: AtomicBool::new(false) })
            }
            Ok(batch) => Err(PyAssertionError::new_err(format!(
                "expected a message of magic {magic}, found magic {}",
                batch.magic()
            ))),
            Err(error) => Err(client.corrupt(py, &error)),
        }
    }

    fn message(&self) -> LegacyBatch<'_> {
        panics::here();
        LegacyBatch::from_frame(&self.data, 0)
    }
}

#[pymethods]
impl LegacyMessage {
    #[classattr]
    const RECORD_OVERHEAD_V0: u8 = 14;
    #[classattr]
    const RECORD_OVERHEAD_V1: u8 = 22;
    #[classattr]
    const CODEC_MASK: u8 = 7;
    #[classattr]
    const CODEC_GZIP: u8 = 1;
    #[classattr]
    const CODEC_SNAPPY: u8 = 2;
    #[classattr]
    const CODEC_LZ4: u8 = 3;
    #[classattr]
    #[expect(non_upper_case_globals, reason = "the name in the originals")]
    const is_control_batch: bool = false;
    #[classattr]
    #[expect(non_upper_case_globals, reason = "the name in the originals")]
    const is_transactional: bool = false;
    #[classattr]
    #[expect(non_upper_case_globals, reason = "the name in the originals")]
    const producer_id: Option<i64> = None;

    #[doc = docstring!(compat_batches, _LegacyRecordBatch.next_offset)]
    #[getter]
    fn next_offset(&self) -> i64 {
        self.message().last_offset().wrapping_add(1)
    }

    #[doc = docstring!(compat_batches, _LegacyRecordBatch.validate_crc)]
    fn validate_crc(&self) -> bool {
        self.check_crcs.store(true, Ordering::Relaxed);
        self.message().verify().is_ok()
    }

    /// A new iterator over the records.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let message = self.message();
        self.client.check_codec(py, message.attributes() & 7, message.magic())?;
        let (kind, has_own_check) = match self.client {
            Client::Aiokafka => (&AIOKAFKA_LEGACY_RECORD, false),
            Client::KafkaPython => (&KAFKA_PYTHON_LEGACY_RECORD, true),
        };
        let check_inner = self.check_crcs.load(Ordering::Relaxed) && !has_own_check;
        let indexed = self.client.index(py, &self.data, check_inner)?;
        record_object::iterate(py, Py::new(py, indexed)?, kind)
    }
}

#[doc = docstring!(compat_batches, AiokafkaLegacyRecordBatch)]
#[pyclass(frozen, subclass, extends = LegacyMessage, name = "LegacyRecordBatch", module = "magicbyte.compat.aiokafka")]
struct AiokafkaLegacyBatch;

#[pymethods]
impl AiokafkaLegacyBatch {
    #[new]
    fn new(buffer: &Bound<'_, PyAny>, magic: i64) -> PyResult<PyClassInitializer<Self>> {
        Ok(PyClassInitializer::from(LegacyMessage::new(
            buffer.py(),
            Client::Aiokafka,
            memory_records::buffer("buffer", buffer)?,
            magic,
        )?)
        .add_subclass(Self))
    }
}

/// The further constants of kafka-python's `LegacyRecordBase`.
pub(super) const CONSTANTS: &[(&str, i64)] = &[
    ("CODEC_NONE", 0),
    ("TIMESTAMP_TYPE_MASK", 8),
    ("LOG_OVERHEAD", 12),
    ("CRC_OFFSET", 12),
    ("MAGIC_OFFSET", 16),
    ("RECORD_OVERHEAD_V0", 14),
    ("RECORD_OVERHEAD_V1", 22),
    ("KEY_OFFSET_V0", 18),
    ("KEY_OFFSET_V1", 26),
    ("KEY_LENGTH", 4),
    ("VALUE_LENGTH", 4),
    ("LOG_APPEND_TIME", 1),
    ("CREATE_TIME", 0),
    ("NO_TIMESTAMP", -1),
];
pub(super) const STRUCTS: &[(&str, &str)] =
    &[("HEADER_STRUCT_V0", ">qiIbb"), ("HEADER_STRUCT_V1", ">qiIbbq")];

#[doc = docstring!(compat_batches, KafkaPythonLegacyRecordBatch)]
#[pyclass(frozen, subclass, extends = LegacyMessage, name = "LegacyRecordBatch", module = "magicbyte.compat.kafka_python")]
struct KafkaPythonLegacyBatch;

#[pymethods]
impl KafkaPythonLegacyBatch {
    #[new]
    fn new(buffer: &Bound<'_, PyAny>, magic: i64) -> PyResult<PyClassInitializer<Self>> {
        Ok(PyClassInitializer::from(LegacyMessage::new(
            buffer.py(),
            Client::KafkaPython,
            memory_records::buffer("buffer", buffer)?,
            magic,
        )?)
        .add_subclass(Self))
    }

    #[doc = docstring!(compat_batches, KafkaPythonLegacyRecordBatch.base_offset)]
    #[getter]
    fn base_offset(slf: PyRef<'_, Self>) -> i64 {
        slf.as_super().message().last_offset()
    }

    #[doc = docstring!(compat_batches, KafkaPythonLegacyRecordBatch.size_in_bytes)]
    #[getter]
    fn size_in_bytes(slf: PyRef<'_, Self>) -> usize {
        slf.as_super().data.len()
    }

    #[doc = docstring!(compat_batches, KafkaPythonLegacyRecordBatch.timestamp_type)]
    #[getter]
    fn timestamp_type(slf: PyRef<'_, Self>) -> Option<i8> {
        let kind = slf.as_super().message().timestamp_type() as i8;
        (kind >= 0).then_some(kind)
    }

    #[doc = docstring!(compat_batches, KafkaPythonLegacyRecordBatch.compression_type)]
    #[getter]
    fn compression_type(slf: PyRef<'_, Self>) -> u8 {
        slf.as_super().message().attributes() & 7
    }

    #[doc = docstring!(compat_batches, KafkaPythonLegacyRecordBatch.magic)]
    #[getter]
    fn magic(slf: PyRef<'_, Self>) -> i8 {
        slf.as_super().message().magic()
    }
}

pub(super) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("_LegacyRecordBatch", py.get_type::<LegacyMessage>())?;
    module.add("AiokafkaLegacyRecordBatch", py.get_type::<AiokafkaLegacyBatch>())?;
    let of_kafka_python = py.get_type::<KafkaPythonLegacyBatch>();
    set_constants(&of_kafka_python, CONSTANTS, STRUCTS)?;
    module.add("KafkaPythonLegacyRecordBatch", of_kafka_python)
}
