"""The names of the tables of a merged view's layers.

Lambda keeps a merged view as two tables. The batch layer is computed whole from the input at some
version. The speed layer has a part for each micro-batch, marked with the input's version at its end
in the column `COMMIT_VERSION` of `lake.merged_views`. The batch layer only covers whole
micro-batches, so the parts beyond its version are exactly those that it lacks.
"""

from headrace.pipelines.model import Architecture


def batch_name(view: str) -> str:
    return f"{view}__batch"


def speed_name(view: str) -> str:
    return f"{view}__speed"


def tables_of(view: str, architecture: Architecture) -> tuple[str, ...]:
    """Return the tables of a merged view; for lambda batch, then speed."""
    if architecture is Architecture.LAMBDA:
        return batch_name(view), speed_name(view)
    return (view,)
