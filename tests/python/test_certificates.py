"""`--certify`: the digests of what a job read and wrote; `verify --certificate` compares them."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from dead_clusters import World
from magicbyte import RefusedError
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.publish.certificate import certifier
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.progress import NO_PROGRESS
from metadata_records import partition, topic
from replicas import batches

SAMPLES = Path(__file__).parents[2] / "samples"
JOBS: dict[str, Callable[..., Any]] = {
    "recover": magicbyte.recover,
    "convert": magicbyte.convert,
    "compact": lambda sources, out, **given: magicbyte.compact(sources, out, all_topics=True, **given),
    "redact": lambda sources, out, **given: magicbyte.redact(sources, out, where="offset = 3", **given),
    "merge": lambda sources, out, **given: magicbyte.merge(sources, out=out, **given),
}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A copy of three topics."""
    for name in ("clicks-0", "orders-0", "profiles-0"):
        shutil.copytree(SAMPLES / name, tmp_path / "logs" / name)
    return tmp_path / "logs"


@pytest.fixture
def out(logs: Path, tmp_path: Path) -> Path:
    """An output with a certificate."""
    magicbyte.recover(logs, tmp_path / "out", certify=True)
    return tmp_path / "out"


def digests(directory: Path) -> dict[str, dict[str, Any]]:
    """All files below a directory as a certificate has them."""
    return {
        path.relative_to(directory).as_posix(): {
            "size": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in directory.rglob("*")
        if path.is_file()
    }


def differences(out: Path, certificate: Path | None = None) -> list[tuple[str, str]]:
    report = magicbyte.verify(out, certificate=certificate or out / "certificate.json")
    check = report["certificate"]
    assert check is not None
    assert check["equal"] == (not check["differences"])
    return [(one["found"], one["file"]) for one in check["differences"]]


@pytest.mark.parametrize("job", JOBS)
def test_every_file_is_certified(job: str, logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = JOBS[job](logs, out, certify=True)
    certificate = json.loads((out / "certificate.json").read_text())
    files = digests(out)
    del files["certificate.json"]
    assert certificate["outputs"] == files
    assert "reconciliation.json" in files
    segments = {str(logs / name): file for name, file in digests(logs).items() if name.endswith(".log")}
    assert certificate["inputs"] == segments
    assert certificate["command"][:3] == ["magicbyte", job, str(logs)]
    assert "--certify" in certificate["command"]
    assert certificate["magicbyte"] == magicbyte.__version__
    assert certificate["balanced"] is report["balanced"] is True
    assert certificate["written"] == [
        {name: one[name] for name in ("topic", "partition", "segments", "size", "batches", "records")}
        for one in report["written"]
    ]
    assert differences(out) == []


@pytest.mark.parametrize("job", JOBS)
def test_no_certificate_unless_asked(job: str, logs: Path, tmp_path: Path) -> None:
    JOBS[job](logs, tmp_path / "out")
    assert not (tmp_path / "out" / "certificate.json").exists()


def test_a_restored_cluster_is_certified(tmp_path: Path) -> None:
    """Its files are in directories of directories."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    log = world.put(1, batches(0, 100))
    out = tmp_path / "out"
    world.restore(certify=True)
    certificate = json.loads((out / "certificate.json").read_text())
    files = digests(out)
    del files["certificate.json"]
    assert certificate["outputs"] == files
    # The metadata was read, too.
    metadata = (one / "__cluster_metadata-0" for one in world.log_dirs.values())
    assert {*certificate["inputs"]} == {str(one / f"{0:020}.log") for one in (log, *metadata)}
    assert differences(out) == []
    for name in ("node1/new", "node1/logs1/new", "node2/logs1/orders-0/new"):
        (out / name).write_text("")
    (out / "node2/logs1/orders-1").mkdir()
    new = ("node1/new", "node1/logs1/new", "node2/logs1/orders-1", "node2/logs1/orders-0/new")
    assert {*differences(out)} == {("unexpected", name) for name in new}


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [("x", 10**400, "no size"), ("x", 1 << 63, "no size"), ("a/" * 5000 + "b", 1, "10,001 characters")],
    ids=["no float", "no long", "no path"],
)
def test_absurd_numbers_and_paths_are_refused(out: Path, name: str, size: int, message: str) -> None:
    certificate = json.loads((out / "certificate.json").read_text())
    certificate["outputs"][name] = {"size": size, "sha256": "0" * 64}
    (out / "certificate.json").write_text(json.dumps(certificate))
    with pytest.raises(RefusedError, match=message):
        differences(out)


def test_a_file_where_a_directory_was_certified(out: Path) -> None:
    shutil.rmtree(out / "orders-0")
    (out / "orders-0").write_text("")
    assert {found for found, _ in differences(out)} == {"missing"}


def test_the_command_can_be_run_again(logs: Path, tmp_path: Path, cli: Cli) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    magicbyte.convert(
        logs,
        first,
        certify=True,
        compression="zstd",
        level=3,
        segment_bytes=1 << 16,
        topic_ids={"clicks": "Jeu8WsmFSH2XhPYpPwXHvQ"},
        choice=magicbyte.PartitionChoice(exclude=("profiles",), partitions=frozenset({0, 3})),
    )
    command = json.loads((first / "certificate.json").read_text())["command"]
    cli(*(str(second) if word == str(first) else word for word in command[1:]), code=0)
    repeated = json.loads((second / "certificate.json").read_text())
    assert [str(first) if word == str(second) else word for word in repeated["command"]] == command
    assert differences(second, first / "certificate.json") == []


def test_confidential_values_are_hidden(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    magicbyte.redact(logs, out, keys=[b"user-4711"], where="value = 'bob@example.com'", certify=True)
    text = (out / "certificate.json").read_text()
    assert "4711" not in text
    assert "bob" not in text
    assert json.loads(text)["command"][4:6] == ["--where", "[hidden]"]


def alter(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


LOG = "clicks-0/00000000000000000000.log"
CHANGES: dict[str, tuple[Callable[[Path], object], list[tuple[str, str]]]] = {
    "a bit": (lambda out: alter(out / LOG), [("changed", LOG)]),
    "a tail": (lambda out: (out / LOG).write_bytes((out / LOG).read_bytes()[:-1]), [("changed", LOG)]),
    "growth": (lambda out: (out / LOG).open("ab").write(b"\0"), [("changed", LOG)]),
    "the report": (lambda out: alter(out / "reconciliation.json"), [("changed", "reconciliation.json")]),
    "a lost file": (lambda out: (out / LOG).unlink(), [("missing", LOG)]),
    "a directory in place of a file": (
        lambda out: ((out / "reconciliation.json").unlink(), (out / "reconciliation.json").mkdir()),
        [("missing", "reconciliation.json")],
    ),
    "a new file": (
        lambda out: (out / "orders-0" / "00000000000000000099.log").touch(),
        [("unexpected", "orders-0/00000000000000000099.log")],
    ),
    "whose directory it is": (
        lambda out: (out / "meta.properties").touch(),
        [("unexpected", "meta.properties")],
    ),
    "another start of a log": (
        lambda out: (out / "log-start-offset-checkpoint").write_text("0\n1\norders 0 150\n"),
        [("unexpected", "log-start-offset-checkpoint")],
    ),
    "another high watermark": (
        lambda out: (out / "replication-offset-checkpoint").write_text("0\n1\norders 0 1\n"),
        [("unexpected", "replication-offset-checkpoint")],
    ),
    "no recovery": (
        lambda out: (out / ".kafka_cleanshutdown").touch(),
        [("unexpected", ".kafka_cleanshutdown")],
    ),
    "another partition": (
        lambda out: shutil.copytree(out / "orders-0", out / "extra-0"),
        [("unexpected", "extra-0")],
    ),
    "an empty partition": (lambda out: (out / "extra-0").mkdir(), [("unexpected", "extra-0")]),
    "a copy that will be the log": (
        lambda out: shutil.copytree(out / "orders-0", out / f"orders-0.{'0' * 32}-future"),
        [("unexpected", f"orders-0.{'0' * 32}-future")],
    ),
    "segments in another directory": (
        lambda out: shutil.copytree(out / "orders-0", out / "extra"),
        [("unexpected", "extra")],
    ),
    "logs that a broker does not serve": (
        lambda out: [
            shutil.copytree(out / "orders-0", out / f"orders-0.{'0' * 32}-{state}")
            for state in ("stray", "delete")
        ],
        [],
    ),
    "directories of nothing": (lambda out: [(out / name).mkdir() for name in ("lost+found", "notes")], []),
    "a lock": (lambda out: (out / ".lock").touch(), []),
    "the signature": (lambda out: (out / "certificate.json.sig").touch(), []),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_found(change: str, out: Path, cli: Cli) -> None:
    make, expected = CHANGES[change]
    make(out)
    assert differences(out) == expected
    shown = cli("verify", out, "--certificate", out / "certificate.json", code=None)
    assert (cli.code > 0) == bool(expected)
    for found, file in expected:
        assert f"{found}  {file}" in shown


def test_a_certificate_of_no_file_proves_nothing(out: Path, cli: Cli) -> None:
    path = out / "certificate.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "outputs": {}}))
    cli("verify", "--certificate", path, out, code=2)
    assert f"{path} certifies no file" in cli.error


def test_a_whole_partition_is_missing(out: Path) -> None:
    names = sorted(path.name for path in (out / "orders-0").iterdir())
    shutil.rmtree(out / "orders-0")
    assert differences(out) == [("missing", f"orders-0/{name}") for name in names]


def test_the_output_may_be_elsewhere(out: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    certificate = tmp_path / "kept.json"
    (out / "certificate.json").rename(certificate)
    out.rename(elsewhere)
    assert differences(elsewhere, certificate) == []


def test_outputs_of_stores(logs: Path) -> None:
    magicbyte.recover(logs, "memory://certified/out", certify=True)
    report = magicbyte.verify("memory://certified/out", certificate="memory://certified/out/certificate.json")
    assert report["certificate"] is not None
    assert report["certificate"]["equal"]


def test_the_page_shows_what_was_found(out: Path, tmp_path: Path, cli: Cli) -> None:
    page = tmp_path / "proof.html"
    arguments = ("verify", out, "--certificate", out / "certificate.json", "--html", page)
    cli(*arguments, code=0)
    text = page.read_text()
    assert "The output is as certified" in text
    assert digests(out)[LOG]["sha256"] in text
    alter(out / "orders-0" / "partition.metadata")
    cli(*arguments, code=1)
    text = page.read_text()
    assert "The output is not as certified" in text
    assert "orders-0/partition.metadata" in text.split("Partitions")[0]


def test_a_page_needs_a_certificate(out: Path, tmp_path: Path, cli: Cli) -> None:
    cli("verify", out, "--html", tmp_path / "proof.html", code=2)
    assert "--html needs --certificate" in cli.error


def test_the_printed_commands_sign_and_check(logs: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "a directory"
    shown = cli("recover", logs, out, "--certify", code=0)
    sign, check = (line.partition(":  ")[2] for line in shown.splitlines() if "the certificate:" in line)
    key = ["openssl", "genpkey", "-algorithm", "RSA", "-out", "key.pem"]
    subprocess.run(key, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(shlex.split(sign), cwd=tmp_path, check=True)
    public = ["openssl", "pkey", "-in", "key.pem", "-pubout", "-out", "public.pem"]
    subprocess.run(public, cwd=tmp_path, check=True)
    certificate = out / "certificate.json"
    proof = ["openssl", "dgst", "-sha256", "-verify", "public.pem", "-signature", f"{certificate}.sig"]
    subprocess.run([*proof, certificate], cwd=tmp_path, check=True, capture_output=True)
    cli(*shlex.split(check)[1:], code=0)


@pytest.mark.parametrize("change", ["grown", "replaced", "shortened", "deleted"])
def test_segments_that_change_while_they_are_read(change: str, logs: Path) -> None:
    listings = find_inputs([str(logs)]).listings
    segment = logs / LOG
    before = segment.read_bytes()
    if change == "grown":
        segment.open("ab").write(b"more")
    elif change == "replaced":
        (logs / "new").write_bytes(before)
        (logs / "new").rename(segment)
    elif change == "shortened":
        segment.write_bytes(before[:-1])
    else:
        segment.unlink()
    report = {"balanced": True, "problems": [], "problems_left_out": 0, "written": []}
    certify = certifier(["magicbyte"], report, listings, LocalEngine(1), NO_PROGRESS)
    assert certify is not None
    inputs = certify(str(logs))["inputs"]
    expected = hashlib.sha256(before).hexdigest() if change == "grown" else None
    assert inputs[str(segment)] == {"size": len(before), "sha256": expected}
    assert all(file["sha256"] for path, file in inputs.items() if path != str(segment))


def changed(field: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda document: document.update({field: value})


SHA = "0" * 64
NO_CERTIFICATES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no outputs": lambda document: document.pop("outputs"),
    "another type": changed("outputs", []),
    "no text": changed("command", ["magicbyte", 1]),
    "a number as text": changed("made_ms", "yesterday"),
    "sums without a field": changed("written", [{"topic": "a"}]),
    "no sum": changed(
        "written",
        [{"topic": "a", "partition": 0, "segments": 1, "size": "1", "batches": 1, "records": 1}],
    ),
    "a path above": changed("outputs", {"../secret": {"size": 1, "sha256": SHA}}),
    "a path above in the middle": changed("outputs", {"a/../../secret": {"size": 1, "sha256": SHA}}),
    "an absolute path": changed("outputs", {"/etc/passwd": {"size": 1, "sha256": SHA}}),
    "a path of Windows": changed("outputs", {"..\\secret": {"size": 1, "sha256": SHA}}),
    "an empty path": changed("outputs", {"": {"size": 1, "sha256": SHA}}),
    "itself": changed("outputs", {"certificate.json": {"size": 1, "sha256": SHA}}),
    "no digest": changed("outputs", {"a": {"size": 1, "sha256": None}}),
    "a digest in capitals": changed("outputs", {"a": {"size": 1, "sha256": "A" * 64}}),
    "a short digest": changed("inputs", {"a": {"size": 1, "sha256": "0" * 63}}),
    "a negative size": changed("inputs", {"a": {"size": -1, "sha256": SHA}}),
    "a size that is true": changed("inputs", {"a": {"size": True, "sha256": SHA}}),
    "a file that is text": changed("inputs", {"a": SHA}),
}


@pytest.mark.parametrize("change", NO_CERTIFICATES)
def test_what_is_no_certificate(change: str, out: Path, tmp_path: Path) -> None:
    document = json.loads((out / "certificate.json").read_text())
    NO_CERTIFICATES[change](document)
    path = tmp_path / "other.json"
    path.write_text(json.dumps(document))
    with pytest.raises(RefusedError, match=r"other\.json is no certificate of magicbyte"):
        magicbyte.verify(out, certificate=path)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_what_is_no_json(text: bytes, out: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(text)
    with pytest.raises(RefusedError, match="is no certificate of magicbyte"):
        magicbyte.verify(out, certificate=path)


def test_one_output_at_a_time(out: Path, logs: Path) -> None:
    with pytest.raises(RefusedError, match="give one source"):
        magicbyte.verify([out, logs], certificate=out / "certificate.json")
