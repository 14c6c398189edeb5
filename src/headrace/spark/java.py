"""The Java that Spark runs on: found as Spark finds it, and checked before Spark trips on it."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from headrace.errors import HeadraceError

VERSION_MIN = 17
"""Spark 4's class files need it."""

_ANSWER_S = 30.0
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_INSTALL = "install one, such as Debian's openjdk-17-jre-headless, or let JAVA_HOME name one"


class JavaMissing(HeadraceError):
    """There is no Java that can run Spark; the message says what to install."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime on this machine."""

    path: Path
    version: int


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java of JAVA_HOME, else the first on the PATH; `JavaMissing` unless it will do."""
    environment = os.environ if environment is None else environment
    path = locate_java(environment)
    try:
        answer = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=_ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f"{path} does not run ({error}); {_INSTALL}") from None
    version = version_in(answer.stderr + answer.stdout)
    if version is None:
        raise JavaMissing(f"{path} does not tell its version; {_INSTALL}")
    if version < VERSION_MIN:
        raise JavaMissing(
            f"{path} is Java {version} and Spark needs {VERSION_MIN} or newer; {_INSTALL}"
        )
    return Java(path, version)


def version_in(text: str) -> int | None:
    """The major version in what `java -version` says; before 9 it was the second number."""
    found = _VERSION.search(text)
    if found is None:
        return None
    first, second = int(found[1]), found[2]
    return int(second) if first == 1 and second is not None else first


def locate_java(environment: Mapping[str, str]) -> Path:
    """The program that would run, of whatever version; `JavaMissing` if there is none."""
    home = environment.get("JAVA_HOME")
    if home:
        path = Path(home) / "bin" / "java"
        if not path.exists():
            raise JavaMissing(f"JAVA_HOME is {home}, and there is no bin/java; {_INSTALL}")
        return path
    found = which("java", path=environment.get("PATH", os.defpath))
    if found is None:
        raise JavaMissing(f"Spark needs a Java runtime, and there is none; {_INSTALL}")
    return Path(found)
