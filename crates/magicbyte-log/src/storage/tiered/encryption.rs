//! The encryption of remote segments: AES-256-GCM with a separate key for each segment. An RSA key of the
//! user encrypts the segment's key (Aiven's `AesEncryptionProvider`, `RsaEncryptionProvider`).

use std::fmt;
use std::io;
use std::sync::Arc;

use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce, Tag};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rsa::pkcs1::DecodeRsaPrivateKey;
use rsa::pkcs8::DecodePrivateKey;
use rsa::{Oaep, PrivateKey};
use serde::Deserialize;
use sha3::Sha3_512;

/// The initialization vector before each encrypted part, and the tag at its end.
const IV: usize = 12;
const TAG: usize = 16;
/// The number of bytes that encryption adds to a part.
pub(super) const OVERHEAD: u64 = (IV + TAG) as u64;

/// The user's private keys, by which stores read encrypted segments. Clones share them until one of them changes.
#[derive(Clone, Default)]
pub(crate) struct EncryptionKeys(Option<Arc<Vec<NamedKey>>>);

/// A key and its ID. A key without an ID is tried for every ID that no other key has.
#[derive(Clone)]
struct NamedKey {
    id: Option<String>,
    key: PrivateKey,
}

impl EncryptionKeys {
    /// Adds an RSA private key (PEM, PKCS #8 or PKCS #1) and replaces a key with the same ID.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if it is not such a key. The message contains no part of it.
    pub(crate) fn add(&mut self, id: Option<&str>, pem: &str) -> io::Result<()> {
        let key =
            PrivateKey::from_pkcs8_pem(pem).or_else(|_| PrivateKey::from_pkcs1_pem(pem)).map_err(|_| {
                let why = "expected an RSA private key in PEM, without a password";
                io::Error::new(io::ErrorKind::InvalidInput, why)
            })?;
        let keys = Arc::make_mut(self.0.get_or_insert_default());
        keys.retain(|known| known.id.as_deref() != id || (id.is_none() && known.key != key));
        keys.push(NamedKey { id: id.map(str::to_owned), key });
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn of(keys: &[(Option<&str>, &PrivateKey)]) -> Self {
        let named = |&(id, key): &(Option<&str>, &PrivateKey)| NamedKey {
            id: id.map(str::to_owned),
            key: key.clone(),
        };
        Self(Some(Arc::new(keys.iter().map(named).collect())))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The key with this ID, or those without an ID if none has it.
    fn candidates(&self, id: &str) -> Vec<&PrivateKey> {
        let keys = self.0.as_deref().map_or(&[][..], Vec::as_slice);
        let with = |id: Option<&str>| -> Vec<&PrivateKey> {
            keys.iter().filter(|known| known.id.as_deref() == id).map(|known| &known.key).collect()
        };
        match with(Some(id)) {
            named if named.is_empty() => with(None),
            named => named,
        }
    }
}

/// Equal keys are the same ones, so no key is compared.
impl PartialEq for EncryptionKeys {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(keys), Some(others)) => Arc::ptr_eq(keys, others),
            (keys, others) => keys.is_none() && others.is_none(),
        }
    }
}

impl fmt::Debug for EncryptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKeys")
    }
}

/// `encryption` of a manifest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EncryptionJson {
    /// The ID of the RSA key, a colon, and the segment's key, encrypted with it (`EncryptedDataKey`).
    data_key: String,
    aad: String,
}

/// The decryption of a segment's parts.
pub(super) struct Encryption {
    cipher: Aes256Gcm,
    aad: Vec<u8>,
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encryption")
    }
}

impl Encryption {
    /// Decrypts the key of a segment with one of the user's keys.
    ///
    /// # Errors
    /// A message about the missing or wrong key.
    pub(super) fn new(json: EncryptionJson, keys: &EncryptionKeys) -> Result<Self, String> {
        let aad = STANDARD.decode(json.aad).map_err(|error| format!("aad is not base64: {error}"))?;
        let malformed = || "dataKey is malformed, expected KEYID:BASE64".to_owned();
        let (id, encrypted) = json.data_key.split_once(':').ok_or_else(malformed)?;
        let encrypted = STANDARD.decode(encrypted).map_err(|_| malformed())?;
        let candidates = keys.candidates(id);
        if candidates.is_empty() {
            return Err(format!("it is encrypted with the key {id:?}: pass that as an encryption key"));
        }
        let decrypted = |key: &PrivateKey| {
            key.decrypt(Oaep::<Sha3_512>::new(), &encrypted).ok().filter(|key| key.len() == 32)
        };
        let Some(data_key) = candidates.into_iter().find_map(decrypted) else {
            return Err(format!(
                "it is encrypted with the key {id:?}, which is none of those that were passed"
            ));
        };
        let cipher = Aes256Gcm::new_from_slice(&data_key).map_err(|error| error.to_string())?;
        Ok(Self { cipher, aad })
    }

    /// Decrypts a part in place: its initialization vector, the encrypted bytes, and their tag.
    ///
    /// # Errors
    /// If the part is too short, or its tag does not match its bytes.
    pub(super) fn decrypt(&self, part: &mut Vec<u8>) -> Result<(), String> {
        let too_short = || format!("{} bytes are no encrypted part, expected at least {OVERHEAD}", IV + TAG);
        let (rest, tag) = part.split_last_chunk_mut::<TAG>().ok_or_else(too_short)?;
        let (iv, data) = rest.split_first_chunk_mut::<IV>().ok_or_else(too_short)?;
        let (nonce, tag) = (Nonce::from(*iv), Tag::from(*tag));
        self.cipher
            .decrypt_inout_detached(&nonce, &self.aad, data.into(), &tag)
            .map_err(|_| "AES-GCM: the tag does not match")?;
        part.truncate(part.len() - TAG);
        part.drain(..IV);
        Ok(())
    }
}
