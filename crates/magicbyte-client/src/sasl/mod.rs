//! Authentication (SASL): the handshake, and the messages of each mechanism.

mod oauth;
mod scram;

use std::time::Duration;

use magicbyte_protocol::message::ApiKey;
use magicbyte_protocol::message::body::{
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};

use crate::connection::Connection;
use crate::error::{Error, Result, printable};
use crate::options::{Sasl, ScramHash};
use crate::sasl::scram::Scram;

const UNSUPPORTED_SASL_MECHANISM: i16 = 33;
const SASL_AUTHENTICATION_FAILED: i16 = 58;

/// Proves the user. Returns the time after which the broker wants another proof, if it does (KIP-368).
pub(crate) fn authenticate(connection: &mut Connection, user: &Sasl) -> Result<Option<Duration>> {
    let mut exchange =
        Exchange { is_framed: handshake(connection, user.mechanism())?, connection, lifetime: None };
    match user {
        Sasl::Plain { username, password } => {
            if username.contains('\0') || password.expose().contains('\0') {
                return Err(Error::options("PLAIN: a user or password with a null character"));
            }
            exchange.answer(format!("\0{username}\0{}", password.expose()).as_bytes())?;
        }
        Sasl::Scram { hash, username, password } => {
            let scram = Scram::new(*hash, username, password)?;
            let challenge = exchange.answer(scram.first_message().as_bytes())?;
            let (message, signature) = scram.final_message(&challenge)?;
            let proof = exchange.answer(message.as_bytes())?;
            signature.check(&proof)?;
        }
        Sasl::OauthBearer(source) => {
            let token = oauth::token(source, exchange.connection.patience())?;
            let refusal = exchange.answer(oauth::first_message(&token).as_bytes())?;
            if !refusal.is_empty() {
                // The broker's reason; it ends the exchange when it gets this byte (RFC 7628).
                let _ = exchange.answer(&[1]);
                return Err(Error::security(format!("OAUTHBEARER: {}", text(&refusal))));
            }
        }
    }
    Ok(exchange.lifetime)
}

impl Sasl {
    /// The mechanism's name (`sasl.mechanism`).
    fn mechanism(&self) -> &'static str {
        match self {
            Self::Plain { .. } => "PLAIN",
            Self::Scram { hash: ScramHash::Sha256, .. } => "SCRAM-SHA-256",
            Self::Scram { hash: ScramHash::Sha512, .. } => "SCRAM-SHA-512",
            Self::OauthBearer(_) => "OAUTHBEARER",
        }
    }
}

/// Names the mechanism. True if its messages are in requests (since version 1), and not only in frames.
fn handshake(connection: &mut Connection, mechanism: &'static str) -> Result<bool> {
    let is_framed = connection.version(ApiKey::SaslHandshake)? > 0;
    let response = connection.call(|_| SaslHandshakeRequest { mechanism: mechanism.into() })?;
    let response: SaslHandshakeResponse<'_> = response.read()?;
    if response.error_code == UNSUPPORTED_SASL_MECHANISM {
        let offered: Vec<_> = response.mechanisms.iter().take(20).map(|name| printable(name)).collect();
        return Err(Error::security(format!(
            "the broker does not accept the mechanism {mechanism}: expected one of {}",
            offered.join(", ")
        )));
    }
    Error::check("SaslHandshake", response.error_code)?;
    Ok(is_framed)
}

/// The messages that a mechanism sends and receives.
struct Exchange<'c> {
    connection: &'c mut Connection,
    is_framed: bool,
    lifetime: Option<Duration>,
}

impl Exchange<'_> {
    /// Sends a message of the mechanism; returns the broker's.
    fn answer(&mut self, message: &[u8]) -> Result<Vec<u8>> {
        if !self.is_framed {
            // Kafka 0.10: a broker that refuses closes the connection.
            self.connection.write_frame(message)?;
            let mut frame = Vec::new();
            self.connection.read_frame("accept the user", &mut frame)?;
            return Ok(frame);
        }
        let response = self.connection.call(|_| SaslAuthenticateRequest { auth_bytes: message.into() })?;
        let response: SaslAuthenticateResponse<'_> = response.read()?;
        if response.error_code == SASL_AUTHENTICATION_FAILED {
            let why = response.error_message.as_deref().map_or("no reason given".into(), printable);
            return Err(Error::security(format!("the broker does not accept the user: {why}")));
        }
        Error::check_with("SaslAuthenticate", response.error_code, response.error_message.as_deref())?;
        if let Some(lifetime) =
            u64::try_from(response.session_lifetime_ms).ok().filter(|&lifetime| lifetime > 0)
        {
            // A little earlier than the broker, which closes the connection.
            self.lifetime = Some(Duration::from_millis(lifetime / 10 * 9));
        }
        Ok(response.auth_bytes.into_owned())
    }
}

/// A broker's message as text for an error.
fn text(message: &[u8]) -> String {
    printable(&String::from_utf8_lossy(message))
}
