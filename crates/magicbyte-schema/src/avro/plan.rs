//! Plans for reading values of a writer's schema as values of the reader's.

use super::types::TypeId;

/// The index of a node in its plan.
pub(super) type NodeId = usize;

/// The nodes of a plan, which refer to each other by index: schemas may contain themselves.
pub(super) struct Plan {
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeId,
}

/// A value's form in the payload, and its place in the reader's schema.
///
/// The reader's type says what becomes of the value: an int may be read into a column of doubles.
pub(super) enum Node {
    Null,
    Boolean,
    Int,
    Long,
    /// An int and a long that are a float for the reader, also where its union makes a column of doubles.
    IntAsFloat,
    LongAsFloat,
    Float,
    Double,
    /// Bytes or a string, after their length.
    Sized,
    Fixed(usize),
    /// The reader's symbol for each of the writer's; the reason if there is none.
    Enum(Vec<Result<Box<str>, Box<str>>>),
    /// The writer's union.
    Union(Vec<Choice>),
    /// The writer's type is not a union, the reader's is one.
    Branch(Choice),
    Array(Items),
    Map(Items),
    Record(Record),
    /// A value that the reader's schema cannot take, and the reason. Other values of the payload may be readable.
    Refused(Box<str>),
}

/// A value, and the reader's branch for it if the reader's type is a union.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    pub(super) branch: usize,
    pub(super) node: NodeId,
}

/// The items of an array, or the values of a map.
pub(super) struct Items {
    pub(super) node: NodeId,
    /// The writer's type, for those that are skipped; in a default it is the reader's, and none is skipped, since its
    /// keys differ.
    pub(super) written_as: TypeId,
    /// The size of an item in the reader's columns, in bytes.
    pub(super) size: usize,
}

/// The fields of a record: first those that the writer has, in its order, then those that only the reader has.
pub(super) struct Record {
    pub(super) steps: Vec<Step>,
    pub(super) defaults: Vec<Default>,
    /// True if the reader's record has no fields.
    pub(super) is_empty: bool,
}

/// A field of the writer's record.
pub(super) enum Step {
    /// The reader's field with this index.
    Read { field: usize, node: NodeId },
    /// The reader does not have it.
    Skip(TypeId),
}

/// A field of the reader's record that the writer's does not have.
pub(super) struct Default {
    pub(super) field: usize,
    /// `None` for a null.
    pub(super) value: Option<Encoded>,
}

/// A value as a payload, with the node that reads it.
pub(super) struct Encoded {
    pub(super) payload: Box<[u8]>,
    pub(super) node: NodeId,
}

impl Plan {
    /// The reason why no payload at all can be read, if that is so.
    pub(super) fn refusal(&self) -> Option<String> {
        match &self.nodes[self.root] {
            Node::Refused(reason) => Some(reason.to_string()),
            Node::Record(record) => record.steps.iter().find_map(|step| match *step {
                Step::Read { node, .. } => self.reason(node).map(str::to_owned),
                Step::Skip(_) => None,
            }),
            _ => None,
        }
    }

    /// The reason of a node that is refused.
    pub(super) fn reason(&self, node: NodeId) -> Option<&str> {
        match &self.nodes[node] {
            Node::Refused(reason) => Some(reason),
            _ => None,
        }
    }
}
