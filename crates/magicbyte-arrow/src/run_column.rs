//! Columns of numbers that seldom change from row to row.

use crate::binary_column::renew;

/// Collects a column of runs. Each row costs a comparison; the rows of a run are written at its end.
#[derive(Debug, Default)]
pub(super) struct RunColumn {
    values: Vec<i32>,
    current: i32,
}

impl RunColumn {
    /// Sets the value of this row; rows come in order.
    #[inline(always)]
    pub(super) fn push(&mut self, row: usize, value: i32) {
        if value != self.current {
            self.values.resize(row, self.current);
            self.current = value;
        }
    }

    /// Removes rows; the remaining ones keep their values.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
    }

    pub(super) fn finish(&mut self, rows: usize) -> Vec<i32> {
        self.values.resize(rows, self.current);
        renew(&mut self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_rows_leave_no_trace() {
        let mut column = RunColumn::default();
        for (row, value) in [0, 0, 1, 1, 1].into_iter().enumerate() {
            column.push(row, value);
        }
        // An invalid batch: two changes, both removed.
        column.push(5, 7);
        column.push(6, 1);
        column.truncate(5);
        column.push(5, 0);
        assert_eq!(column.finish(6), [0, 0, 1, 1, 1, 0]);
        column.push(0, 2);
        column.truncate(0);
        assert!(column.finish(0).is_empty());
        column.push(0, 3);
        assert_eq!(column.finish(2), [3, 3]);
    }
}
