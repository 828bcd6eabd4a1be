//! OAUTHBEARER (RFC 7628, KIP-255): a token, which was issued elsewhere.

use std::fs::File;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::options::{Secret, TokenSource};

/// The maximum size of a token, in bytes; brokers accept less (`sasl.server.max.receive.size`).
const MAX_TOKEN: u64 = 512 << 10;

/// The token, read now.
pub(super) fn token(source: &TokenSource, timeout: Duration) -> Result<Secret> {
    let (place, read) = match source {
        TokenSource::File(path) => (path.display().to_string(), File::open(path).and_then(limited)),
        TokenSource::Command(words) => {
            let program = words.first().ok_or_else(|| Error::options("the token's command is empty"))?;
            (program.clone(), output(program, &words[1..], timeout))
        }
    };
    let bytes = read.map_err(|error| Error::security(format!("no token from {place}: {error}")))?;
    let token = std::str::from_utf8(&bytes).map(str::trim).unwrap_or_default();
    // `b64token` of RFC 6750: nothing else may be in the message.
    let is_token = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    if token.is_empty() || !token.chars().all(is_token) {
        return Err(Error::security(format!(
            "no token from {place}: expected letters, digits and -._~+/= only"
        )));
    }
    Ok(Secret::new(token))
}

/// As Kafka's client: without host and port, which brokers would take for extensions.
pub(super) fn first_message(token: &Secret) -> String {
    format!("n,,\x01auth=Bearer {}\x01\x01", token.expose())
}

fn limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_TOKEN).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The output of a program that ends in time and with success.
fn output(program: &str, arguments: &[String], timeout: Duration) -> io::Result<Vec<u8>> {
    let mut child =
        Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let Some(stdout) = child.stdout.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("magicbyte-token".into()).spawn(move || sender.send(limited(stdout)).ok())?;
    let received = receiver.recv_timeout(timeout);
    if received.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    let bytes = received.map_err(|_| io::Error::other(format!("it took more than {timeout:?}")))??;
    if status.success() { Ok(bytes) } else { Err(io::Error::other(format!("it ended with {status}"))) }
}
