//! Converting rows of Arrow columns to records.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, RecordBatch};

use magicbyte::{Error, ErrorKind, RecordsBuilder, Result};

use crate::cells::{Blobs, HeaderLists, Times, wrong};

/// The columns of an Arrow batch that make up records, found by name: `value` and, if present, `key`,
/// `offset`, `timestamp` and `headers`. Other columns are ignored. A view.
///
/// `value` and `key` are binary or text in any layout, `offset` is int64, `timestamp` is int64 milliseconds
/// or a timestamp of any unit, rounded down to milliseconds (null for none), and `headers` is a list of
/// structs of key and value (text or binary).
#[derive(Debug)]
pub struct Rows<'a> {
    count: usize,
    key: Option<Blobs<'a>>,
    value: Blobs<'a>,
    offset: Option<&'a Int64Array>,
    timestamp: Option<Times<'a>>,
    headers: Option<HeaderLists<'a>>,
}

/// The offset and timestamp of a row whose columns do not have them.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// The offset.
    pub offset: i64,
    /// The timestamp (ms) if there is no column of them. A null in that column is a record without a
    /// timestamp.
    pub timestamp: i64,
}

impl<'a> Rows<'a> {
    /// Finds the columns.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] if there is no column `value`, or a column has another type.
    pub fn of(batch: &'a RecordBatch) -> Result<Self> {
        let column = |name| batch.column_by_name(name);
        let Some(value) = column("value") else { return Err(wrong("there is no column value", "value")) };
        let blobs = |name| column(name).map(|c| Blobs::of(c, name)).transpose();
        let offset = column("offset").map(|offset| {
            offset.as_primitive_opt::<Int64Type>().ok_or_else(|| wrong("offset is not int64", "offset"))
        });
        Ok(Self {
            count: batch.num_rows(),
            key: blobs("key")?,
            value: Blobs::of(value, "value")?,
            offset: offset.transpose()?,
            timestamp: column("timestamp").map(Times::of).transpose()?,
            headers: column("headers").map(HeaderLists::of).transpose()?,
        })
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends the record of one row to `builder`; returns its offset.
    ///
    /// # Errors
    /// The errors of [`RecordsBuilder::append`]; [`ErrorKind::InvalidRecord`] for a null offset, or for a
    /// null header key, which Kafka's `DefaultRecord` refuses.
    pub fn append(&self, row: usize, defaults: Defaults, builder: &mut RecordsBuilder) -> Result<i64> {
        let key = self.key.as_ref().and_then(|keys| keys.get(row));
        let timestamp = self.timestamp.as_ref().map_or(defaults.timestamp, |times| times.get(row));
        self.append_row(row, timestamp, (key, self.value.get(row)), defaults.offset, builder)
    }

    /// Appends the records of all rows to `builder`, with consecutive offsets from `defaults.offset` on if
    /// there is no column `offset`. Returns the offset after the last.
    ///
    /// # Errors
    /// The errors of [`append`](Self::append); earlier rows have been appended.
    pub fn append_all(&self, mut defaults: Defaults, builder: &mut RecordsBuilder) -> Result<i64> {
        // The types of the columns are matched once per block rather than once per row.
        let (mut keys, mut values) = ([None; BLOCK], [None; BLOCK]);
        let mut times = [defaults.timestamp; BLOCK];
        for start in (0..self.count).step_by(BLOCK) {
            let size = BLOCK.min(self.count - start);
            if let Some(column) = &self.key {
                column.fill(start, &mut keys[..size]);
            }
            self.value.fill(start, &mut values[..size]);
            if let Some(column) = &self.timestamp {
                column.fill(start, &mut times[..size]);
            }
            let cells = times[..size].iter().zip(&keys[..size]).zip(&values[..size]);
            for (row, ((timestamp, key), value)) in (start..).zip(cells) {
                let offset = self.append_row(row, *timestamp, (*key, *value), defaults.offset, builder)?;
                defaults.offset = offset.saturating_add(1);
            }
        }
        Ok(defaults.offset)
    }

    #[inline(always)]
    fn append_row(
        &self,
        row: usize,
        timestamp: i64,
        (key, value): (Option<&[u8]>, Option<&[u8]>),
        default_offset: i64,
        builder: &mut RecordsBuilder,
    ) -> Result<i64> {
        let offset = match self.offset {
            Some(offsets) if offsets.is_null(row) => {
                return Err(Error::new(ErrorKind::InvalidRecord("the offset is null")).in_field("offset"));
            }
            Some(offsets) => offsets.value(row),
            None => default_offset,
        };
        match &self.headers {
            Some(lists) => {
                let headers = lists.get(row)?;
                builder.append(offset, timestamp, key, value, &headers)?;
            }
            None => builder.append(offset, timestamp, key, value, &[])?,
        }
        Ok(offset)
    }
}

/// Rows whose keys and values are looked up together.
const BLOCK: usize = 256;
