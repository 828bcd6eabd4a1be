"""Plain data that the compiled core returns as JSON, as typed dictionaries.

The steps of a job (list, survey, plan, decode, reconcile) may run in different processes, so everything
that passes between them is plain data. Field names are the core's. Offsets are inclusive if the name says
first or last, exclusive if it says end or next; positions and sizes are bytes; times are milliseconds.
"""

from __future__ import annotations

from magicbyte.model.accounts import (
    ByteRange,
    ChunkResult,
    PartitionReconciliation,
    SegmentReconciliation,
)
from magicbyte.model.histories import (
    Anomaly,
    Bin,
    ControlCount,
    OffsetGap,
    PartitionHistory,
    ProducerHistory,
    SkippedRange,
    StepBack,
    TransactionHistory,
)
from magicbyte.model.listings import (
    DirectoryState,
    IgnoredFile,
    LeaderEpoch,
    PartitionCheckpoints,
    PartitionListing,
    Place,
    Problem,
    Segment,
    Sidecar,
)
from magicbyte.model.merges import (
    AlignedCopy,
    Alignment,
    Damage,
    LeftOut,
    LeftOutReason,
    MergedCopy,
    MergedRange,
    MergedSegment,
    MergePlan,
    Run,
    Share,
)
from magicbyte.model.plans import (
    Chunk,
    PartitionPlan,
    PlanSegment,
)
from magicbyte.model.runs import (
    BatchMark,
    BatchRun,
    FoundRuns,
    ProducerRun,
)
from magicbyte.model.surveys import (
    Border,
    Survey,
    TransactionBegin,
    TransactionEnd,
    TransactionEvent,
    TransactionIndexEntry,
)

__all__ = [
    "AlignedCopy",
    "Alignment",
    "Anomaly",
    "BatchMark",
    "BatchRun",
    "Bin",
    "Border",
    "ByteRange",
    "Chunk",
    "ChunkResult",
    "ControlCount",
    "Damage",
    "DirectoryState",
    "FoundRuns",
    "IgnoredFile",
    "LeaderEpoch",
    "LeftOut",
    "LeftOutReason",
    "MergePlan",
    "MergedCopy",
    "MergedRange",
    "MergedSegment",
    "OffsetGap",
    "PartitionCheckpoints",
    "PartitionHistory",
    "PartitionListing",
    "PartitionPlan",
    "PartitionReconciliation",
    "Place",
    "PlanSegment",
    "Problem",
    "ProducerHistory",
    "ProducerRun",
    "Run",
    "Segment",
    "SegmentReconciliation",
    "Share",
    "Sidecar",
    "SkippedRange",
    "StepBack",
    "Survey",
    "TransactionBegin",
    "TransactionEnd",
    "TransactionEvent",
    "TransactionHistory",
    "TransactionIndexEntry",
]
