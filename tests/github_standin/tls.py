"""Certificates for a loopback server: an authority that only its tests trust, and what it signs."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


class Authority:
    """A certificate authority. `bundle` is the file by which a client trusts it."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Test authority")
        self._signed = 0
        builder = _builder(self._name, self._name, self._key.public_key(), _DAY)
        made = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True).sign(
            self._key, hashes.SHA256()
        )
        self.bundle = home / "authority.pem"
        self.bundle.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def server(
        self, *, address: str = "127.0.0.1", until: datetime.timedelta = _DAY
    ) -> ssl.SSLContext:
        """What a server at `address` needs; `until` is from now, so a negative one is over."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        builder = _builder(_name(address), self._name, key.public_key(), until)
        made = builder.add_extension(names, False).sign(self._key, hashes.SHA256())
        self._signed += 1
        chain = self._home / f"server-{self._signed}.pem"
        chain.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + made.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    until: datetime.timedelta,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 30 * _DAY)
        .not_valid_after(now + until)
    )
