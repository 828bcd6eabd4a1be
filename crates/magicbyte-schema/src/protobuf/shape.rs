//! The messages of a schema, as the reader and the writer of text need them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prost_reflect::{DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use super::features;
use super::names::EnumNames;
use super::tags::Tags;

/// The messages of a schema and of the files that it imports.
pub(crate) struct Shapes {
    shapes: Vec<Shape>,
    by_name: HashMap<String, usize>,
}

/// A message.
pub(crate) struct Shape {
    pub(crate) well_known: Option<WellKnown>,
    /// By ascending number.
    pub(crate) fields: Box<[FieldShape]>,
    pub(crate) tags: Tags,
    /// Indexes of the members, by oneof.
    pub(crate) oneofs: Box<[Vec<usize>]>,
    /// Indexes of the fields that a message has to have.
    pub(crate) required: Box<[usize]>,
}

/// The messages with a JSON of their own.
#[derive(Clone, Copy)]
pub(crate) enum WellKnown {
    Any,
    Duration,
    FieldMask,
    ListValue,
    Struct,
    Timestamp,
    Value,
    /// `StringValue` and the like.
    Wrapper,
}

impl WellKnown {
    fn of(message: &MessageDescriptor) -> Option<Self> {
        match message.full_name() {
            "google.protobuf.Any" => Some(Self::Any),
            "google.protobuf.Duration" => Some(Self::Duration),
            "google.protobuf.FieldMask" => Some(Self::FieldMask),
            "google.protobuf.ListValue" => Some(Self::ListValue),
            "google.protobuf.Struct" => Some(Self::Struct),
            "google.protobuf.Timestamp" => Some(Self::Timestamp),
            "google.protobuf.Value" => Some(Self::Value),
            _ => (message.parent_file().name() == "google/protobuf/wrappers.proto").then_some(Self::Wrapper),
        }
    }
}

/// A field of a message, or an extension.
pub(crate) struct FieldShape {
    pub(crate) name: Box<str>,
    /// The name in JSON.
    pub(crate) json_name: Box<str>,
    pub(crate) of: Type,
    pub(crate) form: Form,
    /// True if a message says that the field is set, even if it has its default.
    pub(crate) has_presence: bool,
    /// An index into the message's oneofs.
    pub(crate) oneof: Option<usize>,
}

/// How many values a field has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Single,
    List,
    Map,
}

/// The type of a value.
#[derive(Clone)]
pub(crate) enum Type {
    Scalar(Kind),
    Enum(Arc<EnumNames>),
    /// An index into the shapes, and whether it is stored as a group.
    Message(usize, bool),
}

impl Shapes {
    pub(crate) fn new(pool: &DescriptorPool) -> Self {
        let by_name = pool.all_messages().map(|message| message.full_name().to_owned()).zip(0..).collect();
        let mut shapes = Self { shapes: Vec::new(), by_name };
        let mut enums = HashMap::new();
        shapes.shapes = pool.all_messages().map(|message| shapes.shape(&message, &mut enums)).collect();
        shapes
    }

    pub(crate) fn get(&self, index: usize) -> &Shape {
        &self.shapes[index]
    }

    /// The index of a message of the schema.
    pub(crate) fn index_of(&self, message: &MessageDescriptor) -> usize {
        self.by_name[message.full_name()]
    }

    /// The index of the message with this full name.
    pub(crate) fn find(&self, full_name: &str) -> Option<usize> {
        self.by_name.get(full_name).copied()
    }

    fn shape(&self, message: &MessageDescriptor, enums: &mut HashMap<String, Arc<EnumNames>>) -> Shape {
        let mut fields: BTreeMap<u32, FieldShape> =
            message.fields().map(|field| (field.number(), self.field(&field, enums))).collect();
        fields.extend(message.extensions().map(|extension| {
            let shape = FieldShape {
                name: extension.full_name().into(),
                json_name: format!("[{}]", extension.full_name()).into(),
                of: self.type_of(&extension.kind(), features::is_group_extension(&extension), enums),
                form: if extension.is_list() { Form::List } else { Form::Single },
                has_presence: true,
                oneof: None,
            };
            (extension.number(), shape)
        }));
        let tags = Tags::new(fields.keys().copied());
        let mut oneofs = vec![Vec::new(); message.oneofs().len()];
        for (index, field) in fields.values().enumerate() {
            if let Some(oneof) = field.oneof {
                oneofs[oneof].push(index);
            }
        }
        let is_required = |number: &u32| message.get_field(*number).is_some_and(|field| field.is_required());
        let required = fields.keys().enumerate().filter(|(_, number)| is_required(number));
        Shape {
            well_known: WellKnown::of(message),
            required: required.map(|(index, _)| index).collect(),
            fields: fields.into_values().collect(),
            tags,
            oneofs: oneofs.into(),
        }
    }

    fn field(&self, field: &FieldDescriptor, enums: &mut HashMap<String, Arc<EnumNames>>) -> FieldShape {
        let oneof = features::oneof(field);
        FieldShape {
            name: field.name().into(),
            json_name: field.json_name().into(),
            of: self.type_of(&field.kind(), features::is_group(field), enums),
            form: match (field.is_map(), field.is_list()) {
                (true, _) => Form::Map,
                (_, true) => Form::List,
                _ => Form::Single,
            },
            has_presence: features::has_presence(field),
            oneof,
        }
    }

    fn type_of(&self, kind: &Kind, is_group: bool, enums: &mut HashMap<String, Arc<EnumNames>>) -> Type {
        match kind {
            Kind::Message(message) => Type::Message(self.index_of(message), is_group),
            Kind::Enum(of) => {
                let names = enums.entry(of.full_name().to_owned());
                Type::Enum(Arc::clone(names.or_insert_with(|| named(of))))
            }
            scalar => Type::Scalar(scalar.clone()),
        }
    }
}

fn named(of: &EnumDescriptor) -> Arc<EnumNames> {
    Arc::new(EnumNames::new(of))
}
