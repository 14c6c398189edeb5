"""Pipelines in a pytest: rows in, tables out, without a broker or a cluster."""

from headrace.pipelines.testing.pipeline_test import PipelineTest

__all__ = ["PipelineTest"]
