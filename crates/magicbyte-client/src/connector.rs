//! Streams in place of TCP connections, for tests.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use crate::address::Address;

/// A stream of bytes in both directions.
#[doc(hidden)]
pub trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

type Connect = dyn Fn(&Address) -> io::Result<Box<dyn Duplex>> + Send + Sync;

/// Opens streams to addresses.
#[doc(hidden)]
#[derive(Clone)]
pub struct Connector(pub Arc<Connect>);

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}
