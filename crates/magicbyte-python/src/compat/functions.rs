//! The clients' varints and CRC-32C: `aiokafka.record._crecords` and `kafka.record.util`.

use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use magicbyte::ErrorKind;
use magicbyte::internals::{Varint, varint};

use crate::compat::client::integer;
use crate::compat::memory_records;
use crate::docs::docstring;

#[doc = docstring!(compat_functions, aiokafka_decode_varint)]
#[pyfunction]
#[pyo3(signature = (buffer, pos = 0))]
fn aiokafka_decode_varint(buffer: &Bound<'_, PyAny>, pos: isize) -> PyResult<(i64, usize)> {
    decode_varint(buffer, pos, "Out of double range")
}

#[doc = docstring!(compat_functions, kafka_python_decode_varint)]
#[pyfunction]
#[pyo3(signature = (buffer, pos = 0))]
fn kafka_python_decode_varint(buffer: &Bound<'_, PyAny>, pos: isize) -> PyResult<(i64, usize)> {
    decode_varint(buffer, pos, "Out of int64 range")
}

fn decode_varint(buffer: &Bound<'_, PyAny>, pos: isize, too_long: &'static str) -> PyResult<(i64, usize)> {
    let data = memory_records::buffer("buffer", buffer)?;
    match varint::decode_varint(&data, usize::try_from(pos).unwrap_or(usize::MAX)) {
        Ok(decoded) => Ok(decoded),
        Err(error) if *error.kind() == ErrorKind::InvalidVarint => Err(PyValueError::new_err(too_long)),
        Err(_) => Err(PyIndexError::new_err("buffer index out of range")),
    }
}

#[doc = docstring!(compat_functions, aiokafka_encode_varint)]
#[pyfunction]
fn aiokafka_encode_varint(value: &Bound<'_, PyAny>, write: &Bound<'_, PyAny>) -> PyResult<usize> {
    encode_varint(integer(value)?, write)
}

#[doc = docstring!(compat_functions, kafka_python_encode_varint)]
#[pyfunction]
fn kafka_python_encode_varint(value: &Bound<'_, PyAny>, write: &Bound<'_, PyAny>) -> PyResult<usize> {
    encode_varint(integral(value)?, write)
}

fn encode_varint(value: i64, write: &Bound<'_, PyAny>) -> PyResult<usize> {
    let mut out = [0; 10];
    let size = varint::write(value, &mut out);
    for byte in &out[..size] {
        write.call1((*byte,))?;
    }
    Ok(size)
}

#[doc = docstring!(compat_functions, aiokafka_size_of_varint)]
#[pyfunction]
fn aiokafka_size_of_varint(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(Varint::of(integer(value)?).size())
}

#[doc = docstring!(compat_functions, kafka_python_size_of_varint)]
#[pyfunction]
fn kafka_python_size_of_varint(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(Varint::of(integral(value)?).size())
}

/// kafka-python's varints use shifts, which only integers support.
fn integral(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    if value.hasattr("__index__")? {
        return integer(value);
    }
    let found = value.get_type().name()?;
    Err(PyTypeError::new_err(format!("unsupported operand type(s) for <<: '{found}' and 'int'")))
}

#[doc = docstring!(compat_functions, aiokafka_crc32c)]
#[pyfunction]
fn aiokafka_crc32c(data: &Bound<'_, PyAny>) -> PyResult<u32> {
    crc32c(data)
}

#[doc = docstring!(compat_functions, kafka_python_crc32c)]
#[pyfunction]
fn kafka_python_crc32c(memview: &Bound<'_, PyAny>) -> PyResult<u32> {
    crc32c(memview)
}

fn crc32c(data: &Bound<'_, PyAny>) -> PyResult<u32> {
    let bytes = memory_records::buffer("data", data)?;
    Ok(data.py().detach(|| magicbyte::crc32c(&bytes, 0)))
}

pub(super) fn add_functions(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(aiokafka_crc32c, module)?)?;
    module.add_function(wrap_pyfunction!(aiokafka_decode_varint, module)?)?;
    module.add_function(wrap_pyfunction!(aiokafka_encode_varint, module)?)?;
    module.add_function(wrap_pyfunction!(aiokafka_size_of_varint, module)?)?;
    module.add_function(wrap_pyfunction!(kafka_python_crc32c, module)?)?;
    module.add_function(wrap_pyfunction!(kafka_python_decode_varint, module)?)?;
    module.add_function(wrap_pyfunction!(kafka_python_encode_varint, module)?)?;
    module.add_function(wrap_pyfunction!(kafka_python_size_of_varint, module)?)
}
