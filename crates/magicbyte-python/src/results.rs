//! Classes of results: the values that a method returns together.

/// Declares the frozen class of a result with its attributes, which are documented in a stub.
///
/// A result is compared, hashed, printed, unpacked, matched and pickled as its attributes in their order; they are
/// also the arguments of its constructor. To Python's `dataclasses` it is a dataclass. It may have further methods.
///
/// The attributes that hold a Python object are named again behind `holds`, for the garbage collector: what they hold
/// may refer to the result. Like a tuple, it cannot be cleared: a cycle has a mutable object, which can be.
macro_rules! result_class {
    (
        $stub:ident, $module:literal, $class:ident { $($name:ident: $type:ty),+ $(,)? }
        $(holds($($held:ident),+))? $({ $($methods:tt)* })?
    ) => {
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

            /// The dataclass of these attributes, which the descriptors of the class share.
            fn dataclass() -> &'static $crate::results::Dataclass {
                static DATACLASS: $crate::results::Dataclass =
                    $crate::results::Dataclass::new(&[$(stringify!($name)),+]);
                &DATACLASS
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
            fn fields() -> $crate::results::DataclassAttribute {
                $crate::results::DataclassAttribute::new("__dataclass_fields__", Self::dataclass())
            }

            #[classattr]
            #[pyo3(name = "__dataclass_params__")]
            fn params() -> $crate::results::DataclassAttribute {
                $crate::results::DataclassAttribute::new("__dataclass_params__", Self::dataclass())
            }

            $(
                fn __traverse__(
                    &self,
                    visit: pyo3::gc::PyVisit<'_>,
                ) -> Result<(), pyo3::gc::PyTraverseError> {
                    $(visit.call(&self.$held)?;)+
                    Ok(())
                }
            )?

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

            /// For `copy.replace`, since Python 3.13.
            #[pyo3(signature = (**changes))]
            fn __replace__<'py>(
                slf: &pyo3::Bound<'py, Self>,
                changes: Option<&pyo3::Bound<'py, pyo3::types::PyDict>>,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::PyAny>> {
                $crate::panics::here();
                let replace = slf.py().import("dataclasses")?.getattr("replace")?;
                pyo3::types::PyAnyMethods::call(&replace, (slf,), changes)
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
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyTuple};

/// A dataclass with the attributes of a result, and without methods, since making them takes most of the time. It is
/// made when it is first needed, so that `import magicbyte` does not load `dataclasses`.
pub(crate) struct Dataclass {
    fields: &'static [&'static str],
    class: PyOnceLock<Py<PyAny>>,
}

impl Dataclass {
    pub(crate) const fn new(fields: &'static [&'static str]) -> Self {
        Self { fields, class: PyOnceLock::new() }
    }

    fn class<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let class = self.class.get_or_try_init(py, || {
            let options = [("init", false), ("repr", false), ("eq", false)].into_py_dict(py)?;
            let arguments = ("Result", self.fields.to_vec());
            py.import("dataclasses")?
                .call_method("make_dataclass", arguments, Some(&options))
                .map(Bound::unbind)
        })?;
        Ok(class.bind(py))
    }
}

/// An attribute by which `dataclasses` and pandas know a dataclass, as a descriptor.
#[pyclass(frozen, module = "magicbyte._core")]
pub(crate) struct DataclassAttribute {
    name: &'static str,
    dataclass: &'static Dataclass,
}

impl DataclassAttribute {
    pub(crate) fn new(name: &'static str, dataclass: &'static Dataclass) -> Self {
        Self { name, dataclass }
    }
}

#[pymethods]
impl DataclassAttribute {
    fn __get__<'py>(
        &self,
        py: Python<'py>,
        _instance: &Bound<'py, PyAny>,
        _owner: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        crate::panics::here();
        self.dataclass.class(py)?.getattr(self.name)
    }
}

/// A result as Python code: `Name(first=1, second=None)`.
pub(crate) fn shown(class: &str, names: &[&str], values: &Bound<'_, PyTuple>) -> PyResult<String> {
    let mut shown = Vec::with_capacity(names.len());
    for (name, value) in names.iter().zip(values) {
        shown.push(format!("{name}={}", value.repr()?.to_str()?));
    }
    Ok(format!("{class}({})", shown.join(", ")))
}
