"""Output of `headrace topics profile`."""

from headrace.cli.output import counted, print_line, print_table, size_text
from headrace.client.profiles import Profile


def print_profile(profile: Profile) -> None:
    """Print one line per measure, then the keys, then the suggested source."""
    print_line(f"{profile.topic}: {counted(profile.records, 'record')} measured")
    print_table(("measure", "value"), rows_of(profile))
    if profile.keys.top:
        print_line("")
        print_table(
            ("key", "share of records"),
            [(key, percent(share)) for key, share in profile.keys.top],
        )
    print_line("\nTo read the topic in a pipeline, add to pipeline.toml:\n")
    print_line(profile.suggestion.rstrip())


def rows_of(profile: Profile) -> list[tuple[str, str]]:
    velocity, size, gaps, keys = profile.velocity, profile.size, profile.frequency, profile.keys
    kinds = ", ".join(f"{name} {percent(share)}" for name, share in profile.format.kinds.items())
    rows = [
        ("velocity", rate_text(profile)),
        ("bandwidth", bandwidth_text(profile)),
        ("span of the sample", f"{velocity.span_s:,.1f} s"),
        (
            "record size",
            f"{size.min:,} to {size.max:,} B, p50 {size.p50:,}, p99 {size.p99:,},"
            f" mean {size.mean:,.1f}",
        ),
        (
            "frequency",
            f"{gaps.pattern}; gaps p50 {gaps.gap_ms_p50:,.0f}, p99 {gaps.gap_ms_p99:,.0f},"
            f" max {gaps.gap_ms_max:,.0f} ms",
        ),
        ("format", f"{profile.format.structure}: {kinds}"),
        ("heterogeneity", heterogeneity_text(profile)),
        ("compression", compression_text(profile)),
        ("keys", f"{keys.distinct:,} distinct, {percent(keys.null_share)} without"),
        ("partitions", partitions_text(profile)),
    ]
    if profile.format.detail:
        detail = repr(profile.format.detail).strip("'")
        if profile.format.registered:
            detail += f", probably {profile.format.registered}"
        rows.insert(6, ("format detail", detail))
    return rows


def rate_text(profile: Profile) -> str:
    rate = profile.velocity.records_per_s
    return (
        "unknown: all records have the same timestamp" if rate is None else f"{rate:,.1f} records/s"
    )


def bandwidth_text(profile: Profile) -> str:
    volume, megabits = profile.velocity.bytes_per_s, profile.velocity.megabits_per_s
    if volume is None or megabits is None:
        return "unknown"
    return f"{size_text(int(volume))}/s ({megabits:,.3f} Mbit/s) before compression"


def heterogeneity_text(profile: Profile) -> str:
    found = profile.heterogeneity
    return f"{percent(found.main_shape_share)} have one shape of {counted(found.shapes, 'shape')}"


def compression_text(profile: Profile) -> str:
    batches = sum(profile.compression.values())
    codecs = ", ".join(
        f"{name} in {count} of {batches} batches" for name, count in profile.compression.items()
    )
    if profile.zstd_ratio is None:
        return codecs or "unknown"
    return f"{codecs or 'unknown'}; zstd makes values {profile.zstd_ratio:.1f} times smaller"


def partitions_text(profile: Profile) -> str:
    skew = profile.keys.partition_skew
    count = counted(len(profile.keys.partition_records), "partition")
    return count if skew is None else f"{count}, the fullest has {skew:.2f} times its fair share"


def percent(share: float) -> str:
    return f"{share:.1%}"
