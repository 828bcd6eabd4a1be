//! Parts that the clients' builders share: metadata, arguments, compressors, and the finished batch.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::CStr;
use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyAssertionError;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyString, PyTuple};

use magicbyte::{Compression, Compressor, Error, Result};

use crate::builder::Content;
use crate::compat::client::{Client, bind, instead_of_type_error, integer, not_bytes_like, number};
use crate::objects::dropins;
use crate::objects::dropins::{Constructor, ReceiptType};
use crate::objects::kind::Kind;
use crate::{
    builder,
    docs::{docstring, signed},
    view,
};

/// The result of `append` for a record of magic 2.
pub(super) struct DefaultMetadata;

static DEFAULT_METADATA: Kind = Kind::of_receipts();
static LEGACY_METADATA: Kind = Kind::of_receipts();

impl DefaultMetadata {
    /// The offset, the record's size, and its timestamp in ms.
    pub(super) fn make(py: Python<'_>, offset: i64, size: usize, timestamp: i64) -> PyResult<Py<PyAny>> {
        dropins::receipt::<Self>(py, [offset, size as i64, timestamp, 0])
    }
}

impl ReceiptType for DefaultMetadata {
    const NAME: &'static CStr = c"magicbyte.compat._core.DefaultRecordMetadata";
    const DOC: &'static CStr = signed!(
        "DefaultRecordMetadata(offset, size, timestamp)\n--\n\n",
        docstring!(compat_builders, DefaultRecordMetadata)
    );
    const FIELDS: &'static [(&'static CStr, usize, &'static CStr)] = &[
        (c"offset", 0, c_str!(docstring!(compat_builders, DefaultRecordMetadata.offset))),
        (c"size", 1, c_str!(docstring!(compat_builders, DefaultRecordMetadata.size))),
        (c"timestamp", 2, c_str!(docstring!(compat_builders, DefaultRecordMetadata.timestamp))),
        (c"crc", usize::MAX, c_str!(docstring!(compat_builders, DefaultRecordMetadata.crc))),
    ];
    const NEW: Constructor = |arguments, keywords| {
        let names = ["offset", "size", "timestamp"];
        let [offset, size, timestamp] = bind("DefaultRecordMetadata", names, arguments, keywords)?;
        let numbers = [integer(&offset)?, integer(&size)?, integer(&timestamp)?, 0];
        dropins::receipt::<Self>(arguments.py(), numbers)
    };

    fn kind() -> &'static Kind {
        &DEFAULT_METADATA
    }

    fn repr([offset, size, timestamp, _]: &[i64; 4]) -> String {
        format!("DefaultRecordMetadata(offset={offset}, size={size}, timestamp={timestamp})")
    }
}

/// The result of `append` for a message of magic 0 or 1.
pub(super) struct LegacyMetadata;

impl LegacyMetadata {
    /// The offset, the CRC-32, the message's size, and its timestamp in ms.
    pub(super) fn make(
        py: Python<'_>,
        offset: i64,
        crc: u32,
        size: usize,
        timestamp: i64,
    ) -> PyResult<Py<PyAny>> {
        dropins::receipt::<Self>(py, [offset, size as i64, timestamp, crc.into()])
    }
}

impl ReceiptType for LegacyMetadata {
    const NAME: &'static CStr = c"magicbyte.compat._core.LegacyRecordMetadata";
    const DOC: &'static CStr = signed!(
        "LegacyRecordMetadata(offset, crc, size, timestamp)\n--\n\n",
        docstring!(compat_builders, LegacyRecordMetadata)
    );
    const FIELDS: &'static [(&'static CStr, usize, &'static CStr)] = &[
        (c"offset", 0, c_str!(docstring!(compat_builders, LegacyRecordMetadata.offset))),
        (c"size", 1, c_str!(docstring!(compat_builders, LegacyRecordMetadata.size))),
        (c"timestamp", 2, c_str!(docstring!(compat_builders, LegacyRecordMetadata.timestamp))),
        (c"crc", 3, c_str!(docstring!(compat_builders, LegacyRecordMetadata.crc))),
    ];
    const NEW: Constructor = |arguments, keywords| {
        let names = ["offset", "crc", "size", "timestamp"];
        let [offset, crc, size, timestamp] = bind("LegacyRecordMetadata", names, arguments, keywords)?;
        let numbers = [integer(&offset)?, integer(&size)?, integer(&timestamp)?, integer(&crc)?];
        dropins::receipt::<Self>(arguments.py(), numbers)
    };

    fn kind() -> &'static Kind {
        &LEGACY_METADATA
    }

    fn repr([offset, size, timestamp, crc]: &[i64; 4]) -> String {
        format!("LegacyRecordMetadata(offset={offset}, crc={crc}, size={size}, timestamp={timestamp})")
    }
}

/// A timestamp in ms, or now for None.
#[inline]
pub(super) fn timestamp_or_now(client: Client, timestamp: &Bound<'_, PyAny>) -> PyResult<i64> {
    if timestamp.is_none() {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        return Ok(since.as_millis() as i64);
    }
    number(client, timestamp)
}

/// A key or value, with the client's error for an object that is not bytes-like.
#[inline]
pub(super) fn nullable<'a>(
    client: Client,
    field: &str,
    object: &'a Bound<'_, PyAny>,
) -> PyResult<Content<'a>> {
    let expected = || match client {
        Client::Aiokafka => not_bytes_like(object),
        Client::KafkaPython => {
            let class = object.get_type();
            PyTypeError::new_err(format!("Not supported type for {field}: {class}"))
        }
    };
    builder::optional(field, object).map_err(|error| instead_of_type_error(object.py(), error, expected))
}

/// Keys and values of headers; that they are pairs has been checked.
pub(super) type Pairs<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// aiokafka requires a list of tuples, kafka-python accepts any pairs.
pub(super) fn header_pairs<'py>(client: Client, headers: &Bound<'py, PyAny>) -> PyResult<Pairs<'py>> {
    if client == Client::KafkaPython {
        return any_pairs(headers);
    }
    let Ok(list) = headers.cast::<PyList>() else {
        let found = headers.get_type().name()?;
        return Err(PyTypeError::new_err(match headers.is_none() {
            true => "object of type 'NoneType' has no len()".to_owned(),
            false => format!("Argument 'headers' has incorrect type (expected list, got {found})"),
        }));
    };
    let pair = |header: Bound<'py, PyAny>| {
        let expected = |found| Ok(PyTypeError::new_err(format!("Expected tuple, got {found}")));
        match header.cast::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => Ok((pair.get_item(0)?, pair.get_item(1)?)),
            Ok(pair) if pair.len() < 2 => Err(PyValueError::new_err(format!(
                "need more than {} value{} to unpack",
                pair.len(),
                if pair.len() == 1 { "" } else { "s" }
            ))),
            Ok(_) => Err(PyValueError::new_err("too many values to unpack (expected 2)")),
            Err(_) => Err(expected(header.get_type().name()?).unwrap_or_else(|error| error)),
        }
    };
    list.iter().map(pair).collect()
}

/// Any iterable of iterables of two items.
pub(super) fn any_pairs<'py>(headers: &Bound<'py, PyAny>) -> PyResult<Pairs<'py>> {
    let tuple = headers.py().get_type::<PyTuple>();
    headers.try_iter()?.map(|header| tuple.call1((header?,))?.extract()).collect()
}

/// A header's key and value as bytes.
pub(super) fn header_content<'a>(
    client: Client,
    (key, value): &'a (Bound<'_, PyAny>, Bound<'_, PyAny>),
) -> PyResult<(Cow<'a, [u8]>, Content<'a>)> {
    if !key.is_instance_of::<PyString>() {
        let found = key.get_type().name()?;
        return Err(match client {
            Client::Aiokafka if !key.is_none() => PyTypeError::new_err(format!("Expected str, got {found}")),
            _ => PyAttributeError::new_err(format!("'{found}' object has no attribute 'encode'")),
        });
    }
    let expected = || {
        let found = value.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
        PyTypeError::new_err(format!("Expected bytes, got {found}"))
    };
    let value = builder::optional("header value", value)
        .map_err(|error| instead_of_type_error(value.py(), error, expected))?;
    Ok((view::header_key(key)?, value))
}

/// The error for data that the originals encode but Kafka cannot read: an offset more than an int32 from the base, or 2
/// GiB.
#[cold]
pub(super) fn refused(error: &Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A finished set or batch, in memory reused from the previous one.
pub(super) struct Finished(Vec<u8>);

thread_local! {
    /// One for each codec, and the memory of the last batch: they outlive builders, which build one batch.
    static COMPRESSORS: RefCell<([Option<Compressor>; 5], Vec<u8>)> =
        const { RefCell::new(([const { None }; 5], Vec::new())) };
}

/// Lets `finish` write a batch with the codec's compressor. It must not run Python code, which could call this
/// again.
pub(super) fn compressed(
    codec: Compression,
    finish: impl FnOnce(&mut Compressor, &mut Vec<u8>) -> Result<()>,
) -> Result<Finished> {
    COMPRESSORS.with_borrow_mut(|(compressors, memory)| {
        let slot = &mut compressors[codec as usize];
        let compressor = match slot {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(codec)?),
        };
        memory.clear();
        finish(compressor, memory)?;
        Ok(Finished(std::mem::take(memory)))
    })
}

impl Finished {
    /// A copy for Python; the memory is kept for the next batch.
    pub(super) fn into_bytearray(self, py: Python<'_>) -> Py<PyByteArray> {
        let made = PyByteArray::new(py, &self.0).unbind();
        COMPRESSORS.with_borrow_mut(|(_, memory)| *memory = self.0);
        made
    }
}

/// The magic, if it is 0 or 1.
pub(super) fn supported(magic: i64) -> PyResult<i8> {
    match magic {
        0 => Ok(0),
        1 => Ok(1),
        _ => Err(PyAssertionError::new_err("Not supported magic")),
    }
}

pub(super) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("DefaultRecordMetadata", dropins::receipt_type::<DefaultMetadata>(py)?)?;
    module.add("LegacyRecordMetadata", dropins::receipt_type::<LegacyMetadata>(py)?)
}
