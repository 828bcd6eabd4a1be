"""The floors on the page, each with the figure that decides it; and the limits."""

import document
import picture
from figures import Figure, Figures
from floors import FLOORS, Floor, judged
from limits import LIMITS, declared, share
from standing import Standing, Verdict, summary

COLUMNS = "| work | data | against | ratio | floor | goal | | share of the limit | commit |"
SHORT = {
    Verdict.MET: "met",
    Verdict.MISSED: "**missed**",
    Verdict.CHANGED: "changed",
    Verdict.UNKNOWN: "unknown",
    Verdict.NEVER: "",
}


def floor_table(figures: Figures, standing: Standing) -> str:
    lines = [COLUMNS, "|---|---|---|---|---:|---:|---|---|---|"]
    by_part = sorted(FLOORS, key=lambda floor: picture.PARTS.index(floor.part))
    lines += [row(floor, judged(floor, figures), figures, standing) for floor in by_part]
    return "\n".join([document.fill(f"{summary(standing, figures)} {EXPLAINED}"), "", *lines])


EXPLAINED = (
    "A figure counts for the code that it was measured on: `changed` is one whose sources have changed in so "
    "many commits since, or whose commit is not known. `run.py --status` names them. What the floors were in "
    "earlier versions is in `benches/floors.toml`."
)


def row(floor: Floor, one: Figure | None, figures: Figures, standing: Standing) -> str:
    against = floor.peer if one is None or one.peer == floor.peer else f"{floor.peer}: {one.peer}"
    cells = [picture.work(floor), picture.data(floor.on), against, "" if one is None else str(one)]
    cells += [f"{floor.floor:g}", "" if floor.goal is None else f"{floor.goal:g}"]
    cells += [SHORT[standing.verdict(floor, one)], share_of(floor, one, figures)]
    cells.append("" if one is None else standing.measured_at(one))
    return f"| {' | '.join(cells)} |"


def share_of(floor: Floor, one: Figure | None, figures: Figures) -> str:
    if isinstance(declared(floor.part, floor.work), str):
        return "none"
    found = one and share(one, figures.of(floor.part))
    return f"{found.ratio:.2f}" if found else ""


def limit_table() -> str:
    """The limit of every row, or why it has none."""
    lines = ["| work | limit |", "|---|---|"]
    for part, works in LIMITS.items():
        for work, limit in works.items():
            named = {"": part, "*": f"{part}, all" if len(works) == 1 else f"{part}, the rest"}
            described = f"none: {limit}" if isinstance(limit, str) else limit.name
            lines.append(f"| {named.get(work, f'{part}: {work}')} | {described} |")
    return "\n".join(lines)
