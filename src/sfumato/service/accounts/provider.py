"""A provider of OpenID Connect, as far as signing in goes: where it is, and whom its token is about."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from sfumato.service.http.problems import ProblemError
from sfumato.service.settings import OidcSettings

ALGORITHMS: Final = ["RS256", "PS256", "ES256", "EdDSA"]
"""Signatures with a public key only: with a shared one the service's own secret could sign."""
_LEEWAY: Final = 60
_LARGEST: Final = 1_048_576


def http_client() -> httpx.Client:
    """With what the provider is asked; tests put another one in its place."""
    return httpx.Client(timeout=10, follow_redirects=False)


def way(oidc: OidcSettings, back: str, state: str, nonce: str, verifier: str) -> str:
    """Where the browser goes to sign in.

    Parameters
    ----------
    oidc : OidcSettings
    back : str
        Where it is sent afterwards.
    state, nonce, verifier : str
        What binds the way there, the token and the exchange to this browser.
    """
    with http_client() as client:
        endpoint = _described(client, oidc)["authorization_endpoint"]
    asked = {
        "response_type": "code",
        "client_id": oidc.client_id,
        "redirect_uri": back,
        "scope": " ".join(dict.fromkeys(["openid", *oidc.scopes])),
        "state": state,
        "nonce": nonce,
        "code_challenge": create_s256_code_challenge(verifier),
        "code_challenge_method": "S256",
    }
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(asked)}"


def claims_of(oidc: OidcSettings, back: str, code: str, nonce: str, verifier: str) -> dict[str, Any]:
    """What the provider says about whoever came back with a code, after everything about it was checked.

    Parameters
    ----------
    oidc : OidcSettings
    back : str
        Where the browser was sent back to.
    code : str
        What it brought.
    nonce, verifier : str
        Of the way there.
    """
    with http_client() as client:
        told = _described(client, oidc)
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": verifier}
        token = _asked(client, "POST", told["token_endpoint"], data=form, auth=(oidc.client_id, oidc.client_secret))
        keys = _asked(client, "GET", told["jwks_uri"])
    try:
        found = jwt.decode(str(token["id_token"]), KeySet.import_key_set(keys), algorithms=ALGORITHMS)  # type: ignore[arg-type]
        claims = CodeIDToken(
            found.claims,
            found.header,
            {"iss": {"essential": True, "value": oidc.issuer}, "aud": {"essential": True, "value": oidc.client_id}},
            {"nonce": nonce, "client_id": oidc.client_id, "access_token": token.get("access_token")},
        )
        claims.validate(leeway=_LEEWAY)
        subject = claims["sub"]
    except (JoseError, KeyError, ValueError, TypeError):
        raise not_signed_in() from None
    if not isinstance(subject, str) or not 0 < len(subject) <= 255 or not subject.isprintable():
        raise not_signed_in()
    return dict(claims)


def not_signed_in() -> ProblemError:
    """The refusal, the same for every reason."""
    return ProblemError(403, "the provider's answer does not fit what was asked from this browser; begin again")


def _described(client: httpx.Client, oidc: OidcSettings) -> dict[str, str]:
    told = _asked(client, "GET", oidc.issuer.rstrip("/") + "/.well-known/openid-configuration")
    names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    scheme = urlsplit(oidc.issuer).scheme
    places = [told.get(name) for name in names]
    if told.get("issuer") != oidc.issuer or not all(
        isinstance(place, str) and urlsplit(place).scheme in ("https", scheme) for place in places
    ):
        raise _unreachable()
    return {name: told[name] for name in names}


def _asked(client: httpx.Client, method: str, url: str, **more: Any) -> dict[str, Any]:
    try:
        reply = client.request(method, url, **more)
        if method == "POST" and 400 <= reply.status_code < 500:
            raise not_signed_in()
        if reply.status_code != 200 or len(reply.content) > _LARGEST:
            raise _unreachable()
        found = json.loads(reply.content)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        raise _unreachable() from None
    if not isinstance(found, dict):
        raise _unreachable()
    return found


def _unreachable() -> ProblemError:
    return ProblemError(
        503, "the provider of OpenID Connect does not answer as it should; try again, or sign in with a password"
    )
