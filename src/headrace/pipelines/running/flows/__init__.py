"""Flows as Spark runs them: inputs, batches, expectations and targets."""
