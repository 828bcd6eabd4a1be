//! Failures that stop the decoding of a payload.

/// A failure to decode a payload. It is boxed, because every read may return it.
pub(crate) struct Failure(Box<Details>);

struct Details {
    /// The path of the field, empty for the payload as a whole.
    field: String,
    position: Option<usize>,
    reason: String,
    is_full: bool,
}

/// Bytes of a path that are kept: names have any length, and messages are nested.
const MAX_PATH: usize = 200;

pub(crate) type Attempt<T> = std::result::Result<T, Failure>;

impl Failure {
    #[cold]
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(Box::new(Details {
            field: String::new(),
            position: None,
            reason: reason.into(),
            is_full: false,
        }))
    }

    #[cold]
    pub(crate) fn at(position: usize, reason: impl Into<String>) -> Self {
        Self::new(reason).or_at(position)
    }

    /// A failure that is not the payload's fault: with it, the column would have more than Arrow's 32-bit offsets can
    /// count.
    #[cold]
    pub(crate) fn full() -> Self {
        let mut failure = Self::new("the column would have more than 2 GiB: try fewer payloads");
        failure.0.is_full = true;
        failure
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.is_full
    }

    /// The same in a field of this name. Of a long path, there is the outermost name and the end.
    #[cold]
    pub(crate) fn in_field(mut self, name: &str) -> Self {
        let name = &name[..name.floor_char_boundary(MAX_PATH)];
        let inner = std::mem::take(&mut self.0.field);
        let start = inner.ceil_char_boundary(inner.len().saturating_sub(MAX_PATH));
        self.0.field = match (inner.is_empty(), start) {
            (true, _) => name.to_owned(),
            (_, 0) => format!("{name}.{inner}"),
            _ => format!("{name}...{}", &inner[start..]),
        };
        self
    }

    /// The same at this position, if it has none yet.
    #[cold]
    pub(crate) fn or_at(mut self, position: usize) -> Self {
        self.0.position.get_or_insert(position);
        self
    }

    /// The same without a position, which was one in other bytes than the payload's.
    #[cold]
    pub(crate) fn without_position(mut self) -> Self {
        self.0.position = None;
        self
    }

    pub(crate) fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// The reason, with the field.
    pub(crate) fn text(&self) -> String {
        let Details { field, reason, .. } = self.0.as_ref();
        if field.is_empty() { reason.clone() } else { format!("{field}: {reason}") }
    }
}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn a_long_path_has_a_start_and_an_end() {
        let deep = (0..10_000).fold(Failure::new("no"), |failure, _| failure.in_field("part"));
        let text = deep.in_field("order").text();
        assert!(text.starts_with("order...") && text.ends_with("part.part: no"), "{text}");
        assert!(text.len() < 250, "{text}");
        let text = Failure::new("no").in_field(&"ü".repeat(1000)).in_field("a").text();
        assert!(text.len() < 250, "{text}");
    }
}
