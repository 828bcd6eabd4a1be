//! Recovery of data from quarantined ranges, for `magicbyte.damage`.

use std::path::PathBuf;

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use magicbyte::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor, Record};
use magicbyte_log::Rescuer;
use magicbyte_log::steps::{Located, Survey};

use crate::errors::io_to_py;
use crate::locked::Locked;
use crate::results::result_class;
use crate::store::stores;
use crate::{docs::docstring, panics};

result_class! {
    rescue, "magicbyte.damage", Suspect {
        offset: i64,
        timestamp: i64,
        key: Option<Py<PyBytes>>,
        value: Option<Py<PyBytes>>,
        headers: Py<PyList>,
    } holds(key, value, headers)
}

result_class! {
    rescue, "magicbyte.damage", Repair {
        batch: Py<PyBytes>,
        at: usize,
        change: String,
        chance: f64,
        is_proven: bool,
    } holds(batch)
}

result_class! {
    rescue, "magicbyte.damage", Rescued {
        segment: String,
        start: u64,
        kind: String,
        message: String,
        data: Py<PyBytes>,
        repair: Option<Py<Repair>>,
        suspects: Py<PyList>,
    } holds(data, repair, suspects) {
        #[doc = docstring!(rescue, Rescued.end)]
        #[getter]
        fn end(&self, py: Python<'_>) -> PyResult<u64> {
            panics::here();
            let length = self.data.bind(py).as_bytes().len() as u64;
            let end = self.start.checked_add(length);
            end.ok_or_else(|| PyOverflowError::new_err("the end of the range has more than 64 bits"))
        }
    }
}

#[doc = docstring!(rescue, Rescuer)]
#[pyclass(frozen, name = "Rescuer", module = "magicbyte._core")]
pub(super) struct PyRescuer {
    rescuer: Locked<Rescuer>,
    path: PathBuf,
    max_decompressed_bytes: usize,
    log_start_offset: Option<i64>,
}

#[pymethods]
impl PyRescuer {
    #[new]
    #[pyo3(signature = (
        survey, *, max_decompressed_bytes = DEFAULT_MAX_DECOMPRESSED_BYTES, log_start_offset = None
    ))]
    fn new(survey: &str, max_decompressed_bytes: usize, log_start_offset: Option<i64>) -> PyResult<Self> {
        panics::here();
        let mut survey: Survey = serde_json::from_str(survey)
            .map_err(|error| PyValueError::new_err(format!("not a survey: {error}")))?;
        survey.locate(&stores());
        let path = survey.segment.location.path().to_owned();
        let rescuer = Rescuer::open(&survey, max_decompressed_bytes).map_err(|e| io_to_py(&path, &e))?;
        Ok(Self { rescuer: Locked::new(rescuer), path, max_decompressed_bytes, log_start_offset })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Rescued>> {
        let next = self.rescuer.with(py, Iterator::next);
        let Some(rescued) = next.transpose().map_err(|e| io_to_py(&self.path, &e))? else { return Ok(None) };
        let bytes = |data: &[u8]| PyBytes::new(py, data).unbind();
        let mut suspects = Vec::new();
        rescued.suspects(&mut Decompressor::with_limit(self.max_decompressed_bytes), |record| {
            if self.log_start_offset.is_none_or(|start| start <= record.offset()) {
                suspects.push(suspect(py, &record));
            }
        });
        let suspects = suspects.into_iter().collect::<PyResult<Vec<_>>>()?;
        let repair = rescued.repair.as_ref().map(|repair| {
            let (at, change) = (repair.at, repair.change.clone());
            let (chance, is_proven) = (repair.chance(), repair.is_proven());
            Py::new(py, Repair { batch: bytes(&repair.batch), at, change, chance, is_proven })
        });
        Ok(Some(Rescued {
            segment: self.path.to_string_lossy().into_owned(),
            start: rescued.position,
            kind: rescued.error.kind().name().to_owned(),
            message: rescued.error.to_string(),
            data: bytes(&rescued.data),
            repair: repair.transpose()?,
            suspects: PyList::new(py, suspects)?.unbind(),
        }))
    }
}

fn suspect(py: Python<'_>, record: &Record<'_>) -> PyResult<Suspect> {
    let bytes = |data: &[u8]| PyBytes::new(py, data).unbind();
    let headers: Vec<_> = record
        .headers()
        .map(|header| (String::from_utf8_lossy(header.key).into_owned(), header.value.map(bytes)))
        .collect();
    Ok(Suspect {
        offset: record.offset(),
        timestamp: record.timestamp(),
        key: record.key().map(bytes),
        value: record.value().map(bytes),
        headers: PyList::new(py, headers)?.unbind(),
    })
}
