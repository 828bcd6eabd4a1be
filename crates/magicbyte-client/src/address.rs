//! Hosts and ports.

use std::fmt;

use crate::error::{Error, Result};

/// The maximum length of a host: that of a name in the DNS.
const MAX_HOST: usize = 253;

/// A broker's host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// A name, or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Address {
    /// Reads `host:port[,host:port]...` (`bootstrap.servers`). An IPv6 address is in brackets.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) if it is anything else, or empty.
    pub fn parse_list(servers: &str) -> Result<Vec<Self>> {
        servers.split(',').map(|server| Self::parse(server.trim())).collect()
    }

    fn parse(server: &str) -> Result<Self> {
        let expected = || Error::options(format!("{server:?}: expected HOST:PORT"));
        let (host, port) = server.rsplit_once(':').ok_or_else(expected)?;
        let host = match host.strip_prefix('[') {
            Some(inside) => inside.strip_suffix(']').ok_or_else(expected)?,
            None if host.contains(':') => return Err(expected()),
            None => host,
        };
        let port = port.parse().map_err(|_| expected())?;
        Self::new(host, port).ok_or_else(expected)
    }

    /// A host without brackets and a port; None if the host can be none.
    pub(crate) fn new(host: &str, port: u16) -> Option<Self> {
        let is_foreign = |c: char| c.is_whitespace() || c.is_control() || c == '/' || c == '@';
        let is_host = (1..=MAX_HOST).contains(&host.len()) && !host.contains(is_foreign);
        (is_host && port > 0).then(|| Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_servers() {
        let list = Address::parse_list("a:1, b.example:9092,[::1]:65535").expect("valid");
        assert_eq!(
            list.iter().map(Address::to_string).collect::<Vec<_>>(),
            ["a:1", "b.example:9092", "[::1]:65535"]
        );
        for wrong in [
            "",
            "a",
            "a:",
            ":1",
            "a:0",
            "a:65536",
            "a:-1",
            "::1:9092",
            "[::1:9092",
            "a:1,",
            "kafka://a:1",
            "u@a:1",
        ] {
            let error = Address::parse_list(wrong).expect_err(wrong);
            assert!(error.to_string().contains("expected HOST:PORT"), "{error}");
        }
    }
}
