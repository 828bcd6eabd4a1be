//! Recovery of data from quarantined ranges, for the facade in `magicbyte.damage`.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};
use magicbyte_log::Rescuer;
use magicbyte_log::steps::{Located, Survey};

use crate::errors::io_to_py;
use crate::locked::Locked;
use crate::store::stores;
use crate::{docs::docstring, panics};

type Header = (String, Option<Py<PyBytes>>);
type Suspect = (i64, i64, Option<Py<PyBytes>>, Option<Py<PyBytes>>, Vec<Header>);
type Repair = (Py<PyBytes>, usize, String, f64, bool);
type Item = (u64, Py<PyBytes>, &'static str, String, Option<Repair>, Vec<Suspect>);

#[doc = docstring!(log, RescuerCore)]
#[pyclass(frozen, name = "RescuerCore", module = "magicbyte._core")]
pub(super) struct PyRescuer {
    rescuer: Locked<Rescuer>,
    path: PathBuf,
    max_decompressed_bytes: usize,
}

#[pymethods]
impl PyRescuer {
    #[new]
    #[pyo3(signature = (survey, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES))]
    fn new(survey: &str, max_decompressed_bytes: usize) -> PyResult<Self> {
        panics::here();
        let mut survey: Survey = serde_json::from_str(survey)
            .map_err(|error| PyValueError::new_err(format!("not a survey: {error}")))?;
        survey.locate(&stores());
        let path = survey.segment.location.path().to_owned();
        let rescuer = Rescuer::open(&survey, max_decompressed_bytes).map_err(|e| io_to_py(&path, &e))?;
        Ok(Self { rescuer: Locked::new(rescuer), path, max_decompressed_bytes })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Item>> {
        let next = self.rescuer.with(py, Iterator::next);
        let Some(rescued) = next.transpose().map_err(|e| io_to_py(&self.path, &e))? else { return Ok(None) };
        let bytes = |data: &[u8]| PyBytes::new(py, data).unbind();
        let mut suspects = Vec::new();
        rescued.suspects(&mut Decompressor::with_limit(self.max_decompressed_bytes), |record| {
            let header = |key: &[u8], value: Option<&[u8]>| {
                (String::from_utf8_lossy(key).into_owned(), value.map(bytes))
            };
            suspects.push((
                record.offset(),
                record.timestamp(),
                record.key().map(bytes),
                record.value().map(bytes),
                record.headers().map(|h| header(h.key, h.value)).collect(),
            ));
        });
        let repair = rescued.repair.as_ref().map(|r| {
            let (chance, is_proven) = (r.chance(), r.is_proven());
            (bytes(&r.batch), r.at, r.change.clone(), chance, is_proven)
        });
        let (kind, message) = (rescued.error.kind().name(), rescued.error.to_string());
        Ok(Some((rescued.position, bytes(&rescued.data), kind, message, repair, suspects)))
    }
}
