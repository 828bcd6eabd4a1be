//! `magicbyte.magic3`: the experimental format. It is in the wheel, but nothing else there reads or writes it.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::{Batches, DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, Error, ErrorKind, Result};
use magicbyte_lab::comparison::{self, Form};
use magicbyte_lab::magic3::decode::to_magic_2;
use magicbyte_lab::magic3::encode::Encoder;
use magicbyte_lab::magic3::fields::{Ideas, frames};
use magicbyte_lab::magic3::validate::Validator;

use crate::arguments::Codec;
use crate::docs::docstring;
use crate::errors::to_py;
use crate::jobs::to_json;
use crate::view::content;

#[doc = docstring!(magic3, magic3_encode)]
#[pyfunction]
#[pyo3(signature = (batches, ideas, compression, *, level = None))]
pub(super) fn magic3_encode<'py>(
    py: Python<'py>,
    batches: &Bound<'_, PyAny>,
    ideas: i16,
    compression: Codec,
    level: Option<i32>,
) -> PyResult<Bound<'py, PyBytes>> {
    let data = content(batches)?;
    let encoded = py.detach(|| encode(&data, ideas, compression, level));
    Ok(PyBytes::new(py, &encoded.map_err(|e| to_py(py, &e))?))
}

fn encode(data: &[u8], ideas: i16, compression: Codec, level: Option<i32>) -> Result<Vec<u8>> {
    let mut encoder = Encoder::new(Ideas::from_bits(ideas)?, compression.0, level)?;
    let mut out = Vec::new();
    let mut batches = Batches::new(data);
    for batch in &mut batches {
        let batch = batch?;
        batch.verify()?;
        let Some(v2) = batch.as_v2() else {
            let kind = ErrorKind::InvalidOptions("only batches of magic 2 can be encoded");
            return Err(batch.place(Error::new(kind)));
        };
        encoder.encode(v2, &mut out).map_err(|e| batch.place(e))?;
    }
    batches.truncated().map_or(Ok(out), Err)
}

#[doc = docstring!(magic3, magic3_to_magic_2)]
#[pyfunction]
#[pyo3(signature = (batches, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES))]
pub(super) fn magic3_to_magic_2<'py>(
    py: Python<'py>,
    batches: &Bound<'_, PyAny>,
    max_decompressed_bytes: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let data = content(batches)?;
    let converted = py.detach(|| {
        let mut decompressor = Decompressor::with_limit(max_decompressed_bytes);
        let mut out = Vec::new();
        each(&data, |frame| to_magic_2(frame, &mut decompressor, &mut out))?;
        Ok(out)
    });
    Ok(PyBytes::new(py, &converted.map_err(|e: Error| to_py(py, &e))?))
}

#[doc = docstring!(magic3, magic3_validate)]
#[pyfunction]
#[pyo3(signature = (batches, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES))]
pub(super) fn magic3_validate(
    py: Python<'_>,
    batches: &Bound<'_, PyAny>,
    max_decompressed_bytes: usize,
) -> PyResult<Vec<(u32, i64, u32, usize)>> {
    let data = content(batches)?;
    let validated = py.detach(|| {
        let mut validator = Validator::new().with_limit(max_decompressed_bytes);
        let mut found = Vec::new();
        each(&data, |frame| {
            let one = validator.validate(frame)?;
            found.push((one.records, one.max_timestamp, one.null_keys, one.decompressed));
            Ok(())
        })?;
        Ok(found)
    });
    validated.map_err(|e: Error| to_py(py, &e))
}

/// Calls `work` with each batch; its errors get the batch's position.
fn each(data: &[u8], mut work: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut position = 0;
    for frame in frames(data) {
        let frame = frame?;
        work(frame).map_err(|e| e.at_position(position))?;
        position += frame.len() as u64;
    }
    Ok(())
}

#[doc = docstring!(magic3, compare_format)]
#[pyfunction]
#[pyo3(signature = (batches, magic, ideas, compression, *, level = None))]
pub(super) fn compare_format(
    py: Python<'_>,
    batches: &Bound<'_, PyAny>,
    magic: i8,
    ideas: i16,
    compression: Codec,
    level: Option<i32>,
) -> PyResult<String> {
    let data = content(batches)?;
    let compared = py.detach(|| {
        let form = match magic {
            2 => Form::Batches,
            3 => Form::Experimental(Ideas::from_bits(ideas)?),
            older => Form::Messages(older),
        };
        comparison::compare(&data, form, compression.0, level)
    });
    to_json(&compared.map_err(|e| to_py(py, &e))?)
}
