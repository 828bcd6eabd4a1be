//! The clients' record types: the objects of `objects/dropins.rs` with the originals' names and attributes.

use std::ffi::CStr;

use ::bytes::Bytes;
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use magicbyte::internals::legacy_message::at;
use magicbyte::internals::{
    BatchBuilder, HeaderFields, LOG_OVERHEAD, MessageFields, RECORD_OVERHEAD_V0, batch_header, be, crc32,
    legacy_message as message,
};
use magicbyte::{Batch, Error, ErrorKind, Header, TimestampType};

use crate::builder::{borrowed, optional};
use crate::compat::builders::{any_pairs, header_content, supported};
use crate::compat::client::{Client, bind, integer, not_bytes_like, with_decompressor};
use crate::docs::{docstring, signed};
use crate::indexed_batch::{Entry, IndexedBatch};
use crate::locked::detached;
use crate::objects::dropins::{Field, Get, Getter, RecordType};
use crate::objects::kind::Kind;
use crate::objects::{dropins, record_object};
use crate::record::header_text;

pub(super) static AIOKAFKA_RECORD: Kind = Kind::of_records();
pub(super) static AIOKAFKA_LEGACY_RECORD: Kind = Kind::of_records();
pub(super) static KAFKA_PYTHON_RECORD: Kind = Kind::of_records();
pub(super) static KAFKA_PYTHON_CONTROL_RECORD: Kind = Kind::of_records();
pub(super) static KAFKA_PYTHON_LEGACY_RECORD: Kind = Kind::of_records();

/// An attribute with its docstring.
macro_rules! field {
    ($class:tt.$name:tt, $get:expr) => {
        Field::new(c_str!(stringify!($name)), $get, c_str!(docstring!(compat_records, $class.$name)))
    };
}

const OFFSET: Field = field!(AiokafkaDefaultRecord.offset, Get::Offset);
const TIMESTAMP: Field = field!(AiokafkaDefaultRecord.timestamp, Get::Timestamp);
const TIMESTAMP_TYPE: Field = field!(AiokafkaDefaultRecord.timestamp_type, Get::By(timestamp_type));
const KEY: Field = field!(AiokafkaDefaultRecord.key, Get::KeyBytes);
const VALUE: Field = field!(AiokafkaDefaultRecord.value, Get::ValueBytes);
const HEADERS: Field = field!(AiokafkaDefaultRecord.headers, Get::By(headers));
const NO_HEADERS: Field = field!(AiokafkaLegacyRecord.headers, Get::By(headers));
const NO_CHECKSUM: Field = field!(AiokafkaDefaultRecord.checksum, Get::By(none));
const CHECKSUM: Field = field!(AiokafkaLegacyRecord.checksum, Get::By(checksum));
const BODY_SIZE: Field = field!(KafkaPythonDefaultRecord.size_in_bytes, Get::By(body_size));

/// aiokafka's `DefaultRecord`.
struct AiokafkaRecord;

impl RecordType for AiokafkaRecord {
    const NAME: &'static CStr = c"magicbyte.compat.aiokafka.DefaultRecord";
    const DOC: &'static CStr = signed!(
        "DefaultRecord(offset, timestamp, timestamp_type, key, value, headers)\n--\n\n",
        docstring!(compat_records, AiokafkaDefaultRecord)
    );
    const FIELDS: &'static [Field] = &[OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS, NO_CHECKSUM];
    const NEW: dropins::Constructor = new_default_record;

    fn kind() -> &'static Kind {
        &AIOKAFKA_RECORD
    }

    fn repr(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
        default_repr(batch, entry)
    }
}

/// aiokafka's `LegacyRecord`.
struct AiokafkaLegacyRecord;

impl RecordType for AiokafkaLegacyRecord {
    const NAME: &'static CStr = c"magicbyte.compat.aiokafka.LegacyRecord";
    const DOC: &'static CStr = signed!(
        "LegacyRecord(offset, timestamp, attributes, key, value, crc)\n--\n\n",
        docstring!(compat_records, AiokafkaLegacyRecord)
    );
    const FIELDS: &'static [Field] = &[
        OFFSET,
        field!(AiokafkaLegacyRecord.timestamp, Get::By(timestamp_unless_none)),
        field!(AiokafkaLegacyRecord.timestamp_type, Get::By(type_unless_no_timestamp)),
        KEY,
        VALUE,
        NO_HEADERS,
        CHECKSUM,
    ];
    const NEW: dropins::Constructor = new_legacy_record;

    fn kind() -> &'static Kind {
        &AIOKAFKA_LEGACY_RECORD
    }

    fn repr(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
        let parts = [
            ("LegacyRecord(offset=", int(batch, entry.offset)?),
            (", timestamp=", int(batch, entry.timestamp)?),
            (", timestamp_type=", type_unless_no_timestamp(batch, entry)?),
            (", key=", content(batch, batch.get().key(entry))),
            (", value=", content(batch, batch.get().value(entry))),
            (", crc=", checksum(batch, entry)?),
        ];
        text(batch.py(), &parts)
    }
}

/// kafka-python's `DefaultRecord`.
struct KafkaPythonRecord;

impl RecordType for KafkaPythonRecord {
    const NAME: &'static CStr = c"magicbyte.compat.kafka_python.DefaultRecord";
    const DOC: &'static CStr = signed!(
        "DefaultRecord(size_in_bytes, offset, timestamp, timestamp_type, key, value, headers)\n--\n\n",
        docstring!(compat_records, KafkaPythonDefaultRecord)
    );
    const NEW: dropins::Constructor =
        |arguments, keywords| new_of_kafka_python("DefaultRecord", &KAFKA_PYTHON_RECORD, arguments, keywords);
    const FIELDS: &'static [Field] =
        &[OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS, NO_CHECKSUM, BODY_SIZE];
    const METHOD: Option<(&'static CStr, Getter, &'static CStr)> = Some((
        c"validate_crc",
        always_valid,
        signed!(
            "validate_crc($self)\n--\n\n",
            docstring!(compat_records, KafkaPythonDefaultRecord.validate_crc)
        ),
    ));

    fn kind() -> &'static Kind {
        &KAFKA_PYTHON_RECORD
    }

    fn repr(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
        default_repr(batch, entry)
    }
}

/// kafka-python's `ControlRecord`.
struct KafkaPythonControlRecord;

impl RecordType for KafkaPythonControlRecord {
    const NAME: &'static CStr = c"magicbyte.compat.kafka_python.ControlRecord";
    const DOC: &'static CStr = signed!(
        "ControlRecord(size_in_bytes, offset, timestamp, timestamp_type, key, value, headers)\n--\n\n",
        docstring!(compat_records, KafkaPythonControlRecord)
    );
    const NEW: dropins::Constructor = |arguments, keywords| {
        new_of_kafka_python("ControlRecord", &KAFKA_PYTHON_CONTROL_RECORD, arguments, keywords)
    };
    const FIELDS: &'static [Field] = &[
        OFFSET,
        TIMESTAMP,
        TIMESTAMP_TYPE,
        KEY,
        VALUE,
        HEADERS,
        NO_CHECKSUM,
        BODY_SIZE,
        field!(KafkaPythonControlRecord.version, Get::By(version)),
        field!(KafkaPythonControlRecord.type, Get::By(control_type)),
        field!(KafkaPythonControlRecord.abort, Get::By(is_abort)),
        field!(KafkaPythonControlRecord.commit, Get::By(is_commit)),
    ];
    const METHOD: Option<(&'static CStr, Getter, &'static CStr)> = Some((
        c"validate_crc",
        always_valid,
        signed!(
            "validate_crc($self)\n--\n\n",
            docstring!(compat_records, KafkaPythonControlRecord.validate_crc)
        ),
    ));

    fn kind() -> &'static Kind {
        &KAFKA_PYTHON_CONTROL_RECORD
    }

    fn repr(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
        let (version, kind) = control(batch, entry)?;
        let marker = if kind == 0 { "abort" } else { "commit" };
        let text = format!(
            "ControlRecord(offset={}, timestamp={}, timestamp_type={}, version={version}, type={kind} <{marker}>)",
            entry.offset, entry.timestamp, entry.timestamp_type as i8,
        );
        Ok(PyString::new(batch.py(), &text).into_any().unbind())
    }
}

/// kafka-python's `LegacyRecord`.
struct KafkaPythonLegacyRecord;

impl RecordType for KafkaPythonLegacyRecord {
    const NAME: &'static CStr = c"magicbyte.compat.kafka_python.LegacyRecord";
    const DOC: &'static CStr = signed!(
        "LegacyRecord(magic, offset, timestamp, timestamp_type, key, value, crc, crc_bytes)\n--\n\n",
        docstring!(compat_records, KafkaPythonLegacyRecord)
    );
    const NEW: dropins::Constructor = new_legacy_of_kafka_python;
    const FIELDS: &'static [Field] = &[
        OFFSET,
        field!(KafkaPythonLegacyRecord.timestamp, Get::By(timestamp_if_typed)),
        field!(KafkaPythonLegacyRecord.timestamp_type, Get::By(timestamp_type)),
        KEY,
        VALUE,
        NO_HEADERS,
        CHECKSUM,
        field!(KafkaPythonLegacyRecord.magic, Get::By(magic)),
        field!(KafkaPythonLegacyRecord.size_in_bytes, Get::By(message_size)),
    ];
    const METHOD: Option<(&'static CStr, Getter, &'static CStr)> = Some((
        c"validate_crc",
        validate_crc,
        signed!(
            "validate_crc($self)\n--\n\n",
            docstring!(compat_records, KafkaPythonLegacyRecord.validate_crc)
        ),
    ));

    fn kind() -> &'static Kind {
        &KAFKA_PYTHON_LEGACY_RECORD
    }

    fn repr(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<Py<PyAny>> {
        let parts = [
            ("LegacyRecord(magic=", magic(batch, entry)?),
            (" offset=", int(batch, entry.offset)?),
            (", timestamp=", timestamp_if_typed(batch, entry)?),
            (", timestamp_type=", timestamp_type(batch, entry)?),
            (", key=", content(batch, batch.get().key(entry))),
            (", value=", content(batch, batch.get().value(entry))),
            (", crc=", checksum(batch, entry)?),
        ];
        text(batch.py(), &parts)
    }
}

pub(super) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("AiokafkaDefaultRecord", dropins::record_type::<AiokafkaRecord>(py)?)?;
    module.add("AiokafkaLegacyRecord", dropins::record_type::<AiokafkaLegacyRecord>(py)?)?;
    module.add("KafkaPythonDefaultRecord", dropins::record_type::<KafkaPythonRecord>(py)?)?;
    module.add("KafkaPythonControlRecord", dropins::record_type::<KafkaPythonControlRecord>(py)?)?;
    module.add("KafkaPythonLegacyRecord", dropins::record_type::<KafkaPythonLegacyRecord>(py)?)
}

type Made = PyResult<Py<PyAny>>;

fn int<'py>(batch: &Bound<'py, IndexedBatch>, value: impl IntoPyObject<'py, Error: Into<PyErr>>) -> Made {
    use pyo3::IntoPyObjectExt;
    value.into_py_any(batch.py())
}

#[expect(clippy::unnecessary_wraps, reason = "a `Getter`")]
fn none(batch: &Bound<'_, IndexedBatch>, _: &Entry) -> Made {
    Ok(batch.py().None())
}

fn always_valid(batch: &Bound<'_, IndexedBatch>, _: &Entry) -> Made {
    int(batch, true)
}

/// None for a message of magic 0.
fn timestamp_type(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    match entry.timestamp_type {
        TimestampType::NoTimestampType => Ok(batch.py().None()),
        other => int(batch, other as i8),
    }
}

fn timestamp_if_typed(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    match entry.timestamp_type {
        TimestampType::NoTimestampType => Ok(batch.py().None()),
        _ => int(batch, entry.timestamp),
    }
}

fn timestamp_unless_none(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    if entry.timestamp == -1 { Ok(batch.py().None()) } else { int(batch, entry.timestamp) }
}

fn type_unless_no_timestamp(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    if entry.timestamp == -1 { Ok(batch.py().None()) } else { timestamp_type(batch, entry) }
}

fn content(batch: &Bound<'_, IndexedBatch>, bytes: Option<&[u8]>) -> Py<PyAny> {
    let py = batch.py();
    bytes.map_or_else(|| py.None(), |bytes| PyBytes::new(py, bytes).into_any().unbind())
}

fn headers(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    let py = batch.py();
    let list = PyList::empty(py);
    for header in batch.get().header_list(entry) {
        list.append((header_text(py, header.key)?, header.value.map(|value| PyBytes::new(py, value))))?;
    }
    Ok(list.into_any().unbind())
}

fn body_size(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    int(batch, batch.get().own_bytes(entry).len())
}

/// The message without its offset and size fields.
fn message<'a>(batch: &'a Bound<'_, IndexedBatch>, entry: &Entry) -> &'a [u8] {
    batch.get().own_bytes(entry).get(LOG_OVERHEAD..).unwrap_or_default()
}

fn stored_crc(message: &[u8]) -> u32 {
    message.get(..4).map_or(0, |crc| be!(crc, 0, u32))
}

fn checksum(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    int(batch, stored_crc(message(batch, entry)))
}

fn validate_crc(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    let message = message(batch, entry);
    int(batch, message.get(at::MAGIC..).is_some_and(|covered| crc32(covered) == stored_crc(message)))
}

fn magic(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    int(batch, message(batch, entry).get(at::MAGIC).copied())
}

/// Computed from key and value: bytes after them in the message do not count.
fn message_size(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    let size = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let timestamp = if message(batch, entry).get(at::MAGIC) == Some(&0) { 0 } else { 8 };
    let content = size(batch.get().key(entry)) + size(batch.get().value(entry));
    int(batch, LOG_OVERHEAD + RECORD_OVERHEAD_V0 + timestamp + content)
}

/// Version and type in a control record's key.
fn control(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> PyResult<(i16, i16)> {
    match batch.get().key(entry) {
        Some(key) if key.len() >= 4 => Ok((be!(key, 0, i16), be!(key, 2, i16))),
        _ => {
            let short = ErrorKind::InvalidRecord("a control record's key has at least 4 bytes");
            Err(Client::KafkaPython.corrupt(batch.py(), &Error::new(short).in_field("key")))
        }
    }
}

fn version(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    int(batch, control(batch, entry)?.0)
}

fn control_type(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    int(batch, control(batch, entry)?.1)
}

fn is_abort(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    int(batch, control(batch, entry)?.1 == 0)
}

fn is_commit(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    int(batch, control(batch, entry)?.1 == 1)
}

fn default_repr(batch: &Bound<'_, IndexedBatch>, entry: &Entry) -> Made {
    let parts = [
        ("DefaultRecord(offset=", int(batch, entry.offset)?),
        (", timestamp=", int(batch, entry.timestamp)?),
        (", timestamp_type=", timestamp_type(batch, entry)?),
        (", key=", content(batch, batch.get().key(entry))),
        (", value=", content(batch, batch.get().value(entry))),
        (", headers=", headers(batch, entry)?),
    ];
    text(batch.py(), &parts)
}

/// Each label followed by the repr of its value, then the closing bracket.
fn text(py: Python<'_>, parts: &[(&str, Py<PyAny>)]) -> Made {
    let mut text = String::new();
    for (label, value) in parts {
        text.push_str(label);
        text.push_str(&value.bind(py).repr()?.to_string_lossy());
    }
    text.push(')');
    Ok(PyString::new(py, &text).into_any().unbind())
}

fn new_default_record(arguments: &Bound<'_, PyTuple>, keywords: Option<&Bound<'_, PyDict>>) -> Made {
    let names = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"];
    let given = bind("DefaultRecord", names, arguments, keywords)?;
    default_record(Client::Aiokafka, &AIOKAFKA_RECORD, &given)
}

/// The size is computed from the other arguments; `size_in_bytes` is ignored.
fn new_of_kafka_python(
    class: &str,
    kind: &'static Kind,
    arguments: &Bound<'_, PyTuple>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> Made {
    let names = ["size_in_bytes", "offset", "timestamp", "timestamp_type", "key", "value", "headers"];
    let [_, given @ ..] = bind(class, names, arguments, keywords)?;
    default_record(Client::KafkaPython, kind, &given)
}

/// A record always belongs to a batch: this one is alone in its batch.
fn default_record(
    client: Client,
    kind: &'static Kind,
    [offset, timestamp, timestamp_type, key, value, headers]: &[Bound<'_, PyAny>; 6],
) -> Made {
    let (offset, timestamp) = (integer(offset)?, integer(timestamp)?);
    let append_time = integer(timestamp_type)? == TimestampType::LogAppendTime as i64;
    let content = (optional("key", key)?, optional("value", value)?);
    let items = any_pairs(headers)?;
    let owned = items.iter().map(|pair| header_content(client, pair));
    let owned = owned.collect::<PyResult<Vec<_>>>()?;
    let list: Vec<Header<'_>> = borrowed(&owned);

    let mut batch = BatchBuilder::new();
    batch.start(offset, timestamp);
    let content = (content.0.as_deref(), content.1.as_deref());
    let record = batch.fields((offset, timestamp), 0, content, HeaderFields::List(&list));
    batch.append(&record);
    let mut header = batch.header();
    header.max_timestamp = timestamp;
    header.attributes = if append_time { batch_header::LOG_APPEND_TIME.into() } else { 0 };
    let frame = batch.finish_stored(header).map_err(|error| client.corrupt(key.py(), &error))?;
    only_record(key.py(), client, frame, kind)
}

fn new_legacy_record(arguments: &Bound<'_, PyTuple>, keywords: Option<&Bound<'_, PyDict>>) -> Made {
    let names = ["offset", "timestamp", "attributes", "key", "value", "crc"];
    let [offset, timestamp, attributes, key, value, crc] = bind("LegacyRecord", names, arguments, keywords)?;
    // A record is not a wrapper: its codec is ignored.
    let attributes = attributes.extract::<i8>()? as u8 & message::LOG_APPEND_TIME;
    let place = (integer(&offset)?, integer(&timestamp)?);
    legacy_record(Client::Aiokafka, &AIOKAFKA_LEGACY_RECORD, (1, attributes), place, [&key, &value, &crc])
}

/// `crc_bytes` is ignored: the checksum is compared with that of the message made from the other arguments.
fn new_legacy_of_kafka_python(arguments: &Bound<'_, PyTuple>, keywords: Option<&Bound<'_, PyDict>>) -> Made {
    let names = ["magic", "offset", "timestamp", "timestamp_type", "key", "value", "crc", "crc_bytes"];
    let [magic, offset, timestamp, timestamp_type, key, value, crc, _] =
        bind("LegacyRecord", names, arguments, keywords)?;
    let magic = supported(integer(&magic)?)?;
    let or_none = |object: &Bound<'_, PyAny>, none| if object.is_none() { Ok(none) } else { integer(object) };
    let append_time = or_none(&timestamp_type, 0)? == TimestampType::LogAppendTime as i64;
    let attributes = if append_time { message::LOG_APPEND_TIME } else { 0 };
    let place = (integer(&offset)?, or_none(&timestamp, -1)?);
    let kind = &KAFKA_PYTHON_LEGACY_RECORD;
    legacy_record(Client::KafkaPython, kind, (magic, attributes), place, [&key, &value, &crc])
}

fn legacy_record(
    client: Client,
    kind: &'static Kind,
    (magic, attributes): (i8, u8),
    (offset, timestamp): (i64, i64),
    [key, value, crc]: [&Bound<'_, PyAny>; 3],
) -> Made {
    let content = (optional("key", key)?, optional("value", value)?);
    let (key, value) = (content.0.as_deref(), content.1.as_deref());
    let message = MessageFields { offset, magic, attributes, timestamp, key, value };
    let (py, crc) = (crc.py(), crc.extract::<u32>()?);
    let mut frame = Vec::new();
    message.append_to(&mut frame).map_err(|error| client.corrupt(py, &error))?;
    frame[LOG_OVERHEAD..LOG_OVERHEAD + at::MAGIC].copy_from_slice(&crc.to_be_bytes());
    only_record(py, client, &frame, kind)
}

/// The single record in this frame, whose checksum is not verified.
fn only_record(py: Python<'_>, client: Client, frame: &[u8], kind: &'static Kind) -> Made {
    let data = Bytes::copy_from_slice(frame);
    let read = detached(py, |thread| {
        with_decompressor(thread, |decompressor| {
            IndexedBatch::read_until_error(&Batch::from_frame(&data, 0)?, &data, decompressor, false)
        })
    });
    let (indexed, _) = read.map_err(|error| client.corrupt(py, &error))?;
    let batch = Bound::new(py, indexed)?;
    record_object::record_at(&batch, 0, kind)?.ok_or_else(|| not_bytes_like(batch.as_any()))
}
