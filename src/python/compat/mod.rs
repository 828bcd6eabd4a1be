//! What stands in for the record classes of aiokafka and kafka-python: `magicbyte.compat` says what each
//! is for. Names, arguments and quirks are the originals'; what is read and written is the core's.

mod builders;
pub(super) mod client;
mod default_batch;
mod default_builder;
mod functions;
mod legacy_batch;
mod legacy_builder;
mod memory_records;
mod records;

use pyo3::prelude::*;

/// Adds the types that are not written with PyO3's macros.
pub(super) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions::add_functions(module)?;
    records::add_types(module)?;
    memory_records::add_types(module)?;
    default_batch::add_types(module)?;
    legacy_batch::add_types(module)?;
    builders::add_types(module)?;
    default_builder::add_types(module)?;
    legacy_builder::add_types(module)
}
