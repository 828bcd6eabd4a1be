//! Opens connections: TCP, TLS, versions and authentication.

use std::sync::Arc;

use crate::address::Address;
use crate::connection::Connection;
use crate::error::Result;
use crate::options::ClientOptions;
use crate::sasl;

impl Connection {
    /// Connects to a broker, and proves the user if there is one.
    ///
    /// # Errors
    /// The errors of a connection, and [`ErrorKind::Security`](crate::ErrorKind::Security) if one side does not accept
    /// the other.
    pub fn open(address: &Address, options: &Arc<ClientOptions>) -> Result<Self> {
        let mut connection = Self::connect(address, options)?;
        if let Some(user) = &options.security.sasl {
            let lifetime = sasl::authenticate(&mut connection, user);
            if let Some(lifetime) = lifetime.map_err(|error| error.at(connection.broker()))? {
                connection.expire_after(lifetime);
            }
        }
        Ok(connection)
    }
}
