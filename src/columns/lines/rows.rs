//! The loop over rows and fields that the formats of lines share.

use crate::columns::lines::fields::Field;

/// How the fields of a line are written.
pub(super) trait LineStyle {
    /// What precedes a field's cell.
    fn label(&self, is_first: bool, name: &str) -> Vec<u8>;

    /// Appends the label and the cell of a field.
    fn push(&self, label: &[u8], field: &Field<'_>, row: usize, out: &mut Vec<u8>);

    /// What follows the fields.
    fn end(&self, is_empty: bool) -> &'static [u8];
}

/// Appends a line per row.
pub(super) fn push_lines(fields: &[Field<'_>], rows: usize, style: &impl LineStyle, out: &mut Vec<u8>) {
    let mut parts = parts_of(fields, style);
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

/// What a line consists of.
enum Part<'a> {
    /// A field with a value for each row, and its label.
    Each(Vec<u8>, &'a Field<'a>),
    /// Fields that neighbouring rows share.
    Shared(SharedRun<'a>),
}

/// Consecutive fields whose text is kept for as long as their values stay the same.
#[derive(Default)]
struct SharedRun<'a> {
    fields: Vec<(Vec<u8>, &'a Field<'a>)>,
    text: Vec<u8>,
    /// The row whose text that is.
    row: Option<usize>,
}

impl SharedRun<'_> {
    fn push(&mut self, row: usize, style: &impl LineStyle, out: &mut Vec<u8>) {
        if !self.row.is_some_and(|last| self.fields.iter().all(|(_, field)| field.same(row, last))) {
            self.text.clear();
            for (label, field) in &self.fields {
                style.push(label, field, row, &mut self.text);
            }
        }
        self.row = Some(row);
        out.extend_from_slice(&self.text);
    }
}

fn parts_of<'a>(fields: &'a [Field<'a>], style: &impl LineStyle) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let label = style.label(at == 0, field.name);
        match parts.last_mut() {
            _ if !field.is_shared() => parts.push(Part::Each(label, field)),
            Some(Part::Shared(run)) => run.fields.push((label, field)),
            _ => {
                parts.push(Part::Shared(SharedRun { fields: vec![(label, field)], ..SharedRun::default() }));
            }
        }
    }
    parts
}
