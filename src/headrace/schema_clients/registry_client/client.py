"""Client of a registry's operations; caches answers that never change.

The schema of an id and the id of a schema in a subject never change, so both are cached for good.
The newest version of a subject does change; it is cached for `latest_s` seconds.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from headrace.schema_clients.registry_client.connections import RegistryConnections, access_to
from headrace.schema_clients.registry_client.failures import RegistryRefusal, RegistryUnavailable
from headrace.schema_clients.registry_client.schemas import (
    NewSchema,
    Reference,
    RegisteredSchema,
    SubjectVersion,
    Verdict,
)
from headrace.serdes.schemas import Dependency

T = TypeVar("T")

KEPT_MAX = 10_000
REFERENCES_MAX = 100


class RegistryClient:
    """One registry, or several instances of one; usable from any thread."""

    def __init__(
        self,
        address: str | Sequence[str],
        login: str = "",
        *,
        token: str = "",
        ca_file: str = "",
        certificate_file: str = "",
        key_file: str = "",
        latest_s: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        access = access_to(
            address,
            login,
            token=token,
            ca_file=ca_file,
            certificate_file=certificate_file,
            key_file=key_file,
        )
        self._connections = RegistryConnections(access, sleep)
        self._latest_s = latest_s
        self._clock = clock
        self._by_id: dict[tuple[int | str, str], RegisteredSchema] = {}
        self._ids: dict[tuple[str, bytes], SubjectVersion] = {}
        self._latest: dict[tuple[str, str], tuple[float, RegisteredSchema]] = {}

    def __repr__(self) -> str:
        return f"RegistryClient({', '.join(self._connections.access.urls)})"

    def __reduce__(self) -> Any:
        """Pickle the addresses without the caches."""
        access = self._connections.access
        return _again, (access, self._latest_s)

    def close(self) -> None:
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- schemas --------------------------------------------------------------------------------

    def schema(self, id_: int | str, subject: str = "") -> RegisteredSchema | None:
        """Return the schema with an id or a GUID, None if the registry has none.

        The subject selects the context of an id.
        """
        found = self._by_id.get((id_, subject))
        if found is None:
            kind = "ids" if isinstance(id_, int) else "guids"
            version = self._find(f"/schemas/{kind}/{id_}", {"subject": subject} if subject else {})
            if version is None:
                return None
            number = id_ if isinstance(id_, int) else version.id
            found = self._with_dependencies(msgspec.structs.replace(version, id=number))
            _keep(self._by_id, (id_, subject), found)
        return found

    def latest(self, subject: str, metadata: Mapping[str, str] | None = None) -> RegisteredSchema:
        """Return the newest schema of a subject, or the newest that has these properties."""
        pairs = [pair for key, value in (metadata or {}).items() for pair in _pair(key, value)]
        key = subject, urlencode(pairs)
        kept = self._latest.get(key)
        if kept is not None and kept[0] > self._clock():
            return kept[1]
        place = f"/subjects/{_quoted(subject)}"
        path = f"{place}/metadata" if pairs else f"{place}/versions/latest"
        answer = self._connections.ask("GET", f"{path}{_query(pairs)}")
        found = self._with_dependencies(self._version_in(answer, path))
        _keep(self._latest, key, (self._clock() + self._latest_s, found))
        return found

    def version(
        self, subject: str, version: int | str, *, deleted: bool = False
    ) -> RegisteredSchema:
        """Return one version of a subject, by its number or `latest`."""
        path = f"/subjects/{_quoted(subject)}/versions/{version}"
        answer = self._connections.ask("GET", f"{path}{_query(_flags(deleted=deleted))}")
        return self._with_dependencies(self._version_in(answer, path))

    def register(
        self, subject: str, schema: NewSchema, *, normalize: bool = False
    ) -> SubjectVersion:
        """Register a schema, or find the version that it already is."""
        path = f"/subjects/{_quoted(subject)}/versions"
        return self._identify(path, subject, schema, _flags(normalize=normalize))

    def lookup(
        self, subject: str, schema: NewSchema, *, normalize: bool = False, deleted: bool = False
    ) -> SubjectVersion:
        """Return the version of a schema in a subject; raise RegistryRefusal if missing."""
        path = f"/subjects/{_quoted(subject)}"
        return self._identify(path, subject, schema, _flags(normalize=normalize, deleted=deleted))

    def dependencies_of(self, references: Sequence[Reference]) -> tuple[Dependency, ...]:
        """Return the texts of referenced schemas, each after those that it references itself."""
        texts: dict[str, str] = {}
        self._collect(references, texts)
        return tuple(Dependency(name, text) for name, text in texts.items())

    def check(
        self, subject: str, schema: NewSchema, version: int | str = "", *, normalize: bool = False
    ) -> Verdict:
        """Check a schema's compatibility with the versions of a subject, or with the given
        version."""
        path = f"/compatibility/subjects/{_quoted(subject)}/versions"
        if version != "":
            path = f"{path}/{version}"
        flags = _flags(verbose=True, normalize=normalize)
        answer = self._connections.ask("POST", f"{path}{_query(flags)}", schema)
        messages = tuple(str(one) for one in answer.get("messages") or ())
        return Verdict(bool(answer.get("is_compatible")), messages)

    # --- subjects -------------------------------------------------------------------------------

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        flags = _flags(deleted=deleted) + ([("subjectPrefix", prefix)] if prefix else [])
        return list(self._connections.ask("GET", f"/subjects{_query(flags)}"))

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        path = f"/subjects/{_quoted(subject)}/versions{_query(_flags(deleted=deleted))}"
        return list(self._connections.ask("GET", path))

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        self._forget(subject)
        path = f"/subjects/{_quoted(subject)}{_query(_flags(permanent=permanent))}"
        return list(self._connections.ask("DELETE", path))

    def delete_version(self, subject: str, version: int | str, *, permanent: bool = False) -> int:
        self._forget(subject)
        flags = _query(_flags(permanent=permanent))
        path = f"/subjects/{_quoted(subject)}/versions/{version}{flags}"
        return int(self._connections.ask("DELETE", path))

    # --- settings -------------------------------------------------------------------------------

    def config(self, subject: str = "") -> dict[str, Any]:
        """Return the compatibility level and related settings of a subject, or the global ones."""
        path = f"/config/{_quoted(subject)}?defaultToGlobal=true" if subject else "/config"
        return dict(self._connections.ask("GET", path))

    # --- requests -------------------------------------------------------------------------------

    def _identify(
        self, path: str, subject: str, schema: NewSchema, flags: list[tuple[str, str]]
    ) -> SubjectVersion:
        key = f"{path}{_query(flags)}", msgspec.json.encode(schema)
        found = self._ids.get(key)
        if found is None:
            answer = self._connections.ask("POST", key[0], schema)
            found = self._version_in({"schema": schema.schema, "subject": subject, **answer}, path)
            _keep(self._ids, key, found)
        return found

    def _find(self, path: str, parameters: Mapping[str, str]) -> SubjectVersion | None:
        try:
            answer = self._connections.ask("GET", f"{path}{_query(list(parameters.items()))}")
        except RegistryRefusal as refusal:
            if refusal.is_not_found:
                return None
            raise
        return self._version_in(answer, path)

    def _version_in(self, answer: Any, path: str) -> SubjectVersion:
        if isinstance(answer, dict):  # Registries write null for absent values.
            answer = {name: value for name, value in answer.items() if value is not None}
        try:
            return msgspec.convert(answer, SubjectVersion)
        except msgspec.ValidationError as error:
            raise RegistryUnavailable(
                f"the registry did not answer {path} with a schema: {error}"
            ) from error

    def _with_dependencies(self, version: SubjectVersion) -> RegisteredSchema:
        dependencies = self.dependencies_of(version.references)
        return RegisteredSchema(
            version.id, version.schema_type, version.schema, dependencies, version
        )

    def _collect(self, references: Sequence[Reference], texts: dict[str, str]) -> None:
        """Collect all referenced texts, in an order in which they can be parsed."""
        for reference in references:
            if reference.name in texts:
                continue
            if len(texts) >= REFERENCES_MAX:
                raise RegistryUnavailable(f"a schema refers to more than {REFERENCES_MAX} others")
            path = f"/subjects/{_quoted(reference.subject)}/versions/{reference.version}"
            found = self._find(path, {"deleted": "true"})
            if found is None:
                raise RegistryUnavailable(
                    f"the registry lacks {reference.subject} version {reference.version}, "
                    "which a schema of its own refers to"
                )
            texts[reference.name] = ""  # Reserved, so that schemas that reference each other end.
            self._collect(found.references, texts)
            del texts[reference.name]
            texts[reference.name] = found.schema

    def _forget(self, subject: str) -> None:
        """Drop cached versions of a subject; schemas by id stay valid."""
        self._ids.clear()
        for key in [key for key in self._latest if key[0] == subject]:
            del self._latest[key]


def _again(access: Any, latest_s: float) -> RegistryClient:
    return RegistryClient(
        access.urls,
        access.login,
        token=access.token,
        ca_file=access.ca_file,
        certificate_file=access.certificate_file,
        key_file=access.key_file,
        latest_s=latest_s,
    )


def _keep(kept: dict[Any, T], key: Any, value: T) -> None:
    if len(kept) >= KEPT_MAX:
        kept.clear()
    kept[key] = value


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _pair(key: str, value: str) -> list[tuple[str, str]]:
    return [("key", key), ("value", value)]


def _flags(**given: bool) -> list[tuple[str, str]]:
    return [(name, "true") for name, value in given.items() if value]


def _query(pairs: Sequence[tuple[str, str]]) -> str:
    return f"?{urlencode(pairs)}" if pairs else ""
