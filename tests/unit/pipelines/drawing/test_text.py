"""Graphs as text and as pictures."""

from pathlib import Path
from xml.etree import ElementTree

from headrace.pipelines.analysing.graph import Graph, graph_of
from headrace.pipelines.drawing.layout import layout_of
from headrace.pipelines.drawing.svg import svg_of
from headrace.pipelines.drawing.text import text_of
from tests.builders.declared_pipelines import SETTINGS, load_folder

DIAMOND = """
CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE staging.a AS SELECT * FROM STREAM(raw.orders);
CREATE STREAMING TABLE staging.b AS SELECT * FROM STREAM(raw.orders);
CREATE STREAMING TABLE staging.c AS SELECT * FROM STREAM(staging.b);
CREATE MATERIALIZED VIEW refined.all AS SELECT * FROM staging.a JOIN staging.b USING (id);
CREATE SINK alerts TOPIC '<a> & "b"';
CREATE FLOW out AS INSERT INTO alerts BY NAME SELECT * FROM STREAM(raw.orders);
"""
SVG = "{http://www.w3.org/2000/svg}"


def graph(place: Path, sql: str = DIAMOND, settings: str = SETTINGS) -> Graph:
    return graph_of(load_folder(place, {"a.sql": sql}, settings))


def test_a_tree_shows_each_dataset_below_its_inputs(tmp_path: Path) -> None:
    assert text_of(graph(tmp_path)) == "\n".join(
        [
            "sources.orders  (topic orders, json)",
            "└── raw.orders  (streaming table)",
            "    ├── staging.a  (streaming table)",
            "    │   └╌╌ refined.all  (materialized view, every 1 minute)",
            "    ├── staging.b  (streaming table)",
            "    │   ├╌╌ refined.all",
            "    │   └── staging.c  (streaming table)",
            '    └── alerts  (sink, topic <a> & "b")',
            "",
            "── as rows come   ╌╌ read whole",
        ]
    )


def test_a_cycle_is_drawn_too(tmp_path: Path) -> None:
    sql = """
    CREATE STREAMING TABLE raw.a AS SELECT * FROM STREAM(raw.b);
    CREATE STREAMING TABLE raw.b AS SELECT * FROM STREAM(raw.a);
    """
    drawn = text_of(graph(tmp_path, sql))
    assert "raw.a" in drawn
    assert "raw.b" in drawn
    assert svg_of(graph(tmp_path, sql)).count("<title>") == 3


def test_zones_are_columns_from_left_to_right(tmp_path: Path) -> None:
    layout = layout_of(graph(tmp_path))
    assert [(band.zone, band.first, band.last) for band in layout.bands] == [
        ("sources", 0, 0),
        ("raw", 1, 1),
        ("staging", 2, 3),
        ("refined", 4, 4),
        ("sinks", 5, 5),
    ]
    assert layout.column_of["staging.c"] == 3


def test_an_edge_over_columns_has_a_lane_in_each(tmp_path: Path) -> None:
    layout = layout_of(graph(tmp_path))
    route = layout.route("raw.orders", "alerts")
    assert [slot.column for slot in route] == [1, 2, 3, 4, 5]
    for slot in route:
        assert slot in layout.columns[slot.column]


def test_a_zone_of_ones_own_has_a_column(tmp_path: Path) -> None:
    sql = "CREATE STREAMING TABLE lab.x AS SELECT * FROM STREAM(sources.orders)"
    layout = layout_of(graph(tmp_path, sql, SETTINGS + "\n[zones]\nlab = ''"))
    assert [band.zone for band in layout.bands] == ["sources", "lab"]


def test_a_drawing_has_every_node_and_edge_inside_its_frame(tmp_path: Path) -> None:
    drawn = graph(tmp_path)
    root = ElementTree.fromstring(svg_of(drawn))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    nodes = root.findall(f"{SVG}g")
    titles = [title.text for node in nodes if (title := node.find(f"{SVG}title")) is not None]
    assert sorted(str(title) for title in titles) == sorted(drawn.names)
    for box in root.findall(f"{SVG}g/{SVG}rect"):
        place = {key: float(box.attrib[key]) for key in ("x", "y", "width", "height")}
        assert 0 <= place["x"] <= width - place["width"]
        assert 0 <= place["y"] <= height - place["height"]
    paths = root.findall(f"{SVG}path[@marker-end]")
    assert len(paths) == len(drawn.edges)
    assert sum("whole" in path.attrib["class"] for path in paths) == 2


def test_nodes_do_not_overlap(tmp_path: Path) -> None:
    root = ElementTree.fromstring(svg_of(graph(tmp_path)))
    boxes = [
        tuple(float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        for box in root.findall(f"{SVG}g/{SVG}rect")
    ]
    for at, (x, y, width, height) in enumerate(boxes):
        for x2, y2, width2, height2 in boxes[at + 1 :]:
            is_beside = x + width <= x2 or x2 + width2 <= x
            is_above = y + height <= y2 or y2 + height2 <= y
            assert is_beside or is_above


def test_texts_of_files_cannot_break_out_of_the_picture(tmp_path: Path) -> None:
    picture = svg_of(graph(tmp_path))
    assert "topic &lt;a&gt; &amp; &quot;b&quot;" in picture
