//! Converts errors of the core to the exceptions of `magicbyte.errors`.

use std::io::ErrorKind as IoKind;

use pyo3::exceptions::{
    PyConnectionError, PyFileExistsError, PyFileNotFoundError, PyOSError, PyPermissionError, PyRuntimeError,
    PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;

use magicbyte::{Error, ErrorKind};
use magicbyte_broker::AppendError;
use magicbyte_log::LogError;
use magicbyte_log::internals::cause;

use crate::classes;

fn class_of(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::InvalidSize { .. } if error.record_index().is_none() => "CorruptRecordError",
        ErrorKind::CrcMismatch { .. }
        | ErrorKind::Garbage
        | ErrorKind::Zeros
        | ErrorKind::OffsetOutOfOrder { .. }
        | ErrorKind::FileTruncated
        | ErrorKind::FileMissing
        | ErrorKind::FileUnreadable(_)
        | ErrorKind::MissingSegment { .. } => "CorruptRecordError",
        ErrorKind::UnsupportedMagic(_) => "UnsupportedMagicError",
        ErrorKind::UnknownCompression(_)
        | ErrorKind::UnsupportedCompression(_)
        | ErrorKind::UnsupportedLevel { .. } => "UnsupportedCompressionError",
        ErrorKind::LimitExceeded { .. } | ErrorKind::RecordTooLarge { .. } => "LimitExceededError",
        ErrorKind::NeedMoreBytes { .. } | ErrorKind::PartialBatch => "NeedMoreBytesError",
        ErrorKind::InvalidSidecar(_)
        | ErrorKind::InvalidMessage(_)
        | ErrorKind::UnsupportedVersion(_)
        | ErrorKind::InvalidOptions(_)
        | ErrorKind::Compression(_) => "Error",
        _ => "InvalidRecordError",
    }
}

#[cold]
pub(super) fn to_py(py: Python<'_>, error: &Error) -> PyErr {
    with_message(py, error, error.to_string())
}

fn with_message(py: Python<'_>, error: &Error, message: String) -> PyErr {
    let arguments = (
        message,
        error.kind().name(),
        error.position(),
        error.base_offset(),
        error.record_index(),
        error.field(),
    );
    let raised = classes::errors(py).and_then(|module| module.getattr(class_of(error))?.call1(arguments));
    match raised {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

/// A broker that has no version of a request in common with the client.
#[cold]
pub(super) fn unsupported_version(py: Python<'_>, message: String) -> PyErr {
    let class = classes::errors(py).and_then(|module| module.getattr("UnsupportedVersionError"));
    class.and_then(|class| class.call1((message,))).map_or_else(|failed| failed, PyErr::from_value)
}

#[cold]
pub(super) fn append_to_py(py: Python<'_>, error: &AppendError) -> PyErr {
    let cause = error.cause();
    let record_errors: Vec<(u32, String)> =
        error.record_errors().iter().map(|one| (one.batch_index, one.kind.to_string())).collect();
    let arguments = (
        error.to_string(),
        error.code().name(),
        error.code().code(),
        record_errors,
        cause.map_or("append_refused", |cause| cause.kind().name()),
        cause.and_then(Error::position),
        cause.and_then(Error::base_offset),
        cause.and_then(Error::record_index),
        cause.and_then(Error::field),
    );
    let raised = classes::errors(py).and_then(|module| module.getattr("AppendError")?.call1(arguments));
    match raised {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

#[cold]
pub(super) fn log_to_py(py: Python<'_>, error: &LogError) -> PyErr {
    match error {
        LogError::Io { path, source } => io_to_py(path, source),
        LogError::Format { path, error: inner } => {
            with_message(py, inner, format!("{}: {inner}", path.display()))
        }
        LogError::Usage(why) => PyValueError::new_err(why.clone()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// An OSError with errno and file name, so that Python picks FileNotFoundError and the like.
pub(super) fn io_to_py(path: &std::path::Path, source: &std::io::Error) -> PyErr {
    if let Some(errno) = source.raw_os_error() {
        // Python adds the number itself.
        let text = source.to_string();
        let text = text.strip_suffix(&format!(" (os error {errno})")).unwrap_or(&text).to_owned();
        return PyOSError::new_err((errno, text, path.display().to_string()));
    }
    // An interrupt, while a store was awaited.
    if let Some(raised) = cause(source).and_then(|error| error.downcast_ref::<PyErr>()) {
        return Python::attach(|py| raised.clone_ref(py));
    }
    let message = format!("{}: {source}", path.display());
    match source.kind() {
        IoKind::AlreadyExists => PyFileExistsError::new_err(message),
        IoKind::NotFound => PyFileNotFoundError::new_err(message),
        IoKind::PermissionDenied => PyPermissionError::new_err(message),
        IoKind::TimedOut => PyTimeoutError::new_err(message),
        IoKind::ConnectionAborted => PyConnectionError::new_err(message),
        _ => PyOSError::new_err(message),
    }
}

/// The name of an argument's type, for errors.
pub(super) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().fully_qualified_name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}
