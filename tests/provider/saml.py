"""A provider that speaks SAML: it signs answers with the library that Weir reads them by."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse
from xml.sax.saxutils import escape

import environ
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from lxml import etree
from onelogin.saml2.constants import OneLogin_Saml2_Constants as Words
from onelogin.saml2.utils import OneLogin_Saml2_Utils

from portal.accounts.identity import providers

ENTITY = "https://sso.example.org/saml"
ADDRESS = "https://sso.example.org/saml/sign-in"
AUDIENCE = "https://weir.example.org/sign-in/saml/metadata/"
ANSWERS = "https://weir.example.org/sign-in/saml/answer/"


@dataclass(frozen=True)
class Keys:
    key: str
    certificate: str


def keys() -> Keys:
    made = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sso.example.org")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        name, name, made.public_key(), x509.random_serial_number(),
        now - timedelta(days=1), now + timedelta(days=3650),
    )  # fmt: skip
    signed = builder.sign(made, hashes.SHA256())
    key = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Keys(key.decode(), signed.public_bytes(serialization.Encoding.PEM).decode())


@dataclass(frozen=True)
class Answer:
    """What it says of one person. The defaults are what an honest provider says."""

    question: str
    person: str
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    audience: str = AUDIENCE
    destination: str = ANSWERS
    issuer: str = ENTITY
    begins: timedelta = timedelta(minutes=-1)
    ends: timedelta = timedelta(minutes=5)

    def form(self, signed_by: Keys | None) -> dict[str, str]:
        """The fields that the browser posts."""
        text: Any = self._xml()
        if signed_by is not None:
            text = OneLogin_Saml2_Utils.add_sign(
                text, signed_by.key, signed_by.certificate,
                sign_algorithm=Words.RSA_SHA256, digest_algorithm=Words.SHA256,
            )  # fmt: skip
        raw = text if isinstance(text, bytes) else text.encode()
        return {"SAMLResponse": base64.b64encode(raw).decode(), "RelayState": ""}

    def _xml(self) -> str:
        now = datetime.now(UTC)
        at, begins, ends = (_written(now + by) for by in (timedelta(), self.begins, self.ends))
        return f"""<samlp:Response xmlns:samlp="{Words.NS_SAMLP}" xmlns:saml="{Words.NS_SAML}"
 ID="_r1" Version="2.0" IssueInstant="{at}" Destination="{self.destination}" InResponseTo="{self.question}">
<saml:Issuer>{self.issuer}</saml:Issuer>
<samlp:Status><samlp:StatusCode Value="{Words.STATUS_SUCCESS}"/></samlp:Status>
<saml:Assertion ID="_a1" Version="2.0" IssueInstant="{at}"><saml:Issuer>{self.issuer}</saml:Issuer>
<saml:Subject><saml:NameID Format="{Words.NAMEID_PERSISTENT}">{escape(self.person)}</saml:NameID>
<saml:SubjectConfirmation Method="{Words.CM_BEARER}"><saml:SubjectConfirmationData NotOnOrAfter="{ends}"
 Recipient="{self.destination}" InResponseTo="{self.question}"/></saml:SubjectConfirmation></saml:Subject>
<saml:Conditions NotBefore="{begins}" NotOnOrAfter="{ends}"><saml:AudienceRestriction>
<saml:Audience>{self.audience}</saml:Audience></saml:AudienceRestriction></saml:Conditions>
<saml:AuthnStatement AuthnInstant="{at}" SessionIndex="_s1"><saml:AuthnContext>
<saml:AuthnContextClassRef>{Words.AC_PASSWORD_PROTECTED}</saml:AuthnContextClassRef></saml:AuthnContext>
</saml:AuthnStatement>{self._attributes()}</saml:Assertion></samlp:Response>"""

    def _attributes(self) -> str:
        said = "".join(
            f'<saml:Attribute Name="{escape(name)}">'
            + "".join(f"<saml:AttributeValue>{escape(v)}</saml:AttributeValue>" for v in values)
            + "</saml:Attribute>"
            for name, values in {"mail": ["someone@example.org"], **self.attributes}.items()
        )
        return f"<saml:AttributeStatement>{said}</saml:AttributeStatement>"


def _written(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def question_in(address: str) -> etree._Element:
    """What Weir asks, out of the address at which it leads there."""
    sent = parse_qs(urlparse(address).query)["SAMLRequest"][0]
    return etree.fromstring(zlib.decompress(base64.b64decode(sent), -15))


def settings_of(**given: str) -> dict[str, Any]:
    """What Weir's settings make of its environment."""
    env = environ.Env()
    env.ENVIRON = given
    return providers(env)
