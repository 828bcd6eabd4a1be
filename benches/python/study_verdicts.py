"""What documents claim about formats and codecs, and what the study's figures say."""

from typing import Any

Figures = dict[str, Any]
_JSON = ("events", "documents")
_HEADER = 61


def table(figures: Figures) -> str:
    """A row for each claim."""
    rows = [f"| {' | '.join(one)} |" for one in verdicts(figures)]
    return "\n".join(["| claim | by | verdict | measured |", "|---|---|---|---|", *rows])


def verdicts(figures: Figures) -> list[tuple[str, str, str, str]]:
    """Claim, source, verdict, what was found."""
    return [*_chapter(figures), *_kips(figures), *_codecs(figures)]


def _size(figures: Figures, on: str, codec: str, form: str) -> int:
    return int(figures["forms"][on][codec][form]["size"])


def _change(after: float, before: float) -> str:
    change = 100 * (after / before - 1)
    return f"{change:+.1f}%" if abs(change) >= 0.05 else f"{change:+.3f}%"


def _each(figures: Figures, codec: str, form: str, than: str, batch: str, shapes: tuple[str, ...]) -> str:
    found = []
    for shape in shapes:
        on = f"{shape}, {batch}"
        change = _change(_size(figures, on, codec, form), _size(figures, on, codec, than))
        found.append(f"{shape} {change}")
    return ", ".join(found)


def _chapter(figures: Figures) -> list[tuple[str, str, str, str]]:
    source = "the chapter on formats"
    two = _each(figures, "none", "magic 2", "magic 1", "16 KiB", ("events", "sensors", "documents"))
    sets = ((on, of) for on, of in figures["levels"].items() if on.startswith(_JSON))
    saved = "; ".join(f"{on} {100 * (1 - of['lz4'] / of['none']):.0f}%" for on, of in sets)
    plain = _petabyte(figures, "none")
    packed = _petabyte(figures, "lz4")
    return [
        ("magic 2 is 19% smaller than magic 1", source, "**17.9%** for its example",
         f"134 bytes a message become 110, not 130 and 105 ([savings.md](savings.md)). On the shapes: {two}"),
        ("two values of 5 bytes: 85 bytes, and more than 95 in magic 1", source, "**wrong**",
         "85 and 78: below three or so records, magic 2 is the larger one"),
        ("lz4 saves 60 to 65% of typical JSON", source, "depends on the data and the batch", saved),
        ("1 PB of magic 1 becomes 700 to 800 TB with magic 2 and lz4", source,
         "does not follow: it depends on what it was",
         f"if not compressed, {plain}; if lz4 already, {packed}"),
        ("200 to 300 TB at $20 per TB and month are $4 to 6 million a year", source, "**wrong** by 80 times",
         "200 x 20 x 12 = $48,000 to $72,000"),
        ("a varint takes 1 byte up to 63 and 2 up to 8191", "the blog on the wire protocol", "confirmed",
         "it is zigzag; KIP-931's 16383 and 2097151 are those of unsigned varints"),
    ]  # fmt: skip


def _petabyte(figures: Figures, before: str) -> str:
    found = []
    for shape in ("events", "sensors", "documents"):
        on = f"{shape}, 16 KiB"
        share = _size(figures, on, "lz4", "magic 2") / _size(figures, on, before, "magic 1")
        found.append(f"{1000 * share:.0f} TB of {shape}")
    return ", ".join(found)


def _kips(figures: Figures) -> list[tuple[str, str, str, str]]:
    every = ("events", "sensors", "traced", "documents")
    plain = _each(figures, "none", "KIP-931", "magic 2", "16 KiB", every)
    zstd = _each(figures, "zstd", "KIP-931", "magic 2", "16 KiB", every)
    per_record = ", ".join(f"{shape} {_per_record(figures, shape):.2f}" for shape in every)
    shared = _each(figures, "none", "batch headers", "KIP-931", "16 KiB", ("traced",))
    shared_zstd = _each(figures, "zstd", "batch headers", "KIP-931", "16 KiB", ("traced",))
    return [
        ("a record has an overhead of 7 bytes", "KIP-98", "**11 bytes** in its example",
         "lengths take 2 bytes from 64 up; the value's and the count of headers are left out"),
        ("a record's overhead shrinks by 14%", "KIP-931", "**9.1%** of it (1 of 11 bytes)",
         f"of all bytes, without compression: {plain}; with zstd: {zstd}"),
        ("a batch's overhead shrinks by 18%, 10 of 53 bytes", "KIP-931", f"**14.8%** (9 of {_HEADER} bytes)",
         f"9 bytes of a batch of 16 KiB are {900 / (16 << 10):.2f}%"),
        ("16 seconds fit into a varint of 2 bytes", "KIP-931", "**wrong**",
         "3 bytes: zigzag halves the range"),
        ("a base timestamp takes 6 bytes, also in 10 years", "KIP-931", "confirmed", "until 2039-09-07"),
        ("one byte less per message is a considerable saving", "KIP-931", "only without compression",
         f"bytes saved per record with zstd, batches of 16 KiB: {per_record}"),
        ("headers first: a batch is validated after partial decompression", "KIP-931's page",
         "one stream: in large batches; two sections: in all", _partial(figures)),
        ("a user header at the batch level is more efficient", "KIP-931's page", "without compression, yes",
         f"three of four headers shared: {shared} without compression, {shared_zstd} with zstd"),
        ("tagged fields, and both timestamps, are worth their bytes", "KIP-931's page",
         "they cost nearly nothing",
         "1 byte a batch, and 1 to 6 bytes a batch: "
         + _each(figures, "none", "both timestamps", "KIP-931", "16 KiB", every)),
    ]  # fmt: skip


def _per_record(figures: Figures, shape: str) -> float:
    of = figures["forms"][f"{shape}, 16 KiB"]["zstd"]
    return float((of["magic 2"]["size"] - of["KIP-931"]["size"]) / of["magic 2"]["records"])


def _partial(figures: Figures) -> str:
    parts = []
    for batch in ("1 KiB", "16 KiB", "1 MiB"):
        for form in ("fields first", "two sections"):
            found = []
            for shape in ("events", "sensors", "traced", "documents"):
                on = f"{shape}, {batch}"
                size = _change(_size(figures, on, "zstd", form), _size(figures, on, "zstd", "KIP-931"))
                found.append(f"{shape} {figures['speeds'][on]['zstd'][form][2]:.1f} ({size})")
            parts.append(f"{form}, {batch}: {', '.join(found)}")
    why = "zstd decompresses whole blocks of up to 128 KiB, so one stream gains nothing in small batches"
    return f"times as fast as magic 2 with zstd, and the size against KIP-931: {'; '.join(parts)}. {why}"


def _codecs(figures: Figures) -> list[tuple[str, str, str, str]]:
    return [
        ("zstd level 6 is the best compromise", "Cloudflare, 2018",
         "little gained over level 3, at two to four times the cost of writing",
         _steps(figures)),
        ("up to 4.5 times smaller", "Cloudflare, 2018", _reaches(figures), _ratios(figures, "zstd 6")),
        ("snappy was not enough", "Cloudflare, 2018", "confirmed", _ratios(figures, "snappy")),
        ("JSON: gzip saves 75%, zstd 72%, snappy 68%, lz4 65%", "Conduktor", _order(figures),
         _savings(figures)),
        ("dictionaries show no significant advantage", "Aiven's tiered storage",
         "confirmed for 1 MiB, not for small batches",
         _dictionaries(figures)),
    ]  # fmt: skip


def _steps(figures: Figures) -> str:
    found = []
    for shape in ("events", "sensors", "traced", "documents"):
        of, speeds = (figures[name][f"{shape}, 1 MiB"] for name in ("levels", "level_speeds"))
        slower = speeds["zstd 3"][0] / speeds["zstd 6"][0]
        found.append(f"{shape} {_change(of['zstd 6'], of['zstd 3'])} for {slower:.1f} times the time")
    return f"level 6 against 3, batches of 1 MiB: {', '.join(found)}"


def _reaches(figures: Figures) -> str:
    best = max(of["none"] / of["zstd 6"] for of in figures["levels"].values())
    return "plausible" if best >= 4.5 else f"not on these shapes ({best:.1f} at best)"


def _ratios(figures: Figures, codec: str) -> str:
    found = (f"{on} {of['none'] / of[codec]:.1f}" for on, of in figures["levels"].items())
    return f"ratio of {codec}: {'; '.join(found)}"


def _savings(figures: Figures) -> str:
    found = []
    for batch in ("16 KiB", "1 MiB"):
        for shape in _JSON:
            of = figures["levels"][f"{shape}, {batch}"]
            named = (("gzip", "gzip 6"), ("zstd", "zstd 3"), ("snappy", "snappy"), ("lz4", "lz4"))
            saved = (f"{codec} {100 * (1 - of[name] / of['none']):.0f}" for codec, name in named)
            found.append(f"{shape}, {batch}: {', '.join(saved)}")
    return "saved, in %: " + "; ".join(found)


def _order(figures: Figures) -> str:
    """Whether gzip saves more than zstd, and snappy more than lz4, on JSON."""
    sets = [of for on, of in figures["levels"].items() if on.startswith(_JSON)]
    gzip = sum(of["gzip 6"] < of["zstd 3"] for of in sets)
    snappy = sum(of["snappy"] < of["lz4"] for of in sets)
    return f"gzip before zstd in {gzip} of {len(sets)} sets, snappy before lz4 in {snappy}"


def _dictionaries(figures: Figures) -> str:
    found = [
        f"{on} {_change(of['with_it'], of['without_it'])}"
        for on, of in figures["dictionaries"].items()
        if of is not None
    ]
    return f"zstd with a dictionary against zstd without: {'; '.join(found)}. Kafka has no place for one"


def choices(figures: Figures) -> str:
    """Where the texts can be read in several ways: what was chosen, and what else would cost."""
    on = figures["forms"]["traced, 16 KiB"]["none"]
    batches = on["tagged fields"]["size"] - on["KIP-931"]["size"]
    first = on["two sections"]["inspected"]
    headers = figures["header_bytes"]
    rows = [
        ("`recordsCount` is missing in KIP-931's list", "int32, as in magic 2",
         "without it 4 bytes less a batch; as a varint 2 or 3 less"),
        ("`maxTimestampDelta` is called a varint", "varlong, since differences of timestamps have 64 bits",
         "the same bytes where both can hold it"),
        ("which bytes the CRC covers", "from the attributes on, as in magic 2", "no bytes"),
        ("where the user headers of records are when headers come first", "with the content",
         f"with the fields: validating the traced records reads {first + headers:,} bytes instead of "
         f"{first:,}, in {batches:,} batches"),
        ("headers at the batch level", "the first headers, if all records begin with them",
         "headers that a producer names: the same bytes"),
        ("one stream or two", "both are measured", "see Validation"),
    ]  # fmt: skip
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(["| what | chosen | the other choice |", "|---|---|---|", *lines])
