"""README.md as the description of the package, without links to files of the source tree.

Hatch runs this while it builds. A relative link leads nowhere outside the source tree, so only its
text stays.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?![a-z]+://)[^)]+\)")


class CustomMetadataHook(MetadataHookInterface):
    """Sets the field `readme` of the project."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text()
        text = RELATIVE_LINK.sub(r"\1", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
