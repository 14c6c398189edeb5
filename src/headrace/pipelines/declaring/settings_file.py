"""pipeline.toml: its settings, and its problems with their lines.

Values may name environment variables as `${NAME}` or `${NAME:-default}`, so that secrets stay out
of files. Their values never appear in a message.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headrace.pipelines import model
from headrace.pipelines.declaring.intervals import schedule_complaint, seconds_of
from headrace.pipelines.declaring.names import TAKEN, WORD
from headrace.pipelines.declaring.option_names import (
    client_property_complaint,
    source_option_complaint,
)
from headrace.pipelines.declaring.settings_tables import (
    PipelineTable,
    SourceTable,
    Table,
    ZoneTable,
    converted,
)
from headrace.pipelines.loaded_files import LoadedFiles
from headrace.pipelines.problems import PipelineError, Problem, nearest
from headrace.spark.topic_patterns import pattern_complaint

FILE = "pipeline.toml"
_VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""\s*["']?([\w.\-]+)["']?\s*=""")

TABLES = ("pipeline", "spark", "client", "sources", "zones")


class SettingsFile:
    """One pipeline.toml: its tables as values, and their problems."""

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.problems: list[Problem] = []
        self._schema_files: dict[str, Path] = {}
        self._environment = os.environ if environment is None else environment
        self._text = _text_of(directory)
        self._lines = self._text.splitlines()
        self._tables = self._substituted(self._parsed())
        self._check_tables()

    def settings(self) -> model.PipelineSettings:
        """Return the settings of the whole pipeline."""
        given = self._tables.get("pipeline", {"name": "unnamed"})
        table = self._converted(PipelineTable, given, "pipeline", name="unnamed")
        self._check_values(table)
        if not WORD.fullmatch(table.name.replace("-", "_")):
            self._complain(
                f"{table.name!r} is not a valid name of a pipeline; write lower-case letters,"
                " digits, - and _, beginning with a letter",
                "pipeline",
                "name",
            )
        zones = self.zones()
        fields = {
            **msgspec.structs.asdict(table),
            "version": str(table.version),
            "architecture": model.Architecture(table.architecture),
            "names_brokers": "bootstrap" in given,
            "client": self._client(),
            "lake": self._place_of_lake(table.lake),
            "spark": self._texts("spark"),
            "zones": zones,
            "promotions": self._promotions(zones),
        }
        return model.PipelineSettings(**fields)

    def count_in(self, loaded: LoadedFiles) -> None:
        """Add the file to the fingerprint, variables as written, and the schemas that it names."""
        loaded.add(FILE, self._text)
        for section, path in self._schema_files.items():
            loaded.add_schema(section, path)

    def check_libraries(self, files: Sequence[str]) -> None:
        """Complain about patterns of `libraries` that match none of the pipeline's files."""
        for pattern in self._tables.get("pipeline", {}).get("libraries", ()):
            if isinstance(pattern, str) and not any(is_like(file, [pattern]) for file in files):
                self._complain(
                    f"no file matches {pattern}; write the pattern relative to the folder, such as"
                    " sql/*.sql or **/*.py",
                    "pipeline",
                    "libraries",
                )

    def sources(self) -> dict[str, model.Source]:
        """Return the sources by name: queries read `orders` as `sources.orders`."""
        found = {}
        for name, given in self._tables.get(model.SOURCES, {}).items():
            section = f"{model.SOURCES}.{name}"
            if not WORD.fullmatch(name):
                self._complain(
                    f"{name!r} is not a valid name; write lower-case letters, digits, underscores",
                    section,
                )
                continue
            if isinstance(options := given.get("options"), dict):
                given = {**given, "options": _flat(options)}
            table = self._converted(SourceTable, given, section)
            found[name] = self._source(name, section, table)
        return found

    def zones(self) -> tuple[str, ...]:
        """Return the four zones and those of `[zones]`."""
        more = self._tables.get("zones", {})
        for zone in more:
            if not WORD.fullmatch(zone) or "__" in zone:
                self._complain(
                    f"{zone!r} is not a valid name of a zone; write lower-case letters and digits",
                    "zones",
                    zone,
                )
            elif zone in TAKEN:
                self._complain(f"{zone} is reserved; give the zone another name", "zones", zone)
        return tuple(dict.fromkeys((*model.ZONES, *more)))

    def _promotions(self, zones: Sequence[str]) -> dict[str, model.Promotion]:
        """Return the rules of each `[zones.name]`; a zone given as text has only a description."""
        found = {}
        for zone, given in self._tables.get("zones", {}).items():
            section = f"zones.{zone}"
            if isinstance(given, dict):
                table = self._converted(ZoneTable, given, section)
                found[zone] = self._promotion(table, section, zones)
            elif not isinstance(given, str):
                self._complain(
                    f"{zone} must be a text that describes the zone, or a table [{section}] with"
                    " its rules",
                    "zones",
                    zone,
                )
        return found

    def _promotion(self, table: ZoneTable, section: str, zones: Sequence[str]) -> model.Promotion:
        readable = (model.SOURCES, *zones, model.QUARANTINE)
        for name in table.reads or ():
            if name not in readable:
                self._complain(
                    f"reads: there is no zone {name}; there are {', '.join(readable)}"
                    f"{nearest(name, readable)}",
                    section,
                    "reads",
                )
        return model.Promotion(
            reads=table.reads,
            requires=tuple(map(model.Requirement, table.requires)),
            gate=self._gate(table, section),
        )

    def _gate(self, table: ZoneTable, section: str) -> model.Gate | None:
        share, rows_min = table.quarantined_max, table.judged_rows_min
        if share is None:
            if rows_min is not None:
                self._complain(
                    "judged_rows_min needs quarantined_max, the share of a batch that may be"
                    " rejected",
                    section,
                    "judged_rows_min",
                )
            return None
        if not 0 <= share < 1:
            self._complain(
                f"quarantined_max is {share:g}, and must be a share from 0 to below 1: 0.05 accepts"
                " a batch with up to one rejected row in twenty",
                section,
                "quarantined_max",
            )
            return None
        if rows_min is not None and rows_min < 1:
            self._complain("judged_rows_min must be 1 or more", section, "judged_rows_min")
            return None
        return model.Gate(share) if rows_min is None else model.Gate(share, rows_min)

    def _source(self, name: str, section: str, table: SourceTable) -> model.Source:
        """Return a source; the default topic has the source's name."""
        ways = [way for way in (table.topic, table.topics, table.pattern) if way]
        if len(ways) > 1:
            self._complain(f"{section} has several of topic, topics and pattern", section)
        self._check_pattern(section, table.pattern)
        options = {key: _scalar_text(value) for key, value in table.options.items()}
        if table.message is not None:
            options["message"] = table.message
        if table.connector == "headrace":
            for key in table.options:
                if wrong := source_option_complaint(name, key):
                    self._complain(wrong, f"{section}.options", key)
        has_registry = "schema.registry.url" in options
        if table.format != "bytes" and table.schema is None and not has_registry:
            self._complain(
                f"{section} has the format {table.format} and no schema; add schema, or"
                " schema.registry.url in its options",
                section,
                "format",
            )
        if table.connector == "kafka" and table.format != "bytes":
            self._complain(
                f"{section}: the stock connector reads bytes only; remove format, or use the"
                " connector headrace",
                section,
                "connector",
            )
        return model.Source(
            name=name,
            location=self._location(section),
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

    def _check_pattern(self, section: str, pattern: str | None) -> None:
        if pattern is not None and (wrong := pattern_complaint(pattern)) is not None:
            self._complain(f"{pattern!r} {wrong}", section, "pattern")

    def _schema(self, section: str, table: SourceTable) -> str | None:
        """Return the schema's text, or the path of its file in the folder."""
        if table.schema is None or "\n" in table.schema or len(table.schema) > 255:
            return table.schema
        path = self.directory / table.schema
        if path.is_file():
            self._schema_files[section] = path
            return str(path)
        if path.suffix in (".avsc", ".proto", ".json"):
            self._complain(f"there is no file {table.schema} in the folder", section, "schema")
        return table.schema

    def _place_of_lake(self, lake: str) -> str:
        """Return the path of the lake; a relative one starts at the folder."""
        if "://" in lake:
            self._complain(
                f"lake is {lake}, and must be a folder: tables, their locks and checkpoints are"
                " files of one file system. Mount what is elsewhere, and name it by its path",
                "pipeline",
                "lake",
            )
        return str((self.directory / lake).absolute())

    def _check_values(self, table: PipelineTable) -> None:
        try:
            seconds_of(table.trigger)
        except ValueError as error:
            self._complain(str(error), "pipeline", "trigger")
        if table.master.startswith("k8s://") and not re.search(r":\d+/?$", table.master):
            self._complain(
                f"{table.master} has no port, which Spark asks for also if it is 443: write"
                f" {table.master.rstrip('/')}:443",
                "pipeline",
                "master",
            )
        if wrong := schedule_complaint(table.refresh):
            self._complain(wrong, "pipeline", "refresh")
        if table.driver_rows_max < 0:
            self._complain(
                "driver_rows_max is a number of rows, 0 or more", "pipeline", "driver_rows_max"
            )

    def _client(self) -> dict[str, str]:
        found = self._texts("client")
        for name in found:
            if wrong := client_property_complaint(name):
                self._complain(wrong, "client", name)
        return found

    def _texts(self, section: str) -> dict[str, str]:
        found = {}
        for key, value in _flat(self._tables.get(section, {})).items():
            if isinstance(value, str | int | float | bool):
                found[key] = _scalar_text(value)
            else:
                self._complain(f"{key} must be a text or a number", section, key)
        return found

    def _converted(
        self, kind: type[Table], given: Mapping[str, Any], section: str, **stand_ins: Any
    ) -> Table:
        """Return a table with the valid values; the invalid ones are reported."""
        found = converted(kind, given, section, **stand_ins)
        for wrong in found.wrong:
            self._complain(wrong.text, section, wrong.key)
        return found.table

    def _parsed(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r" \(at line (\d+).*\)", str(error))
            text = str(error).removesuffix(found[0]) if found else str(error)
            line = int(found[1]) if found else len(self._lines)
            raise PipelineError(Problem(text, model.Location(FILE, max(line, 1)))) from error

    def _check_tables(self) -> None:
        for name, table in self._tables.items():
            if name not in TABLES:
                self._complain(f"there is no [{name}]{nearest(name, TABLES)}", name)
            elif not isinstance(table, dict):
                self._complain(f"{name} must be a table: [{name}]", "", name)
                self._tables = {**self._tables, name: {}}
        if "pipeline" not in self._tables:
            self._complain('[pipeline] is missing; it has at least a name = "..."', "")
        sources = self._tables.get(model.SOURCES, {})
        for name in [name for name, given in sources.items() if not isinstance(given, dict)]:
            self._complain(f"a source is a table: [sources.{name}]", model.SOURCES, name)
            del sources[name]

    def _substituted(self, value: Any, section: str = "", key: str = "") -> Any:
        """Replace environment variables in a value; a missing variable is a problem."""
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
                f"the variable {name} is not set; set it, or write ${{{name}:-default}}",
                section,
                key,
            )
            return ""
        return value

    def _complain(self, text: str, section: str, key: str = "") -> None:
        self.problems.append(Problem(text, self._location(section, key)))

    def _location(self, section: str, key: str = "") -> model.Location:
        return model.Location(FILE, line_of(self._lines, section, key))


def is_like(file: str, patterns: Iterable[str]) -> bool:
    """Return whether a path in the folder matches one of the patterns: `**` is any depth."""
    return any(_expression(pattern).fullmatch(file) for pattern in patterns)


def _expression(pattern: str) -> re.Pattern[str]:
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(words.get(part) or re.escape(part) for part in parts))


def line_of(lines: Sequence[str], section: str, key: str = "") -> int:
    """Return the line of a key, or of its section's header, or the first line."""
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
        raise PipelineError(Problem("the file is not in UTF-8", model.Location(FILE, 1))) from error


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested tables: `spark.sql.x = 1` without quotes is a table in a table."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _scalar_text(value: str | int | float | bool) -> str:
    """Return a value as Spark and Kafka spell it: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value)
