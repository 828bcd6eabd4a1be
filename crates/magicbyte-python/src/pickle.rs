//! Creates records and batches from what `pickle` has stored of them; `record.rs` and `batch.rs` have the other
//! direction.

use ::bytes::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::internals::{Cursor, varint};
use magicbyte::{Batch, Headers, Record, TimestampType};

use crate::batch::{Reading, new_batch};
use crate::errors::to_py;
use crate::indexed_batch::IndexedBatch;
use crate::objects::record_object::{RECORD, record_at};
use crate::view::to_bytes;
use crate::{docs::docstring, panics};

type Numbers = (i64, i64, i8, i32, u8);
type Content<'py> = (Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>, u32);

#[doc = docstring!(records, unpickle_record)]
#[pyfunction]
pub(super) fn unpickle_record(
    py: Python<'_>,
    numbers: Numbers,
    content: Content<'_>,
    kind: (bool, bool),
) -> PyResult<Py<PyAny>> {
    panics::here();
    let (offset, timestamp, timestamp_type, sequence, attributes) = numbers;
    let (key, value, headers, header_count) = content;
    let (is_control, is_legacy) = kind;
    let malformed = || PyValueError::new_err("not a pickled record");
    let mut count = [0; 10];
    let size = varint::write(header_count.into(), &mut count);
    let headers = [&count[..size], headers.as_bytes()].concat();
    let timestamp_type = TimestampType::from_id(timestamp_type.into()).ok_or_else(malformed)?;
    let record = Record::of_parts(
        offset,
        (timestamp, timestamp_type),
        sequence,
        attributes as i8,
        (key.as_ref().map(|key| key.as_bytes()), value.as_ref().map(|value| value.as_bytes())),
        Headers::check(&mut Cursor::new(&headers)).map_err(|e| to_py(py, &e))?,
    );
    let batch = IndexedBatch::of_one(&record, is_control, is_legacy).ok_or_else(malformed)?;
    record_at(&Bound::new(py, batch)?, 0, &RECORD)?.ok_or_else(malformed)
}

#[doc = docstring!(batches, unpickle_batch)]
#[pyfunction]
pub(super) fn unpickle_batch(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    position: u64,
    check_crcs: bool,
    max_decompressed_bytes: usize,
) -> PyResult<Py<PyAny>> {
    let data = to_bytes("data", data)?;
    Batch::from_frame(&data, position).map_err(|error| to_py(py, &error))?;
    new_batch(py, data, Bytes::new(), position, Reading::new(check_crcs, max_decompressed_bytes))
}
