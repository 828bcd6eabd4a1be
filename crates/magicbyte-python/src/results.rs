//! Classes of results: the values that a method returns together.

/// Declares the frozen class of a result with its attributes, which are documented in a stub.
///
/// A result is compared, hashed, printed, unpacked, matched and pickled as its attributes in their order; they are
/// also the arguments of its constructor. To Python's `dataclasses` it is a dataclass. It may have further methods.
macro_rules! result_class {
    ($stub:ident, $module:literal, $class:ident { $($name:ident: $type:ty),+ $(,)? } $({ $($methods:tt)* })?) => {
        #[doc = $crate::docs::docstring!($stub, $class)]
        #[pyo3::pyclass(frozen, get_all, module = $module)]
        pub(crate) struct $class {
            $(#[doc = $crate::docs::docstring!($stub, $class.$name)] pub(crate) $name: $type,)+
        }

        impl $class {
            fn values<'py>(
                &self,
                py: pyo3::Python<'py>,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyTuple>> {
                $crate::panics::here();
                pyo3::IntoPyObject::into_pyobject(($(&self.$name,)+), py)
            }
        }

        #[pyo3::pymethods]
        impl $class {
            #[classattr]
            #[pyo3(name = "__match_args__")]
            fn names(py: pyo3::Python<'_>) -> pyo3::PyResult<pyo3::Bound<'_, pyo3::types::PyTuple>> {
                pyo3::types::PyTuple::new(py, [$(stringify!($name)),+])
            }

            #[classattr]
            #[pyo3(name = "__dataclass_fields__")]
            fn fields(py: pyo3::Python<'_>) -> pyo3::PyResult<pyo3::Bound<'_, pyo3::PyAny>> {
                $crate::results::dataclass_attribute(py, "__dataclass_fields__", &[$(stringify!($name)),+])
            }

            #[classattr]
            #[pyo3(name = "__dataclass_params__")]
            fn params(py: pyo3::Python<'_>) -> pyo3::PyResult<pyo3::Bound<'_, pyo3::PyAny>> {
                $crate::results::dataclass_attribute(py, "__dataclass_params__", &[])
            }

            #[allow(clippy::too_many_arguments, reason = "an argument for each attribute")]
            #[new]
            fn new($($name: $type),+) -> Self {
                $crate::panics::here();
                Self { $($name),+ }
            }

            fn __repr__(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<String> {
                $crate::results::shown(stringify!($class), &[$(stringify!($name)),+], &self.values(py)?)
            }

            fn __iter__<'py>(
                &self,
                py: pyo3::Python<'py>,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyIterator>> {
                pyo3::types::PyAnyMethods::try_iter(self.values(py)?.as_any())
            }

            fn __eq__(&self, py: pyo3::Python<'_>, other: &Self) -> pyo3::PyResult<bool> {
                pyo3::types::PyAnyMethods::eq(self.values(py)?.as_any(), other.values(py)?)
            }

            fn __hash__(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<isize> {
                pyo3::types::PyAnyMethods::hash(self.values(py)?.as_any())
            }

            fn __getnewargs__<'py>(
                &self,
                py: pyo3::Python<'py>,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyTuple>> {
                self.values(py)
            }

            $($($methods)*)?
        }
    };
}
pub(crate) use result_class;

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyTuple};

/// An attribute of a dataclass with these fields, by which `dataclasses.asdict`, `replace` and pandas know one.
pub(crate) fn dataclass_attribute<'py>(
    py: Python<'py>,
    attribute: &str,
    names: &[&str],
) -> PyResult<Bound<'py, PyAny>> {
    // A class without methods, since making them takes most of the time.
    let options = [("init", false), ("repr", false), ("eq", false)].into_py_dict(py)?;
    let class = py.import("dataclasses")?.call_method(
        "make_dataclass",
        ("Result", names.to_vec()),
        Some(&options),
    )?;
    class.getattr(attribute)
}

/// A result as Python code: `Name(first=1, second=None)`.
pub(crate) fn shown(class: &str, names: &[&str], values: &Bound<'_, PyTuple>) -> PyResult<String> {
    let mut shown = Vec::with_capacity(names.len());
    for (name, value) in names.iter().zip(values) {
        shown.push(format!("{name}={}", value.repr()?.to_str()?));
    }
    Ok(format!("{class}({})", shown.join(", ")))
}
