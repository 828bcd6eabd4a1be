//! The table `problems`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};

use magicbyte_log::Problem;

use crate::schema::problems_schema;

/// The problems as an Arrow batch; `None` if there are none.
pub(super) fn problems_to_arrow(problems: &[Problem]) -> Option<RecordBatch> {
    if problems.is_empty() {
        return None;
    }
    let text = |of: fn(&Problem) -> Option<&str>| -> ArrayRef {
        Arc::new(problems.iter().map(of).collect::<StringArray>())
    };
    let long = |of: fn(&Problem) -> Option<i64>| -> ArrayRef {
        Arc::new(problems.iter().map(of).collect::<Int64Array>())
    };
    let arrays = vec![
        text(|p| Some(&p.topic)),
        Arc::new(problems.iter().map(|p| p.partition).map(Some).collect::<Int32Array>()),
        text(|p| p.segment.as_deref()),
        text(|p| Some(&p.kind)),
        long(|p| p.start.map(|n| n as i64)),
        long(|p| p.end.map(|n| n as i64)),
        long(|p| p.base_offset),
        long(|p| p.record_index.map(i64::from)),
        text(|p| p.field.as_deref()),
        long(|p| p.first_lost_offset),
        long(|p| p.last_lost_offset),
        text(|p| Some(&p.message)),
    ];
    RecordBatch::try_new(problems_schema(), arrays).ok()
}
