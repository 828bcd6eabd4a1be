//! Control records, which brokers and the KRaft quorum write into a log for internal use (`ControlRecordType`,
//! `EndTransactionMarker`, `ControlRecordUtils`). `MemoryRecords` writes each into a separate batch.
//!
//! Their few messages are read here and not by the table of `message`: what a transaction's marker says is needed in
//! every build, without the table's dependencies. A test in `internal_topics/record.rs` compares the two.

use crate::bytes::cursor::Cursor;
use crate::bytes::varint;
use crate::error::{Error, ErrorKind, Result};

/// The key's version (`ControlRecordType.CURRENT_CONTROL_RECORD_KEY_VERSION`).
const KEY_VERSION: i16 = 0;
const NO_TAGGED_FIELDS: u8 = 0;
const NEGATIVE_VERSION: &str = "a control record's value has a negative version";

/// The type in a control record's key.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlType {
    /// The transaction was aborted.
    Abort,
    /// The transaction was committed.
    Commit,
    /// A new KRaft leader.
    LeaderChange,
    /// First record of a KRaft snapshot.
    SnapshotHeader,
    /// Last record of a KRaft snapshot.
    SnapshotFooter,
    /// The version of the KRaft protocol.
    KRaftVersion,
    /// The set of KRaft voters.
    KRaftVoters,
    /// A type that this version does not know; readers skip it.
    Unknown(i16),
}

impl ControlType {
    /// Reads the type from a control record's key.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRecord`] for a key of fewer than 4 bytes or a negative version.
    pub fn parse(key: &[u8]) -> Result<Self> {
        let invalid = |why| Error::new(ErrorKind::InvalidRecord(why)).in_field("key");
        let mut cursor = Cursor::new(key);
        let (Ok(version), Ok(id)) = (cursor.i16(), cursor.i16()) else {
            return Err(invalid("a control record's key has fewer than 4 bytes"));
        };
        if version < 0 {
            return Err(invalid("a control record's key has a negative version"));
        }
        // As in Kafka, a higher version is read as version 0.
        Ok(match id {
            0 => Self::Abort,
            1 => Self::Commit,
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KRaftVersion,
            6 => Self::KRaftVoters,
            other => Self::Unknown(other),
        })
    }

    /// Kafka's name, such as `COMMIT`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Abort => "ABORT",
            Self::Commit => "COMMIT",
            Self::LeaderChange => "LEADER_CHANGE",
            Self::SnapshotHeader => "SNAPSHOT_HEADER",
            Self::SnapshotFooter => "SNAPSHOT_FOOTER",
            Self::KRaftVersion => "KRAFT_VERSION",
            Self::KRaftVoters => "KRAFT_VOTERS",
            Self::Unknown(_) => "UNKNOWN",
        }
    }
}

/// A control record with its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlRecord {
    /// The end of a transaction.
    EndTransaction {
        /// True if the transaction was committed, false if it was aborted.
        committed: bool,
        /// The marker's version.
        version: i16,
        /// The transaction coordinator's epoch.
        coordinator_epoch: i32,
    },
    /// A new leader of the KRaft quorum.
    LeaderChange {
        /// The message's version.
        version: i16,
        /// The leader's node id.
        leader_id: i32,
        /// All voters.
        voters: Vec<Voter>,
        /// The voters that voted for the leader.
        granting_voters: Vec<Voter>,
    },
    /// The first record of a KRaft snapshot.
    SnapshotHeader {
        /// The message's version.
        version: i16,
        /// Append time (ms) of the last record that the snapshot replaces.
        last_contained_log_timestamp: i64,
    },
    /// The last record of a KRaft snapshot.
    SnapshotFooter {
        /// The message's version.
        version: i16,
    },
    /// The version of the KRaft protocol.
    KRaftVersion {
        /// The message's version.
        version: i16,
        /// The finalized `kraft.version`.
        kraft_version: i16,
    },
    /// The set of voters.
    KRaftVoters {
        /// The message's version.
        version: i16,
        /// All voters.
        voters: Vec<Voter>,
    },
    /// A type that this version does not know.
    Unknown {
        /// The number in the key.
        id: i16,
    },
}

/// A KRaft voter. The last three fields are set only in [`ControlRecord::KRaftVoters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Voter {
    /// The node id.
    pub voter_id: i32,
    /// The id of its metadata directory; zero if the message's version has none.
    pub directory_id: [u8; 16],
    /// The addresses it listens on.
    pub endpoints: Vec<Endpoint>,
    /// The lowest `kraft.version` it supports.
    pub min_supported_version: i16,
    /// The highest `kraft.version` it supports.
    pub max_supported_version: i16,
}

/// A listener of a KRaft voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The listener's name.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl ControlRecord {
    /// Decodes the key and value of a record in a control batch.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRecord`] or [`ErrorKind::UnexpectedEnd`] for a key or value that does not match
    /// its type.
    pub fn parse(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Self> {
        let missing = |why, field| Error::new(ErrorKind::InvalidRecord(why)).in_field(field);
        let key = key.ok_or_else(|| missing("a control record has no key", "key"))?;
        let kind = ControlType::parse(key)?;
        if let ControlType::Unknown(id) = kind {
            return Ok(Self::Unknown { id });
        }
        let value = value.ok_or_else(|| missing("a control record has no value", "value"))?;
        Self::parse_value(kind, &mut Cursor::new(value)).map_err(|e| e.in_field("value"))
    }

    /// Key and value of the record, as Kafka writes them; [`parse`](Self::parse) reads them back.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRecord`] for a record of unknown type or a negative version.
    pub fn to_key_and_value(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let invalid = |why, field| Err(Error::new(ErrorKind::InvalidRecord(why)).in_field(field));
        let mut value = Vec::new();
        let (id, version) = match self {
            Self::EndTransaction { committed, version, .. } => (i16::from(*committed), *version),
            Self::LeaderChange { version, .. } => (2, *version),
            Self::SnapshotHeader { version, .. } => (3, *version),
            Self::SnapshotFooter { version } => (4, *version),
            Self::KRaftVersion { version, .. } => (5, *version),
            Self::KRaftVoters { version, .. } => (6, *version),
            Self::Unknown { .. } => {
                return invalid("a control record of unknown type cannot be written", "key");
            }
        };
        if version < 0 {
            return invalid(NEGATIVE_VERSION, "value");
        }
        value.extend(version.to_be_bytes());
        match self {
            Self::EndTransaction { coordinator_epoch, .. } => value.extend(coordinator_epoch.to_be_bytes()),
            Self::LeaderChange { leader_id, voters, granting_voters, .. } => {
                value.extend(leader_id.to_be_bytes());
                for voters in [voters, granting_voters] {
                    put_array(&mut value, voters, |value, voter| {
                        value.extend(voter.voter_id.to_be_bytes());
                        if version >= 1 {
                            value.extend(voter.directory_id);
                        }
                        value.push(NO_TAGGED_FIELDS);
                    });
                }
            }
            Self::SnapshotHeader { last_contained_log_timestamp, .. } => {
                value.extend(last_contained_log_timestamp.to_be_bytes());
            }
            Self::KRaftVersion { kraft_version, .. } => value.extend(kraft_version.to_be_bytes()),
            Self::KRaftVoters { voters, .. } => put_array(&mut value, voters, put_voter),
            Self::SnapshotFooter { .. } | Self::Unknown { .. } => {}
        }
        // The end-of-transaction marker is not a flexible message.
        if !matches!(self, Self::EndTransaction { .. }) {
            value.push(NO_TAGGED_FIELDS);
        }
        let key = [KEY_VERSION.to_be_bytes(), id.to_be_bytes()].concat();
        Ok((key, value))
    }

    fn parse_value(kind: ControlType, value: &mut Cursor<'_>) -> Result<Self> {
        let version = value.i16()?;
        if version < 0 {
            return Err(ErrorKind::InvalidRecord(NEGATIVE_VERSION).into());
        }
        Ok(match kind {
            ControlType::Abort | ControlType::Commit => Self::EndTransaction {
                committed: kind == ControlType::Commit,
                version,
                coordinator_epoch: value.i32()?,
            },
            ControlType::LeaderChange => {
                let leader_id = value.i32()?;
                let mut voters = || {
                    compact_array(value, |v| {
                        let voter_id = v.i32()?;
                        let directory_id = if version >= 1 { v.uuid()? } else { [0; 16] };
                        tagged_fields(v)?;
                        Ok(Voter { voter_id, directory_id, ..Voter::default() })
                    })
                };
                Self::LeaderChange { version, leader_id, voters: voters()?, granting_voters: voters()? }
            }
            ControlType::SnapshotHeader => {
                Self::SnapshotHeader { version, last_contained_log_timestamp: value.i64()? }
            }
            ControlType::SnapshotFooter => Self::SnapshotFooter { version },
            ControlType::KRaftVersion => Self::KRaftVersion { version, kraft_version: value.i16()? },
            ControlType::KRaftVoters => Self::KRaftVoters { version, voters: compact_array(value, voter)? },
            ControlType::Unknown(id) => Self::Unknown { id },
        })
    }
}

fn voter(v: &mut Cursor<'_>) -> Result<Voter> {
    let voter_id = v.i32()?;
    let directory_id = v.uuid()?;
    let endpoints = compact_array(v, |v| {
        let endpoint = Endpoint { name: compact_string(v)?, host: compact_string(v)?, port: v.u16()? };
        tagged_fields(v)?;
        Ok(endpoint)
    })?;
    let (min_supported_version, max_supported_version) = (v.i16()?, v.i16()?);
    tagged_fields(v)?;
    tagged_fields(v)?;
    Ok(Voter { voter_id, directory_id, endpoints, min_supported_version, max_supported_version })
}

/// An array of a flexible version: an unsigned varint of length + 1, then the elements.
fn compact_array<'a, T>(
    cursor: &mut Cursor<'a>,
    mut element: impl FnMut(&mut Cursor<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = cursor.unsigned_varint()?.saturating_sub(1);
    if count as usize > cursor.remaining() {
        return Err(ErrorKind::InvalidCount(count.into()).into());
    }
    (0..count).map(|_| element(cursor)).collect()
}

fn compact_string(cursor: &mut Cursor<'_>) -> Result<String> {
    let length = cursor.unsigned_varint()?.saturating_sub(1);
    Ok(String::from_utf8_lossy(cursor.take(length as usize)?).into_owned())
}

fn tagged_fields(cursor: &mut Cursor<'_>) -> Result<()> {
    for _ in 0..cursor.unsigned_varint()? {
        cursor.unsigned_varint()?;
        let size = cursor.unsigned_varint()?;
        cursor.take(size as usize)?;
    }
    Ok(())
}

/// Appends an unsigned varint of length + 1, the length field of flexible versions.
fn put_compact_length(out: &mut Vec<u8>, length: usize) {
    let mut bytes = [0; 10];
    let size = varint::write_unsigned(length as u64 + 1, &mut bytes);
    out.extend(&bytes[..size]);
}

fn put_array<T>(out: &mut Vec<u8>, elements: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    put_compact_length(out, elements.len());
    for element in elements {
        put(out, element);
    }
}

fn put_voter(out: &mut Vec<u8>, voter: &Voter) {
    out.extend(voter.voter_id.to_be_bytes());
    out.extend(voter.directory_id);
    put_array(out, &voter.endpoints, |out, endpoint| {
        for text in [&endpoint.name, &endpoint.host] {
            put_compact_length(out, text.len());
            out.extend(text.as_bytes());
        }
        out.extend(endpoint.port.to_be_bytes());
        out.push(NO_TAGGED_FIELDS);
    });
    out.extend(voter.min_supported_version.to_be_bytes());
    out.extend(voter.max_supported_version.to_be_bytes());
    // One for the version range, one for the voter.
    out.extend([NO_TAGGED_FIELDS, NO_TAGGED_FIELDS]);
}
