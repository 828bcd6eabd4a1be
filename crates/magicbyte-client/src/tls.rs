//! TLS, by rustls.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error as TlsError,
    RootCertStore, SignatureScheme, StreamOwned,
};

use crate::address::Address;
use crate::error::{Error, Result};
use crate::options::TlsOptions;
use crate::socket::Socket;

/// Begins TLS on a connection. The certificate is checked before anything else is sent.
pub(crate) fn handshake(
    socket: Socket,
    address: &Address,
    options: &TlsOptions,
    timeout: Duration,
) -> Result<StreamOwned<ClientConnection, Socket>> {
    let name = ServerName::try_from(address.host.clone()).map_err(|_| {
        Error::options(format!("{:?} is not a host that a certificate can name", address.host))
    })?;
    let client =
        ClientConnection::new(Arc::new(config(options)?), name).map_err(|error| Error::tls(&error))?;
    let mut stream = StreamOwned::new(client, socket);
    while stream.conn.is_handshaking() {
        if let Err(error) = stream.conn.complete_io(&mut stream.sock) {
            return Err(match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    Error::security("the broker closed the connection during the TLS handshake")
                }
                _ => Error::from_io(error, timeout, "finish the TLS handshake"),
            });
        }
    }
    Ok(stream)
}

fn config(options: &TlsOptions) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let roots = Arc::new(roots(options)?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(|error| Error::options(format!("the trusted certificates: {error}")))?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::tls(&error))?;
    let builder = if options.any_hostname {
        let verifier = Arc::new(AnyHostname { verifier, provider });
        builder.dangerous().with_custom_certificate_verifier(verifier)
    } else {
        builder.with_webpki_verifier(verifier)
    };
    match (&options.client_certificates, &options.client_key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(chain), Some(key)) => {
            let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes()).map_err(|_| {
                Error::options("the client's key: expected a private key as PEM that is not encrypted")
            })?;
            let chain = certificates("the client's certificates", chain)?;
            // The error could describe the key.
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|_| Error::options("the client's key is not that of its certificate"))
        }
        _ => Err(Error::options("a client certificate needs its key, and a key its certificate")),
    }
}

fn roots(options: &TlsOptions) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(ca) = &options.ca else {
        // Some systems have certificates that cannot be read beside those that can.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return if roots.is_empty() {
            Err(Error::options("the system has no trusted certificates"))
        } else {
            Ok(roots)
        };
    };
    for certificate in certificates("the trusted certificates", ca)? {
        roots
            .add(certificate)
            .map_err(|error| Error::options(format!("the trusted certificates: {error}")))?;
    }
    Ok(roots)
}

fn certificates(whose: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(Error::options(format!("{whose}: expected certificates as PEM"))),
    }
}

/// Checks everything but the host's name.
#[derive(Debug)]
struct AnyHostname {
    verifier: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyHostname {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, TlsError> {
        // The name is what is checked last.
        match self.verifier.verify_server_cert(certificate, intermediates, name, ocsp_response, now) {
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
