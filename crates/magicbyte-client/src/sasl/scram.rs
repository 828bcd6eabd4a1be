//! SCRAM (RFC 5802, `ScramSaslClient`): both sides prove that they know the password, and neither sends it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};

use crate::error::{Error, Result};
use crate::options::{ScramHash, Secret};
use crate::sasl::text;

/// The iterations that a broker may demand. Kafka's own minimum (`ScramMechanism`); the maximum bounds the time.
const MIN_ITERATIONS: u32 = 4096;
const MAX_ITERATIONS: u32 = 1_000_000;

pub(super) struct Scram<'a> {
    hash: ScramHash,
    password: &'a Secret,
    nonce: String,
    /// `client-first-message-bare`.
    bare: String,
}

impl<'a> Scram<'a> {
    pub(super) fn new(hash: ScramHash, username: &str, password: &'a Secret) -> Result<Self> {
        let mut nonce = [0; 24];
        getrandom::fill(&mut nonce).map_err(|error| Error::options(format!("no random numbers: {error}")))?;
        Ok(Self::with_nonce(hash, username, password, STANDARD.encode(nonce)))
    }

    fn with_nonce(hash: ScramHash, username: &str, password: &'a Secret, nonce: String) -> Self {
        let name = username.replace('=', "=3D").replace(',', "=2C");
        Self { hash, password, bare: format!("n={name},r={nonce}"), nonce }
    }

    pub(super) fn first_message(&self) -> String {
        format!("n,,{}", self.bare)
    }

    /// The answer to the broker's challenge, and the signature that the broker has to answer.
    pub(super) fn final_message(&self, challenge: &[u8]) -> Result<(String, Signature)> {
        let invalid = |why: &str| Error::protocol(format!("SCRAM: {:?}: {why}", text(challenge)));
        let challenge = std::str::from_utf8(challenge).map_err(|_| invalid("expected text"))?;
        let mut fields = challenge.split(',');
        let mut field = |name: &str| {
            let field = fields.next().and_then(|field| field.strip_prefix(name));
            field.ok_or_else(|| invalid(&format!("expected {name}")))
        };
        let nonce = field("r=")?;
        if nonce.len() <= self.nonce.len() || !nonce.starts_with(&self.nonce) {
            return Err(invalid("the nonce is not that of the client and one of the broker"));
        }
        let salt = STANDARD.decode(field("s=")?).map_err(|_| invalid("the salt is not base64"))?;
        let iterations = field("i=")?.parse().ok().filter(|n| (MIN_ITERATIONS..=MAX_ITERATIONS).contains(n));
        let Some(iterations) = iterations else {
            return Err(invalid(&format!("expected {MIN_ITERATIONS} to {MAX_ITERATIONS} iterations")));
        };
        let unproved = format!("c=biws,r={nonce}");
        let signed = format!("{},{challenge},{unproved}", self.bare);
        let (proof, signature) = match self.hash {
            ScramHash::Sha256 => prove::<Sha256Keys>(self.password, &salt, iterations, &signed),
            ScramHash::Sha512 => prove::<Sha512Keys>(self.password, &salt, iterations, &signed),
        };
        Ok((format!("{unproved},p={}", STANDARD.encode(proof)), Signature(STANDARD.encode(signature))))
    }
}

/// The signature of a broker that knows the password.
pub(super) struct Signature(String);

impl Signature {
    pub(super) fn check(&self, answer: &[u8]) -> Result<()> {
        let answer = text(answer);
        let first = answer.split(',').next().unwrap_or_default();
        if let Some(error) = first.strip_prefix("e=") {
            return Err(Error::security(format!("the broker does not accept the user: {error}")));
        }
        if first.strip_prefix("v=") == Some(&self.0) {
            return Ok(());
        }
        Err(Error::security(
            "SCRAM: the broker does not know the user's password, so it is not the right one",
        ))
    }
}

/// A hash function and its HMAC.
trait Keys {
    fn hash(data: &[u8]) -> Vec<u8>;
    /// An HMAC with this key, as a function.
    fn keyed(key: &[u8]) -> impl Fn(&[u8]) -> Vec<u8>;
}

macro_rules! keys {
    ($name:ident, $hash:ty) => {
        struct $name;

        impl Keys for $name {
            fn hash(data: &[u8]) -> Vec<u8> {
                <$hash>::digest(data).to_vec()
            }

            fn keyed(key: &[u8]) -> impl Fn(&[u8]) -> Vec<u8> {
                // A key of any length is accepted.
                let keyed = Hmac::<$hash>::new_from_slice(key).ok();
                move |data| {
                    let mut mac = keyed.clone();
                    mac.iter_mut().for_each(|mac| mac.update(data));
                    mac.map(|mac| mac.finalize().into_bytes().to_vec()).unwrap_or_default()
                }
            }
        }
    };
}

keys!(Sha256Keys, Sha256);
keys!(Sha512Keys, Sha512);

/// `ClientProof` and `ServerSignature`.
fn prove<K: Keys>(password: &Secret, salt: &[u8], iterations: u32, signed: &str) -> (Vec<u8>, Vec<u8>) {
    let salted = salted_password::<K>(password, salt, iterations);
    let client_key = K::keyed(&salted)(b"Client Key");
    let client_signature = K::keyed(&K::hash(&client_key))(signed.as_bytes());
    let server_key = K::keyed(&salted)(b"Server Key");
    (xor(&client_key, &client_signature), K::keyed(&server_key)(signed.as_bytes()))
}

/// `Hi`: PBKDF2 with one block.
fn salted_password<K: Keys>(password: &Secret, salt: &[u8], iterations: u32) -> Vec<u8> {
    let mac = K::keyed(password.expose().as_bytes());
    let mut last = mac(&[salt, &1u32.to_be_bytes()].concat());
    let mut salted = last.clone();
    for _ in 1..iterations {
        last = mac(&last);
        salted = xor(&salted, &last);
    }
    salted
}

fn xor(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677.
    #[test]
    fn the_example_of_the_rfc() {
        let password = Secret::new("pencil");
        let scram = Scram::with_nonce(ScramHash::Sha256, "user", &password, "rOprNGfwEbeRWgbNEkqO".into());
        assert_eq!(scram.first_message(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let challenge =
            b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (message, signature) = scram.final_message(challenge).expect("valid");
        assert_eq!(
            message,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        signature.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").expect("the broker's signature");
        for other in ["v=", "v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "e=invalid-proof", ""] {
            let error = signature.check(other.as_bytes()).expect_err(other);
            assert!(matches!(error.kind(), crate::ErrorKind::Security(_)), "{error}");
        }
    }

    #[test]
    fn challenges_that_no_broker_sends() {
        let password = Secret::new("pencil");
        let scram = Scram::with_nonce(ScramHash::Sha512, "a=b,c", &password, "abc".into());
        assert_eq!(scram.first_message(), "n,,n=a=3Db=2Cc,r=abc");
        for challenge in [
            "",
            "r=abc",
            "r=abc,s=AAAA,i=4096",
            "r=xbcd,s=AAAA,i=4096",
            "r=abcd,s=!,i=4096",
            "r=abcd,s=AAAA",
            "r=abcd,s=AAAA,i=4095",
            "r=abcd,s=AAAA,i=1000001",
            "r=abcd,s=AAAA,i=-1",
            "r=abcd,s=AAAA,i=99999999999",
            "m=ext,r=abcd,s=AAAA,i=4096",
            "s=AAAA,r=abcd,i=4096",
        ] {
            let error = scram.final_message(challenge.as_bytes()).err().expect(challenge);
            assert!(matches!(error.kind(), crate::ErrorKind::Protocol(_)), "{challenge}: {error}");
        }
        assert!(scram.final_message(&[0xff; 40]).is_err());
    }
}
