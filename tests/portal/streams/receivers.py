"""Syslog servers on loopback that keep what they are sent."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Server:
    port: int = 0
    got: list[bytes] = field(default_factory=list)
    """Messages of the connections that ended as they should."""
    resets: bool = False
    """Breaks off what it has read, as a server that is ended does."""


def frames(data: bytes) -> list[bytes]:
    """Messages out of counted octets."""
    found = []
    while data:
        count, _, rest = data.partition(b" ")
        found.append(rest[: int(count)])
        data = rest[int(count) :]
    return found


@contextmanager
def tcp(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    made = Server()
    listener = socket.create_server(("127.0.0.1", 0))
    made.port = listener.getsockname()[1]

    def serve() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            take(link)

    def take(link: socket.socket) -> None:
        try:
            if context:
                link = context.wrap_socket(link, server_side=True)
            data = b""
            while part := link.recv(65536):
                data += part
                if made.resets:
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    return
            made.got.extend(frames(data))
        except OSError:
            pass
        finally:
            link.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        # Closing alone does not wake who accepts.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context for ``localhost``, and the file of who vouches for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    crt, pem = folder / "server.crt", folder / "server.key"
    crt.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(crt, pem)
    return context, crt
