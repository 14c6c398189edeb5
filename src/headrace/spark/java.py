"""The Java that Spark runs on, found as Spark finds it, with a check of its version."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from headrace.errors import HeadraceError

VERSION_MIN = 17
"""The version of Spark 4's class files."""

_ANSWER_S = 30.0
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_INSTALL = "install one, such as Debian's openjdk-17-jre-headless, or let JAVA_HOME name one"


class JavaMissing(HeadraceError):
    """No Java can run Spark; the message names a package to install."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime on this machine."""

    path: Path
    version: int


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the Java of JAVA_HOME or the first on the PATH; raise `JavaMissing` if it is unfit."""
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
        raise JavaMissing(f"{path} does not report its version; {_INSTALL}")
    if version < VERSION_MIN:
        raise JavaMissing(
            f"{path} is Java {version} and Spark needs {VERSION_MIN} or newer; {_INSTALL}"
        )
    return Java(path, version)


def version_in(text: str) -> int | None:
    """Parse the major version in the output of `java -version`; before 9 it came second."""
    found = _VERSION.search(text)
    if found is None:
        return None
    first, second = int(found[1]), found[2]
    return int(second) if first == 1 and second is not None else first


def locate_java(environment: Mapping[str, str]) -> Path:
    """Return the program of any version; raise `JavaMissing` if it does not exist."""
    home = environment.get("JAVA_HOME")
    if home:
        path = Path(home) / "bin" / "java"
        if not path.exists():
            raise JavaMissing(f"JAVA_HOME is {home}, which has no bin/java; {_INSTALL}")
        return path
    found = which("java", path=environment.get("PATH", os.defpath))
    if found is None:
        raise JavaMissing(f"Spark needs a Java runtime, and none was found; {_INSTALL}")
    return Path(found)
