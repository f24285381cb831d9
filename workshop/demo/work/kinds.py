"""Kinds of GPU work as clusters see them, for organisations whose priority classes are named as below.

Shapes follow the published studies of shared GPU clusters: most workloads are small and short, most
GPU-hours are in few large ones, and run times span five orders of magnitude (Jeon et al., ATC 2019; Hu et
al., SC 2021).
"""

from __future__ import annotations

from dataclasses import replace

from scheduling.engine.model import Topology
from workshop.scenario.model import Kind, Rhythm, RunTime, Size

HOUR, DAY = 3600, 86_400
BIG = ("h100-80gb", "a100-40gb")
ALL = (*BIG, "a100-mig-1g.5gb", "l4")
NORMAL = (("research-normal", 0.8), ("research-high", 0.12), ("best-effort", 0.08))

PRETRAIN = Kind(
    "pretrain",
    ("moe-7b", "llm-13b", "vlm-base", "asr-large", "ablate-lr", "tokenizer-v4"),
    (("research-normal", 0.7), ("research-high", 0.3)),
    RunTime(9 * HOUR, 1.0, 900, 3 * DAY),
    (Size(1, 8, 4), Size(2, 8, 4), Size(4, 8, 1.5)),
    BIG,
    Rhythm.EVENING,
    topology=Topology(preferred="rack"),
)
FINETUNE = Kind(
    "finetune",
    ("sft", "dpo", "lora", "reward", "distill", "adapter"),
    NORMAL,
    RunTime(1.8 * HOUR, 1.3, 120, 2 * DAY),
    (Size(1, 1, 2), Size(1, 2, 2), Size(1, 4, 3), Size(1, 8, 3), Size(2, 8, 0.6)),
    BIG,
    Rhythm.OFFICE,
)
SWEEP = Kind(
    "sweep",
    ("sweep-lr", "sweep-aug", "grid", "seeds"),
    (("research-normal", 0.5), ("best-effort", 0.5)),
    RunTime(0.9 * HOUR, 1.0, 120, DAY),
    (Size(1, 1, 5), Size(1, 2, 2)),
    ALL,
    Rhythm.EVENING,
    sweep=(0.7, 4, 16),
    failing=0.12,
)
EVAL = Kind(
    "eval",
    ("eval", "bench", "mmlu", "score", "export"),
    NORMAL,
    RunTime(0.4 * HOUR, 1.2, 60, 12 * HOUR),
    (Size(1, 1, 6), Size(1, 2, 2), Size(1, 4, 1)),
    ALL,
    Rhythm.OFFICE,
    checkpoint_s=None,
)
NOTEBOOK = Kind(
    "notebook",
    ("notebook",),
    (("interactive", 1.0),),
    RunTime(2.2 * HOUR, 0.8, 300, 10 * HOUR),
    (Size(1, 1),),
    ALL,
    Rhythm.OFFICE,
    checkpoint_s=None,
    failing=0.02,
    cancelled=0.2,
)
CI = Kind(
    "ci",
    ("ci-kernels", "ci-train-smoke", "ci-nightly", "ci-serving"),
    (("research-normal", 0.6), ("best-effort", 0.4)),
    RunTime(0.25 * HOUR, 0.8, 60, 3 * HOUR),
    (Size(1, 1, 5), Size(1, 2, 2), Size(1, 4, 1)),
    ALL,
    Rhythm.OFFICE,
    checkpoint_s=None,
    failing=0.2,
)
SERVICE = Kind(
    "service",
    ("serve-chat", "serve-embed", "serve-rank", "serve-asr"),
    (("inference", 1.0),),
    RunTime(1.5 * DAY, 0.6, 4 * HOUR, 5 * DAY),
    (Size(1, 1, 4), Size(2, 1, 2), Size(1, 2, 2)),
    ALL,
    Rhythm.FLAT,
    checkpoint_s=None,
    failing=0.02,
    cancelled=0.1,
)
BATCH_INFERENCE = replace(
    SWEEP, name="batch-inference", names=("embed-corpus", "label", "caption"), sweep=(0.4, 3, 8)
)
