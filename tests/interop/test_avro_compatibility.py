"""Java's Avro judges ours: texts of schemas, verdicts on pairs of them, values, container files."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.registry.compatibility.avro import AmbiguousField, differences
from headrace.serdes.avro.codec import decode, encode
from headrace.serdes.avro.containers import ContainerReader, ContainerWriter
from headrace.serdes.avro.json_reading import json_of_payload
from headrace.serdes.avro.json_writing import payload_of_json
from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.payload_errors import PayloadError
from headrace.serdes.schemas import InvalidSchema
from tests.builders.avro_schemas import Schemas
from tests.interop.avro_judge import AvroJudge, running_judge
from tests.processes.kafka import KafkaMissing

JAVAS_CODECS = ("null", "deflate", "snappy", "zstandard")
"""Those that it needs no further library for; fastavro reads and writes the others."""

SEEDS = range(int(os.environ.get("HEADRACE_SEEDS", "400")))


@pytest.fixture(scope="module")
def judge() -> Iterator[AvroJudge]:
    if shutil.which("java") is None:
        pytest.skip("no `java` on the path: install a Java 17 runtime to ask Java's Avro")
    try:
        with running_judge() as judge:
            yield judge
    except KafkaMissing as error:
        pytest.skip(str(error))


def pairs() -> Iterator[tuple[str, str]]:
    """Pairs of schemas: most are a schema and its later version, some are unrelated."""
    for seed in SEEDS:
        schemas = Schemas(seed)
        old = schemas.schema()
        new = schemas.changed(old) if seed % 4 else schemas.schema()
        yield json.dumps(old), json.dumps(new)


def printed(text: str) -> str:
    try:
        return parse(text).canonical()
    except InvalidSchema:
        return "!"


def verdict(reader: str, writer: str) -> str:
    try:
        found = differences(parse(reader).root, parse(writer).root)
    except AmbiguousField:
        return "!"
    return "\t".join(f"{each.error} /{'/'.join(each.path)} {each.detail}" for each in found)


def unless_refused(answer: str) -> str:
    """Java's answer; of a refusal only that it is one."""
    return "!" if answer.startswith("!") else answer


def valued(seed: int) -> tuple[Schemas, str, AvroSchema, bytes] | None:
    """A schema and bytes of a value; None for a record that always holds itself."""
    schemas = Schemas(seed)
    text = json.dumps(schemas.schema())
    schema = parse(text)
    try:
        value = schemas.json_value(schema.root)
    except RecursionError:
        return None
    return schemas, text, schema, payload_of_json(schema, value)


def test_java_prints_each_schema_as_we_do(judge: AvroJudge) -> None:
    """SCH-13"""
    texts = [text for pair in pairs() for text in pair]
    different = [
        text for text in texts if unless_refused(judge.ask("print", text)) != printed(text)
    ]
    assert different == []


def test_java_has_our_parsing_canonical_forms(judge: AvroJudge) -> None:
    texts = [old for old, _ in pairs()]
    different = [
        text
        for text in texts
        if judge.ask("fingerprint", text) != parse(text).parsing_canonical_form()
    ]
    assert different == []


def test_javas_verdict_on_each_pair_is_ours_with_every_reason_and_place(judge: AvroJudge) -> None:
    """SCH-6, SCH-7, SCH-12"""
    valid = [pair for pair in pairs() if "!" not in (printed(pair[0]), printed(pair[1]))]
    both_ways = [*valid, *((new, old) for old, new in valid)]
    answers = [unless_refused(judge.ask("compare", *pair)) for pair in both_ways]
    different = [
        (pair, answer, verdict(*pair))
        for pair, answer in zip(both_ways, answers, strict=True)
        if answer != verdict(*pair)
    ]
    assert different == []
    assert min(answers.count(""), len(answers) - answers.count("")) > len(SEEDS) // 4


def test_java_reads_our_values_and_writes_the_same_bytes(judge: AvroJudge) -> None:
    """SCH-1"""
    found = [case for seed in SEEDS if (case := valued(seed)) is not None]
    different = [
        (text, payload.hex(), answer)
        for _, text, schema, payload in found
        if (answer := judge.ask("resolve", text, text, payload.hex())) != payload.hex()
        or repr(decode(schema, None, bytes.fromhex(answer))) != repr(decode(schema, None, payload))
    ]
    assert different == []


def test_java_has_our_json_encoding(judge: AvroJudge) -> None:
    """SCH-1"""
    same, different = 0, []
    for seed in SEEDS:
        if (case := valued(seed)) is None:
            continue
        _, text, schema, payload = case
        answer = judge.ask("json", text, payload.hex())
        if not answer or "StackOverflowError" in answer:
            continue  # Java has no JSON for a record without values, nor for one without an end.
        ours = json_of_payload(schema, payload)
        read = judge.ask("of-json", text, json.dumps(ours))
        if json.loads(answer) == ours and read == payload.hex():
            same += 1
        else:
            different.append((text, payload.hex(), answer, read))
    assert different == []
    assert same > len(SEEDS) // 2


def test_java_projects_values_as_we_do(judge: AvroJudge) -> None:
    """SCH-10"""
    same, different = 0, []
    for seed in SEEDS:
        if (case := valued(seed)) is None:
            continue
        schemas, text, writer, payload = case
        changed = json.dumps(schemas.changed(json.loads(text)))
        if printed(changed) == "!" or '"aliases": ["R0"]' in text or '"aliases": ["R1"]' in text:
            continue  # Java renames every type that an alias names, at any depth.
        answer = judge.ask("resolve", text, changed, payload.hex())
        if seen(parse(changed), answer) == projected(writer, parse(changed), payload):
            same += 1
        else:
            different.append((text, changed, payload.hex(), answer))
    assert different == []
    assert same > len(SEEDS) // 2


def seen(reader: AvroSchema, answer: str) -> str:
    return "!" if answer.startswith("!") else repr(decode(reader, None, bytes.fromhex(answer)))


def projected(writer: AvroSchema, reader: AvroSchema, payload: bytes) -> str:
    try:
        return repr(decode(writer, reader, payload))
    except PayloadError:
        return "!"


@pytest.mark.parametrize("codec", JAVAS_CODECS)
def test_container_files_go_to_java_and_back(judge: AvroJudge, codec: str, tmp_path: Path) -> None:
    """SCH-5"""
    rows: list[Any] = [{"n": number, "s": "x" * (number % 7)} for number in range(5000)]
    row = parse(
        '{"type":"record","name":"Row","fields":[{"name":"n","type":"long"},'
        '{"name":"s","type":["null","string"]}]}'
    )
    with (tmp_path / "ours.avro").open("wb") as file:
        writer = ContainerWriter(file, row, codec=codec)
        for value in rows:
            writer.write(value)
        writer.flush()
    count = judge.ask("recode", str(tmp_path / "ours.avro"), str(tmp_path / "javas.avro"), codec)
    with (tmp_path / "javas.avro").open("rb") as file:
        assert (count, list(ContainerReader(file))) == ("5000", rows)


def test_a_customer_of_the_past_is_read_by_java_and_by_us(judge: AvroJudge) -> None:
    """SCH-6"""
    old = (
        '{"type":"record","name":"Customer","fields":[{"name":"id","type":"int"},'
        '{"name":"faxNumber","type":"string"}]}'
    )
    new = (
        '{"type":"record","name":"Customer","fields":[{"name":"customerId","type":"long",'
        '"aliases":["id"]},{"name":"prefLang","type":"string","default":"en_US"}]}'
    )
    payload = encode(parse(old), {"id": 7, "faxNumber": "1"})
    answer = judge.ask("resolve", old, new, payload.hex())
    assert decode(parse(new), None, bytes.fromhex(answer)) == decode(
        parse(old), parse(new), payload
    )
