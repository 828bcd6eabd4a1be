//! The Python bindings: arguments, the GIL, errors, buffers. No rule of the format lives here.
#![deny(unsafe_code)]
#![allow(clippy::doc_lazy_continuation, reason = "docstrings have Python's examples, and are no Markdown")]

mod append;
mod append_arguments;
mod arguments;
mod arrow;
mod arrow_stream;
mod audit;
mod batch;
mod broker;
mod buffer;
mod builder;
mod classes;
mod cleaner;
mod cluster;
mod compat;
mod convert;
mod docs;
mod errors;
mod fetched;
mod gil_cell;
mod indexed_batch;
mod internal_topics;
mod jobs;
mod json;
mod lab;
mod layout;
mod lines;
mod live;
mod live_cluster;
mod live_in_turn;
mod locked;
mod log;
mod merge;
mod message;
mod objects;
mod panics;
mod pickle;
mod protobuf_structure;
mod range_digests;
mod record;
mod rescue;
mod results;
mod runs;
mod schema_decoder;
mod schema_encoder;
mod schema_framing;
mod serve;
mod sidecars;
mod simulator;
mod state;
mod store;
mod view;
mod wire;
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

use crate::docs::docstring;

/// The module `magicbyte._core`. Types, free lists and classes are kept in statics that the GIL guards: there is one
/// module a process, and an interpreter without GIL gets it back for us.
#[pymodule(gil_used = true)]
mod _core {
    use pyo3::prelude::*;

    use magicbyte_arrow::RecordColumn;

    #[pymodule_export]
    use crate::arrow::{PyArrowBatch, PyArrowSchema, arrow_schema, digest_records, digest_rows};
    #[pymodule_export]
    use crate::arrow_stream::{PyArrowBatches, PyArrowStream, ReadCounts, chain_streams};
    #[pymodule_export]
    use crate::audit::{PyBatchHeaders, digest_contents};
    #[pymodule_export]
    use crate::batch::{BatchBase, LegacyBatch, PyBatches, RecordBatch, read_batches};
    #[pymodule_export]
    use crate::broker::{AppendInfo, PyAppendValidator, check_produce_request};
    #[pymodule_export]
    use crate::builder::PyRecordsBuilder;
    #[pymodule_export]
    use crate::cleaner::{
        PyKeySet, check_segment, compact_group, index_keys, plan_compaction, plan_redaction,
        producer_summary, redact_group, reduce_keys,
    };
    #[pymodule_export]
    use crate::cluster::{PyClusterReader, whole_batches};
    #[pymodule_export]
    use crate::convert::{
        PyConverter, set_last_offset, set_max_timestamp, set_partition_leader_epoch, set_producer_state,
    };
    #[pymodule_export]
    use crate::fetched::{PyFetchedChunk, PyFetchedChunks};
    #[pymodule_export]
    use crate::internal_topics::{
        CommittedOffsets, decode_data, decode_record, encode_coordinator_record, encode_data,
        encode_metadata_record, is_secret_record,
    };
    #[pymodule_export]
    use crate::jobs::{
        PyChunkDecoder, PySurveyInParts, check_chunk, digest_chunk, hash_chunk, is_in_name_order,
        is_partition, is_same_file, is_segment_file, join_results, list_partition, offset_for_timestamp,
        plan_partition, reconcile, reconcile_fetched, segments_from, start_for_timestamp, survey_segment,
        trim_chunk, unreadable_directory,
    };
    #[pymodule_export]
    use crate::lab::{batches_cost, chunk_cost, cost_report, try_layouts};
    #[pymodule_export]
    use crate::layout::{BatchField, PyBatchLayout};
    #[pymodule_export]
    use crate::lines::{PyLineWriter, PyRowFilter};
    #[pymodule_export]
    use crate::live_cluster::PyLiveCluster;
    #[pymodule_export]
    use crate::live_in_turn::read_in_turn;
    #[pymodule_export]
    use crate::log::{PyLogBatches, PyLogRecords, PyPartitionReader, list_log};
    #[pymodule_export]
    use crate::merge::{align_copies, join_alignments, plan_merge, repair_holes};
    #[pymodule_export]
    use crate::message::{
        apis, decode_request, decode_response, encode_request, encode_response, header_versions,
    };
    #[pymodule_export]
    use crate::pickle::{unpickle_batch, unpickle_record};
    #[pymodule_export]
    use crate::protobuf_structure::protobuf_structure;
    #[pymodule_export]
    use crate::rescue::{PyRescuer, Repair, Rescued, Suspect};
    #[pymodule_export]
    use crate::runs::find_runs;
    #[pymodule_export]
    use crate::schema_decoder::PySchemaDecoder;
    #[pymodule_export]
    use crate::schema_encoder::PySchemaEncoder;
    #[pymodule_export]
    use crate::schema_framing::{
        parse_message_indexes, parse_schema_framing, schema_header_names, split_window, write_schema_framing,
    };
    #[pymodule_export]
    use crate::serve::PyServer;
    #[pymodule_export]
    use crate::sidecars::{
        OffsetIndexEntry, PartitionMetadata, TimeIndexEntry, TransactionIndexEntry,
        collect_aborted_transactions, decompress, leader_epoch_checkpoint, offset_index, partition_metadata,
        producer_snapshot, read_sidecar, time_index, transaction_index,
    };
    #[pymodule_export]
    use crate::simulator::{FetchResponse, ListedOffset, ProduceResponse, PySimulator};
    #[pymodule_export]
    use crate::state::{
        AbortedFilter, AbortedTransaction, BatchMetadata, Check, CompletedTransaction, Guard,
        ProducerStateEntry, PyLeaderEpochs, PyProducerStateManager, Truncation, partition_history,
        segment_history,
    };
    #[pymodule_export]
    use crate::store::{
        PyStoredFile, add_encryption_key, is_directory, is_stored, list_directory, mount_store,
    };
    #[pymodule_export]
    use crate::wire::{PyWireReader, request_record_sets, response_record_sets};
    #[pymodule_export]
    use crate::writer::{
        PyPartitionWriter, PyRowsWriter, begin_partition, finish_partition, forget_producers,
        rebuild_sidecars, rewrite_chunks, set_aside,
    };
    #[pymodule_export]
    use crate::{crc32c, decode_varint, encode_varint};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::load_once()?;
        crate::panics::add_internal_error(module)?;
        // Not by `add`, which would name it in `__all__`.
        #[cfg(debug_assertions)]
        module.setattr("_panic_next", wrap_pyfunction!(crate::panics::_panic_next, module)?)?;
        // Now, so that errors have their classes whatever becomes of sys.modules.
        crate::classes::errors(module.py())?;
        crate::objects::types::add_types(module)?;
        crate::append::add_append(&module.py().get_type::<crate::builder::PyRecordsBuilder>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("LISTED", magicbyte_log::LISTED)?;
        module.add("CONSUMED_COLUMNS", RecordColumn::CONSUMED.map(RecordColumn::name))?;
        module.add("MAX_COLUMN_PAYLOAD", magicbyte_arrow::MAX_PAYLOAD)?;
        module.add("TRANSACTION_STATES", magicbyte_protocol::internal_topics::TRANSACTION_STATES)?;
        module.add("PROBLEMS_TOPIC", magicbyte_serve::PROBLEMS_TOPIC)?;
        module.add("DEFAULT_MAX_DECOMPRESSED_BYTES", magicbyte::DEFAULT_MAX_DECOMPRESSED_BYTES)?;
        crate::compat::add_module(module.py())
    }
}

/// Refuses a second interpreter, and a second import into one: objects and errors of the first would meet classes
/// of the second.
fn load_once() -> PyResult<()> {
    static LOADED: AtomicBool = AtomicBool::new(false);
    if LOADED.swap(true, Ordering::SeqCst) {
        return Err(PyImportError::new_err(
            "magicbyte can be loaded once a process: not in a second interpreter, and not again after its modules \
             were removed from sys.modules. Expected one interpreter; use processes instead.",
        ));
    }
    Ok(())
}

#[doc = docstring!(basics, crc32c)]
#[pyfunction]
#[pyo3(signature = (data, value = 0))]
fn crc32c(py: Python<'_>, data: &Bound<'_, PyAny>, value: u32) -> PyResult<u32> {
    let data = view::to_bytes("data", data)?;
    Ok(py.detach(|| magicbyte::crc32c(&data, value)))
}

#[doc = docstring!(basics, encode_varint)]
#[pyfunction]
fn encode_varint(n: i64) -> Vec<u8> {
    panics::here();
    let mut out = Vec::with_capacity(10);
    magicbyte::encode_varint(n, &mut out);
    out
}

#[doc = docstring!(basics, decode_varint)]
#[pyfunction]
#[pyo3(signature = (data, position = 0))]
fn decode_varint(py: Python<'_>, data: &Bound<'_, PyAny>, position: usize) -> PyResult<(i64, usize)> {
    let data = view::to_bytes("data", data)?;
    magicbyte::decode_varint(&data, position).map_err(|error| errors::to_py(py, &error))
}
