"""A certificate authority of one control plane, and what it signs. Keys never leave its folder."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=365)
_CLOCK_SLACK = timedelta(hours=1)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs for servers and clients on loopback; made anew for each ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("weir-control-plane")
        usage = _key_usage(signs_certificates=True)
        builder = _builder(self._name, self._name, self._key.public_key())
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = self._write("ca.crt", certificate.public_bytes(_PEM))

    def issue(self, common_name: str) -> Pair:
        """A certificate for serving on loopback and for calling others as ``common_name``."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
        names.append(x509.IPAddress(ipaddress.ip_address(_LOOPBACK)))
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            _builder(_name(common_name), self._name, key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        written = self._write(f"{common_name}.crt", certificate.public_bytes(_PEM))
        return Pair(written, self._write(f"{common_name}.key", _private(key)))

    def signing_pair(self, name: str) -> Pair:
        """A bare key pair, for tokens: the public half in place of a certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            _PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return Pair(self._write(f"{name}.pub", public), self._write(f"{name}.key", _private(key)))

    def _write(self, name: str, data: bytes) -> Path:
        path = self._folder / name
        path.touch(mode=0o600)
        path.write_bytes(data)
        return path


_PEM = serialization.Encoding.PEM


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
