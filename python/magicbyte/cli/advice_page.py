"""Advice as an HTML page."""

from __future__ import annotations

from magicbyte.cli.advice_charts import advice_charts
from magicbyte.cli.advice_text import (
    change_text,
    columns_of,
    figures_of,
    goals_of,
    layout_name,
    remarks_of,
    shown_layouts,
    summary_of,
)
from magicbyte.cli.html_page import Cell, Value, card, document, figure, text_of
from magicbyte.jobs.advise import GOALS, AdviseReport, TopicAdvice

__all__ = ["advice_page"]

_ESTIMATED = (
    "Sizes are estimated from a sample; speeds were measured on one core of the machine that took it. "
    "<code>magicbyte advise --json</code> has more."
)
_MOST_LAYOUTS = 100
_TEXT_COLUMNS = ("codec", "batch")


def advice_page(report: AdviseReport, *, show_all: bool) -> str:
    """The page of the advice: for each topic what is recommended, the table of the terminal, and charts."""
    topics = report["topics"]
    title = topics[0]["topic"] if len(topics) == 1 else f"Advice for {len(topics):,} topics"
    parts = [_overview(title, report) if len(topics) != 1 else ""]
    parts += [_topic(at, topic, show_all=show_all) for at, topic in enumerate(topics)]
    if left_out := report["not_sampled"]:
        parts.append(f"<p class=soft>Not sampled, small or empty: {text_of(', '.join(left_out))}</p>\n")
    problems: list[list[Value]] = [
        [problem["segment"], problem["kind"], problem["message"]] for problem in report["problems"]
    ]
    total = len(problems) + report["problems_left_out"]
    parts.append(card("Problems", "of the logs", ["file", "kind", "what"], problems, total))
    return document("advise", title, "".join(parts), _ESTIMATED)


def _overview(title: str, report: AdviseReport) -> str:
    """A row for each topic, which is a link to it."""
    rows: list[list[Value]] = []
    for at, topic in enumerate(report["topics"]):
        chosen = [topic["layouts"][one["layout"]] for one in topic["advice"]]
        advice = [f"{layout_name(one)}, {change_text(one)}" for one in chosen]
        rows.append([Cell(topic["topic"], link=f"#t{at}"), topic["stored"], *advice])
    names = ["topic", "bytes", *(f"for {goal}" for goal in GOALS)]
    return f'<section class="history">\n<h1>{text_of(title)}</h1>\n{card("", "", names, rows)}</section>\n'


def _topic(at: int, topic: TopicAdvice, *, show_all: bool) -> str:
    shown, goals = shown_layouts(topic, show_all=show_all), goals_of(topic)
    advice: list[list[Value]] = [
        [one["goal"], layout_name(cost), _figure(change_text(cost)), one["reason"]]
        for one in topic["advice"]
        for cost in [topic["layouts"][one["layout"]]]
    ]
    names = columns_of(topic)
    layouts: list[list[Value]] = [
        [
            *(
                value if name in _TEXT_COLUMNS else _figure(value)
                for name, value in zip(names, figures_of(cost), strict=True)
            ),
            ", ".join(goals.get(number, [])),
        ]
        for number, cost in shown
    ]
    about = "all that were tried" if show_all else "those that no other one beats, and those recommended"
    remarks = "".join(f"<li>{text_of(one)}</li>\n" for one in remarks_of(topic))
    notes = f'<section class="card">\n<h2>Notes</h2>\n<ul>\n{remarks}</ul>\n</section>\n' if remarks else ""
    return "".join(
        (
            f'<section class="history" id="t{at}">\n<h1>{text_of(topic["topic"])}</h1>\n',
            f'<p class="path">{summary_of(topic)}</p>\n',
            card("Recommended", "", ["for", "layout", "size", "why"], advice),
            *map(figure, advice_charts(topic, shown)),
            card("Layouts", about, [*names, "best for"], layouts, most=_MOST_LAYOUTS),
            notes,
            "</section>\n",
        )
    )


def _figure(value: Value) -> Value:
    """Text as a figure."""
    return Cell(value, "n") if isinstance(value, str) else value
