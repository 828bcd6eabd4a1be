//! `magicbyte.conversion`: converts buffers of batches.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::convert::{Converter, Losses, Rebatcher};
use magicbyte::internals::each_batch;
use magicbyte::{Batch, Batches, DEFAULT_MAX_DECOMPRESSED_BYTES, Error, ErrorKind, Result, TimestampType};

use crate::arguments::Codec;
use crate::builder::producer_state;
use crate::errors::to_py;
use crate::locked::Locked;
use crate::view::content;
use crate::{classes, docs::docstring, panics};

#[doc = docstring!(convert, Converter)]
#[pyclass(frozen, name = "Converter", module = "magicbyte.conversion")]
pub(super) struct PyConverter(Locked<Converter>);

impl PyConverter {
    /// Calls `work` with the converter and all of `data`, without the GIL; returns the bytes appended, and
    /// its result.
    fn convert<'py, T: Default + Send>(
        &self,
        py: Python<'py>,
        data: &[u8],
        work: impl FnOnce(&mut Converter, &[u8], &mut Vec<u8>) -> Result<T> + Send,
    ) -> PyResult<(Bound<'py, PyBytes>, T)> {
        let done = self.0.with(py, |converter| {
            let mut out = Vec::new();
            work(converter, data, &mut out).map(|result| (out, result))
        });
        let (out, result) = done.map_err(|e| to_py(py, &e))?;
        Ok((PyBytes::new(py, &out), result))
    }

    /// Like [`convert`](Self::convert), for work that has no other result.
    fn rewrite<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        work: impl FnOnce(&mut Converter, &[u8], &mut Vec<u8>) -> Result<()> + Send,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.convert(py, data, work).map(|(out, ())| out)
    }
}

/// Calls `work` for each of the whole batches in `data`.
fn each<'a>(data: &'a [u8], mut work: impl FnMut(Batch<'a>) -> Result<()>) -> Result<()> {
    let mut batches = Batches::new(data);
    for batch in &mut batches {
        work(batch?)?;
    }
    batches.truncated().map_or(Ok(()), Err)
}

#[cold]
fn needs_magic_2(batch: &Batch<'_>) -> Error {
    batch.place(Error::new(ErrorKind::InvalidOptions("only batches of magic 2 can be merged or split")))
}

#[pymethods]
impl PyConverter {
    #[new]
    #[pyo3(
        signature = (
            compression = None, level = None, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES
        ),
        text_signature = "(compression=None, level=None, *, \
            max_decompressed_bytes=magicbyte._core.DEFAULT_MAX_DECOMPRESSED_BYTES)"
    )]
    fn new(
        py: Python<'_>,
        compression: Option<Codec>,
        level: Option<i32>,
        max_decompressed_bytes: usize,
    ) -> PyResult<Self> {
        panics::here();
        let converter = match compression {
            Some(Codec(codec)) => Converter::to_codec(codec, level),
            None if level.is_some() => {
                Err(ErrorKind::InvalidOptions("a level requires a compression").into())
            }
            None => Ok(Converter::new()),
        };
        let converter = converter.map_err(|e| to_py(py, &e))?;
        Ok(Self(Locked::new(converter.with_limit(max_decompressed_bytes))))
    }

    #[doc = docstring!(convert, Converter.up_convert)]
    fn up_convert<'py>(&self, py: Python<'py>, data: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.rewrite(py, &content("data", data)?, |converter, data, out| {
            each(data, |batch| converter.up_convert(&batch, out))
        })
    }

    #[doc = docstring!(convert, Converter.down_convert)]
    fn down_convert<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'_, PyAny>,
        magic: i8,
    ) -> PyResult<(Bound<'py, PyBytes>, Py<PyAny>)> {
        let (out, losses) = self.convert(py, &content("data", data)?, |converter, data, out| {
            let mut losses = Losses::default();
            each(data, |batch| {
                losses += converter.down_convert(&batch, magic, out)?;
                Ok(())
            })?;
            Ok(losses)
        })?;
        Ok((out, classes::losses(py, &losses)?))
    }

    #[doc = docstring!(convert, Converter.recompress)]
    fn recompress<'py>(&self, py: Python<'py>, data: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.rewrite(py, &content("data", data)?, |converter, data, out| {
            each(data, |batch| converter.recompress(&batch, out))
        })
    }

    #[doc = docstring!(convert, Converter.merge)]
    fn merge<'py>(&self, py: Python<'py>, data: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.rewrite(py, &content("data", data)?, |converter, data, out| {
            let mut batches = Vec::new();
            each(data, |batch| match batch {
                Batch::V2(v2) => {
                    batches.push(v2);
                    Ok(())
                }
                Batch::Legacy(_) => Err(needs_magic_2(&batch)),
            })?;
            converter.merge(&batches, out)
        })
    }

    #[doc = docstring!(convert, Converter.split)]
    fn split<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'_, PyAny>,
        max_size_in_bytes: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.rewrite(py, &content("data", data)?, |converter, data, out| {
            each(data, |batch| match &batch {
                Batch::V2(v2) => converter.split(v2, max_size_in_bytes, out),
                Batch::Legacy(_) => Err(needs_magic_2(&batch)),
            })
        })
    }

    #[doc = docstring!(convert, Converter.rebatch)]
    fn rebatch<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'_, PyAny>,
        max_size_in_bytes: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.rewrite(py, &content("data", data)?, |converter, data, out| {
            let mut rebatcher = Rebatcher::new(std::mem::take(converter), max_size_in_bytes);
            let packed = each(data, |batch| rebatcher.push(&batch, out)).and_then(|()| rebatcher.flush(out));
            *converter = rebatcher.into_converter();
            packed
        })
    }

    #[doc = docstring!(convert, Converter.assign_offsets)]
    fn assign_offsets<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'_, PyAny>,
        base_offset: i64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.rewrite(py, &content("batch", batch)?, |converter, data, out| {
            match Batch::from_frame(data, 0)? {
                Batch::Legacy(batch) => converter.assign_offsets(&batch, base_offset, out),
                batch @ Batch::V2(_) => {
                    let why = "offsets can be assigned to batches of magic 0 only";
                    Err(batch.place(ErrorKind::InvalidOptions(why).into()))
                }
            }
        })
    }
}

/// A copy of `data` with a change applied.
fn changed<'py>(
    py: Python<'py>,
    data: &[u8],
    change: impl FnOnce(&mut [u8]) -> Result<()>,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, data.len(), |copy| {
        copy.copy_from_slice(data);
        change(copy).map_err(|e| to_py(py, &e))
    })
}

#[doc = docstring!(convert, set_last_offset)]
#[pyfunction]
pub(super) fn set_last_offset<'py>(
    py: Python<'py>,
    batch: &Bound<'_, PyAny>,
    last_offset: i64,
) -> PyResult<Bound<'py, PyBytes>> {
    changed(py, &content("batch", batch)?, |batch| magicbyte::convert::set_last_offset(batch, last_offset))
}

#[doc = docstring!(convert, set_partition_leader_epoch)]
#[pyfunction]
pub(super) fn set_partition_leader_epoch<'py>(
    py: Python<'py>,
    data: &Bound<'_, PyAny>,
    epoch: i32,
) -> PyResult<Bound<'py, PyBytes>> {
    changed(py, &content("data", data)?, |data| {
        each_batch(data, |batch| magicbyte::convert::set_partition_leader_epoch(batch, epoch))
    })
}

#[doc = docstring!(convert, set_max_timestamp)]
#[pyfunction]
pub(super) fn set_max_timestamp<'py>(
    py: Python<'py>,
    data: &Bound<'_, PyAny>,
    timestamp_type: i8,
    max_timestamp: i64,
) -> PyResult<Bound<'py, PyBytes>> {
    let timestamp_type = match timestamp_type {
        0 => TimestampType::CreateTime,
        1 => TimestampType::LogAppendTime,
        _ => TimestampType::NoTimestampType,
    };
    changed(py, &content("data", data)?, |data| {
        each_batch(data, |batch| magicbyte::convert::set_max_timestamp(batch, timestamp_type, max_timestamp))
    })
}

#[doc = docstring!(convert, set_producer_state)]
#[pyfunction]
pub(super) fn set_producer_state<'py>(
    py: Python<'py>,
    batch: &Bound<'_, PyAny>,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    is_transactional: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let state = producer_state(producer_id, producer_epoch, base_sequence, is_transactional);
    changed(py, batch, |batch| magicbyte::convert::set_producer_state(batch, state))
}
