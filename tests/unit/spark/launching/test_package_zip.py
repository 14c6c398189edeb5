"""The zip that is sent to executors."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from headrace.spark.launching.package_zip import NOT_SENT, package_zip


def test_headrace_is_imported_from_the_zip_with_its_data_files(tmp_path: Path) -> None:
    archive = package_zip(tmp_path)
    program = (
        "import headrace.spark.sink.options, pyspark_headrace, headrace.client.properties as p;"
        "assert p.names(); print(headrace.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(archive))


def test_the_sent_package_imports_no_omitted_modules(tmp_path: Path) -> None:
    parts = "|".join(sorted(NOT_SENT))
    used = re.compile(rf"(?:import|from) headrace(?:\.| import )(?:{parts})\b")
    with zipfile.ZipFile(package_zip(tmp_path)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".py")]
        users = [name for name in names if used.search(archive.read(name).decode())]
    assert "headrace/spark/launching/pickled_package.py" in names
    assert users == []
