"""A schema registry's schemas, over HTTP: any registry that speaks Confluent's interface.

Schemas never change under their id, so they are kept. A registry that does not answer is asked
again a few times; then the batch fails, as its payloads may be fine. The login is in no message.
"""

import base64
import http.client
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from headrace.spark.decoding.errors import InvalidFormatOption, RegistryUnavailable

TIMEOUT_S = 10.0
ATTEMPTS = 4
PAUSE_S = 0.2
ANSWER_BYTES_MAX = 4 << 20
REFERENCES_MAX = 100
KEPT_MAX = 10_000

NOT_FOUND = 404
REPEATABLE = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema and all that it refers to, those that are referred to first."""

    id: int
    type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()
    """Pairs of the name by which it is referred to, and the text."""


@dataclass(slots=True)
class Registry:
    """Asks one registry. Pickled with its address and login, without what it has learnt."""

    url: str
    login: str = field(default="", repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    _kept: dict[int, RegisteredSchema] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidFormatOption(
                "schema.registry.url is the address of a registry such as http://127.0.0.1:8081"
            )
        if parts.username is not None and not self.login:
            self.login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        host = parts.netloc.rpartition("@")[2]
        self.url = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"

    def __reduce__(self) -> Any:
        return Registry, (self.url, self.login)

    def schema(self, id_: int) -> RegisteredSchema | None:
        """The schema with this id, or None if the registry has none."""
        found = self._kept.get(id_)
        if found is None:
            answer = self._ask(f"/schemas/ids/{id_}")
            if answer is None:
                return None
            found = self._registered(id_, answer)
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            self._kept[id_] = found
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject."""
        answer = self._ask(f"/subjects/{quote(subject, safe='')}/versions/latest")
        if answer is None:
            raise InvalidFormatOption(
                f"the registry {self.url} has no subject {subject}; name another by the option "
                "schema.registry.subject, or give the schema by the option schema"
            )
        return self._registered(int(answer["id"]), answer)

    def _registered(self, id_: int, answer: dict[str, Any]) -> RegisteredSchema:
        texts: dict[str, str] = {}
        self._collect(answer.get("references") or [], texts)
        type_ = str(answer.get("schemaType") or "AVRO")
        return RegisteredSchema(id_, type_, str(answer["schema"]), tuple(texts.items()))

    def _collect(self, references: list[dict[str, Any]], texts: dict[str, str]) -> None:
        """All texts that are referred to, in an order in which they can be read."""
        for reference in references:
            name = str(reference["name"])
            if name in texts:
                continue
            if len(texts) >= REFERENCES_MAX:
                raise RegistryUnavailable(f"a schema refers to more than {REFERENCES_MAX} others")
            subject, version = quote(str(reference["subject"]), safe=""), int(reference["version"])
            answer = self._ask(f"/subjects/{subject}/versions/{version}")
            if answer is None:
                raise RegistryUnavailable(
                    f"the registry {self.url} lacks {reference['subject']} version {version}, "
                    "which a schema of its own refers to"
                )
            texts[name] = ""  # Held, so that schemas that refer to each other come to an end.
            self._collect(answer.get("references") or [], texts)
            del texts[name]
            texts[name] = str(answer["schema"])

    def _ask(self, path: str) -> dict[str, Any] | None:
        """The answer to a GET, or None if there is no such thing."""
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                self.sleep(PAUSE_S * 2**attempt)
            try:
                status, body = self._get(path)
            except (OSError, http.client.HTTPException) as error:
                reason = str(error) or type(error).__name__
                continue
            if status == NOT_FOUND:
                return None
            if status == http.client.OK:
                return self._read(path, body)
            reason = f"HTTP {status}"
            if status not in REPEATABLE:
                break
        raise RegistryUnavailable(
            f"the schema registry {self.url} does not answer {path}: {reason}; "
            "look whether it runs, and at schema.registry.url and its login"
        )

    def _read(self, path: str, body: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise RegistryUnavailable(f"{self.url}{path} did not answer with JSON") from error
        if not isinstance(answer, dict) or "schema" not in answer:
            raise RegistryUnavailable(f"{self.url}{path} did not answer with a schema")
        return answer

    def _get(self, path: str) -> tuple[int, bytes]:
        """One request on its own connection. It follows no redirect: the login is for one host."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        connection = (
            http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT_S, context=ssl.create_default_context()
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)
        )
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if self.login:
            headers["Authorization"] = f"Basic {base64.b64encode(self.login.encode()).decode()}"
        try:
            connection.request("GET", f"{parts.path}{path}", headers=headers)
            response = connection.getresponse()
            body = response.read(ANSWER_BYTES_MAX + 1)
        finally:
            connection.close()
        if len(body) > ANSWER_BYTES_MAX:
            raise RegistryUnavailable(f"{self.url}{path} answered with more than 4 MB")
        return response.status, body
