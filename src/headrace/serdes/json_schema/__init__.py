"""JSON Schema: texts read and checked, references resolved without a network, values validated."""
