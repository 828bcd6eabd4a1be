"""A real broker with listeners for TLS and each mechanism of SASL, and the certificates for it."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import socket
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kafka_broker import Broker, free_ports

PASSWORD = "hunter2=secret"
_MODULES = "org.apache.kafka.common.security"


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class SecureBroker:
    """A broker with the user `alice`, whose password is `PASSWORD`, and tokens of any issuer."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self.ports = dict(zip(("SSL", "SASL_PLAINTEXT", "SASL_SSL"), free_ports(3), strict=True))
        self.ca, self.other_ca = root / "ca.pem", root / "other.pem"
        self._make_certificates()
        self.broker = Broker(root / "node", topics=0)
        properties = self.broker.root / "server.properties"
        properties.write_text(properties.read_text() + self._settings())
        self.broker.open({}, clean=True)
        deadline = time.monotonic() + 60
        while not all(map(_is_open, self.ports.values())):
            # The listeners open one after the other.
            assert time.monotonic() < deadline, self.broker.log()[-20:]
            time.sleep(0.05)

    def properties(self, listener: str, *lines: str, mechanism: str = "", password: str = PASSWORD) -> Path:
        """A file of properties for a client of a listener."""
        module = {
            "PLAIN": f"{_MODULES}.plain.PlainLoginModule",
            "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule",
        }.get(mechanism, f"{_MODULES}.scram.ScramLoginModule")
        text = [f"security.protocol={listener}", "request.timeout.ms=10000", *lines]
        if listener != "SASL_PLAINTEXT":
            text += ["ssl.truststore.type=PEM", f"ssl.truststore.location={self.ca}"]
        if mechanism:
            jaas = f'{module} required username="alice" password="{password}";'
            text += [f"sasl.mechanism={mechanism}", f"sasl.jaas.config={jaas}"]
        path = self.root / "client.properties"
        path.write_text("\n".join(text) + "\n")
        return path

    def token(self) -> Path:
        """A file with a token that is not signed, which the broker accepts."""
        claims = {"sub": "alice", "iat": int(time.time()) - 5, "exp": int(time.time()) + 600}
        parts = [
            base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
            for part in ({"alg": "none"}, claims)
        ]
        path = self.root / "token"
        path.write_text(".".join([*parts, ""]) + "\n")
        return path

    def _settings(self) -> str:
        names = [f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()]
        plain = f'{_MODULES}.plain.PlainLoginModule required user_alice="{PASSWORD}";'
        scram = f"{_MODULES}.scram.ScramLoginModule required;"
        oauth = (
            f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        )
        lines = [
            f"listeners=PLAINTEXT://127.0.0.1:{self.broker.port},CONTROLLER://127.0.0.1:"
            f"{self.broker.controller},{','.join(names)}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.broker.port},{','.join(names)}",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "connections.max.reauth.ms=600000",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={self.root / 'broker.pem'}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.ca}",
            "listener.name.ssl.ssl.client.auth=required",
        ]
        for listener in ("sasl_plaintext", "sasl_ssl"):
            prefix = f"listener.name.{listener}"
            lines += [
                f"{prefix}.plain.sasl.jaas.config={plain}",
                f"{prefix}.scram-sha-256.sasl.jaas.config={scram}",
                f"{prefix}.scram-sha-512.sasl.jaas.config={scram}",
                f"{prefix}.oauthbearer.sasl.jaas.config={oauth}",
            ]
        return "\n".join(["", *lines, ""])

    def _make_certificates(self) -> None:
        ca, other = _Issuer("ca"), _Issuer("other")
        self.ca.write_bytes(ca.certificates)
        self.other_ca.write_bytes(other.certificates)
        (self.root / "broker.pem").write_bytes(
            ca.issue("broker", x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        )
        (self.root / "client.pem").write_bytes(ca.issue("client", x509.DNSName("client")))
        (self.root / "stranger.pem").write_bytes(other.issue("client", x509.DNSName("client")))


class _Issuer:
    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._builder(self._name, self._key.public_key()).add_extension(
            constraints, critical=True
        )
        signed = certificate.sign(self._key, hashes.SHA256())
        self.certificates = signed.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, subject: x509.GeneralName) -> bytes:
        """A private key and its certificate, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        alternatives = x509.SubjectAlternativeName([subject])
        certificate = self._builder(named, key.public_key()).add_extension(alternatives, critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return private + certificate.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )
