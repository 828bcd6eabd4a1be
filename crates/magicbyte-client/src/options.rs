//! Options of a client: deadlines, limits, and how it proves who it is.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::connector::Connector;
use crate::error::Error;

/// Options of a [`Cluster`](crate::Cluster) and its connections.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The name by which brokers log this client and apply quotas (`client.id`).
    pub client_id: String,
    /// The time in which a broker has to accept a connection, and then to answer each request.
    pub request_timeout: Duration,
    /// The time without success after which the last error of something that is retried is final.
    pub retry_timeout: Duration,
    /// The maximum size of a response in bytes. A batch that is larger cannot be fetched.
    pub max_response_bytes: usize,
    /// The rack of this client (`client.rack`). Leaders of a cluster that has racks name the closest replica, from which
    /// records are fetched then (KIP-392). Without a rack, all records come from leaders.
    pub rack: String,
    /// Encryption and authentication.
    pub security: Security,
    /// Is told the error of each attempt that will be repeated.
    pub retries: Option<RetryListener>,
    /// Opens streams in place of TCP connections, for tests. Their waits have no deadline.
    #[doc(hidden)]
    pub connector: Option<Connector>,
}

impl Default for ClientOptions {
    /// `magicbyte`, 30 s, 60 s, 100 MiB, no rack, and neither encryption nor authentication.
    fn default() -> Self {
        Self {
            client_id: "magicbyte".into(),
            request_timeout: Duration::from_secs(30),
            retry_timeout: Duration::from_mins(1),
            max_response_bytes: 100 << 20,
            rack: String::new(),
            security: Security::default(),
            retries: None,
            connector: None,
        }
    }
}

/// Is told the error of each attempt that will be repeated, before the wait: a user may want to know what is waited for.
#[derive(Clone)]
pub struct RetryListener(Arc<dyn Fn(&Error) + Send + Sync>);

impl RetryListener {
    /// A listener, which is called by the thread that waits.
    pub fn new(listener: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    pub(crate) fn failed(&self, error: &Error) {
        (self.0)(error);
    }
}

impl fmt::Debug for RetryListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryListener").finish_non_exhaustive()
    }
}

/// Encryption and authentication (`security.protocol`).
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// TLS; without it, everything is sent as it is.
    pub tls: Option<TlsOptions>,
    /// The user, if brokers ask for one.
    pub sasl: Option<Sasl>,
}

/// TLS, with certificates and keys as PEM.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// The certificates that are trusted, in place of the system's.
    pub ca: Option<Vec<u8>>,
    /// The certificate of this client and those between it and its issuer.
    pub client_certificates: Option<Vec<u8>>,
    /// The private key of this client's certificate, not encrypted.
    pub client_key: Option<Secret>,
    /// True if a broker's certificate may be that of another host
    /// (an empty `ssl.endpoint.identification.algorithm`).
    pub any_hostname: bool,
}

impl fmt::Debug for TlsOptions {
    /// Says which files there are: one of certificates may have the key, too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("ca", &self.ca.is_some())
            .field("client_certificates", &self.client_certificates.is_some())
            .field("client_key", &self.client_key)
            .field("any_hostname", &self.any_hostname)
            .finish()
    }
}

/// A mechanism of SASL, and the user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Sasl {
    /// User and password as they are: for connections with TLS.
    Plain {
        /// The user.
        username: String,
        /// The password.
        password: Secret,
    },
    /// A proof of the password. The broker has to prove that it knows the password, too.
    Scram {
        /// The hash.
        hash: ScramHash,
        /// The user.
        username: String,
        /// The password.
        password: Secret,
    },
    /// A token, which is read again for every connection.
    OauthBearer(TokenSource),
}

/// The hash of a [`Sasl::Scram`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScramHash {
    /// SCRAM-SHA-256.
    Sha256,
    /// SCRAM-SHA-512.
    Sha512,
}

/// The source of a token.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenSource {
    /// The output of a program: its path and its arguments. White space around the token is ignored.
    Command(Vec<String>),
    /// The content of a file. White space around the token is ignored.
    File(PathBuf),
}

impl fmt::Debug for TokenSource {
    /// Names the program or the file: the arguments may have a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(words) => f.debug_tuple("Command").field(&words.first()).finish_non_exhaustive(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// A text that is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}
