//! The clients whose classes are replaced: how much they read and built, and how each takes its arguments.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyTuple, PyType};

use magicbyte::{Decompressor, Error, ErrorKind};

use crate::locked::Detached;
use crate::{docs::docstring, panics};

/// The client whose classes are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    Aiokafka,
    KafkaPython,
}

/// Counts of batches and records that a client's classes read and built.
#[derive(Default)]
pub(super) struct Counts {
    batches_read: AtomicU64,
    records_read: AtomicU64,
    batches_built: AtomicU64,
    records_built: AtomicU64,
}

pub(super) static AIOKAFKA_COUNTS: Counts = Counts::new();
pub(super) static KAFKA_PYTHON_COUNTS: Counts = Counts::new();

impl Counts {
    pub(super) const fn new() -> Self {
        Self {
            batches_read: AtomicU64::new(0),
            records_read: AtomicU64::new(0),
            batches_built: AtomicU64::new(0),
            records_built: AtomicU64::new(0),
        }
    }

    pub(super) fn read(&self, records: usize) {
        self.batches_read.fetch_add(1, Ordering::Relaxed);
        self.records_read.fetch_add(records as u64, Ordering::Relaxed);
    }

    pub(super) fn built(&self, records: i32) {
        self.batches_built.fetch_add(1, Ordering::Relaxed);
        self.records_built.fetch_add(records as u64, Ordering::Relaxed);
    }
}

impl Client {
    pub(super) fn counts(self) -> &'static Counts {
        match self {
            Self::Aiokafka => &AIOKAFKA_COUNTS,
            Self::KafkaPython => &KAFKA_PYTHON_COUNTS,
        }
    }

    /// The client's module in `magicbyte.compat`, which has its exceptions and codecs.
    pub(super) fn module(self, py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
        py.import(match self {
            Self::Aiokafka => "magicbyte.compat.aiokafka",
            Self::KafkaPython => "magicbyte.compat.kafka_python",
        })
    }

    /// The client's exception for corrupt data. It begins with the original's text, if that has one for the case.
    #[cold]
    pub(super) fn corrupt(self, py: Python<'_>, error: &Error) -> PyErr {
        let text = match error.kind() {
            ErrorKind::InvalidSize { found, min: 14, .. }
                if *found < 14 && error.record_index().is_none() =>
            {
                format!("Record size is less than the minimum record overhead (14): {error}")
            }
            ErrorKind::InvalidRecord(_) if error.field() == Some("value") => {
                format!("Value of compressed message is None: {error}")
            }
            _ => error.to_string(),
        };
        let made =
            self.module(py).and_then(|module| module.getattr("CorruptRecordException")?.call1((text,)));
        made.map_or_else(|failed| failed, PyErr::from_value)
    }

    /// Raises the client's exception if the codec is unknown or unavailable to it: its users and its tests
    /// disable codecs.
    pub(super) fn check_codec(self, py: Python<'_>, codec: u8, magic: i8) -> PyResult<()> {
        static CHECKS: [PyOnceLock<Py<PyAny>>; 2] = [PyOnceLock::new(), PyOnceLock::new()];
        if codec != 0 {
            let check = CHECKS[self as usize]
                .get_or_try_init(py, || Ok::<_, PyErr>(self.module(py)?.getattr("check_codec")?.unbind()))?;
            check.bind(py).call1((codec, magic))?;
        }
        Ok(())
    }
}

/// Calls `work` with this thread's decompressor, whose contexts and buffers are reused from batch to batch. It must
/// not run Python code, which could call this again.
pub(super) fn with_decompressor<R>(_: &Detached, work: impl FnOnce(&mut Decompressor) -> R) -> R {
    thread_local! {
        static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
    }
    DECOMPRESSOR.with_borrow_mut(work)
}

#[doc = docstring!(compat_functions, counts)]
#[pyfunction]
pub(super) fn counts(client: &str) -> PyResult<(u64, u64, u64, u64)> {
    let counts = match client {
        "aiokafka" => &AIOKAFKA_COUNTS,
        "kafka_python" => &KAFKA_PYTHON_COUNTS,
        _ => return Err(PyValueError::new_err(format!("no drop-in for {client}"))),
    };
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    Ok((
        load(&counts.batches_read),
        load(&counts.records_read),
        load(&counts.batches_built),
        load(&counts.records_built),
    ))
}

/// The client's own error for an object of the wrong type; any other error of the object's code is passed on.
#[cold]
pub(super) fn instead_of_type_error(py: Python<'_>, error: PyErr, expected: impl FnOnce() -> PyErr) -> PyErr {
    if error.is_instance_of::<PyTypeError>(py) { expected() } else { error }
}

#[cold]
pub(super) fn not_bytes_like(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
    PyTypeError::new_err(format!("a bytes-like object is required, not '{name}'"))
}

/// A 64-bit integer as Cython accepts it, with its errors: anything with `__int__`, so also a float.
#[inline]
pub(super) fn integer(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    panics::here();
    object.extract().or_else(|error| integer_of_other(object, error))
}

#[cold]
pub(super) fn integer_of_other(object: &Bound<'_, PyAny>, error: PyErr) -> PyResult<i64> {
    let too_large = || PyOverflowError::new_err("Python int too large to convert to C long");
    if error.is_instance_of::<PyOverflowError>(object.py()) {
        return Err(too_large());
    }
    if !error.is_instance_of::<PyTypeError>(object.py()) {
        return Err(error);
    }
    // `int` also parses strings, Cython does not.
    if !object.get_type().hasattr("__int__")? {
        return Err(PyTypeError::new_err("an integer is required"));
    }
    object.py().get_type::<PyInt>().call1((object,))?.extract().map_err(|_| too_large())
}

/// A record's offset or timestamp: kafka-python accepts only an `int`, not even a bool.
#[inline]
pub(super) fn number(client: Client, object: &Bound<'_, PyAny>) -> PyResult<i64> {
    if client == Client::KafkaPython && !object.is_exact_instance_of::<PyInt>() {
        return Err(PyTypeError::new_err((object.clone().unbind(),)));
    }
    integer(object)
}

/// Sets the class attributes of kafka-python's type: numbers, and `struct.Struct`s of these formats.
pub(super) fn set_constants(
    class: &Bound<'_, PyType>,
    numbers: &[(&str, i64)],
    structs: &[(&str, &str)],
) -> PyResult<()> {
    for (name, number) in numbers {
        class.setattr(*name, number)?;
    }
    let struct_type = class.py().import("struct")?.getattr("Struct")?;
    structs.iter().try_for_each(|(name, format)| class.setattr(*name, struct_type.call1((*format,))?))
}

/// Binds positional and keyword arguments to these parameters, all of them required.
pub(super) fn bind<'py, const N: usize>(
    class: &str,
    names: [&str; N],
    arguments: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<[Bound<'py, PyAny>; N]> {
    let given = arguments.len() + keywords.map_or(0, |keywords| keywords.len());
    let mut bound = Vec::with_capacity(N);
    for (index, name) in names.iter().enumerate() {
        let keyword = keywords.map(|keywords| keywords.get_item(name)).transpose()?.flatten();
        let positional = (index < arguments.len()).then(|| arguments.get_item(index)).transpose()?;
        bound.extend(positional.or(keyword));
    }
    let found = bound.len();
    match <[_; N]>::try_from(bound) {
        Ok(bound) if given == N => Ok(bound),
        _ => {
            Err(PyTypeError::new_err(format!("{class}() takes exactly {N} arguments ({})", given.min(found))))
        }
    }
}
