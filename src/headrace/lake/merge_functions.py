"""The functions by which merged views combine the values of a column, without any import."""

MERGES = ("sum", "min", "max")
