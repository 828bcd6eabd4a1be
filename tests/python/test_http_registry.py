"""A registry over HTTP that cannot be trusted: a real server that answers as each case says."""

from __future__ import annotations

import json
import pickle
import re
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from magicbyte.errors import RefusedError
from magicbyte.jobs.schemas import open_registry
from magicbyte.schema import decode
from magicbyte.schema.http_client import HttpSettings, RegistryError, read_settings
from magicbyte.schema.http_registry import HttpRegistry
from magicbyte.schema.registry import SchemaNotFoundError

SECRET = "s3cret"


class Server(ThreadingHTTPServer):
    """Answers with `answer`, and remembers what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.answer: Callable[[Handler], None] = lambda handler: handler.json([])
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        try:
            self.server.answer(self)
        except OSError:
            self.close_connection = True

    do_POST = do_GET

    def json(self, document: Any, status: int = 200, **headers: str) -> None:
        self.raw(json.dumps(document).encode(), status, **headers)

    def raw(self, data: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content_length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever, args=(0.01,))
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def registry(server: Server, **settings: Any) -> HttpRegistry:
    return HttpRegistry(server.url, HttpSettings(**{"timeout": 1, "retries": 0, **settings}))


def version(text: str = '"string"', **more: Any) -> dict[str, Any]:
    return {"subject": "a", "version": 1, "id": 7, "schema": text, **more}


# --- time and size --------------------------------------------------------------------------------


def hang(handler: Handler) -> None:
    time.sleep(3)


def drip_headers(handler: Handler) -> None:
    # Each read of the client succeeds within any limit for one read.
    for _ in range(60):
        handler.wfile.write(b"H")
        handler.wfile.flush()
        time.sleep(0.05)


def drip_body(handler: Handler) -> None:
    handler.raw(b"[", content_length="1000")
    for _ in range(60):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


@pytest.mark.parametrize("answer", [hang, drip_headers, drip_body])
def test_no_complete_answer(server: Server, answer: Callable[[Handler], None]) -> None:
    server.answer = answer
    start = time.monotonic()
    with pytest.raises(RegistryError, match=r"GET http://.*/subjects: no complete answer within 0\.4 s"):
        registry(server, timeout=0.4, retries=9).subjects()
    assert time.monotonic() - start < 3  # ten attempts would take 4


@pytest.mark.parametrize("answer", [hang, lambda handler: handler.json({"message": "down"}, 500)])
def test_values_of_a_registry_that_does_not_answer(server: Server, answer: Callable[[Handler], None]) -> None:
    server.answer = answer
    live = registry(server, timeout=0.4)
    with pytest.raises(RegistryError, match=r"/schemas/ids/7"):
        decode([b"\0\0\0\0\x07\x02"], live, reader_schema='"int"')
    # Nothing is remembered of it.
    server.answer = lambda handler: handler.json({"schema": '"int"'})
    assert decode([b"\0\0\0\0\x07\x02"], live).field("value").to_pylist() == [1]


def test_a_registry_that_lies_costs_its_rows(server: Server) -> None:
    answers = {"/schemas/ids/7": '"int"', "/schemas/ids/8": '"string"', "/schemas/ids/9": "{"}

    def answer(handler: Handler) -> None:
        handler.json({"schema": answers[handler.path.partition("?")[0]]})

    server.answer = answer
    values = [bytes([0, 0, 0, 0, number, 2]) for number in (7, 8, 9, 7)]
    result = decode(values, registry(server), reader_schema='"int"')
    assert result.field("value").to_pylist() == [1, None, None, 1]
    assert result.field("invalidValue").to_pylist() == [None, values[1], values[2], None]


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(RegistryError, match=r"ConnectError.*tried 2 times") as failed:
            HttpRegistry(url, HttpSettings(retries=1, timeout=5)).subjects()
    assert failed.value.status is None


def test_a_gigabyte(server: Server) -> None:
    def answer(handler: Handler) -> None:
        handler.raw(b"[", content_length=str(1 << 30))
        for _ in range(1 << 10):
            handler.wfile.write(bytes(1 << 20))

    server.answer = answer
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RegistryError, match="more than 1048576 bytes"):
        registry(server, max_answer_bytes=1 << 20, timeout=20).subjects()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize(
    "data",
    [
        b"[" + b"[]," * 8_000_000 + b"[]]",
        b'["' + b'","' * 3_000_000 + b'"]',
        b"[" + b'{"a":0},' * 2_000_000 + b"0]",
        b'{"subject":"\\"",' + b"0," * 2_000_000 + b"0}",
        b"[" * 20_000_000,
    ],
    ids=["lists", "texts", "objects", "numbers", "depth"],
)
def test_many_values(server: Server, data: bytes) -> None:
    """They would take 20 times their text."""
    server.answer = lambda handler: handler.raw(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RegistryError, match="not JSON of at most 1,000,000 values"):
        registry(server, timeout=60).subjects()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


def test_a_long_schema_is_not_many_values(server: Server) -> None:
    text = json.dumps([f"int{n}" for n in range(200_000)] * 6)
    server.answer = lambda handler: handler.json(version(text=text))
    assert registry(server, timeout=60).version("a", 1).schema.text == text


def test_a_compressed_answer_is_not_expanded(server: Server) -> None:
    server.answer = lambda handler: handler.raw(b"\x1f\x8b" + bytes(100), content_encoding="gzip")
    with pytest.raises(RegistryError, match="is not JSON"):
        registry(server).subjects()


# --- errors that may pass -------------------------------------------------------------------------


def test_retries_until_it_answers(server: Server) -> None:
    answers = iter([(503, {}), (429, {"retry_after": "0"}), (500, {})])

    def answer(handler: Handler) -> None:
        status, headers = next(answers, (200, {}))
        handler.json(["a"], status, **headers)

    server.answer = answer
    assert registry(server, retries=3, timeout=10).subjects() == ["a"]
    assert len(server.asked) == 4


def test_retries_are_bounded(server: Server) -> None:
    server.answer = lambda handler: handler.json({"error_code": 50001, "message": "no\nstore"}, 500)
    with pytest.raises(RegistryError, match=r"status 500, no store \(error 50001\), tried 3 times") as failed:
        registry(server, retries=2, timeout=10).subjects()
    assert failed.value.status == 500
    assert len(server.asked) == 3


def test_a_long_pause_is_not_waited_for(server: Server) -> None:
    server.answer = lambda handler: handler.json({}, 503, retry_after="3600")
    start = time.monotonic()
    with pytest.raises(RegistryError, match="status 503"):
        registry(server, retries=5, timeout=5).subjects()
    assert time.monotonic() - start < 4


# --- credentials ----------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"user_info": f"user:{SECRET}"}, {"token": SECRET}])
def test_credentials_are_sent_and_never_shown(server: Server, settings: dict[str, str]) -> None:
    one = registry(server, **settings)
    assert one.subjects() == []
    assert server.asked[0][1] is not None
    server.answer = lambda handler: handler.json({"error_code": 40101, "message": "who?"}, 401)
    with pytest.raises(RegistryError, match="the registry wants other credentials, who") as failed:
        one.subjects()
    shown = f"{one!r} {one.url} {HttpSettings(**settings)!r} {failed.value!r} {failed.value.__dict__}"
    assert SECRET not in shown
    assert len(server.asked) == 2


def test_credentials_in_the_address(server: Server, cli: Cli) -> None:
    url = server.url.replace("://", f"://user:{SECRET}@")
    source, one = open_registry([url])
    assert one.subjects() == []
    assert server.asked[0][1] == "Basic dXNlcjpzM2NyZXQ="
    assert SECRET not in f"{source} {one!r}"
    server.answer = lambda handler: handler.json({}, 403)
    cli("schemas", "list", url, code=3)
    assert "status 403" in cli.error
    assert SECRET not in cli.error


def test_a_token_that_no_header_can_have() -> None:
    with pytest.raises(RegistryError) as failed:
        HttpSettings(token=f"{SECRET}\n")
    assert SECRET not in str(failed.value)


def test_another_host_gets_nothing(server: Server) -> None:
    with Server() as other:
        threading.Thread(target=other.serve_forever, args=(0.01,)).start()
        server.answer = lambda handler: handler.json([], 302, location=f"{other.url}/subjects")
        with pytest.raises(
            RegistryError, match=re.escape(f"redirected to {other.url}, which is not followed")
        ):
            registry(server, token=SECRET).subjects()
        other.shutdown()
        assert other.asked == []


def test_redirects_within_the_registry(server: Server) -> None:
    def answer(handler: Handler) -> None:
        if handler.path.startswith("/new"):
            handler.json(["a"])
        else:
            handler.json([], 301, location="/new/subjects")

    server.answer = answer
    assert registry(server, token=SECRET).subjects() == ["a"]
    server.answer = lambda handler: handler.json([], 301, location="/again")
    with pytest.raises(RegistryError, match="more than 5 redirects"):
        registry(server).subjects()


# --- lies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("<html>", "is this a schema registry"),
        ('{"a":', "is this a schema registry"),
        ("[" * 100_000, "is this a schema registry"),
        ("[]", "expected a number"),
        ("{}", "version: expected a number"),
        (json.dumps(version(version=2)), "the answer is version 2"),
        (json.dumps(version(id=True)), "id: expected a number"),
        (json.dumps(version(id=1 << 40)), "id: expected a number"),
        (json.dumps(version(schema=5)), "schema: expected text"),
        (json.dumps(version(text="\ud800")), "surrogate"),
        (json.dumps(version(references=[{"name": "x"}])), "references"),
    ],
)
def test_answers_that_are_none(server: Server, document: str, says: str) -> None:
    server.answer = lambda handler: handler.raw(document.encode())
    with pytest.raises(RegistryError, match=says):
        registry(server).version("a", 1)


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        ({}, ("FULL", "STRICT", None)),
        ({"compatibilityPolicy": "LENIENT", "compatibilityGroup": "major"}, ("FULL", "LENIENT", "major")),
        ({"compatibilityPolicy": None, "compatibilityGroup": None}, ("FULL", "STRICT", None)),
        ({"compatibilityPolicy": 5}, "config of a: value: compatibilityPolicy: expected text"),
        ({"compatibilityLevel": None}, "config of a: compatibilityLevel: expected text"),
    ],
)
def test_rules_of_a_subject(server: Server, more: dict[str, Any], rules: Any) -> None:
    server.answer = lambda handler: handler.json({"compatibilityLevel": "FULL", **more})
    if isinstance(rules, tuple):
        assert registry(server).rules("a") == rules
    else:
        with pytest.raises(RegistryError, match=rules):
            registry(server).rules("a")


def test_an_id_has_one_schema(server: Server) -> None:
    one = registry(server)
    server.answer = lambda handler: handler.json(version())
    assert one.version("a", 1).schema.text == '"string"'
    assert one.by_id(7).text == '"string"'
    assert len(server.asked) == 1
    server.answer = lambda handler: handler.json(version('"int"', subject="b"))
    with pytest.raises(RegistryError, match="id 7 is another schema than in an earlier answer"):
        one.version("b", 1)


def test_a_guid_is_checked(server: Server) -> None:
    server.answer = lambda handler: handler.json({"schema": '"string"', "guid": "0" * 32})
    with pytest.raises(RegistryError, match="has the GUID"):
        registry(server).by_guid("00000000-0000-0000-0000-000000000000")


def test_what_a_registry_does_not_find(server: Server) -> None:
    server.answer = lambda handler: handler.json({"error_code": 40403, "message": "?"}, 404)
    with pytest.raises(SchemaNotFoundError, match="no schema has the id 9"):
        registry(server).by_id(9)
    # Another server, or a wrong path.
    server.answer = lambda handler: handler.raw(b"<h1>Not found</h1>", 404)
    with pytest.raises(RegistryError, match="status 404"):
        registry(server).by_id(9)


def absent(handler: Handler) -> None:
    handler.json({"error_code": 40403, "message": "Schema not found"}, 404)


def test_absent_ids_are_asked_for_once_in_a_while(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("magicbyte.schema.absent_schemas.time.monotonic", lambda: now[0])
    server.answer = absent
    one = registry(server, absent_seconds=60)
    guid = "0" * 8 + "-0000-0000-0000-" + "0" * 12
    for _ in range(3):
        for ask in (lambda: one.by_id(7), lambda: one.by_id(7, ".other"), lambda: one.by_guid(guid)):
            with pytest.raises(SchemaNotFoundError, match="no schema has the"):
                ask()
    assert len(server.asked) == 3
    # It is registered later.
    server.answer = lambda handler: handler.json({"schema": '"string"'})
    now[0] += 59
    with pytest.raises(SchemaNotFoundError):
        one.by_id(7)
    now[0] += 2
    assert one.by_id(7).text == '"string"'


def test_requests_for_absent_ids_are_bounded(server: Server) -> None:
    def answer(handler: Handler) -> None:
        handler.json({"schema": '"long"'}) if handler.path.endswith("/ids/1") else absent(handler)

    server.answer = answer
    one = registry(server, max_absent=20)
    values = [b"\0\0\0\0\1\2", *(b"\0" + (1000 + id).to_bytes(4, "big") for id in range(10))]
    for _ in range(3):
        rows = decode(values, one)
        assert rows.field("value").to_pylist() == [1, *[None] * 10]
    assert len(server.asked) == 11
    more = [b"\0" + (2000 + id).to_bytes(4, "big") for id in range(100)]
    rows = decode([values[0], *more], one, reader_schema='"long"')
    assert rows.field("value").to_pylist() == [1, *[None] * 100]
    assert len(server.asked) == 21
    assert "the registry lacked 20 others in the last 300 s" in rows.field("_error")[100].as_py()


def test_all_requests_are_bounded(server: Server) -> None:
    server.answer = lambda handler: handler.json([f"subject-{number}" for number in range(100)])
    one = registry(server, max_requests=10)
    for _ in range(10):
        assert len(one.subjects()) == 100
    with pytest.raises(RegistryError, match="more than 10 requests"):
        one.subjects()
    assert len(server.asked) == 10


def test_names_are_escaped(server: Server) -> None:
    registry(server).versions("a/b?c#d\udcff..")
    assert server.asked[0][0] == "/subjects/a%2Fb%3Fc%23d%ED%B3%BF../versions"


# --- settings -------------------------------------------------------------------------------------


def test_a_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "registry.properties"
    file.write_text(
        f"# mine\nschema.registry.basic.auth.user.info = u:{SECRET}=\nother=1\nssl.ca.location=/x\n"
    )
    assert read_settings(str(file)) == HttpSettings(user_info=f"u:{SECRET}=", ca="/x")
    file.write_text(f"other=1\n{SECRET}\n")
    with pytest.raises(RegistryError, match="line 2: expected name=value") as failed:
        read_settings(str(file))
    assert SECRET not in str(failed.value)


@pytest.mark.parametrize(
    ("url", "settings", "says"),
    [
        ("http://", {}, "expected one such as"),
        ("http://[", {}, "expected one such as"),
        ("http://a:port", {}, "expected one such as"),
        ("http://a", {"ca": "/does/not/exist.pem"}, "exist.pem: no certificates"),
        ("http://a", {"user_info": "nobody"}, "user:password"),
        ("http://a", {"user_info": "a:b", "token": "c"}, "exclude"),
        ("http://a", {"timeout": float("nan")}, "timeout"),
    ],
)
def test_wrong_settings(url: str, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(RegistryError, match=says):
        HttpRegistry(url, HttpSettings(**settings))


def test_an_address_is_the_only_source(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="the only source"):
        open_registry([str(tmp_path), "http://a"])


def test_without_httpx(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    cli("schemas", "list", "http://127.0.0.1:1", code=2)
    assert "pip install 'magicbyte[registry]'" in cli.error


def test_errors_cross_processes() -> None:
    error = RegistryError("x", status=404, error_code=40401)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.status, copy.error_code) == ("x", 404, 40401)
