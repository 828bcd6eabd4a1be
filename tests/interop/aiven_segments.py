"""Remote segments as Aiven's plugin for tiered storage writes them, by its documentation."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import zstandard
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

TOPIC_ID = "R5ONT1_KRNm0plmgyh-N-w"
KEY_ID = "key1"
ENDINGS = {
    "offset": ".index",
    "timestamp": ".timeindex",
    "producerSnapshot": ".snapshot",
    "leaderEpoch": ".leader_epoch_checkpoint",
    "transaction": ".txnindex",
}
"""The parts of the object with the indexes, in their order."""


@cache
def private_key(name: str) -> rsa.RSAPrivateKey:
    """One key for each name."""
    return rsa.generate_private_key(65537, 2048)


def write_key(path: Path, name: str = KEY_ID, private_format: PrivateFormat = PrivateFormat.PKCS8) -> Path:
    path.write_bytes(private_key(name).private_bytes(Encoding.PEM, private_format, NoEncryption()))
    return path


def chunk_sizes(sizes: list[int]) -> str:
    """`ChunkSizesBinaryCodec`, zstd, base64."""
    data = len(sizes).to_bytes(4)
    if len(sizes) > 1:
        base = min(sizes[:-1])
        width = max(1, ((max(sizes[:-1]) - base).bit_length() + 7) // 8)
        data += base.to_bytes(4) + bytes([width])
        data += b"".join((size - base).to_bytes(width) for size in sizes[:-1])
    if sizes:
        data += sizes[-1].to_bytes(4)
    return base64.b64encode(zstandard.compress(data)).decode()


def oaep_sha3(key: rsa.RSAPrivateKey, message: bytes) -> bytes:
    """RSA/NONE/OAEPWithSHA3-512AndMGF1Padding."""
    size = key.key_size // 8

    def mask(seed: bytes, length: int) -> bytes:
        blocks = (hashlib.sha3_512(seed + count.to_bytes(4)).digest() for count in range(length // 64 + 1))
        return b"".join(blocks)[:length]

    def xor(one: bytes, other: bytes) -> bytes:
        return bytes(a ^ b for a, b in zip(one, other, strict=True))

    block = hashlib.sha3_512(b"").digest() + bytes(size - len(message) - 130) + b"\1" + message
    seed = os.urandom(64)
    block = xor(block, mask(seed, len(block)))
    encoded = b"\0" + xor(seed, mask(block, 64)) + block
    public = key.public_key().public_numbers()
    return pow(int.from_bytes(encoded), public.e, public.n).to_bytes(size)


class Plugin:
    """Uploads segments with one configuration."""

    def __init__(
        self, store: Path, *, chunk_size: int = 1000, compress: bool = False, key: str | None = None
    ) -> None:
        self.store = store
        self.chunk_size = chunk_size
        self.compress = compress
        self.key = key

    def upload(
        self,
        segment: Path,
        partition: tuple[str, int],
        segment_id: str,
        *,
        epochs: dict[int, int] | None = None,
        checkpoint: dict[int, int] | None = None,
        end_offset: int | None = None,
        topic_id: str = TOPIC_ID,
        change: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> Path:
        """Uploads a segment and the files beside it; returns the object with its log.

        `epochs` are those of its records, `checkpoint` all from the log's start to the segment's end.
        """
        topic, number = partition
        directory = self.store / f"{topic}-{topic_id}" / str(number)
        directory.mkdir(parents=True, exist_ok=True)
        stem = f"{segment.stem}-{segment_id}"
        encrypt, encryption = self._encryption()
        data = segment.read_bytes()
        chunks = [data[at : at + self.chunk_size] for at in range(0, len(data), self.chunk_size)]
        if self.compress:
            chunks = [zstandard.compress(chunk) for chunk in chunks]
        chunks = [encrypt(chunk) for chunk in chunks]
        (directory / f"{stem}.log").write_bytes(b"".join(chunks))
        positions, indexes = {}, b""
        epochs = epochs or {0: int(segment.stem)}
        for name, ending in ENDINGS.items():
            file = segment.with_suffix(ending)
            if name == "leaderEpoch":
                lines = [f"{epoch} {offset}\n" for epoch, offset in (checkpoint or epochs).items()]
                part = f"0\n{len(lines)}\n{''.join(lines)}".encode()
            elif file.exists():
                part = file.read_bytes()
            elif name == "transaction":
                continue
            else:
                part = b""
            part = encrypt(part) if part else b""
            positions[name] = {"position": len(indexes), "size": len(part)}
            indexes += part
        (directory / f"{stem}.indexes").write_bytes(indexes)
        sizes = [len(chunk) for chunk in chunks]
        index: dict[str, Any] = {"originalChunkSize": self.chunk_size, "originalFileSize": len(data)}
        if self.compress:
            index = {"type": "variable", **index, "transformedChunks": chunk_sizes(sizes)}
        else:
            size = self.chunk_size + (28 if self.key else 0)
            index = {"type": "fixed", **index, "transformedChunkSize": size}
            index["finalTransformedChunkSize"] = sizes[-1]
        manifest = {
            "version": "1",
            "chunkIndex": index,
            "segmentIndexes": positions,
            "compression": self.compress,
            **encryption,
            "remoteLogSegmentMetadata": {
                "remoteLogSegmentId": {
                    "topicIdPartition": {
                        "topicId": topic_id,
                        "topicPartition": {"topic": topic, "partition": number},
                    },
                    "id": segment_id,
                },
                "startOffset": int(segment.stem),
                "endOffset": end_offset,
                "maxTimestampMs": 0,
                "brokerId": 1,
                "eventTimestampMs": 0,
                "segmentLeaderEpochs": {str(epoch): offset for epoch, offset in epochs.items()},
            },
        }
        change(manifest)
        (directory / f"{stem}.rsm-manifest").write_text(json.dumps(manifest))
        return directory / f"{stem}.log"

    def _encryption(self) -> tuple[Callable[[bytes], bytes], dict[str, Any]]:
        if self.key is None:
            return (lambda part: part), {}
        data_key, aad = os.urandom(32), os.urandom(32)
        cipher = AESGCM(data_key)

        def encrypt(part: bytes) -> bytes:
            iv = os.urandom(12)
            return iv + cipher.encrypt(iv, part, aad)

        wrapped = base64.b64encode(oaep_sha3(private_key(self.key), data_key)).decode()
        fields = {"dataKey": f"{self.key}:{wrapped}", "aad": base64.b64encode(aad).decode()}
        return encrypt, {"encryption": fields}
