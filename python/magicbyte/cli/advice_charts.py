"""The charts of `magicbyte advise`: size against speed, sizes of layouts, and costs of header keys."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from magicbyte.cli.advice_text import columns_of, figures_of, goals_of, largest_of, layout_name
from magicbyte.cli.html_charts import LEFT, PLOT, Chart, label, line, rect, svg, text
from magicbyte.jobs.advise import LayoutCost, TopicAdvice
from magicbyte.jobs.run.progress import format_bytes

__all__ = ["advice_charts"]

_NAMES = 190
"""The start of bars that have names to their left."""
_BAR_PITCH = 22
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def advice_charts(topic: TopicAdvice, shown: Sequence[tuple[int, LayoutCost]]) -> list[Chart]:
    """The charts of a topic; the first chart has all layouts, the second has the layouts `shown`."""
    found = [_speeds(topic), _sizes(topic, shown)]
    return [*found, _header_keys(topic)] if topic["header_keys"] else found


def _codecs(costs: Sequence[LayoutCost]) -> list[str]:
    used = {cost["compression"] for cost in costs}
    return [name for name in _CODECS if name in used]


def _words(topic: TopicAdvice, cost: LayoutCost) -> str:
    figures = zip(columns_of(topic)[3:], figures_of(cost)[3:], strict=True)
    return f"{layout_name(cost)}: " + ", ".join(f"{name} {value}" for name, value in figures)


def _speeds(topic: TopicAdvice) -> Chart:
    costs, goals = topic["layouts"], goals_of(topic)
    plot, height, largest = 330, 366, largest_of(topic)
    # A tenth of room on both sides, so that no mark is cut.
    low = math.log10(min(one["encode_bytes_per_second"] for one in costs)) - 0.1
    high = math.log10(max(one["encode_bytes_per_second"] for one in costs)) + 0.1

    def x(speed: float) -> float:
        return LEFT + PLOT * (math.log10(speed) - low) / (high - low)

    def y(size: float) -> float:
        return plot - size / largest * (plot - 20)

    def parts() -> Iterator[str]:
        for quarter in range(5):
            yield line(y(largest * quarter / 4))
            yield label(y(largest * quarter / 4), format_bytes(round(largest * quarter / 4)))
        for power in range(math.ceil(low), math.floor(high) + 1):
            for digit in (1, 2, 5):
                speed = digit * 10.0**power
                if speed < 10**high:
                    yield text(x(speed), plot + 16, f"{speed / 1e6:g} MB/s", _anchor(x(speed)))
        yield text(LEFT + PLOT, plot + 32, "written per second, before compression", "end")
        yield _today(topic, LEFT, LEFT + PLOT, y(topic["stored"]), y(topic["stored"]))
        yield text(LEFT + 4, y(topic["stored"]) - 4, "today", "start", "strong")
        front = _front(costs)
        points = " ".join(f"{x(one['encode_bytes_per_second']):.1f},{y(one['size']):.1f}" for one in front)
        yield f'<polyline points="{points}" fill="none" stroke="var(--soft)" stroke-dasharray="2 3"/>'
        for number, cost in enumerate(costs):
            at = x(cost["encode_bytes_per_second"]), y(cost["size"])
            yield _mark(*at, cost, _words(topic, cost))
            if number in goals:
                yield text(at[0], at[1] + 20, ", ".join(goals[number]), _anchor(at[0]), "strong")

    about = (
        "Every layout that was tried. Filled ones are on the Pareto front: no other one is smaller, and "
        "quicker to write and to read. The line joins those that none beats in size and in writing; named "
        "are the recommended ones."
    )
    return Chart("Size and speed", about, svg(height, "Size by speed of writing", parts()), _codecs(costs))


def _anchor(x: float) -> str:
    """The anchor of a label: a label near the right end would otherwise be cut."""
    return "end" if x > LEFT + PLOT - 60 else "middle"


def _front(costs: Sequence[LayoutCost]) -> list[LayoutCost]:
    """The layouts that no other layout beats in both size and speed of writing, the fastest first."""
    front: list[LayoutCost] = []
    for cost in sorted(costs, key=lambda layout: (-layout["encode_bytes_per_second"], layout["size"])):
        if not front or cost["size"] < front[-1]["size"]:
            front.append(cost)
    return front


def _mark(x: float, y: float, cost: LayoutCost, title: str) -> str:
    colour = f"var(--{cost['compression']})"
    fill = f'fill="{colour}"' if cost["is_pareto"] else 'fill="var(--card)" opacity="0.7"'
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {fill} stroke="{colour}" stroke-width="1.5">'
        f"<title>{title}</title></circle>"
    )


def _today(topic: TopicAdvice, left: float, right: float, top: float, bottom: float) -> str:
    return (
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" stroke="var(--ink)" '
        f'stroke-dasharray="6 4"><title>today: {topic["stored"]:,} bytes</title></line>'
    )


def _sizes(topic: TopicAdvice, shown: Sequence[tuple[int, LayoutCost]]) -> Chart:
    height = len(shown) * _BAR_PITCH + 24
    # An error bar may reach beyond the maximum size.
    most = max(largest_of(topic), *(one["size"] + (one["error"] or 0) for _, one in shown))

    def x(size: float) -> float:
        return _NAMES + (LEFT + PLOT - _NAMES) * max(size, 0) / most

    def parts() -> Iterator[str]:
        for row, (_, cost) in enumerate(shown):
            top, size, error = row * _BAR_PITCH + 4, cost["size"], cost["error"]
            yield text(_NAMES - 8, top + 12, _short(cost), "end")
            yield rect(
                _NAMES, top, x(size) - _NAMES, _BAR_PITCH - 6, cost["compression"], _words(topic, cost)
            )
            if error:
                left, right, middle = x(size - error), x(size + error), top + _BAR_PITCH / 2 - 3
                ends = f"M{left:.1f} {middle - 5}v10M{right:.1f} {middle - 5}v10"
                yield (
                    f'<path d="M{left:.1f} {middle}H{right:.1f}{ends}" stroke="var(--ink)" '
                    f'stroke-width="1.5"><title>{size:,.0f} +- {error:,.0f} bytes</title></path>'
                )
        stored = x(topic["stored"])
        yield _today(topic, stored, stored, 0, height - 22)
        yield text(stored, height - 6, f"today {format_bytes(topic['stored'])}", _anchor(stored), "strong")

    about = (
        "The topic's size with each layout of the table; lines at the ends of bars span the interval that "
        "has the true size in 19 of 20 samples."
    )
    codecs = _codecs([cost for _, cost in shown])
    return Chart("Sizes", about, svg(height, "Size of each layout", parts()), codecs)


def _short(cost: LayoutCost) -> str:
    codec, level, batch, *_ = figures_of(cost)
    return f"{codec}{'' if level is None else f' {level}'}, {batch}"


def _header_keys(topic: TopicAdvice) -> Chart:
    keys = topic["header_keys"]
    height = len(keys) * _BAR_PITCH + 4
    most = max(one["bytes"] for one in keys) or 1

    def parts() -> Iterator[str]:
        for row, one in enumerate(keys):
            top, whole = row * _BAR_PITCH + 4, (LEFT + PLOT - _NAMES) * one["bytes"] / most
            name = whole * one["name_bytes"] / one["bytes"]
            # A key may be longer than the picture is wide.
            short = one["key"] if len(one["key"]) <= 30 else f"{one['key'][:29]}\N{HORIZONTAL ELLIPSIS}"
            yield text(_NAMES - 8, top + 12, short, "end")
            of = f"of {one['bytes']:,.0f} bytes in {one['count']:,.0f} headers"
            yield rect(_NAMES, top, name, _BAR_PITCH - 6, "names", f"name: {one['name_bytes']:,.0f} {of}")
            values = f"value and lengths: {one['bytes'] - one['name_bytes']:,.0f} {of}"
            yield rect(_NAMES + name, top, whole - name, _BAR_PITCH - 6, "values", values)

    about = "The header keys that cost most, before compression; a shorter name makes the first part smaller."
    return Chart("Header keys", about, svg(height, "Bytes of header keys", parts()), ["names", "values"])
