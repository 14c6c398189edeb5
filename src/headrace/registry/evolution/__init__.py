"""What one schema changes about another, whom that breaks, and what would help."""
