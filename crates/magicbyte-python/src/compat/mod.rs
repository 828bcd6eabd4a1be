//! The module `magicbyte.compat._core`: drop-ins for the record classes of aiokafka and kafka-python. They have the
//! originals' names, arguments and quirks; the core does the reading and writing.

mod builders;
mod client;
mod codecs;
mod default_batch;
mod default_builder;
mod functions;
mod legacy_batch;
mod legacy_builder;
mod memory_records;
mod records;

use pyo3::prelude::*;

const NAME: &str = "magicbyte.compat._core";

/// Creates the module and adds it to `sys.modules`, where imports look first. The wheel has a single shared library,
/// which Python loads as `magicbyte._core` when it imports `magicbyte`, and so before any module of `magicbyte.compat`.
pub(super) fn add_module(py: Python<'_>) -> PyResult<()> {
    let module = PyModule::new(py, NAME)?;
    module.setattr("__doc__", "The compiled drop-ins for aiokafka and kafka-python.")?;
    // `importlib.util.find_spec` raises for a module without a spec.
    let spec = py.import("importlib.machinery")?.getattr("ModuleSpec")?.call1((NAME, py.None()))?;
    module.setattr("__spec__", spec)?;
    module.add_function(wrap_pyfunction!(client::counts, &module)?)?;
    codecs::add_functions(&module)?;
    functions::add_functions(&module)?;
    records::add_types(&module)?;
    memory_records::add_types(&module)?;
    default_batch::add_types(&module)?;
    legacy_batch::add_types(&module)?;
    builders::add_types(&module)?;
    default_builder::add_types(&module)?;
    legacy_builder::add_types(&module)?;
    py.import("sys")?.getattr("modules")?.set_item(NAME, module)
}
