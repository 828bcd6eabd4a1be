"""The figures that belong to the code as it is now, and the standing of the floors by them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from commits import HERE, Commit, Repository, Since
from figures import Figure, Figures
from floors import FLOORS, VERSION, Floor, judged
from sources import SOURCES


class Verdict(StrEnum):
    MET = "met"
    MISSED = "missed"
    CHANGED = "not measured since the code changed"
    UNKNOWN = "unknown"
    NEVER = "never measured"


@dataclass
class Standing:
    """Answers are kept, since many figures are of one commit: the code must not change meanwhile."""

    repository: Repository = HERE
    _known: dict[tuple[str, Commit], Since | None] = field(default_factory=dict)

    def since(self, one: Figure) -> Since | None:
        """The changes of the figure's sources since it was measured; `None` if they are not known."""
        if one.commit is None:
            return None
        place = (one.part, one.commit)
        if place not in self._known:
            self._known[place] = self.repository.since(one.commit, SOURCES[one.part])
        return self._known[place]

    def verdict(self, floor: Floor, one: Figure | None) -> Verdict:
        if one is None:
            return Verdict.NEVER
        # Without a commit, or with changes that no commit has, nobody can tell what was measured.
        if one.commit is None or one.commit.dirty:
            return Verdict.CHANGED
        since = self.since(one)
        if since is None:
            return Verdict.UNKNOWN
        if since:
            return Verdict.CHANGED
        return Verdict.MET if one.ratio >= floor.floor else Verdict.MISSED

    def measured_at(self, one: Figure) -> str:
        """The commit of a figure, and what separates it from the code that is here."""
        if one.commit is None:
            return "not known"
        words = [one.commit.name]
        if one.commit.dirty:
            words.append("uncommitted changes")
        since = self.since(one)
        if since is None:
            words.append("unknown here")
        elif since.commits:
            words.append(f"{len(since.commits)} since")
        if since and since.uncommitted:
            words.append("uncommitted since")
        return ", ".join(words)


def summary(standing: Standing, figures: Figures) -> str:
    counts = Counter(standing.verdict(floor, judged(floor, figures)) for floor in FLOORS)
    met = counts.pop(Verdict.MET, 0)
    others = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    return ", ".join([f"{met} of {len(FLOORS)} floors of {VERSION} met", *others]) + "."


# Lines that `status` prints of the commits of a part.
MOST = 5


def status(standing: Standing, figures: Figures) -> Iterator[str]:
    """The commits that separate the figures of each part from the code as it is now, as lines."""
    yield summary(standing, figures)
    for part in SOURCES:
        commits = {one.commit: one for one in figures.of(part)}
        if not commits:
            yield f"\n{part}: never measured"
        for commit, one in commits.items():
            yield f"\n{part}: {standing.measured_at(one)}"
            since = standing.since(one)
            if commit is None or not since:
                continue
            yield from (f"  {line}" for line in since.commits[:MOST])
            if len(since.commits) > MOST:
                all_of_them = f"git log {commit.name}..HEAD -- {' '.join(SOURCES[part])}"
                yield f"  and {len(since.commits) - MOST} earlier ones: {all_of_them}"
