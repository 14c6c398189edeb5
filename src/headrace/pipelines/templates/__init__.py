"""The pipeline that `headrace pipelines init` creates: small, complete, and with a test."""

from pathlib import Path

from headrace.pipelines.declaring.names import WORD
from headrace.pipelines.problems import PipelineError

HERE = Path(__file__).parent
SUFFIX = ".template"
"""Marks the files as no modules of this package."""
_NAME = "{{name}}"


def write_template(folder: Path) -> list[Path]:
    """Fill a new folder, which names the pipeline; return the files."""
    name = folder.absolute().name.lower()
    if not WORD.fullmatch(name.replace("-", "_")):
        raise PipelineError(
            f"{name!r} is not a valid name of a pipeline; write lower-case letters, digits, -"
            " and _, beginning with a letter"
        )
    if folder.exists() and any(folder.iterdir()):
        raise PipelineError(f"{folder} exists and is not empty; name a new folder")
    written = []
    for template in sorted(HERE.rglob(f"*{SUFFIX}")):
        path = folder / template.relative_to(HERE).with_suffix("")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(template.read_text(encoding="utf-8").replace(_NAME, name), encoding="utf-8")
        written.append(path)
    return written
