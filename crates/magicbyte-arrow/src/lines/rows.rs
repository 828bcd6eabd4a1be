//! The loop over rows and fields that the formats of lines share.

use crate::lines::fields::Field;

/// The style in which the fields of a line are written.
pub(super) trait LineStyle {
    /// The bytes before a field's cell.
    fn label(&self, is_first: bool, name: &str) -> Vec<u8>;

    /// Appends the label and the cell of a field.
    fn push(&self, label: &[u8], field: &Field<'_>, row: usize, out: &mut Vec<u8>);

    /// The bytes after the fields.
    fn end(&self, is_empty: bool) -> &'static [u8];
}

/// Appends a line per row.
pub(super) fn push_lines(fields: &[Field<'_>], rows: usize, style: &impl LineStyle, out: &mut Vec<u8>) {
    let mut parts = parts_of(fields, rows, style);
    for row in 0..rows {
        for part in &mut parts {
            match part {
                Part::Each(label, field) => style.push(label, field, row, out),
                Part::Shared(run) => run.push(row, style, out),
            }
        }
        out.extend_from_slice(style.end(fields.is_empty()));
    }
}

/// A part of a line.
enum Part<'a> {
    /// A field with a value for each row, and its label.
    Each(Vec<u8>, &'a Field<'a>),
    /// Fields that neighbouring rows share.
    Shared(SharedRun<'a>),
}

/// Consecutive fields whose text is kept for as long as their values stay the same.
struct SharedRun<'a> {
    fields: Vec<(Vec<u8>, &'a Field<'a>)>,
    text: Vec<u8>,
    /// For each row, true if its text differs from the text of the row before it.
    changed: Vec<bool>,
}

impl<'a> SharedRun<'a> {
    fn new(rows: usize) -> Self {
        let mut changed = vec![false; rows];
        if let Some(first) = changed.first_mut() {
            *first = true;
        }
        Self { fields: Vec::new(), text: Vec::new(), changed }
    }

    fn add(mut self, label: Vec<u8>, field: &'a Field<'a>) -> Self {
        field.mark_changes(&mut self.changed);
        self.fields.push((label, field));
        self
    }

    #[inline]
    fn push(&mut self, row: usize, style: &impl LineStyle, out: &mut Vec<u8>) {
        if self.changed[row] {
            self.text.clear();
            for (label, field) in &self.fields {
                style.push(label, field, row, &mut self.text);
            }
        }
        out.extend_from_slice(&self.text);
    }
}

fn parts_of<'a>(fields: &'a [Field<'a>], rows: usize, style: &impl LineStyle) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let label = style.label(at == 0, field.name);
        let part = if !field.is_shared() {
            Part::Each(label, field)
        } else if let Some(Part::Shared(run)) = parts.pop_if(|part| matches!(part, Part::Shared(_))) {
            Part::Shared(run.add(label, field))
        } else {
            Part::Shared(SharedRun::new(rows).add(label, field))
        };
        parts.push(part);
    }
    parts
}
