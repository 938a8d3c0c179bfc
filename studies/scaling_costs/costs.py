"""What large audits would cost, computed from figures measured on small ones: `python studies/scaling_costs/costs.py`.

Prints the tables of `docs/methods/scaling.md`. Measured figures are in `figures.json` beside this file, with how each
was measured (`measure.py`); what is assumed (the GPU, its utilisation, prices) is in `Assumed` and nowhere else.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

FIGURES = Path(__file__).with_name("figures.json")
RECORDS = (10**6, 10**8, 10**10)
SHADOWS = (1, 100, 1000)
HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """What was not measured here."""

    tokens: int = 256
    """Tokens of a record."""
    parameters: float = 7e9
    gpu_flops: float = 989e12
    """Peak of one H100 SXM in bfloat16 without sparsity, by its data sheet."""
    utilisation: float = 0.4
    """The share of it that is reached: 38 to 43 % were reported for the training of Llama 3 405B."""
    dollars_per_gpu_hour: float = 3.0
    dollars_per_gb_month: float = 0.1
    """Of a shared file system."""
    epochs: int = 1
    share: float = 0.5
    """The share of the records that each shadow is trained on."""
    adapter_bytes: float = 160e6
    """A LoRA adapter of rank 16 on all linear layers: 40 million parameters in float32."""
    driver_memory: float = 64e9
    """Memory of the node that the driver runs on."""
    files: float = 1e6
    """Files in one folder that a file system over the network bears."""

    @property
    def gpu_speed(self) -> float:
        """Floating-point operations per second that one GPU does for us."""
        return self.gpu_flops * self.utilisation


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was measured here; `figures.json` says how."""

    row_bytes: float
    """Bytes of a stored token."""
    core_tokens_per_second: float
    """Tokens that one core scores in a second, of the model of so many parameters."""
    core_parameters: float
    driver_bytes_per_record: float
    """How much the driver's peak memory grows with each record."""
    driver_seconds_per_record: float
    """Processor seconds of the driver."""
    worker_seconds_per_record: float
    """Processor seconds of a worker beside the model: reading, tokenising, journal, shard."""
    block: float
    """Records of a shard."""

    @classmethod
    def read(cls, path: Path = FIGURES) -> Measured:
        """The figures without how they were measured."""
        return cls(**{name: each["value"] for name, each in json.loads(path.read_text(encoding="utf-8")).items()})

    def count_core_tokens(self, parameters: float) -> float:
        """Tokens that one core scores in a second of a model of another size: in proportion."""
        return self.core_tokens_per_second * self.core_parameters / parameters


def count_scoring_hours(records: float, assumed: Assumed) -> float:
    """GPU-hours of one pass: two operations per parameter and token.

    >>> round(count_scoring_hours(1e6, Assumed()), 2)
    2.52
    """
    return records * assumed.tokens * 2 * assumed.parameters / assumed.gpu_speed / HOUR


def count_training_hours(records: float, assumed: Assumed) -> float:
    """GPU-hours of one LoRA shadow: four operations per parameter and token, because the base gets no gradients.

    >>> count_training_hours(1e6, Assumed()) == count_scoring_hours(1e6, Assumed())
    True
    """
    return 2 * assumed.share * assumed.epochs * count_scoring_hours(records, assumed)


def show(value: float, unit: str = "") -> str:
    """A number with two digits, as people read it.

    >>> show(2515), show(0.0253), show(512e9, "B"), show(12.6e15, "B")
    ('2,500', '0.025', '510 GB', '13 PB')
    """
    power = 0
    if unit == "B":
        power = max(each for each in range(0, 19, 3) if each == 0 or value >= 10**each)
        unit = f"{' kMGTPE'[power // 3].strip()}B"
    value = float(f"{value / 10**power:.2g}")
    return f"{value:,.0f} {unit}".strip() if value >= 10 else f"{value:.2g} {unit}".strip()


def name_power(count: int) -> str:
    """A power of ten as the page writes it.

    >>> name_power(10**8)
    '10⁸'
    """
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(len(str(count)) - 1))


def build_table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def tabulate_scoring(measured: Measured, assumed: Assumed) -> str:
    """What it costs to score records with one model."""
    rows = []
    for records in RECORDS:
        hours, stored = count_scoring_hours(records, assumed), records * assumed.tokens * measured.row_bytes
        rows.append(
            [
                name_power(records),
                show(records * assumed.tokens),
                show(hours),
                f"${show(hours * assumed.dollars_per_gpu_hour)}",
                show(hours / 64),
                show(records * assumed.tokens / measured.count_core_tokens(assumed.parameters) / HOUR),
                show(stored, "B"),
                f"${show(stored / 1e9 * assumed.dollars_per_gb_month)}",
            ]
        )
    head = ["records", "tokens", "GPU-hours", "GPUs cost", "hours on 64 GPUs", "core-hours instead"]
    return build_table([*head, "answers", "kept for a month"], rows)


def tabulate_shadows(measured: Measured, assumed: Assumed) -> str:
    """What it costs to train shadows and to score all records with each."""
    rows = []
    for records in RECORDS:
        for shadows in SHADOWS:
            scoring = (1 + shadows) * count_scoring_hours(records, assumed)
            training = shadows * count_training_hours(records, assumed)
            answers = (1 + shadows) * records * assumed.tokens * measured.row_bytes
            rows.append(
                [
                    name_power(records),
                    f"{shadows:,}",
                    show(training),
                    show(scoring),
                    f"${show((training + scoring) * assumed.dollars_per_gpu_hour)}",
                    show(answers, "B"),
                    show(shadows * assumed.adapter_bytes, "B"),
                    show(shadows * 2 * assumed.parameters, "B"),
                ]
            )
    head = ["records", "shadows", "training, GPU-hours", "scoring, GPU-hours", "GPUs cost", "answers", "adapters"]
    return build_table([*head, "whole models instead"], rows)


def tabulate_limits(measured: Measured, assumed: Assumed) -> str:
    """What the design itself takes, and up to how many records it bears that."""
    gpu_records = assumed.gpu_speed / (2 * assumed.parameters * assumed.tokens)
    rows = [
        [
            "memory of the driver",
            *(show(each * measured.driver_bytes_per_record, "B") for each in RECORDS),
            f"{show(assumed.driver_memory / measured.driver_bytes_per_record)} records in "
            f"{show(assumed.driver_memory, 'B')}",
        ],
        [
            "shards in one folder",
            *(show(each / measured.block) for each in RECORDS),
            f"{show(assumed.files * measured.block)} records at {show(assumed.files)} files",
        ],
        [
            "processor hours of the driver",
            *(show(each * measured.driver_seconds_per_record / HOUR) for each in RECORDS),
            f"it feeds {show(1 / measured.driver_seconds_per_record / gpu_records)} GPUs "
            f"({show(gpu_records)} records per second each)",
        ],
        [
            "processor hours of workers beside the model",
            *(show(each * measured.worker_seconds_per_record / HOUR) for each in RECORDS),
            f"{show(gpu_records * measured.worker_seconds_per_record)} of a core per GPU",
        ],
    ]
    return build_table(["what", *map(name_power, RECORDS), "bears"], rows)


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    measured, assumed = Measured.read(), Assumed()
    tables = (tabulate_scoring, tabulate_shadows, tabulate_limits)
    sys.stdout.write("\n\n".join(each(measured, assumed) for each in tables) + "\n")


if __name__ == "__main__":
    main()
