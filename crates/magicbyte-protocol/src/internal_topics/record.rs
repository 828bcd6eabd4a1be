//! One record of an internal topic.

use magicbyte::internals::{Cursor, varint};
use magicbyte::{Error, ErrorKind, Result};

use crate::message::read::read;
use crate::message::secrets;
use crate::message::table::{self, Definition, Role};
use crate::message::value::Struct;
use crate::message::write::{Absent, write};

/// The version of the frame around a record of the controller (`AbstractApiMessageSerde`).
const FRAME_VERSION: u32 = 1;
const CLUSTER_METADATA: &str = "__cluster_metadata";
/// The position at which key and value continue after their first two bytes.
const AFTER_INT16: usize = 2;

/// A record of an internal topic.
#[derive(Clone, Debug)]
pub enum TopicRecord<'a> {
    /// A record of a type that the table has.
    Known {
        /// The type's number.
        record_type: i16,
        /// The key, in topics of coordinators.
        key: Option<Part<'a>>,
        /// The value; `None` for a coordinator's tombstone.
        value: Option<Part<'a>>,
    },
    /// A record of a later version of Kafka, with its type. Kafka skips it.
    Unknown(i64),
}

/// A message that is, or is in, a key or value.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The message's version.
    pub version: i16,
    /// Its fields.
    pub fields: Struct<'a>,
    #[doc(hidden)]
    pub definition: &'static Definition,
}

impl Part<'_> {
    /// Kafka's name of the message, such as `OffsetCommitValue`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.definition.name
    }

    /// Replaces passwords, keys and tokens: texts by `[hidden]`, bytes by null.
    pub fn hide_secrets(&mut self) {
        secrets::hide(self.definition, &mut self.fields);
    }
}

/// Reads a record of `topic`. Bytes after a coordinator's key or value are ignored, as Kafka does.
///
/// # Errors
/// [`ErrorKind::InvalidMessage`] if the bytes are not a record of their type, with the byte in the key or value and the
/// field; [`ErrorKind::UnsupportedVersion`] if the value's version is not known.
pub fn read_record<'a>(
    topic: &str,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
) -> Result<TopicRecord<'a>> {
    match table::record(topic, Role::Metadata, 0) {
        None => coordinator_record(topic, key, value),
        Some(_) => framed_record(topic, value),
    }
}

/// True if a value of `topic` is a record of a type with secrets, even if its version is not known.
#[doc(hidden)]
pub fn is_secret(topic: &str, value: &[u8]) -> bool {
    let mut cursor = Cursor::new(value);
    let (Ok(FRAME_VERSION), Ok(record_type)) = (cursor.unsigned_varint(), cursor.unsigned_varint()) else {
        return false;
    };
    let known = i16::try_from(record_type).ok().and_then(|one| table::record(topic, Role::Metadata, one));
    known.is_some_and(Definition::has_secrets)
}

/// Reads data by its name, `ConsumerProtocolSubscription` or `ConsumerProtocolAssignment`, after its version. As in
/// Kafka, a later version is read as the newest.
///
/// # Errors
/// [`ErrorKind::InvalidMessage`] if the bytes are not such data, or the name is not known.
pub fn read_data<'a>(name: &str, bytes: &'a [u8]) -> Result<Part<'a>> {
    let definition = table::data(name).ok_or_else(|| invalid(format!("there is no data {name:?}"), 0))?;
    let version = int16(bytes, "the version")?;
    if version < 0 {
        return Err(invalid(format!("{name} has the version {version}"), 0));
    }
    part(definition, version.min(definition.valid_versions.last), bytes, AFTER_INT16).map(|(part, _)| part)
}

/// Writes the value of a record of `__cluster_metadata` (`MetadataRecordSerde`). Fields that are missing have their
/// defaults.
///
/// # Errors
/// [`ErrorKind::InvalidMessage`] if there is no such type, a field is not in the version, or has a value of another
/// type or out of range; [`ErrorKind::UnsupportedVersion`] if the version is not known.
pub fn write_metadata_record(record_type: i16, version: i16, fields: &Struct<'_>) -> Result<Vec<u8>> {
    let definition = table::record(CLUSTER_METADATA, Role::Metadata, record_type)
        .ok_or_else(|| invalid(format!("there is no record of type {record_type}"), 0))?;
    let version = check_version(definition, version.into(), 0)?;
    let mut out = Vec::new();
    // Neither is negative in the table.
    for number in [FRAME_VERSION, record_type.unsigned_abs().into(), version.unsigned_abs().into()] {
        let mut bytes = [0; 5];
        let size = varint::write_unsigned(number.into(), &mut bytes);
        out.extend_from_slice(&bytes[..size]);
    }
    write(definition, version, fields, Absent::Refused, &mut out)?;
    Ok(out)
}

/// Writes the key and value of a record of a coordinator's topic (`CoordinatorRecordSerde`). Fields that are missing have
/// their defaults.
///
/// # Errors
/// The errors of [`write_metadata_record`]; the version is that of the value.
pub fn write_coordinator_record(
    topic: &str,
    record_type: i16,
    version: i16,
    key: &Struct<'_>,
    value: &Struct<'_>,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let definition = |role| {
        table::record(topic, role, record_type)
            .ok_or_else(|| invalid(format!("{topic} has no record of type {record_type}"), 0))
    };
    let (of_key, of_value) = (definition(Role::CoordinatorKey)?, definition(Role::CoordinatorValue)?);
    let version = check_version(of_value, version.into(), 0)?;
    let part = |prefix: i16, definition, version, fields| {
        let mut out = prefix.to_be_bytes().to_vec();
        write(definition, version, fields, Absent::Refused, &mut out).map(|_| out)
    };
    Ok((part(record_type, of_key, 0, key)?, part(version, of_value, version, value)?))
}

/// Writes data by its name, such as `VotersRecord`, without a version before it: control records have theirs in
/// their first field. Fields that are missing have their defaults.
///
/// # Errors
/// The errors of [`write_metadata_record`].
pub fn write_data(name: &str, version: i16, fields: &Struct<'_>) -> Result<Vec<u8>> {
    let definition = table::data(name).ok_or_else(|| invalid(format!("there is no data {name:?}"), 0))?;
    let version = check_version(definition, version.into(), 0)?;
    let mut out = Vec::new();
    write(definition, version, fields, Absent::Refused, &mut out)?;
    Ok(out)
}

/// Type and key, version and value (`CoordinatorRecordSerde`).
fn coordinator_record<'a>(
    topic: &str,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
) -> Result<TopicRecord<'a>> {
    let key = key.ok_or_else(|| invalid("a record without a key".to_owned(), 0))?;
    let record_type = record_type(key)?;
    let definition = |role| table::record(topic, role, record_type);
    let (Some(of_key), Some(of_value)) =
        (definition(Role::CoordinatorKey), definition(Role::CoordinatorValue))
    else {
        return Ok(TopicRecord::Unknown(record_type.into()));
    };
    let (key, _) = part(of_key, 0, key, AFTER_INT16)?;
    let value = value.map(|value| coordinator_value(of_value, value)).transpose()?;
    Ok(TopicRecord::Known { record_type, key: Some(key), value })
}

/// The type of a coordinator's record.
pub(super) fn record_type(key: &[u8]) -> Result<i16> {
    int16(key, "the type of the record")
}

/// The value of a coordinator's record.
pub(super) fn coordinator_value<'a>(definition: &'static Definition, value: &'a [u8]) -> Result<Part<'a>> {
    let version = int16(value, "the version of the value")?;
    check_version(definition, version.into(), 0)?;
    part(definition, version, value, AFTER_INT16).map(|(part, _)| part)
}

/// The frame's version, type and version of the record, and nothing after it (`AbstractApiMessageSerde`).
fn framed_record<'a>(topic: &str, value: Option<&'a [u8]>) -> Result<TopicRecord<'a>> {
    let value = value.ok_or_else(|| invalid("a record without a value".to_owned(), 0))?;
    let mut cursor = Cursor::new(value);
    let mut number = |what: &str| {
        let position = cursor.position();
        cursor.unsigned_varint().map_err(|error| invalid(format!("{what}: {}", error.kind()), position))
    };
    let frame = number("the version of the frame")?;
    if frame != FRAME_VERSION {
        return Err(invalid(format!("a frame of version {frame}: expected {FRAME_VERSION}"), 0));
    }
    let record_type = number("the type of the record")?;
    let version = number("the version of the record")?;
    let start = cursor.position();
    let known = i16::try_from(record_type).ok().and_then(|one| table::record(topic, Role::Metadata, one));
    let Some((definition, record_type)) = known.zip(i16::try_from(record_type).ok()) else {
        return Ok(TopicRecord::Unknown(record_type.into()));
    };
    let version = check_version(definition, version.into(), start - 1)?;
    let (part, size) = part(definition, version, value, start)?;
    if start + size < value.len() {
        let left = value.len() - start - size;
        return Err(invalid(format!("{left} bytes are left after {}", part.name()), start + size));
    }
    Ok(TopicRecord::Known { record_type, key: None, value: Some(part) })
}

/// Reads a message off `bytes[start..]`; returns it with its size.
pub(super) fn part<'a>(
    definition: &'static Definition,
    version: i16,
    bytes: &'a [u8],
    start: usize,
) -> Result<(Part<'a>, usize)> {
    let (fields, size) = read(definition, version, &bytes[start..], start)?;
    Ok((Part { version, fields, definition }, size))
}

fn int16(bytes: &[u8], what: &str) -> Result<i16> {
    Cursor::new(bytes).i16().map_err(|_| invalid(format!("{what} takes 2 bytes, not {}", bytes.len()), 0))
}

fn check_version(definition: &Definition, version: i64, position: usize) -> Result<i16> {
    match i16::try_from(version) {
        Ok(known) if definition.valid_versions.contain(known) => Ok(known),
        _ => {
            let (name, last) = (definition.name, definition.valid_versions.last);
            let why = format!("{name} version {version} is not known: expected 0 to {last}");
            Err(Error::new(ErrorKind::UnsupportedVersion(why)).at_position(position as u64))
        }
    }
}

fn invalid(why: String, position: usize) -> Error {
    Error::new(ErrorKind::InvalidMessage(why)).at_position(position as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::value::Value;
    use magicbyte::{ControlRecord, Endpoint, Voter};

    /// The fields of what `ControlRecord` writes, as the table reads it.
    fn fields<'a>(name: &str, record: &ControlRecord, value: &'a mut Vec<u8>) -> Struct<'a> {
        *value = record.to_key_and_value().unwrap().1;
        // The version is also the first of the fields.
        let (read, size) =
            part(table::data(name).unwrap(), int16(value, "version").unwrap(), value, 0).unwrap();
        assert_eq!(size, value.len(), "{name}");
        read.fields
    }

    fn int(fields: &Struct<'_>, name: &str) -> i64 {
        match fields.get(name) {
            Some(Value::Int(n)) => *n,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn elements<'a, 'b>(fields: &'b Struct<'a>, name: &str) -> Vec<&'b Struct<'a>> {
        let Some(Value::Array(elements)) = fields.get(name) else { panic!("{name}: {fields:?}") };
        let structures = elements.iter().map(|one| match one {
            Value::Struct(one) => one,
            other => panic!("{other:?}"),
        });
        structures.collect()
    }

    #[test]
    fn control_records_are_as_in_the_table() {
        let mut value = Vec::new();
        let voter = |voter_id| Voter { voter_id, directory_id: [7; 16], ..Voter::default() };
        for version in 0..=1 {
            let (voters, granting_voters) = (vec![voter(1), voter(2)], vec![voter(2)]);
            let record = ControlRecord::LeaderChange { version, leader_id: 2, voters, granting_voters };
            let read = fields("LeaderChangeMessage", &record, &mut value);
            assert_eq!(int(&read, "leaderId"), 2);
            assert_eq!(elements(&read, "voters").len(), 2);
            let voter = elements(&read, "grantingVoters")[0];
            assert_eq!(int(voter, "voterId"), 2);
            let id = (version > 0).then_some(&Value::Uuid([7; 16]));
            assert_eq!(voter.get("voterDirectoryId"), id);
        }
        let record = ControlRecord::SnapshotHeader { version: 0, last_contained_log_timestamp: 5 };
        let read = fields("SnapshotHeaderRecord", &record, &mut value);
        assert_eq!(int(&read, "lastContainedLogTimestamp"), 5);
        fields("SnapshotFooterRecord", &ControlRecord::SnapshotFooter { version: 0 }, &mut value);
        let record = ControlRecord::KRaftVersion { version: 0, kraft_version: 1 };
        assert_eq!(int(&fields("KRaftVersionRecord", &record, &mut value), "kRaftVersion"), 1);

        let endpoint = Endpoint { name: "C".to_owned(), host: "h".to_owned(), port: 9093 };
        let voter = Voter { endpoints: vec![endpoint], max_supported_version: 1, ..voter(3) };
        let record = ControlRecord::KRaftVoters { version: 0, voters: vec![voter] };
        let read = fields("VotersRecord", &record, &mut value);
        let voter = elements(&read, "voters")[0];
        assert_eq!(voter.get("voterDirectoryId"), Some(&Value::Uuid([7; 16])));
        assert_eq!(int(elements(voter, "endpoints")[0], "port"), 9093);
        let Some(Value::Struct(range)) = voter.get("kRaftVersionFeature") else { panic!("{voter:?}") };
        assert_eq!(int(range, "maxSupportedVersion"), 1);
    }
}
