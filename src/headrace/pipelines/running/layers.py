"""The names of the tables in which a merged view's layers are kept.

Lambda keeps a merged view as two tables. The batch layer's is computed whole from the input at some
version. The speed layer's has a part for each micro-batch, marked with the input's version at its
end in the column `COMMIT_VERSION` of `lake.merging`. The batch layer only ever covers whole
micro-batches, so the parts that reach beyond it are exactly what it does not have.
"""

from headrace.pipelines.model import Architecture


def batch_name(view: str) -> str:
    return f"{view}__batch"


def speed_name(view: str) -> str:
    return f"{view}__speed"


def tables_of(view: str, architecture: Architecture) -> tuple[str, ...]:
    """The tables that a merged view is kept in; lambda's in the order of batch and speed."""
    if architecture is Architecture.LAMBDA:
        return batch_name(view), speed_name(view)
    return (view,)
