"""pipeline.toml: what it may say, with the line of what is wrong in it.

Values may name environment variables as `${NAME}` or `${NAME:-default}`, so that secrets stay out
of files. Their values are never part of a message.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from headrace.pipelines.intervals import schedule_complaint, seconds_of
from headrace.pipelines.model import (
    SOURCES,
    ZONES,
    Architecture,
    PipelineSettings,
    Place,
    Source,
)
from headrace.pipelines.names import TAKEN, WORD
from headrace.pipelines.problems import PipelineError, Problem, nearest

FILE = "pipeline.toml"
_VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""\s*["']?([\w.\-]+)["']?\s*=""")


_DEFAULTS = PipelineSettings(name="")


class PipelineTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[pipeline]`."""

    name: str
    version: str | int | float = "1"
    architecture: Literal["kappa", "lambda"] = "kappa"
    bootstrap: str = _DEFAULTS.bootstrap
    lake: str = _DEFAULTS.lake
    master: str = _DEFAULTS.master
    trigger: str = _DEFAULTS.trigger
    refresh: str = _DEFAULTS.refresh
    group: str | None = None
    libraries: tuple[str, ...] = _DEFAULTS.libraries


class SourceTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[sources.name]`."""

    topic: str | None = None
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    format: Literal["bytes", "json", "csv", "avro", "protobuf"] = "bytes"
    schema: str | None = None
    message: str | None = None
    connector: Literal["headrace", "kafka"] = "headrace"
    where: str | None = None
    category: str | None = None
    priority: int = 0
    options: dict[str, str | int | float | bool] = {}


_Table = TypeVar("_Table", PipelineTable, SourceTable)
Scalars = dict[str, str | int | float | bool]
TABLES = ("pipeline", "spark", "client", "sources", "zones")


class SettingsFile:
    """One pipeline.toml: its tables as values, and what is wrong with them."""

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.problems: list[Problem] = []
        self._environment = os.environ if environment is None else environment
        self._text = _text_of(directory)
        self._lines = self._text.splitlines()
        self._tables = self._substituted(self._parsed())
        self._check_tables()

    def settings(self) -> PipelineSettings:
        """What the file says of the pipeline as a whole."""
        table = self._converted(PipelineTable, self._tables.get("pipeline", {}), "pipeline")
        if table is None:
            return PipelineSettings(name=self.directory.name)
        self._check_times(table)
        if not WORD.fullmatch(table.name.replace("-", "_")):
            self._complain(
                f"{table.name!r} is no name of a pipeline; write lower-case letters, digits, - and"
                " _, beginning with a letter",
                "pipeline",
                "name",
            )
        return PipelineSettings(
            name=table.name,
            version=str(table.version),
            architecture=Architecture(table.architecture),
            bootstrap=table.bootstrap,
            client=self._texts("client"),
            lake=self._place_of_lake(table.lake),
            master=table.master,
            spark=self._texts("spark"),
            trigger=table.trigger,
            refresh=table.refresh,
            libraries=table.libraries,
            group=table.group,
            zones=self.zones(),
        )

    def check_libraries(self, files: Sequence[str]) -> None:
        """Complain about patterns of `libraries` that none of the pipeline's files is like."""
        for pattern in self._tables.get("pipeline", {}).get("libraries", ()):
            if isinstance(pattern, str) and not any(is_like(file, [pattern]) for file in files):
                self._complain(
                    f"no file is like {pattern}; write it as seen from the folder, such as"
                    " sql/*.sql or **/*.py",
                    "pipeline",
                    "libraries",
                )

    def sources(self) -> dict[str, Source]:
        """The sources by name: `orders` is what queries read as `sources.orders`."""
        found = {}
        for name, given in self._tables.get(SOURCES, {}).items():
            section = f"{SOURCES}.{name}"
            if not WORD.fullmatch(name):
                self._complain(
                    f"{name!r} is no name; write lower-case letters, digits and underscores",
                    section,
                )
                continue
            table = self._converted(SourceTable, given, section)
            if table is not None:
                found[name] = self._source(name, section, table)
        return found

    def zones(self) -> tuple[str, ...]:
        """The four zones and those of `[zones]`."""
        more = self._tables.get("zones", {})
        for zone in more:
            if not WORD.fullmatch(zone) or "__" in zone:
                self._complain(
                    f"{zone!r} is no name of a zone; write lower-case letters and digits", "zones"
                )
            elif zone in TAKEN:
                self._complain(f"{zone} is reserved; give the zone another name", "zones", zone)
        return tuple(dict.fromkeys((*ZONES, *more)))

    def _source(self, name: str, section: str, table: SourceTable) -> Source:
        """A source; without a topic it is the one of its own name."""
        ways = [way for way in (table.topic, table.topics, table.pattern) if way]
        if len(ways) > 1:
            self._complain(f"{section} has several of topic, topics and pattern", section)
        options = {key: _scalar_text(value) for key, value in table.options.items()}
        if table.message is not None:
            options["message"] = table.message
        has_registry = "schema.registry.url" in options
        if table.format != "bytes" and table.schema is None and not has_registry:
            self._complain(
                f"{section} has the format {table.format} and no schema; give schema, or"
                " schema.registry.url among its options",
                section,
                "format",
            )
        if table.connector == "kafka" and table.format != "bytes":
            self._complain(
                f"{section}: the stock connector brings bytes only; leave out format, or take the"
                " connector headrace",
                section,
                "connector",
            )
        return Source(
            name=name,
            place=self._place(section),
            topic=table.topic or ",".join(table.topics) or (None if table.pattern else name),
            topic_pattern=table.pattern,
            format=table.format,
            schema=self._schema(section, table),
            connector=table.connector,
            where=table.where,
            category=table.category,
            priority=table.priority,
            options=options,
        )

    def _schema(self, section: str, table: SourceTable) -> str | None:
        """The schema's text; of a file, its place, as seen from the folder."""
        if table.schema is None or "\n" in table.schema or len(table.schema) > 255:
            return table.schema
        path = self.directory / table.schema
        if path.is_file():
            return str(path)
        if path.suffix in (".avsc", ".proto", ".json"):
            self._complain(f"there is no file {table.schema} in the folder", section, "schema")
        return table.schema

    def _place_of_lake(self, lake: str) -> str:
        """Where the tables are; a relative place is meant from the folder."""
        return lake if "://" in lake else str((self.directory / lake).absolute())

    def _check_times(self, table: PipelineTable) -> None:
        try:
            seconds_of(table.trigger)
        except ValueError as error:
            self._complain(str(error), "pipeline", "trigger")
        if wrong := schedule_complaint(table.refresh):
            self._complain(wrong, "pipeline", "refresh")

    def _texts(self, section: str) -> dict[str, str]:
        given = self._tables.get(section, {})
        try:
            values = msgspec.convert(_flat(given), Scalars)
        except msgspec.ValidationError:
            self._complain(f"[{section}] has texts and numbers only", section)
            return {}
        return {key: _scalar_text(value) for key, value in values.items()}

    def _converted(
        self, kind: type[_Table], given: Mapping[str, Any], section: str
    ) -> _Table | None:
        known = [one.encode_name for one in msgspec.structs.fields(kind)]
        unknown = [key for key in given if key not in known]
        for key in unknown:
            self._complain(f"[{section}] has no {key}{nearest(key, known)}", section, key)
        fitting = {key: value for key, value in given.items() if key in known}
        try:
            return msgspec.convert(fitting, kind)
        except msgspec.ValidationError as error:
            text, _, where = str(error).partition(" - at `$.")
            key = re.split(r"[.\[`]", where)[0]
            self._complain(f"{key or section}: {text}", section, key)
            return None

    def _parsed(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r" \(at line (\d+).*\)", str(error))
            text = str(error).removesuffix(found[0]) if found else str(error)
            line = int(found[1]) if found else len(self._lines)
            raise PipelineError(Problem(text, Place(FILE, max(line, 1)))) from error

    def _check_tables(self) -> None:
        for name, table in self._tables.items():
            if name not in TABLES:
                self._complain(f"there is no [{name}]{nearest(name, TABLES)}", name)
            elif not isinstance(table, dict):
                self._complain(f"{name} must be a table: [{name}]", "", name)
                self._tables = {**self._tables, name: {}}
        if "pipeline" not in self._tables:
            self._complain('[pipeline] is missing; it has at least a name = "..."', "")
        for name, given in self._tables.get(SOURCES, {}).items():
            if not isinstance(given, dict):
                self._complain(f"a source is a table: [sources.{name}]", SOURCES, name)
                self._tables[SOURCES] = {}
                break

    def _substituted(self, value: Any, section: str = "", key: str = "") -> Any:
        """The value with environment variables in it; one that is not set is a problem."""
        match value:
            case str():
                return _VARIABLE.sub(lambda found: self._variable(found, section, key), value)
            case dict():
                inner = ".".join(filter(None, (section, key)))
                return {name: self._substituted(one, inner, name) for name, one in value.items()}
            case list():
                return [self._substituted(one, section, key) for one in value]
        return value

    def _variable(self, found: re.Match[str], section: str, key: str) -> str:
        if found[0] == "$$":
            return "$"
        name: str = found[1]
        default: str | None = found[2]
        value = self._environment.get(name, default)
        if value is None:
            self._complain(
                f"the environment has no {name}; set it, or write ${{{name}:-default}}",
                section,
                key,
            )
            return ""
        return value

    def _complain(self, text: str, section: str, key: str = "") -> None:
        self.problems.append(Problem(text, self._place(section, key)))

    def _place(self, section: str, key: str = "") -> Place:
        return Place(FILE, line_of(self._lines, section, key))


def is_like(file: str, patterns: Iterable[str]) -> bool:
    """Whether a file, as seen from the folder, is like one of the patterns: `**` is any depth."""
    return any(_expression(pattern).fullmatch(file) for pattern in patterns)


def _expression(pattern: str) -> re.Pattern[str]:
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(words.get(part) or re.escape(part) for part in parts))


def line_of(lines: Sequence[str], section: str, key: str = "") -> int:
    """The line of a key, else of its section's header, else the first one."""
    best, current = 1, ""
    for number, line in enumerate(lines, start=1):
        if header := _HEADER.match(line):
            current = header[1].replace('"', "").replace("'", "")
            if section and (current == section or current.startswith(f"{section}.")) and best == 1:
                best = number
            if key and current == f"{section}.{key}":
                return number
        elif (found := _KEY.match(line)) and key and _is_key(current, found[1], section, key):
            return number
    return best


def _is_key(header: str, written: str, section: str, key: str) -> bool:
    full = f"{header}.{written}" if header else written
    wanted = f"{section}.{key}" if section else key
    return full == wanted or wanted.startswith(f"{full}.")


def _text_of(directory: Path) -> str:
    path = directory / FILE
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        what = "there is no folder" if not directory.is_dir() else f"there is no {FILE} in"
        raise PipelineError(
            f"{what} {directory}; make a pipeline with: headrace pipelines init NAME"
        ) from error
    except UnicodeDecodeError as error:
        raise PipelineError(Problem("the file is not in UTF-8", Place(FILE, 1))) from error


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`spark.sql.x = 1` without quotes is a table in a table; its name is meant."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _scalar_text(value: str | int | float | bool) -> str:
    """As Spark and Kafka spell values: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value)
