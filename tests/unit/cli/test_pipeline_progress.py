"""How running pipelines are shown."""

from headrace.cli.pipeline_progress import progress_text


def flow(target: str, rows_in: int, rows_out: int, **more: object) -> dict[str, object]:
    zone = target.partition(".")[0]
    return {
        "target": target,
        "zone": zone,
        "rows_in": rows_in,
        "rows_out": rows_out,
        "quarantined": 0,
        "lag": None,
        **more,
    }


def test_the_line_has_rows_in_and_out_per_zone_lag_quarantined_and_rate() -> None:
    status = {
        "pipeline": "shop",
        "flows": [
            flow("raw.a", 1_200, 1_200, lag=5),
            flow("staging.a", 1_200, 1_190, quarantined=10),
            flow("staging.b", 7, 7),
        ],
        "views": [{"view": "refined.v", "zone": "refined", "rows": 3}],
    }
    assert progress_text(status, 300.4) == (
        "shop: raw 1,200/1,200  staging 1,207/1,197  refined 3/3  in/out"
        "  lag 5  quarantined 10  300 rows/s"
    )
