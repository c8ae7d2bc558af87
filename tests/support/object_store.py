"""As much of S3 as reading needs, on a port of the loopback address: buckets of bytes, listed and read in ranges.

Requests must be signed with the key below; what a signature says is not verified.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

KEY, SECRET = "AKSFUMATOTEST", "hush-hush-secret"


class Store:
    """The server: `files` are bytes by "bucket/key"."""

    def __init__(self, port: int) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.port = port

    def url(self, path: str) -> str:
        """A URL for `sfumato.open`."""
        return f"s3://{path}?region=test&scheme=http&endpoint_override=127.0.0.1:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        split = urlsplit(self.path)
        path, options = unquote(split.path).strip("/"), parse_qs(split.query, keep_blank_values=True)
        self.store.asked.append(f"{self.command} {path}")
        if KEY not in self.headers.get("Authorization", ""):
            self._send(403, b"<Error><Code>AccessDenied</Code></Error>", body=body)
        elif "list-type" in options:
            self._send(200, self._listing(path, options.get("prefix", [""])[0]), body=body)
        elif path in self.store.files:
            self._object(self.store.files[path], body=body)
        elif any(known.startswith(f"{path}/") for known in self.store.files) and "/" not in path:
            self._send(200, b"", body=body)
        else:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", body=body)

    def _listing(self, bucket: str, prefix: str) -> bytes:
        found = [
            f"<Contents><Key>{escape(path.removeprefix(bucket + '/'))}</Key><Size>{len(data)}</Size>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
            for path, data in sorted(self.store.files.items())
            if path.startswith(f"{bucket}/{prefix}")
        ]
        inside = f"<Name>{bucket}</Name><IsTruncated>false</IsTruncated><KeyCount>{len(found)}</KeyCount>{''.join(found)}"
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        return f'<?xml version="1.0"?><ListBucketResult xmlns="{space}">{inside}</ListBucketResult>'.encode()

    def _object(self, data: bytes, *, body: bool) -> None:
        wanted = self.headers.get("Range")
        if wanted is None:
            self._send(200, data, body=body)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        end = min(int(last) if last else len(data) - 1, len(data) - 1)
        self._send(206, data[int(first) : end + 1], body=body, range_=f"bytes {first}-{end}/{len(data)}")

    def _send(self, code: int, data: bytes, *, body: bool, range_: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/xml" if data.startswith(b"<") else "application/octet-stream")
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("ETag", '"x"')
        if range_:
            self.send_header("Content-Range", range_)
        self.end_headers()
        if body:
            self.wfile.write(data)


@contextmanager
def running_store() -> Iterator[Store]:
    """A store, with the keys to it in the environment."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    handler.store = Store(server.server_address[1])
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        for name in [n for n in os.environ if n.startswith("AWS_") or n.lower().endswith("_proxy")]:
            patch.delenv(name)
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield handler.store
    server.shutdown()
    server.server_close()
