//! OAUTHBEARER (RFC 7628, KIP-255): a token, which was issued elsewhere.

use std::fs::File;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::backoff::deadline;
use crate::error::{Error, Result};
use crate::options::{Secret, TokenSource};

/// The maximum size of a token, in bytes; brokers accept less (`sasl.server.max.receive.size`).
const MAX_TOKEN: u64 = 512 << 10;
/// The pause before another look at whether a command has ended.
const PAUSE: Duration = Duration::from_millis(5);

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

/// The first message, as Kafka's client sends it: without host and port, which brokers would take for extensions.
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
    let deadline = deadline(timeout);
    let mut child =
        Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let Some(stdout) = child.stdout.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("magicbyte-token".into()).spawn(move || sender.send(limited(stdout)).ok())?;
    let received = receiver.recv_timeout(timeout);
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if received.is_err() || Instant::now() > deadline => {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::other(format!("the command took more than {timeout:?}")));
            }
            None => thread::sleep(PAUSE),
        }
    };
    let bytes = received.map_err(io::Error::other)??;
    if status.success() {
        Ok(bytes)
    } else {
        Err(io::Error::other(format!("the command ended with {status}")))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn token_of(script: &str) -> Result<Secret> {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        token(&TokenSource::Command(words), Duration::from_millis(300))
    }

    #[test]
    fn tokens_of_commands() {
        assert_eq!(token_of("echo ' a.b-c= '").expect("a token").expose(), "a.b-c=");
        for (script, expected) in [
            ("echo hunter2; exit 3", "the command ended with exit status: 3"),
            ("exec sleep 60", "the command took more than 300ms"),
            ("echo hunter2; exec >&-; exec sleep 60", "the command took more than 300ms"),
            ("true", "expected letters"),
            ("echo hunter2 two", "expected letters"),
            ("printf 'hunter2\\001auth=x'", "expected letters"),
        ] {
            let error = token_of(script).expect_err(script).to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{script}: {error}");
        }
        let missing = TokenSource::File("/nowhere/token".into());
        let error = token(&missing, Duration::ZERO).expect_err("no file").to_string();
        assert!(error.starts_with("no token from /nowhere/token"), "{error}");
    }
}
