"""The names of a merged view's layers, and the column that says up to where a part reaches.

Lambda keeps a merged view as two tables. The batch layer's is computed whole from the input at some
version. The speed layer's has a part for each micro-batch, marked with the input's version at its
end. The batch layer only ever covers whole micro-batches, so the parts that reach beyond it
are exactly what it does not have.
"""

SPEED = "_commit_version"


def batch_name(view: str) -> str:
    return f"{view}__batch"


def speed_name(view: str) -> str:
    return f"{view}__speed"
