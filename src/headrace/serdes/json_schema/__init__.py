"""JSON Schema: texts parsed and checked, references resolved offline, values validated."""
