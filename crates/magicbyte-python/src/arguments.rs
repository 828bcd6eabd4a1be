//! Conversion of arguments that do not have their exact types: names of codecs, times as `datetime`, text as
//! UTF-8, headers as a mapping. An error names the argument.

use std::borrow::Cow;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyMapping, PyString, PyTuple};

use magicbyte::Compression;

use crate::errors::{to_py, type_name};
use crate::view::text_content;

/// A codec: its number or its name.
#[derive(Clone, Copy)]
pub(super) struct Codec(pub(super) Compression);

impl<'a, 'py> FromPyObject<'a, 'py> for Codec {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let Ok(name) = object.cast::<PyString>() else {
            return Compression::from_id(object.extract()?).map(Self).map_err(|e| to_py(py, &e));
        };
        let name = name.to_cow()?;
        let known = Compression::ALL.iter().find(|codec| codec.name() == name.to_ascii_lowercase());
        known.copied().map(Self).ok_or_else(|| {
            let names = Compression::ALL.map(Compression::name).join(", ");
            PyValueError::new_err(format!("no codec {name:?}: expected one of {names}"))
        })
    }
}

/// A time in milliseconds since 1970: an int, or a `datetime` with a time zone.
#[derive(Clone, Copy)]
pub(super) struct Millis(pub(super) i64);

impl<'a, 'py> FromPyObject<'a, 'py> for Millis {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let classes = datetime(object.py())?;
        if !object.is_instance(classes.datetime.bind(object.py()))? {
            return object.extract().map(Self);
        }
        if object.getattr("tzinfo")?.is_none() {
            return Err(PyValueError::new_err(format!(
                "{} has no time zone: expected one, such as datetime.timezone.utc",
                object.repr()?
            )));
        }
        let since_1970 = object.sub(classes.epoch.bind(object.py()))?;
        since_1970.floor_div(classes.millisecond.bind(object.py()))?.extract().map(Self)
    }
}

/// An optional time.
pub(super) fn millis(time: Option<Millis>) -> Option<i64> {
    time.map(|time| time.0)
}

struct Datetime {
    datetime: Py<PyAny>,
    epoch: Py<PyAny>,
    millisecond: Py<PyAny>,
}

fn datetime(py: Python<'_>) -> PyResult<&'static Datetime> {
    static CLASSES: PyOnceLock<Datetime> = PyOnceLock::new();
    CLASSES.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let class = module.getattr("datetime")?;
        Ok(Datetime {
            epoch: class.call1((1970, 1, 1, 0, 0, 0, 0, utc))?.unbind(),
            datetime: class.unbind(),
            millisecond: module.getattr("timedelta")?.call1((0, 0, 1000))?.unbind(),
        })
    })
}

/// The bytes of a key or value: a str as UTF-8, or a buffer; null if it is None or not given.
pub(super) fn payload<'a>(
    name: &str,
    object: Option<&'a Bound<'_, PyAny>>,
) -> PyResult<Option<Cow<'a, [u8]>>> {
    let object = object.filter(|object| !object.is_none());
    object.map(|object| text_content(name, object, "strict")).transpose()
}

/// An integer argument, or a time.
pub(super) fn number<'a, 'py, T>(name: &str, object: Borrowed<'a, 'py, PyAny>) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    named(name, object.py(), object.extract())
}

/// Headers: a mapping, or an iterable of pairs.
pub(super) fn header_pairs<'py>(
    headers: &Bound<'py, PyAny>,
) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let expected = || {
        let given = type_name(headers);
        PyTypeError::new_err(format!("headers: expected a mapping or pairs of key and value, not {given}"))
    };
    let given = match headers.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.into_any(),
        Err(_) => headers.clone(),
    };
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        return Err(expected());
    }
    let items = given.try_iter().map_err(|error| ours(given.py(), &error, expected).unwrap_or(error))?;
    items.enumerate().map(|(index, item)| header_pair(index, &item?)).collect()
}

fn header_pair<'py>(
    index: usize,
    item: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let expected = format!("headers[{index}]: expected a tuple of key and value, not");
    let Ok(pair) = item.cast::<PyTuple>() else {
        return Err(PyTypeError::new_err(format!("{expected} {}", type_name(item))));
    };
    match pair.len() {
        2 => Ok((pair.get_item(0)?, pair.get_item(1)?)),
        items => Err(PyValueError::new_err(format!("{expected} a tuple of {items}"))),
    }
}

/// The exception to raise instead of a TypeError.
fn ours(py: Python<'_>, error: &PyErr, expected: impl FnOnce() -> PyErr) -> Option<PyErr> {
    error.is_instance_of::<PyTypeError>(py).then(expected)
}

/// The result, with the argument's name in an error about its type or value.
fn named<T>(name: &str, py: Python<'_>, result: PyResult<T>) -> PyResult<T> {
    result.map_err(|error| {
        let with_name = |new: fn(String) -> PyErr| {
            let why = error.value(py).str().map_or_else(|_| String::new(), |why| why.to_string());
            new(format!("{name}: {why}"))
        };
        if error.is_instance_of::<PyTypeError>(py) {
            with_name(PyTypeError::new_err)
        } else if error.get_type(py).is(py.get_type::<PyOverflowError>()) {
            with_name(PyOverflowError::new_err)
        } else if error.get_type(py).is(py.get_type::<PyValueError>()) {
            with_name(PyValueError::new_err)
        } else {
            error
        }
    })
}
