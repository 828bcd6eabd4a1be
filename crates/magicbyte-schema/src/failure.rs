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

    /// The same in a field of this name.
    #[cold]
    pub(crate) fn in_field(mut self, name: &str) -> Self {
        let inner = std::mem::take(&mut self.0.field);
        self.0.field = if inner.is_empty() { name.to_owned() } else { format!("{name}.{inner}") };
        self
    }

    /// The same at this position, if it has none yet.
    #[cold]
    pub(crate) fn or_at(mut self, position: usize) -> Self {
        self.0.position.get_or_insert(position);
        self
    }

    /// The same at this position, whatever it had.
    #[cold]
    pub(crate) fn moved_to(mut self, position: usize) -> Self {
        self.0.position = Some(position);
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
