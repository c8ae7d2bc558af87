"""The service from a notebook: the calls of a table, running on a server.

    import sfumato.client

    client = sfumato.client.connect("https://sfumato.example.org", token=...)
    clinic = client.open("clinic", purpose="research")
    clinic.preview("count", where="age >= 65", epsilon="0.1")
    clinic.count(where="age >= 65", epsilon="0.1")

A release is asked for, charged and computed on the server, told at its slot, downloaded, verified here and returned as the
same type that `sfumato.open` gives.
"""

from __future__ import annotations

from sfumato.extras import need

need("httpx", "sfumato.client")

from sfumato.client.connection import AccessError, ServiceError  # noqa: E402
from sfumato.client.kinds_of_people import Approvals, Jobs, Me, Plans, Releases  # noqa: E402
from sfumato.client.signing_in import Client, connect  # noqa: E402
from sfumato.client.table import JobFailedError, RemotePreview, RemoteTable  # noqa: E402

__all__ = [
    "AccessError",
    "Approvals",
    "Client",
    "JobFailedError",
    "Jobs",
    "Me",
    "Plans",
    "Releases",
    "RemotePreview",
    "RemoteTable",
    "ServiceError",
    "connect",
]
