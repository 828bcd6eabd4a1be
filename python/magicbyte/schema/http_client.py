"""Requests to a schema registry over HTTP, bounded in time, size and number.

The other side is not trusted: it may hang, answer with an error or with something other than JSON, or
never stop sending. Credentials are in no message and in no `repr`, and go to no other host.
"""

from __future__ import annotations

import json
import queue
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlsplit

from magicbyte import _core, bounded_json
from magicbyte.errors import Error

if TYPE_CHECKING:
    import httpx

__all__ = ["DEFAULT_SETTINGS", "HttpClient", "HttpSettings", "RegistryError", "read_settings"]

T = TypeVar("T")

_NOT_JSON = object()
_FIRST_PAUSE = 0.25
_RETRIED = {429, 500, 502, 503, 504}
_MAX_REDIRECTS = 5
_SHOWN = 200
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_SETTINGS = {
    "basic.auth.user.info": "user_info",
    "bearer.auth.token": "token",
    "ssl.ca.location": "ca",
}


class RegistryError(Error):
    """A registry over HTTP cannot be reached, refuses a request, or sends an invalid response.

    Attributes:
        status: the HTTP status, or None if there was no answer.
        error_code: the registry's own number, such as 40401, or None.

    """

    status: int | None
    error_code: int | None

    def __init__(
        self,
        message: str,
        kind: str = "registry",
        *place: Any,
        status: int | None = None,
        error_code: int | None = None,
    ) -> None:
        super().__init__(message, kind, *place)
        self.status = status
        self.error_code = error_code

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"status": self.status, "error_code": self.error_code}


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The settings for a registry over HTTP."""

    user_info: str | None = field(default=None, repr=False)
    """`user:password`, for basic authentication."""
    token: str | None = field(default=None, repr=False)
    """The token for bearer authentication."""
    ca: str | None = None
    """A PEM file with the certificates to trust; by default, those that the HTTP client trusts."""
    timeout: float = 30
    """Seconds for one call, with all its retries and pauses."""
    retries: int = 3
    """The number of retries of a call after a transient error: no connection, or status 429 or 5xx."""
    max_answer_bytes: int = 64 << 20
    """The limit for one response, in bytes."""
    max_requests: int = 1_000_000
    """The maximum number of requests, retries included, of one registry object; the next is an error."""
    max_absent: int = 1000
    """The maximum number of unknown ids that are requested within `absent_seconds`."""
    absent_seconds: float = 300
    """The number of seconds until an unknown id is requested again."""

    def __post_init__(self) -> None:
        if self.user_info is not None and self.token is not None:
            raise RegistryError("basic and bearer authentication exclude each other")
        if self.user_info is not None and ":" not in self.user_info:
            raise RegistryError("basic authentication: expected user:password")
        # Here, because a client would name the token in its error.
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise RegistryError("bearer authentication: the token has characters that no header may have")
        if not self.timeout > 0 or self.retries < 0 or self.max_answer_bytes <= 0:
            raise RegistryError("expected timeout and max_answer_bytes above 0, and retries of at least 0")
        if self.max_requests <= 0 or self.max_absent <= 0 or not self.absent_seconds >= 0:
            raise RegistryError("expected max_requests and max_absent above 0, absent_seconds of at least 0")


def read_settings(path: str) -> HttpSettings:
    """Reads a properties file with the names that Confluent's clients have.

    They are `basic.auth.user.info`, `bearer.auth.token` and `ssl.ca.location`, with or without
    `schema.registry.` before them. Other names are ignored, since such files configure whole clients.

    Raises:
        RegistryError: if a line has no `=`; the message has its number, but not its text.
        OSError: if the file cannot be read, or is larger than 64 MiB.

    """
    found: dict[str, str] = {}
    for number, line in enumerate(_core.read_sidecar(path).decode(errors="replace").split("\n"), 1):
        text = line.strip()
        if not text or text.startswith(("#", "!")):
            continue
        name, equals, value = text.partition("=")
        if not equals:
            raise RegistryError(f"{path}: line {number}: expected name=value")
        if known := _SETTINGS.get(name.strip().removeprefix("schema.registry.")):
            found[known] = value.strip()
    return HttpSettings(user_info=found.get("user_info"), token=found.get("token"), ca=found.get("ca"))


DEFAULT_SETTINGS = HttpSettings()
"""No credentials, and the default limits."""


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    data: bytes


class HttpClient:
    """Sends requests below one address, and reads JSON.

    Needs the package httpx (`pip install 'magicbyte[registry]'`), which is imported here.
    """

    def __init__(self, url: str, settings: HttpSettings) -> None:
        # An extra: everything but a live registry works without it.
        import httpx

        try:
            parts = urlsplit(url)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            # Without the address, which may have a password that cannot be told from the rest.
            raise RegistryError("the address of a registry: expected one such as https://host:8081")
        user_info = settings.user_info
        if user_info is None and settings.token is None and parts.username is not None:
            user_info = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        self.url = _bare(url)
        """The address without credentials."""
        self._settings = settings
        self._requests = 0
        self._httpx = httpx
        self._headers = {"Accept": _ACCEPT, "Accept-Encoding": "identity", "User-Agent": "magicbyte"}
        self._auth: Any = None
        if settings.token is not None:
            self._headers["Authorization"] = f"Bearer {settings.token}"
        elif user_info is not None:
            user, _, password = user_info.partition(":")
            self._auth = httpx.BasicAuth(user, password)
        self._trusted = _trusted(settings.ca)
        self._client = self._new_client()

    def __repr__(self) -> str:
        return f"HttpClient({self.url!r})"

    def close(self) -> None:
        """Closes the connections; a later request opens new ones."""
        self._client.close()
        self._client = self._new_client()

    def request(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Sends a request, and returns the JSON of the answer.

        Raises:
            RegistryError: if there is no answer in time, or it has a status other than 2xx, or is not JSON,
                or is larger than allowed.

        """
        url = "/".join([self.url, *(quote(one, safe="", errors="surrogatepass") for one in path)])
        request = f"{method} {url}"
        deadline = time.monotonic() + self._settings.timeout
        content = None if body is None else json.dumps(body).encode()
        attempts = 0
        while True:
            attempts += 1
            answer: _Answer | None = None
            try:
                answer = self._exchange(method, url, query, content, deadline)
                problem = _reason(answer)
            except self._httpx.TransportError as error:
                problem = f"{type(error).__name__}: {_one_line(str(error))}".removesuffix(": ")
            if answer is not None and answer.status not in _RETRIED:
                break
            pause = _pause(attempts, answer)
            if attempts > self._settings.retries or pause >= deadline - time.monotonic():
                tried = f", tried {attempts} times" if attempts > 1 else ""
                status = None if answer is None else answer.status
                raise RegistryError(f"{request}: {problem}{tried}", status=status)
            time.sleep(pause)
        code, document = _parsed(answer.data)
        if not 200 <= answer.status < 300:
            raise RegistryError(f"{request}: {problem}", status=answer.status, error_code=code)
        if document is _NOT_JSON:
            message = (
                f"{request}: the answer is not JSON of at most {bounded_json.MAX_VALUES:,} values: is this a"
                " schema registry?"
            )
            raise RegistryError(message, status=answer.status)
        return document

    def _exchange(
        self, method: str, url: str, query: Mapping[str, str] | None, content: bytes | None, deadline: float
    ) -> _Answer:
        """One answer, after redirects within the registry."""
        for _ in range(_MAX_REDIRECTS + 1):
            self._requests += 1
            if self._requests > self._settings.max_requests:
                raise RegistryError(f"{method} {url}: more than {self._settings.max_requests} requests")
            try:
                call = partial(self._send, self._client, method, url, query, content, deadline)
                answer = _bounded(call, deadline)
            except (TimeoutError, self._httpx.TimeoutException):
                # Its connections may be stuck, so others are made.
                self._client = self._new_client()
                seconds = self._settings.timeout
                raise RegistryError(f"{method} {url}: no complete answer within {seconds:g} s") from None
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            url, query = self._redirected(method, url, answer.headers.get("location", "")), None
        raise RegistryError(f"{method} {self.url}: more than {_MAX_REDIRECTS} redirects")

    def _send(
        self,
        client: httpx.Client,
        method: str,
        url: str,
        query: Mapping[str, str] | None,
        content: bytes | None,
        deadline: float,
    ) -> _Answer:
        headers = {} if content is None else {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        # A limit for each step, so that the thread ends soon after nobody waits for it.
        limits = self._httpx.Timeout(max(deadline - time.monotonic(), 0.001))
        with client.stream(
            method, url, params=query, content=content, headers=headers, timeout=limits
        ) as answer:
            return _Answer(answer.status_code, answer.headers, self._read(answer, method, deadline))

    def _redirected(self, method: str, url: str, location: str) -> str:
        try:
            target = self._httpx.URL(url).join(location)
        except self._httpx.InvalidURL:
            raise RegistryError(f"{method} {url}: redirected to something that is not an address") from None
        here = self._httpx.URL(self.url)
        if method != "GET" or (target.scheme, target.netloc) != (here.scheme, here.netloc):
            place = f"{target.scheme}://{target.netloc.decode('ascii', 'replace')}"
            raise RegistryError(
                f"{method} {url}: redirected to {place[:_SHOWN]}, which is not followed: another host must"
                " not get what is meant for this one. Give that address if it is the registry's"
            )
        return str(target)

    def _read(self, answer: httpx.Response, method: str, deadline: float) -> bytes:
        limit = self._settings.max_answer_bytes
        data = bytearray()
        # Not decompressed: no registry compresses unasked, and a decompression bomb has no limit.
        for chunk in answer.iter_raw():
            data += chunk
            if len(data) > limit:
                raise RegistryError(f"{method} {answer.url.path}: the answer has more than {limit} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError
        return bytes(data)

    def _new_client(self) -> httpx.Client:
        return self._httpx.Client(
            headers=self._headers, auth=self._auth, verify=self._trusted, follow_redirects=False
        )


def _bounded(call: Callable[[], T], deadline: float) -> T:
    """The result of a call, or TimeoutError at the deadline, whatever the call waits for.

    An HTTP library applies a timeout to each read, and none to a name lookup.
    """
    results: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put((call(), None))
        except BaseException as error:
            results.put((None, error))

    threading.Thread(target=run, name="magicbyte registry", daemon=True).start()
    try:
        result, error = results.get(timeout=max(deadline - time.monotonic(), 0.001))
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def _pause(attempts: int, answer: _Answer | None) -> float:
    retry_after = "" if answer is None else answer.headers.get("retry-after", "")
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    return float(_FIRST_PAUSE * 2 ** (attempts - 1) * random.uniform(0.75, 1.25))


def _trusted(ca: str | None) -> ssl.SSLContext | bool:
    try:
        return True if ca is None else ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise RegistryError(f"{ca}: no certificates can be read: {error}") from None


def _parsed(data: bytes) -> tuple[int | None, Any]:
    """The registry's error code, if there is one, and the document."""
    try:
        document = bounded_json.loads(data)
    except (ValueError, RecursionError):
        return None, _NOT_JSON
    code = document.get("error_code") if isinstance(document, dict) else None
    return (code if type(code) is int else None), document


def _reason(answer: _Answer) -> str:
    code, document = _parsed(answer.data)
    words = [f"status {answer.status}"]
    if answer.status == 401:
        words.append("the registry wants other credentials")
    elif answer.status == 403:
        words.append("the registry does not allow it")
    message = document.get("message") if isinstance(document, dict) else None
    if isinstance(message, str):
        words.append(f"{_one_line(message)}{'' if code is None else f' (error {code})'}")
    return ", ".join(words)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]


def _bare(url: str) -> str:
    """An address without its possible secrets: user, password, query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")
