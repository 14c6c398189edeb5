"""The requirements of Spark on a machine: Java, PySpark, and the packages of executors."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from headrace.runtime.installation import pip_command
from headrace.spark.java import JavaMissing, find_java

PACKAGES = (
    "pyspark",
    "pyarrow",
    "numba",
    "pandas",
    "confluent-kafka",
    "msgspec",
    "cramjam",
    "fastcrc",
    "deltalake",
    "duckdb",
    "fastavro",
    "protobuf",
)
"""The packages of the workers' Python; headrace itself is sent to them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    is_fine: bool
    text: str


def examine() -> list[Finding]:
    """Check this machine's Java and this Python's packages."""
    return [_java(), *(_package(name) for name in PACKAGES)]


def _java() -> Finding:
    try:
        java = find_java()
    except JavaMissing as error:
        return Finding(False, str(error))
    return Finding(True, f"Java {java.version} at {java.path}")


def _package(name: str) -> Finding:
    try:
        return Finding(True, f"{name} {version(name)}")
    except PackageNotFoundError:
        return Finding(False, f"{name} is missing: {pip_command('spark')}")
