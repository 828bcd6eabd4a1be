//! `RecordsBuilder`: converts Python arguments, builds batches.

use std::borrow::Cow;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use magicbyte::{Compression, Error, ErrorKind, Header, ProducerState, RecordsBuilder, TimestampType};
use magicbyte_arrow::{Defaults, Rows};

use crate::append_arguments::{Append, Argument, append_rows, exact_fields};
use crate::arguments::{Codec, Millis, header_pairs, number, payload};
use crate::errors::to_py;
use crate::gil_cell::GilCell;
use crate::objects::record_object;
use crate::view::{content, header_key};
use crate::{arrow, docs::docstring, panics};

#[doc = docstring!(builder, RecordsBuilder)]
#[pyclass(frozen, name = "RecordsBuilder", module = "magicbyte")]
pub(super) struct PyRecordsBuilder(GilCell<State>);

struct State {
    builder: RecordsBuilder,
    /// The last batch built: its memory is reused for the next one, which is cheaper than a new allocation.
    built: Vec<u8>,
}

pub(super) type Content<'a> = Option<Cow<'a, [u8]>>;

impl PyRecordsBuilder {
    /// Works on the builder; `work` must not run Python code.
    #[inline]
    fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut RecordsBuilder) -> R) -> R {
        self.0.with(py, |state| work(&mut state.builder))
    }

    /// `append` or `try_append` with the arguments in order; false if there is no room.
    #[inline]
    pub(super) fn append_arguments(
        &self,
        py: Python<'_>,
        method: Append,
        [offset, timestamp, key, value, headers]: [Argument<'_, '_>; 5],
    ) -> PyResult<bool> {
        let missing =
            |name| PyTypeError::new_err(format!("{}() missing required argument: '{name}'", method.name()));
        let offset = offset.ok_or_else(|| missing("offset"))?;
        let timestamp = timestamp.ok_or_else(|| missing("timestamp"))?;
        self.append_objects(py, method, (offset, timestamp), (key, value), headers)
    }

    /// Appends a tuple or a record.
    fn append_item(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(tuple) = item.cast_exact::<PyTuple>().or_else(|_| item.cast()) {
            self.append_tuple(py, tuple)
        } else if let Some(record) = record_object::record_of(item) {
            self.with(py, |builder| builder.append_record(&record)).map_err(|e| to_py(py, &e))
        } else {
            Err(not_a_record())
        }
    }

    #[inline]
    fn append_objects(
        &self,
        py: Python<'_>,
        method: Append,
        (offset, timestamp): (Borrowed<'_, '_, PyAny>, Borrowed<'_, '_, PyAny>),
        (key, value): (Argument<'_, '_>, Argument<'_, '_>),
        headers: Argument<'_, '_>,
    ) -> PyResult<bool> {
        let headers = headers.filter(|headers| !headers.is_none());
        let appended = match exact_fields((offset, timestamp), (key, value)) {
            Some(row) if headers.is_none() => self.with(py, |builder| method.to(builder, row, &[])),
            _ => {
                let offset = if offset.is_none() { None } else { Some(number("offset", offset)?) };
                let numbers = (offset, number::<Millis>("timestamp", timestamp)?.0);
                return self.append_any(py, method, numbers, (key, value), headers);
            }
        };
        appended.map_err(|e| to_py(py, &e))
    }

    /// Appends fields of any types.
    #[cold]
    fn append_any(
        &self,
        py: Python<'_>,
        method: Append,
        (offset, timestamp): (Option<i64>, i64),
        (key, value): (Argument<'_, '_>, Argument<'_, '_>),
        headers: Argument<'_, '_>,
    ) -> PyResult<bool> {
        let (key, value) = (payload("key", key.as_deref())?, payload("value", value.as_deref())?);
        let items = headers.map(|headers| header_pairs(&headers)).transpose()?.unwrap_or_default();
        let headers = self.headers(py, &items)?;
        let headers = borrowed(&headers);
        let row = (offset, timestamp, key.as_deref(), value.as_deref());
        self.with(py, |builder| method.to(builder, row, &headers)).map_err(|e| to_py(py, &e))
    }

    /// Appends a tuple; its items can be borrowed, since a tuple cannot change.
    #[inline]
    fn append_tuple(&self, py: Python<'_>, tuple: &Bound<'_, PyTuple>) -> PyResult<()> {
        let headers = match tuple.len() {
            4 => None,
            5 => Some(tuple.get_borrowed_item(4)?),
            _ => return Err(not_a_record()),
        };
        let numbers = (tuple.get_borrowed_item(0)?, tuple.get_borrowed_item(1)?);
        let (key, value) = (tuple.get_borrowed_item(2)?, tuple.get_borrowed_item(3)?);
        self.append_objects(py, Append::Strict, numbers, (Some(key), Some(value)), headers).map(drop)
    }

    fn headers<'a>(
        &self,
        py: Python<'_>,
        items: &'a [(Bound<'_, PyAny>, Bound<'_, PyAny>)],
    ) -> PyResult<Vec<(Cow<'a, [u8]>, Content<'a>)>> {
        let null_key = || {
            let error = Error::new(ErrorKind::InvalidRecord("a header's key is null")).in_field("headerKey");
            to_py(py, &error.at_record(self.with(py, |builder| builder.record_count())))
        };
        let header = |(key, value): &'a (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            if key.is_none() {
                return Err(null_key());
            }
            Ok((header_key(key)?, payload("header value", Some(value))?))
        };
        items.iter().map(header).collect()
    }
}

pub(super) fn producer_state(id: i64, epoch: i16, base_sequence: i32, transactional: bool) -> ProducerState {
    let state = ProducerState::new(id, epoch, base_sequence);
    if transactional { state.transactional() } else { state }
}

fn not_a_record() -> PyErr {
    PyTypeError::new_err("expected tuples (offset, timestamp, key, value[, headers]) or records")
}

pub(super) fn borrowed<'a>(headers: &'a [(Cow<'_, [u8]>, Content<'_>)]) -> Vec<Header<'a>> {
    headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect()
}

/// The bytes of an argument; null if it is None.
pub(super) fn optional<'a>(name: &str, object: &'a Bound<'_, PyAny>) -> PyResult<Content<'a>> {
    (!object.is_none()).then(|| content(name, object)).transpose()
}

#[pymethods]
impl PyRecordsBuilder {
    #[new]
    #[pyo3(
        signature = (
            magic = 2, compression = Codec(Compression::None), level = None, *, producer_id = -1,
            producer_epoch = -1, base_sequence = -1, is_transactional = false, is_control = false,
            partition_leader_epoch = -1, delete_horizon_ms = None, timestamp_type = None,
            log_append_time = None, base_offset = None, max_size_in_bytes = None,
        ),
        text_signature = "(magic=2, compression=\"none\", level=None, *, producer_id=-1, \
            producer_epoch=-1, base_sequence=-1, is_transactional=False, is_control=False, \
            partition_leader_epoch=-1, delete_horizon_ms=None, timestamp_type=None, \
            log_append_time=None, base_offset=None, max_size_in_bytes=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn new(
        py: Python<'_>,
        magic: i8,
        compression: Codec,
        level: Option<i32>,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        is_transactional: bool,
        is_control: bool,
        partition_leader_epoch: i32,
        delete_horizon_ms: Option<Millis>,
        timestamp_type: Option<i8>,
        log_append_time: Option<Millis>,
        base_offset: Option<i64>,
        max_size_in_bytes: Option<usize>,
    ) -> PyResult<Self> {
        panics::here();
        let mut builder = match magic {
            0 => RecordsBuilder::v0(compression.0),
            1 => RecordsBuilder::v1(compression.0),
            2 => RecordsBuilder::v2(compression.0),
            other => return Err(to_py(py, &ErrorKind::UnsupportedMagic(other).into())),
        };
        let log_append_time = log_append_time.map(|time| time.0);
        check_timestamp_type(magic, timestamp_type, log_append_time)?;
        builder = builder
            .producer(producer_id, producer_epoch, base_sequence)
            .partition_leader_epoch(partition_leader_epoch);
        if is_transactional {
            builder = builder.transactional();
        }
        if is_control {
            builder = builder.control();
        }
        if let Some(level) = level {
            builder = builder.level(level);
        }
        if let Some(Millis(time)) = delete_horizon_ms {
            builder = builder.delete_horizon_ms(time);
        }
        if let Some(time) = log_append_time {
            builder = builder.log_append_time(time);
        }
        if let Some(offset) = base_offset {
            builder = builder.base_offset(offset);
        }
        if let Some(size) = max_size_in_bytes {
            builder = builder.max_size_in_bytes(size);
        }
        builder.validate().map_err(|e| to_py(py, &e))?;
        Ok(Self(GilCell::new(State { builder, built: Vec::new() })))
    }

    #[doc = docstring!(builder, RecordsBuilder.append_many)]
    fn append_many(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(list) = records.cast_exact::<PyList>() else {
            for item in records.try_iter()? {
                self.append_item(py, &item?)?;
            }
            return Ok(());
        };
        let mut at = 0;
        loop {
            let appended = self.with(py, |builder| append_rows(list, at, builder));
            at = appended.map_err(|e| to_py(py, &e))?;
            if at >= list.len() {
                return Ok(());
            }
            self.append_item(py, &list.get_item(at)?)?;
            at += 1;
        }
    }

    #[doc = docstring!(builder, RecordsBuilder.append_arrow)]
    #[pyo3(
        signature = (data, *, offset = 0, timestamp = Millis(-1)),
        text_signature = "($self, data, *, offset=0, timestamp=-1)"
    )]
    fn append_arrow(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        offset: i64,
        timestamp: Millis,
    ) -> PyResult<usize> {
        let mut count = 0;
        let mut defaults = Defaults { offset, timestamp: timestamp.0 };
        let mut batches = arrow::batches_of(data)?;
        while let Some(batch) = batches.next_batch()? {
            let appended = self.0.with_detached(py, |state| {
                let rows = Rows::of(&batch)?;
                rows.append_all(defaults, &mut state.builder)
            });
            defaults.offset = appended.map_err(|e| to_py(py, &e))?;
            count += batch.num_rows();
        }
        Ok(count)
    }

    #[doc = docstring!(builder, RecordsBuilder.has_room_for)]
    #[pyo3(signature = (timestamp, key = None, value = None, headers = None))]
    fn has_room_for(
        &self,
        py: Python<'_>,
        timestamp: Millis,
        key: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let (key, value) = (payload("key", key)?, payload("value", value)?);
        let items = headers.map(header_pairs).transpose()?.unwrap_or_default();
        let headers = self.headers(py, &items)?;
        let headers = borrowed(&headers);
        Ok(self.with(py, |builder| {
            builder.has_room_for(timestamp.0, key.as_deref(), value.as_deref(), &headers)
        }))
    }

    #[doc = docstring!(builder, RecordsBuilder.set_producer_state)]
    #[pyo3(
        signature = (producer_id, producer_epoch, base_sequence, *, is_transactional = false),
        text_signature = "($self, producer_id, producer_epoch, base_sequence, *, is_transactional=False)"
    )]
    fn set_producer_state(
        &self,
        py: Python<'_>,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        is_transactional: bool,
    ) -> PyResult<()> {
        let state = producer_state(producer_id, producer_epoch, base_sequence, is_transactional);
        self.with(py, |builder| builder.set_producer_state(state)).map_err(|e| to_py(py, &e))
    }

    #[doc = docstring!(builder, RecordsBuilder.base_sequence)]
    #[getter]
    fn base_sequence(&self, py: Python<'_>) -> i32 {
        self.with(py, |builder| builder.producer_state().base_sequence)
    }

    #[doc = docstring!(builder, RecordsBuilder.next_offset)]
    #[getter]
    fn next_offset(&self, py: Python<'_>) -> i64 {
        self.with(py, |builder| builder.next_offset())
    }

    #[doc = docstring!(builder, RecordsBuilder.estimated_size_in_bytes)]
    #[getter]
    fn estimated_size_in_bytes(&self, py: Python<'_>) -> usize {
        self.with(py, |builder| builder.estimated_size_in_bytes())
    }

    #[doc = docstring!(builder, RecordsBuilder.record_count)]
    #[getter]
    fn record_count(&self, py: Python<'_>) -> u32 {
        self.with(py, |builder| builder.record_count())
    }

    #[doc = docstring!(builder, RecordsBuilder.build)]
    fn build<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        // Without compression this is only a copy, not worth releasing the GIL.
        let stored = self.with(py, |builder| builder.build_stored(|batch| PyBytes::new(py, batch)));
        if let Some(batch) = stored.map_err(|e| to_py(py, &e))? {
            return Ok(batch);
        }
        let built = self.0.with_detached(py, |state| {
            let mut built = std::mem::take(&mut state.built);
            built.clear();
            state.builder.build_into(&mut built).map(|()| built)
        });
        let built = built.map_err(|e| to_py(py, &e))?;
        let batch = PyBytes::new(py, &built);
        self.0.with(py, |state| state.built = built);
        Ok(batch)
    }

    #[doc = docstring!(builder, RecordsBuilder.empty_batch)]
    fn empty_batch<'py>(
        &self,
        py: Python<'py>,
        last_offset: i64,
        max_timestamp: i64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let built = self.with(py, |builder| builder.empty_batch(last_offset, max_timestamp));
        Ok(PyBytes::new(py, &built.map_err(|e| to_py(py, &e))?))
    }
}

/// Checks that the type agrees with magic and append time, which determine it.
fn check_timestamp_type(magic: i8, given: Option<i8>, append_time: Option<i64>) -> PyResult<()> {
    let implied = match append_time {
        _ if magic == 0 => TimestampType::NoTimestampType,
        Some(_) => TimestampType::LogAppendTime,
        None => TimestampType::CreateTime,
    };
    match given {
        Some(given) if given != implied as i8 => Err(PyValueError::new_err(format!(
            "timestamp_type {given} does not go with magic {magic} and log_append_time {}: expected {}",
            append_time.map_or("None".to_owned(), |time| time.to_string()),
            implied as i8,
        ))),
        _ => Ok(()),
    }
}
