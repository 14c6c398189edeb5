"""Values that lie in payloads, made into columns by compiled code."""
