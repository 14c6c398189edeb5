"""The targets of a run's flows, with intake, quarantine and side outputs."""

from dataclasses import dataclass

from headrace.lake.applied_changes import history_name
from headrace.lake.upsert_decisions import Upsert
from headrace.pipelines.declaring.names import quarantine_of, zone_of
from headrace.pipelines.model import Flow, Gate, Pipeline, Sink, StreamingTable
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.queries.sources import client_properties
from headrace.pipelines.running.flows.intake import DeadLetters, Intake
from headrace.pipelines.running.flows.targets import (
    AppendTarget,
    ChangesTarget,
    KeyedTarget,
    Target,
    TopicTarget,
)
from headrace.pipelines.running.flows.unreadable_records import SideOutputs, TopicSideOutput
from headrace.pipelines.running.state.flow_folders import FlowFolders
from headrace.pipelines.running.tables.places import TablePlace
from headrace.pipelines.running.tables.preparation import Preparation
from headrace.pipelines.running.tables.run_generations import RunGenerations
from headrace.spark.side_output import SideOutput


@dataclass(frozen=True, slots=True)
class FlowTargets:
    """The targets of the flows in one run."""

    pipeline: Pipeline
    folders: FlowFolders
    generations: RunGenerations
    preparation: Preparation

    def of(self, flow: Flow, *, is_redriven: bool = False) -> Target:
        """Return the target of a declared flow's batches.

        Redriven rows pass no gate: all of them were rejected before, so a gate would reject good
        rows.
        """
        match self.pipeline.datasets[flow.target]:
            case Sink() as sink:
                return self._topic(flow, sink)
            case StreamingTable() as table:
                return self._table(flow, table, is_redriven=is_redriven)
            case other:
                raise PipelineError(f"{flow.location}: {other.name} is not fed by flows")

    def side_outputs_of(
        self, name: str, table: str, *, is_redriven: bool = False
    ) -> SideOutputs | None:
        """Return the side output for unreadable records of a flow or view; None if it gets them.

        A pipeline may run while rows are redriven, so the two have separate folders.
        """
        sources = self.preparation.sources_with_side_outputs(name)
        quarantine = self.quarantine_of(table)
        if not sources or quarantine is None:
            return None
        flow = next((one for one in self.pipeline.flows if one.name == name), None)
        if flow is None:
            state = self.folders.state.flow(name, self.generations.of(table))
        else:
            state = self.folders.of(flow)
        notes = state.directory.absolute() / ("redriven" if is_redriven else "unreadable")
        place = quarantine.table.place.absolute()
        settings = self.pipeline.settings
        return SideOutputs(
            SideOutput(str(notes), str(place), table, name),
            tuple(
                TopicSideOutput.of(self.pipeline.sources[one], settings) for one in sorted(sources)
            ),
        )

    def gate_of(self, table: str) -> Gate | None:
        """Return the gate of a table's zone."""
        promotion = self.pipeline.settings.promotions.get(zone_of(table))
        return None if promotion is None else promotion.gate

    def quarantine_of(self, table: str) -> TablePlace | None:
        """Return the quarantine of a table; None if it rejects no rows."""
        name = quarantine_of(table)
        return self.generations.place(name) if name in self.preparation.made else None

    def _topic(self, flow: Flow, sink: Sink) -> TopicTarget:
        return TopicTarget(
            topic=sink.topic,
            format=sink.format,
            guarantee=sink.guarantee,
            properties=client_properties(self.pipeline.settings),
            options={k: v for k, v in sink.options.items() if k != "outputMode"},
            side_outputs=self.side_outputs_of(flow.name, sink.name),
            quarantine=self.quarantine_of(sink.name),
        )

    def _table(self, flow: Flow, table: StreamingTable, *, is_redriven: bool) -> Target:
        rows_max = self.pipeline.settings.driver_rows_max
        intake = self._intake(flow, table, is_redriven=is_redriven)
        if flow.changes is not None:
            history = self.generations.place(history_name(table.name))
            return ChangesTarget(intake, history, flow.changes, rows_max)
        if table.keys:
            return KeyedTarget(intake, Upsert(table.keys, sequence=table.sequence_by), rows_max)
        return AppendTarget(intake)

    def _intake(self, flow: Flow, table: StreamingTable, *, is_redriven: bool) -> Intake:
        letters = None
        if table.dead_letter_topic is not None:
            properties = client_properties(self.pipeline.settings)
            letters = DeadLetters(table.dead_letter_topic, properties)
        return Intake(
            place=self.generations.place(table.name),
            quarantine=self.quarantine_of(table.name),
            flow=flow.name,
            expectations=table.expectations,
            dead_letters=letters,
            gate=None if is_redriven else self.gate_of(table.name),
            side_outputs=self.side_outputs_of(flow.name, table.name, is_redriven=is_redriven),
        )
