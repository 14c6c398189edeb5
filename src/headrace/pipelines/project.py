"""Loading of a pipeline's folder: pipeline.toml, then every SQL and Python file.

All problems are collected and raised as one error. Python files run once, with the folder on the
path, so that they can import their neighbours.
"""

import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from headrace.pipelines.analysing.spark_errors import short_text
from headrace.pipelines.declaring.registry import Registry, collecting
from headrace.pipelines.declaring.settings_file import SettingsFile, is_like
from headrace.pipelines.declaring.sql_files import declare_file
from headrace.pipelines.loaded_files import LoadedFiles
from headrace.pipelines.model import Location, Pipeline
from headrace.pipelines.problems import PipelineError, Problem, raise_if_any
from headrace.spark.connect import is_connect_url

SUFFIXES = (".sql", ".py")
_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"


def load(
    directory: Path | str,
    environment: Mapping[str, str] | None = None,
    *,
    master: str | None = None,
) -> Pipeline:
    """Load a folder; the PipelineError of an invalid one has all problems.

    `master` replaces the Spark master of the settings.
    """
    folder = Path(directory).absolute()
    file = SettingsFile(folder, environment)
    settings = file.settings()
    sources = file.sources()
    registry = Registry(folder, settings.zones)
    loaded = LoadedFiles(folder)
    with (
        collecting(registry),
        importing_from(folder) as imported,
        functions_for(master or settings.master),
    ):
        paths = library_files(folder, settings.libraries, skipped=Path(settings.lake))
        for path in paths:
            _declare(path, folder, registry, loaded)
    declared = registry.joined()
    file.check_libraries([str(path.relative_to(folder)) for path in paths])
    problems = [*file.problems, *registry.problems]
    if not declared.datasets and not problems:
        problems.append(
            Problem(f"no file of {folder.name} declares anything; add a .sql or .py file")
        )
    raise_if_any(problems)
    file.count_in(loaded)
    loaded.add_imported(imported)
    return Pipeline(
        settings, str(folder), sources, declared.datasets, declared.flows, loaded.fingerprint()
    )


def library_files(folder: Path, patterns: Sequence[str], skipped: Path) -> list[Path]:
    """Return the files with declarations, sorted by name.

    Tests, hidden files and files with a leading underscore are left out; others may import the
    latter. Folders of data are not searched.
    """
    found: list[Path] = []
    for directory, folders, files in os.walk(folder):
        location = Path(directory)
        folders[:] = [name for name in folders if _declares(name) and location / name != skipped]
        paths = [location / name for name in files if _declares(name)]
        found += [
            path
            for path in paths
            if path.suffix in SUFFIXES and is_like(str(path.relative_to(folder)), patterns)
        ]
    return sorted(found)


@contextmanager
def importing_from(folder: Path) -> Iterator[list[Path]]:
    """Let files import their neighbours, then forget these; the list has them at the end.

    Two pipelines in one process may have neighbours of one name. And modules that are not in
    `sys.modules` are pickled by value for Spark's workers, which do not have the folder.
    """
    before = set(sys.modules)
    imported: list[Path] = []
    sys.path.insert(0, str(folder))
    try:
        yield imported
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(folder):
                imported.append(Path(file))
                del sys.modules[name]


@contextmanager
def functions_for(master: str) -> Iterator[None]:
    """Make PySpark's functions those of Spark Connect if the pipeline runs there.

    A UDF gets its kind when it is created. Files create theirs before a session exists, which would
    set this variable.
    """
    if not is_connect_url(master) or _CONNECT_MODE in os.environ:
        yield
        return
    os.environ[_CONNECT_MODE] = "1"
    try:
        yield
    finally:
        del os.environ[_CONNECT_MODE]


def _declares(name: str) -> bool:
    is_test = name.startswith("test_") or name in ("tests", "conftest.py")
    return not is_test and not name.startswith((".", "_"))


def _declare(path: Path, folder: Path, registry: Registry, loaded: LoadedFiles) -> None:
    file = str(path.relative_to(folder))
    try:
        text = loaded.text(path)
    except UnicodeDecodeError:
        registry.complain("the file is not in UTF-8", Location(file, 1))
        return
    if path.suffix == ".sql":
        declare_file(text, file, registry)
    else:
        _run(text, path, file, registry)


def _run(text: str, path: Path, file: str, registry: Registry) -> None:
    """Run a Python file; its error is a problem at the line where it left the folder."""
    name = "headrace_pipeline." + ".".join(Path(file).with_suffix("").parts)
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # Dataclasses and the like look their module up.
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except PipelineError as error:
        registry.problems += error.located(_location_of(error, registry, file))
    except SyntaxError as error:
        registry.complain(f"SyntaxError: {error.msg}", _place_of_syntax(error, registry, file))
    except (Exception, SystemExit) as error:
        if _is_pyspark_missing(error):
            raise
        # A user's file may raise anything; the other files are still checked.
        registry.complain(short_text(error), _location_of(error, registry, file))


def _is_pyspark_missing(error: BaseException) -> bool:
    """Return whether PySpark is missing, on which the command line has advice."""
    return isinstance(error, ModuleNotFoundError) and error.name == "pyspark"


def _location_of(error: BaseException, registry: Registry, file: str) -> Location:
    """Return the innermost line of the folder's own files in an error's trace."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(registry.directory)]
    return registry.location(own[-1].filename, own[-1].lineno or 1) if own else Location(file, 1)


def _place_of_syntax(error: SyntaxError, registry: Registry, file: str) -> Location:
    return (
        registry.location(error.filename, error.lineno or 1)
        if error.filename
        else Location(file, 1)
    )
