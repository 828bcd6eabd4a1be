"""A cluster as an HTML page."""

from __future__ import annotations

from magicbyte.cli.cluster_tables import cluster_tables, figures_of
from magicbyte.cli.cluster_text import state_text
from magicbyte.cli.html_page import card, document, facts, text_of
from magicbyte.jobs.cluster import ClusterReport

__all__ = ["cluster_page"]

_ROWS_SHOWN = 1000


def cluster_page(report: ClusterReport) -> str:
    """The page: figures, and each table with rows, of which it shows the first 1000."""
    title = f"cluster {report['cluster_id'] or '(unknown id)'}"
    cards = (card(one.title, "", one.names, one.rows, most=_ROWS_SHOWN) for one in cluster_tables(report))
    body = (
        f'<section class="history">\n<h1>{text_of(title)}</h1>\n<p class="path">{text_of(state_text(report))}'
        f"</p>\n{facts(figures_of(report))}{''.join(cards)}</section>\n"
    )
    footer = (
        "Read from the disks alone. Offsets are inclusive, but for ends of logs; times are UTC; "
        "<code>magicbyte cluster --json</code> has all rows."
    )
    return document("cluster", title, body, footer)
