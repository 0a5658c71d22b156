"""Golden recall: recalls on record, made again by a candidate and compared."""

from __future__ import annotations

from .case import (
    CaseFileError,
    GoldenCase,
    Review,
    ReviewSeals,
    case_lines,
    read_cases,
    trec_files,
)
from .comparison import (
    Candidate,
    CandidateAnswer,
    CandidateFailedError,
    Compared,
    NotRepeatableError,
    ReplayedRecall,
    ReplayReport,
    compare,
)
from .functions import FunctionCandidate
from .ranking import RankChange, rank_change, recall_at, reciprocal_rank
from .replayed import REPLAY, call_by_name, past_recall, replay_context
from .shadow import ShadowCounts, shadow

__all__ = [
    "REPLAY",
    "Candidate",
    "CandidateAnswer",
    "CandidateFailedError",
    "CaseFileError",
    "Compared",
    "FunctionCandidate",
    "GoldenCase",
    "NotRepeatableError",
    "RankChange",
    "ReplayReport",
    "ReplayedRecall",
    "Review",
    "ReviewSeals",
    "ShadowCounts",
    "call_by_name",
    "case_lines",
    "compare",
    "past_recall",
    "rank_change",
    "read_cases",
    "recall_at",
    "reciprocal_rank",
    "replay_context",
    "shadow",
    "trec_files",
]
