"""The picture of docs/benchmarks.md: a bar for the ratio of each floor, on a log axis, light and dark."""

from collections.abc import Callable
from itertools import groupby
from math import log10
from xml.sax.saxutils import escape

from figures import Figure, Figures
from floors import FLOORS, Floor, judged
from standing import Standing, Verdict

WIDTH, LEFT, RIGHT = 860, 350, 70
TOP, LINE, TITLE = 62, 17, 26
SMALLEST, TICKS = 0.4, (0.5, 1, 2, 3, 5, 10, 20)

Scale = Callable[[float], float]

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 } .small { font-size: 11px; fill: #59636e }
  .grid { stroke: #d1d9e0 } .one { stroke: #59636e }
  .met { fill: #2f81f7 } .missed { fill: #db6d28 } .changed { fill: #9198a1 }
  .range { stroke: #1f2328; stroke-opacity: .6 } .floor { stroke: #1f2328; stroke-width: 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .small { fill: #9198a1 } .grid { stroke: #3d444d } .one { stroke: #9198a1 }
    .range, .floor { stroke: #f0f6fc }
  }
"""


def draw(figures: Figures, standing: Standing) -> str:
    # Where one figure decides two floors, show the higher floor.
    highest: dict[Figure, Floor] = {}
    for floor in sorted(FLOORS, key=lambda floor: floor.floor):
        if one := judged(floor, figures):
            highest[one] = floor
    shown = [(floor, one) for one, floor in highest.items()]
    shown.sort(key=lambda pair: (PARTS.index(pair[0].part), FLOORS.index(pair[0])))
    largest = max([20.0, *(one.high for _, one in shown)])

    def x(ratio: float) -> float:
        share = log10(max(ratio, SMALLEST) / SMALLEST) / log10(largest / SMALLEST)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    body: list[str] = []
    y = TOP
    for part, group in groupby(shown, key=lambda pair: pair[0].part):
        y += TITLE
        body.append(text(8, y - 9, part, "title"))
        for floor, one in group:
            body += bar(floor, one, standing.verdict(floor, one), y, x)
            y += LINE
    height = y + 14
    grid = []
    for tick in TICKS:
        kind = "one" if tick == 1 else "grid"
        grid.append(f'<line class="{kind}" x1="{x(tick)}" y1="{TOP - 6}" x2="{x(tick)}" y2="{height - 8}"/>')
        grid.append(text(x(tick), TOP - 11, f"{tick:g}x", "small", "middle"))
    title = "magicbyte's speed divided by its peers'"
    legend = (
        "bar: median ratio; thin line: smallest to largest; thick mark: the floor; orange: below it; "
        "grey: measured on other code"
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        text(8, 18, title, "title"),
        text(8, 34, legend, "small"),
        *grid,
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


KINDS = {Verdict.MET: "met", Verdict.MISSED: "missed"}
# The format's own speed comes first.
PARTS = list(dict.fromkeys(floor.part for floor in sorted(FLOORS, key=lambda floor: floor.issue != 6)))


def bar(floor: Floor, one: Figure, verdict: Verdict, y: int, x: Scale) -> list[str]:
    start, end = sorted((x(1), x(one.ratio)))
    middle, kind = y + LINE // 2 - 2, KINDS.get(verdict, "changed")
    label = ", ".join(filter(None, (floor.work, data(one.on))))
    return [
        text(20, y + 9, f"{label} / {one.peer}", "small"),
        f'<rect class="{kind}" x="{start}" y="{y}" width="{max(end - start, 1):.1f}" height="{LINE - 5}"/>',
        f'<line class="range" x1="{x(one.low)}" y1="{middle}" x2="{x(one.high)}" y2="{middle}"/>',
        f'<line class="floor" x1="{x(floor.floor)}" y1="{y - 2}" x2="{x(floor.floor)}" y2="{y + LINE - 3}"/>',
        text(WIDTH - RIGHT + 10, y + 9, f"{one.ratio:.2f}", "small"),
    ]


def text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def work(floor: Floor) -> str:
    return ": ".join(filter(None, (floor.part, floor.work)))


def data(on: str) -> str:
    """The name of a set on the page."""
    shape, _, codec = on.partition("-")
    if shape.upper() in ("S1", "S2", "S3", "S4"):
        return f"{shape.upper()} {codec}"
    return f"S1 {codec}, magic 1" if shape == "s1v1" else on
