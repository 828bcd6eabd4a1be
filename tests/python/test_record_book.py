"""The bookkeeping of `make bench`: the commit of each figure and what has changed its code since, the floors
of each version, the limit of every row, and the page of all that.
"""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import client_tables
import limits
import pytest
import report
import run
from commits import HERE, Commit, Repository, Since
from figures import Figure, Figures, Run, figure
from floor_table import floor_table, limit_table
from floors import FILE, FLOORS, VERSION, Floor, history, judged
from limits import BUILDING, LIMIT, LIMITS, READING, Limit, declared, share
from ratios import Comparison
from sets import PROJECT, Found, Set
from sources import SOURCES
from standing import Standing, Verdict, status, summary

FLOOR = Floor("0.1.0", 6, "Read in Rust", "", "s1-none", "kafka-clients", 2.4)
FIGURE = Figure("Read in Rust", "", "s1-none", "kafka-clients", 3.0, 1.0, 3.0, 2.9, 3.1, 4, run="a run")
SRC = ("src", "benches/rust/src")


# --- commits ---------------------------------------------------------------------------------------


class Checkout:
    """A repository with code in `src` and in `docs`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repository = Repository(root)
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("src/lib.rs", "one")
        self.write("docs/page.md", "one")
        self.commit("the first")

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(self.root), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, subject: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", subject)

    def head(self) -> Commit:
        head = self.repository.head(SRC)
        assert head is not None
        return head

    def since(self, commit: Commit) -> Since | None:
        return self.repository.since(commit, SRC)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "checkout").mkdir()
    return Checkout(tmp_path / "checkout")


def test_a_clean_tree_is_its_commit(checkout: Checkout) -> None:
    head = checkout.head()
    assert head.name == checkout.git("rev-parse", "--short=10", "HEAD")
    assert head.date == checkout.git("log", "-1", "--format=%cs")
    assert not head.dirty
    since = checkout.since(head)
    assert since == Since([], uncommitted=False)
    assert not since


def test_commits_to_the_sources_are_named_newest_first(checkout: Checkout) -> None:
    measured = checkout.head()
    for number, name in enumerate(("src/lib.rs", "docs/page.md", "src/new.rs", "benches/rust/src/main.rs")):
        checkout.write(name, "two")
        checkout.commit(f"change {number}")
    since = checkout.since(measured)
    assert since
    assert [line.partition(" ")[2] for line in since.commits] == ["change 3", "change 2", "change 0"]
    assert since.commits[0].startswith(checkout.git("rev-parse", "--short=10", "HEAD"))


def test_other_files_and_reverted_changes_do_not_count(checkout: Checkout) -> None:
    measured = checkout.head()
    checkout.write("docs/page.md", "two")
    checkout.write("src.rs", "not in src")
    checkout.commit("a page")
    checkout.write("src/lib.rs", "two")
    checkout.commit("a change")
    checkout.write("src/lib.rs", "one")
    checkout.commit("the change is reverted")
    assert checkout.since(measured) == Since([], uncommitted=False)


@pytest.mark.parametrize("name", ["src/lib.rs", "src/untracked.rs"])
def test_changes_without_a_commit_are_told(checkout: Checkout, name: str) -> None:
    measured = checkout.head()
    checkout.write("docs/page.md", "an uncommitted page")
    assert not checkout.head().dirty
    checkout.write(name, "uncommitted")
    assert checkout.head() == replace(measured, dirty=True)
    assert checkout.since(measured) == Since([], uncommitted=True)
    checkout.git("add", "--all")
    assert checkout.since(measured) == Since([], uncommitted=True)


def test_a_deleted_source_is_a_change(checkout: Checkout) -> None:
    measured = checkout.head()
    (checkout.root / "src/lib.rs").unlink()
    assert checkout.since(measured) == Since([], uncommitted=True)
    checkout.commit("deleted")
    since = checkout.since(measured)
    assert since is not None
    assert len(since.commits) == 1
    assert not since.uncommitted


def test_a_commit_of_another_branch(checkout: Checkout) -> None:
    checkout.git("switch", "--quiet", "--create", "other")
    checkout.write("src/lib.rs", "two")
    checkout.commit("on the other branch")
    measured = checkout.head()
    checkout.git("switch", "--quiet", "main")
    assert checkout.since(measured) == Since(["a commit that is not in this history"], uncommitted=False)
    # The same code under another commit, as after a rebase.
    checkout.write("src/lib.rs", "two")
    checkout.commit("again")
    assert checkout.since(measured) == Since([], uncommitted=False)


def test_a_shallow_clone_does_not_know(checkout: Checkout, tmp_path: Path) -> None:
    measured = checkout.head()
    checkout.write("docs/page.md", "two")
    checkout.commit("a page")
    clone = tmp_path / "clone"
    checkout.git("clone", "--quiet", "--depth=1", f"file://{checkout.root}", str(clone))
    shallow = Repository(clone)
    assert shallow.since(measured, SRC) is None
    head = shallow.head(SRC)
    assert head == checkout.head()
    assert head is not None
    assert shallow.since(head, SRC) == Since([], uncommitted=False)
    standing = Standing(shallow)
    one = replace(FIGURE, commit=measured)
    assert standing.verdict(FLOOR, one) == Verdict.UNKNOWN
    assert standing.measured_at(one) == f"{measured.name}, unknown here"


def test_without_a_repository_nothing_is_known(checkout: Checkout, tmp_path: Path) -> None:
    measured = checkout.head()
    # An export of the sources, even if it lies inside another repository.
    for root in (tmp_path / "export", checkout.root / "src"):
        root.mkdir(exist_ok=True)
        assert Repository(root).head(SRC) is None
        assert Repository(root).since(measured, SRC) is None


def test_without_git_nothing_is_known(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = checkout.head()
    monkeypatch.setenv("PATH", "")
    assert checkout.repository.head(SRC) is None
    assert checkout.since(measured) is None


def test_a_linked_worktree_is_a_repository(checkout: Checkout, tmp_path: Path) -> None:
    checkout.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"))
    assert Repository(tmp_path / "tree").head(SRC) == checkout.head()


# --- figures ---------------------------------------------------------------------------------------


def stored(*figures: Figure) -> Figures:
    return Figures({one.key: one for one in figures})


def test_only_a_figure_of_this_code_counts(checkout: Checkout) -> None:
    head = checkout.head()

    def verdict(one: Figure | None) -> Verdict:
        return Standing(checkout.repository).verdict(FLOOR, one)

    assert verdict(None) == Verdict.NEVER
    assert verdict(FIGURE) == Verdict.CHANGED
    assert verdict(replace(FIGURE, commit=replace(head, dirty=True))) == Verdict.CHANGED
    assert verdict(replace(FIGURE, commit=head)) == Verdict.MET
    assert verdict(replace(FIGURE, commit=head, ratio=2.39)) == Verdict.MISSED
    assert verdict(replace(FIGURE, commit=head, ratio=2.4)) == Verdict.MET
    assert verdict(replace(FIGURE, commit=Commit("0123456789", "2026-01-01"))) == Verdict.UNKNOWN
    checkout.write("src/lib.rs", "two")
    assert verdict(replace(FIGURE, commit=head)) == Verdict.CHANGED
    checkout.commit("a change")
    assert verdict(replace(FIGURE, commit=head)) == Verdict.CHANGED


def test_the_status_counts_and_names_the_commits(checkout: Checkout) -> None:
    head = checkout.head()
    for number in range(7):
        checkout.write("src/lib.rs", f"change {number}")
        checkout.commit(f"change {number}")
    of_now = replace(FIGURE, part="Write in Rust", commit=checkout.head())
    figures = stored(replace(FIGURE, commit=head), of_now)
    standing = Standing(checkout.repository)
    rest = f"1 not measured since the code changed, {len(FLOORS) - 2} never measured."
    assert summary(standing, figures) == f"1 of {len(FLOORS)} floors of {VERSION} met, {rest}"
    printed = "\n".join(status(standing, figures))
    assert f"Read in Rust: {head.name}, 7 since\n" in printed
    assert "change 6" in printed
    assert "change 1\n" not in printed
    assert f"and 2 earlier ones: git log {head.name}..HEAD -- src benches/rust/src" in printed
    assert f"Write in Rust: {checkout.head().name}\n" in printed
    assert "Spark: never measured" in printed


def test_a_run_gives_its_figures_the_commit_of_its_start(tmp_path: Path) -> None:
    commits = {"Read in Rust": Commit("0123456789", "2026-01-02", dirty=True)}
    figures = Figures()
    other = replace(FIGURE, part="Stores", work="verify")
    figures.put([FIGURE, other], Run("2026-01-02 10:00", commits), ["a machine"])
    figures.save(tmp_path / "figures.json")
    loaded = Figures.load(tmp_path / "figures.json")
    assert loaded.figures == figures.figures
    assert loaded.figures[FIGURE.key].commit == commits["Read in Rust"]
    assert loaded.figures[other.key].commit is None
    written = json.loads((tmp_path / "figures.json").read_text())
    assert written["sources"]["Read in Rust"] == list(SOURCES["Read in Rust"])
    assert Standing().measured_at(loaded.figures[FIGURE.key]).startswith("0123456789, uncommitted changes")


def test_a_run_knows_the_commit_of_every_part() -> None:
    started = report.now()
    assert started.commits.keys() == SOURCES.keys()
    if (PROJECT / ".git").exists():
        assert {commit.name for commit in started.commits.values() if commit} == {
            commit.name for commit in (HERE.head(("src",)),) if commit
        }


def test_the_table_shows_goal_share_and_commit(checkout: Checkout) -> None:
    commit = checkout.head()
    measured = replace(FIGURE, commit=commit)
    standing = Standing(checkout.repository)
    against_limit = replace(measured, peer=LIMIT, ratio=0.62)
    lines = floor_table(stored(measured, against_limit), standing).splitlines()
    first = next(line for line in lines if line.startswith("| Read in Rust | S1 none | kafka-clients"))
    assert first.endswith(f"| 3.00 (2.90..3.10) | 2.4 |  | met | 0.62 | {commit.name} |")
    second = next(line for line in lines if line.startswith("| Read in Rust | S1 none | its limit"))
    assert second.endswith(f"| 0.62 (2.90..3.10) | 0.5 | 0.65 | met | 0.62 | {commit.name} |")
    # Of another run, the limit says nothing about this figure.
    other = floor_table(stored(measured, replace(against_limit, run="another")), standing)
    assert f"| 2.4 |  | met |  | {commit.name} |" in other
    assert "| Captures: frames | S1 none | 1 GB/s |  | 1 |  |  | none |  |" in other


def test_the_page_keeps_earlier_figures(checkout: Checkout, tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("# Benchmarks\n\n## Written by others\n\nstays\n")
    commit = checkout.head()
    slow, fast = Comparison([10, 20, 30], [10, 10, 10]), Comparison([50], [10])
    old = [figure("Read in Rust", "", on, "kafka-clients", slow) for on in ("s1-none", "s2-none")]
    new = [figure("Read in Rust", "", "s1-none", "kafka-clients", fast)]

    def publish(run: str, *arguments: Any) -> str:
        started = Run(run, {"Read in Rust": commit})
        report.publish(page, started, *arguments, repository=checkout.repository)
        return page.read_text()

    publish("2026-01-01 00:00", old, ["an old machine"])
    text = publish("2026-01-02 00:00", new, ["a new machine"], {"A section": "text"})
    first, second = (line for line in text.splitlines() if line.endswith(f"{commit.name} |"))
    assert first.startswith("| Read in Rust | S1 none | kafka-clients | 5.00 (5.00..5.00) | 2.4 |  | met |")
    assert second.startswith(
        "| Read in Rust | S2 none | kafka-clients | 2.00 (1.00..3.00) | 2.7 |  | **missed** |"
    )
    assert f"1 of {len(FLOORS)} floors of {VERSION} met, 1 missed, {len(FLOORS) - 2} never measured." in text
    assert "## Written by others\n\nstays" in text
    assert "## A section\n\ntext" in text
    assert "an old machine" in text
    assert bars(page.with_suffix(".svg")) == ["met", "missed"]

    # Nothing of the old run is left, so it is dropped.
    text = publish("2026-01-03 00:00", old, ["the newest"])
    assert "an old machine" not in text

    # Then the code changes, and neither figure counts any more.
    checkout.write("src/lib.rs", "two")
    checkout.commit("a change")
    report.write(page, Figures.load(page.with_suffix(".json")), Standing(checkout.repository))
    assert (
        f"0 of {len(FLOORS)} floors of {VERSION} met, 2 not measured since the code changed"
        in page.read_text()
    )
    assert "## A section\n\ntext" in page.read_text()
    assert bars(page.with_suffix(".svg")) == ["changed", "changed"]


def bars(picture_of: Path) -> list[str]:
    rectangles = ElementTree.parse(picture_of).getroot().iter("{http://www.w3.org/2000/svg}rect")
    return sorted(filter(None, (one.get("class") for one in rectangles)))


def test_status_measures_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["run.py", "--status"])
    monkeypatch.setattr(run.sets, "prepare", lambda: pytest.fail("a bench was prepared"))
    run.main()
    assert f"of {len(FLOORS)} floors" in capsys.readouterr().out


# --- floors ----------------------------------------------------------------------------------------

FIRST = """
[["0.1.0"]]
issue = 6
part = "Read in Rust"
peer = "kafka-clients"
floors = { s1-none = 2.4, s2-none = 2.7 }
"""
SECOND = FIRST.replace("0.1.0", "0.2.0").replace("issue = 6", "issue = 36")


def test_floors_hold_until_a_version_changes_them() -> None:
    second = SECOND.replace("{ s1-none = 2.4, s2-none = 2.7 }", "{ s1-none = 3 }\ngoals = { s1-none = 4 }")
    versions = history(FIRST + second)
    assert list(versions) == ["0.1.0", "0.2.0"]
    held = [(floor.version, floor.on, floor.floor, floor.goal) for floor in versions["0.2.0"].values()]
    assert held == [("0.2.0", "s1-none", 3, 4), ("0.1.0", "s2-none", 2.7, None)]
    assert [floor.floor for floor in versions["0.1.0"].values()] == [2.4, 2.7]


def test_a_floor_falls_only_with_a_sentence() -> None:
    lower = SECOND.replace("s2-none = 2.7", "s2-none = 2.69")
    with pytest.raises(ValueError, match=r"0\.2\.0: the floor of .*s2-none.* falls from 2\.7 to 2\.69"):
        history(FIRST + lower)
    with pytest.raises(ValueError, match="without a sentence"):
        history(FIRST + lower + 'why = ""\n')
    fallen = history(FIRST + lower + 'why = "The peer became faster."\n')
    assert fallen["0.2.0"]["Read in Rust", "", "s2-none", "kafka-clients"].floor == 2.69


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FIRST + FIRST, "two floors"),
        (FIRST + "goals = { s1-none = 2 }\n", "goal 2 for s1-none is below its floor 2.4"),
        (FIRST + "goals = { s3-none = 5 }\n", "goals without a floor: s3-none"),
    ],
)
def test_entries_that_make_no_sense_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        history(text)


def test_the_floors_of_the_first_version_are_kept() -> None:
    versions = history(FILE.read_text())
    assert list(versions) == ["0.1.0", "0.2.0"]
    assert versions["0.1.0"].keys() <= versions["0.2.0"].keys()
    # That version is out: what it promised stays as it was.
    assert len(versions["0.1.0"]) == 108
    assert sum(floor.floor for floor in versions["0.1.0"].values()) == pytest.approx(232.57999999999987)
    assert not any(floor.goal for floor in versions["0.1.0"].values())


def test_every_part_has_its_sources() -> None:
    assert {floor.part for floor in FLOORS} <= SOURCES.keys()
    missing = {path for paths in SOURCES.values() for path in paths if not (PROJECT / path).exists()}
    assert not missing


# --- limits ----------------------------------------------------------------------------------------


def test_every_row_has_a_limit_or_a_reason() -> None:
    assert LIMITS.keys() == SOURCES.keys()
    figures = Figures.load(PROJECT / "docs" / "benchmarks.json").figures.values()
    for part, work in {(one.part, one.work) for one in (*figures, *FLOORS)}:
        limit = declared(part, work)
        assert limit if isinstance(limit, str) else limit.name
    assert "| Write in Rust | compress + crc of output + copy of output |" in limit_table()


def test_a_share_is_of_the_same_run_work_and_data() -> None:
    limit = replace(FIGURE, peer=LIMIT, ratio=0.5)
    assert share(FIGURE, [FIGURE, limit]) == limit
    for other in ({"run": "another"}, {"on": "s2-none"}, {"part": "Write in Rust"}, {"peer": "another"}):
        assert share(FIGURE, [FIGURE, replace(limit, **other)]) is None  # type: ignore[arg-type]
    converting = replace(FIGURE, part="Convert", peer="one thread, clock")
    alone = replace(converting, peer="the codecs alone")
    assert share(converting, [converting, alone]) == alone
    assert share(replace(FIGURE, part="Spark"), [limit]) is None


def test_the_parts_of_a_limit_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho crc 100\necho decompress 25\necho crc 80\necho decompress 20\n")
    program.chmod(0o755)
    monkeypatch.setattr(limits, "built", lambda: str(program))
    of = Set("s1-test", "", "lz4", 2, 0, Found(1, 1))
    assert READING.program(of).rates(of) == {LIMIT: 1 / (1 / 100 + 1 / 25)}
    assert READING.way(of)() == 20
    assert READING.program(of).names == ("crc", "decompress")
    assert READING.program(replace(of, codec="none")).names == ("crc",)
    assert BUILDING.program(of, "zstd").names == BUILDING.parts
    assert BUILDING.program(of).names == ("crc of output", "copy of output")
    assert Limit(("crc",), peer="a plain read").program(of).rates(of) == {"a plain read": 20}


# --- Whole clients ---------------------------------------------------------------------------------


def costs_of_clients(*without: str) -> client_tables.Costs:
    """A record costs the first client 1, 1.5 and 2 us, the second 2, 3 and 4, and so on; drop-ins half."""
    return {
        (name, work, codec): [(place / 2 if "drop-in" in name else place) * turn / 2 for turn in (2, 3, 4)]
        for place, name in enumerate(client_tables.NAMES, 1)
        for work in client_tables.WORKS
        for codec in client_tables.CODECS
        if name not in without
    }


def book(costs: client_tables.Costs) -> Figures:
    return Figures({one.key: one for one in client_tables.figures_of(costs)})


def test_figures_of_clients_decide_their_floors() -> None:
    figures = book(costs_of_clients())
    floors = [floor for floor in FLOORS if floor.part == client_tables.PART]
    assert len(floors) == 2
    for floor in floors:
        one = judged(floor, figures)
        assert one is not None, floor
        # The third client of the table against the first, turn by turn.
        assert (one.ratio, one.low, one.high, one.turns) == (3, 3, 3, 3)
        assert (one.ours, one.peers) == (6.667e5, 2.222e5)


def test_the_tables_of_clients_follow_from_the_figures() -> None:
    head, _, *lines = client_tables.cost_table(book(costs_of_clients()))
    assert head.count("|") == 8
    cells = {line.split(" | ")[0].removeprefix("| "): line.split(" | ")[1:] for line in lines}
    assert list(cells) == list(client_tables.NAMES)
    assert cells["the example client, `send`"] == ["1.50", "1.50", "1.50", "1.50", "1.50", "1.50 |"]
    # It only consumes.
    assert cells["kafkarrow"] == ["", "", "", "7.50", "7.50", "7.50 |"]
    assert client_tables.dropin_table(book(costs_of_clients()))[2:] == [
        "| aiokafka | 1.71 | 1.71 | 1.71 | 1.71 | 1.71 | 1.71 |",
        "| kafka-python | 1.78 | 1.78 | 1.78 | 1.78 | 1.78 | 1.78 |",
    ]


def test_a_client_that_was_not_measured_has_no_row() -> None:
    lines = client_tables.cost_table(book(costs_of_clients("kafkarrow")))
    assert not any(line.startswith("| kafkarrow |") for line in lines)
    assert len(lines) == 2 + len(client_tables.NAMES) - 1


@pytest.mark.parametrize("name", client_tables.TABLES)
def test_pages_have_the_tables_of_the_record_book(name: str) -> None:
    page = (PROJECT / "docs" / name).read_text()
    figures = Figures.load(PROJECT / "docs/benchmarks.json")
    assert client_tables.with_table(page, client_tables.TABLES[name](figures)) == page
