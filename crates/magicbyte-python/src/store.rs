//! Stores that are implemented in Python, and the table of those that are mounted. Paths and plain data that come from
//! Python are resolved by it here. A thread is attached to the interpreter for a call only: a range is awaited in the
//! future that the store returns, which releases the GIL.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use pyo3::exceptions::{PyException, PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use magicbyte_log::internals::{Found, OpenFile, Other, entries_as_they_are};
use magicbyte_log::{Fetch, Location, RemoteStore, StoredFile, Stores};

use crate::errors::io_to_py;
use crate::locked::Locked;
use crate::view::{BYTES, content};
use crate::{buffer, docs::docstring, panics};

/// An object with the methods `list`, `examine`, `read` and `fetch` of `magicbyte.storage.remote.RemoteStore`.
#[derive(Debug)]
struct PyStore(Py<PyAny>);

type Row = (String, bool, u64, i64, Option<String>);

fn stored_file((name, is_directory, size, modified_ms, version): Row) -> StoredFile {
    StoredFile { name, is_directory, size, modified_ms, version }
}

impl RemoteStore for PyStore {
    fn list(&self, directory: &str) -> io::Result<Vec<StoredFile>> {
        attached(|py| {
            let rows: Vec<Row> = self.0.bind(py).call_method1("list", (directory,))?.extract()?;
            Ok(rows.into_iter().map(stored_file).collect())
        })
    }

    fn examine(&self, path: &str) -> io::Result<StoredFile> {
        attached(|py| Ok(stored_file(self.0.bind(py).call_method1("examine", (path,))?.extract()?)))
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        attached(|py| {
            Ok(content("read()", &self.0.bind(py).call_method1("read", (path, limit))?)?.into_owned())
        })
    }

    fn fetch(&self, path: &str, version: Option<&str>, range: Range<u64>) -> io::Result<Box<dyn Fetch>> {
        attached(|py| {
            let future = self.0.bind(py).call_method1("fetch", (path, version, range.start, range.end))?;
            Ok(Box::new(PyFetch(Some(future.unbind()))) as Box<dyn Fetch>)
        })
    }
}

/// A `concurrent.futures.Future` of bytes.
#[derive(Debug)]
struct PyFetch(Option<Py<PyAny>>);

impl Fetch for PyFetch {
    fn wait(mut self: Box<Self>, buffer: &mut Vec<u8>) -> io::Result<()> {
        let Some(future) = self.0.take() else { return Ok(()) };
        attached(|py| {
            let bytes = future.bind(py).call_method0("result")?;
            buffer.clear();
            buffer::append_to(buffer, "result()", BYTES, &bytes)
        })
    }
}

impl Drop for PyFetch {
    fn drop(&mut self) {
        if let Some(future) = self.0.take() {
            // Nobody waits for it; an error has nobody to go to.
            let _ = Python::try_attach(|py| future.bind(py).call_method0("cancel").map(drop));
        }
    }
}

/// Calls Python.
fn attached<R>(call: impl FnOnce(Python<'_>) -> PyResult<R>) -> io::Result<R> {
    let called = Python::try_attach(|py| call(py).map_err(|error| to_io(py, error)));
    called.unwrap_or_else(|| Err(io::Error::other("the interpreter is about to exit")))
}

/// An exception as an error of the core: an `OSError` with its kind. An interrupt is kept, to be raised again.
fn to_io(py: Python<'_>, error: PyErr) -> io::Error {
    if !error.is_instance_of::<PyException>(py) {
        return io::Error::other(error);
    }
    let value = error.value(py);
    let errno = value.getattr("errno").and_then(|errno| errno.extract::<i32>()).ok();
    let kind = match errno {
        _ if error.is_instance_of::<PyFileNotFoundError>(py) => io::ErrorKind::NotFound,
        Some(errno) if error.is_instance_of::<PyOSError>(py) => io::Error::from_raw_os_error(errno).kind(),
        _ => io::ErrorKind::Other,
    };
    let strerror = value.getattr("strerror").and_then(|text| text.extract::<String>());
    io::Error::new(kind, strerror.unwrap_or_else(|_| value.to_string()))
}

static STORES: LazyLock<RwLock<Stores>> = LazyLock::new(RwLock::default);

/// The stores that are mounted now.
pub(crate) fn stores() -> Stores {
    STORES.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The location of a path or URL.
pub(crate) fn located(path: &Path) -> Location {
    Location::parse(path, &stores())
}

#[doc = docstring!(steps, mount_store)]
#[pyfunction]
pub(super) fn mount_store(prefix: &str, store: Py<PyAny>) {
    panics::here();
    let mut stores = STORES.write().unwrap_or_else(PoisonError::into_inner);
    let before = stores.mount(prefix, Arc::new(PyStore(store)));
    drop(stores);
    // While attached.
    drop(before);
}

#[doc = docstring!(steps, add_encryption_key)]
#[pyfunction]
pub(super) fn add_encryption_key(py: Python<'_>, pem: &str, key_id: Option<&str>) -> PyResult<()> {
    panics::here();
    py.detach(|| STORES.write().unwrap_or_else(PoisonError::into_inner).add_encryption_key(key_id, pem))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

#[doc = docstring!(steps, list_directory)]
#[pyfunction]
pub(super) fn list_directory(py: Python<'_>, path: PathBuf) -> PyResult<Vec<(String, bool)>> {
    panics::here();
    let listed =
        py.detach(|| entries_as_they_are(&path, &stores())).map_err(|error| io_to_py(&path, &error))?;
    let entry = |(path, found): (PathBuf, io::Result<Found>)| {
        let name = path.file_name()?.to_str()?.to_owned();
        Some((name, matches!(found, Ok(Found::Other(Other::Directory, _)))))
    };
    Ok(listed.into_iter().filter_map(entry).collect())
}

#[doc = docstring!(steps, StoredFile)]
#[pyclass(frozen, name = "StoredFile", module = "magicbyte._core")]
pub(super) struct PyStoredFile {
    file: Locked<OpenFile>,
    path: PathBuf,
    size: u64,
}

#[pymethods]
impl PyStoredFile {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        panics::here();
        let location = located(&path);
        let opened = py.detach(|| match location.examine()? {
            Found::File(info) => Ok((location.open(info.size, info.version.as_deref())?, info.size)),
            Found::Other(_, why) => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
        });
        let (file, size) = opened.map_err(|error| io_to_py(&path, &error))?;
        Ok(Self { file: Locked::new(file), path, size })
    }

    #[doc = docstring!(steps, StoredFile.size)]
    #[getter]
    fn size(&self) -> u64 {
        panics::here();
        self.size
    }

    #[doc = docstring!(steps, StoredFile.read)]
    fn read<'py>(&self, py: Python<'py>, position: u64, length: u64) -> PyResult<Bound<'py, PyBytes>> {
        let length = length.min(self.size.saturating_sub(position)) as usize;
        let read = self.file.with(py, |file| {
            let mut bytes = vec![0; length];
            let mut filled = 0;
            while filled < length {
                match file.read_at(&mut bytes[filled..], position + filled as u64)? {
                    0 => break,
                    read => filled += read,
                }
            }
            bytes.truncate(filled);
            Ok(bytes)
        });
        Ok(PyBytes::new(py, &read.map_err(|error: io::Error| io_to_py(&self.path, &error))?))
    }
}

#[doc = docstring!(steps, is_stored)]
#[pyfunction]
pub(super) fn is_stored(path: PathBuf) -> bool {
    panics::here();
    !located(&path).is_live()
}

#[doc = docstring!(steps, is_directory)]
#[pyfunction]
pub(super) fn is_directory(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    panics::here();
    py.detach(|| located(&path).is_directory()).map_err(|error| io_to_py(&path, &error))
}
