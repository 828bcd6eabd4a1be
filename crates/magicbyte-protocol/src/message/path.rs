//! Where in a message a reader or writer is, for errors.

use std::fmt::{Display, Write};

use magicbyte::{Error, ErrorKind};

use crate::message::table::Definition;

/// A message, its version, and the fields and elements that lead to a place in it.
#[derive(Debug)]
pub(crate) struct Path {
    definition: &'static Definition,
    version: i16,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Field(&'static str),
    Element(usize),
}

impl Path {
    pub(crate) fn new(definition: &'static Definition, version: i16) -> Self {
        Self { definition, version, steps: Vec::new() }
    }

    pub(crate) fn enter(&mut self, field: &'static str) {
        self.steps.push(Step::Field(field));
    }

    pub(crate) fn enter_element(&mut self, index: usize) {
        self.steps.push(Step::Element(index));
    }

    pub(crate) fn leave(&mut self) {
        self.steps.pop();
    }

    /// An error here, as "FetchResponse version 12, responses[0].topic: ...".
    #[cold]
    pub(crate) fn error(&self, why: impl Display) -> Error {
        let mut text = format!("{} version {}", self.definition.name, self.version);
        let mut separator = ", ";
        let mut field = None;
        for step in &self.steps {
            // Writing to a String does not fail.
            let _ = match step {
                Step::Field(name) => {
                    field = Some(*name);
                    write!(text, "{separator}{name}")
                }
                Step::Element(index) => write!(text, "[{index}]"),
            };
            separator = ".";
        }
        let error = Error::new(ErrorKind::InvalidMessage(format!("{text}: {why}")));
        match field {
            Some(field) => error.in_field(field),
            None => error,
        }
    }
}
