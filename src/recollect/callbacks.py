"""`MemorisationCallback`: memorisation followed during training, for the Trainer of transformers and TRL's SFTTrainer.

Before the first step it checks that every planted secret reaches the loss. At every evaluation it measures how far the
secrets are memorised, and whether records of the training set can be distinguished from held-out ones; figures go
through the Trainer's own log. Training can be stopped by a limit on any of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import Trainer, TrainerCallback
from transformers.utils import logging

from recollect.audits.exposure.audit import ExposureAudit
from recollect.checks import check_at_least
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.corpus import Corpus
from recollect.corpora.readers.corpus_reader import read_corpus
from recollect.errors import PlanError
from recollect.files import make_scratch_folder
from recollect.models.loading.local_models import load_from_memory
from recollect.models.model import Model
from recollect.pipeline.plans.limits import Limit
from recollect.pipeline.training_tracking import ExposureTracker, measure_membership
from recollect.recipes.canary_survival import check_trained_secrets

FIGURES = ("exposure_bits", "membership_auc")
"""The figures that every evaluation logs, where there is something to measure them on."""
EXPOSURE_FILE = "exposure-by-epoch.json"
_logger = logging.get_logger(__name__)


class MemorisationCallback(TrainerCallback):
    """Follows memorisation: `Trainer(..., callbacks=[MemorisationCallback("planted.canaries.json")])`."""

    def __init__(  # noqa: PLR0913 - one argument for each thing that can be followed
        self,
        canaries: str | Path | None = None,
        *,
        members: Any = None,
        held_out: Any = None,
        stop_if: str | Sequence[str] = (),
        file: str | Path | None = None,
        every: int = 1,
        audit: ExposureAudit | None = None,
    ) -> None:
        """Say what is followed.

        Args:
            canaries: The manifest that `recollect plant` wrote beside the training corpus.
            members: Records of the training set, as anything that `read_corpus` reads.
            held_out: Records like them that are not in the training set.
            stop_if: Limits such as "exposure_bits>20" or "membership_auc>0.7": training ends when one is passed.
            file: Where the exposure of each secret goes, as JSON; by default beside the checkpoints.
            every: After how many evaluations (or epochs, where nothing is evaluated) each.
            audit: How exposure is measured; the default draws few and counts little, so that training stays fast.

        Raises:
            PlanError: There is nothing to follow, or a limit is on no figure of these.
        """
        check_at_least(1, every=every)
        if (members is None) != (held_out is None) or (canaries is None and members is None):
            raise PlanError(
                "There is nothing to follow: neither canaries nor members with held-out records are given.",
                do="Give canaries=, or members= together with held_out=.",
                code="nothing_to_follow",
            )
        self._canaries = None if canaries is None else Path(canaries)
        self._manifest = None if self._canaries is None else Canaries.load(self._canaries)
        self._members = None if members is None else _read_tracked_corpus(members)
        self._held_out = None if held_out is None else _read_tracked_corpus(held_out)
        self._limits = [Limit.parse(text) for text in ([stop_if] if isinstance(stop_if, str) else stop_if)]
        self._refuse_unknown_limits()
        self._file = None if file is None else Path(file)
        self._every, self._audit, self._evaluations = every, audit, 0
        self.history: list[dict[str, float]] = []
        """The figures of each measurement, as they were logged."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Refuse a training in which a planted secret would not reach the loss.

        Raises:
            CorpusError: A secret would never be trained on; nothing was trained.
        """
        if self._manifest is None:
            return
        loader, tokenizer = kwargs["train_dataloader"], _get_tokenizer(kwargs)
        with _keep_random_state():
            fates = check_trained_secrets(self._manifest, loader.dataset, loader.collate_fn, tokenizer)
        for fate in fates:
            if fate.trained < fate.planted:
                _logger.warning(f"Secret {fate.secret}: {fate.trained} of {fate.planted} copies reach the loss.")

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure, log, and stop where a limit is passed."""
        self._follow(args, state, control, kwargs)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The same where nothing is evaluated."""
        if str(getattr(args.eval_strategy, "value", args.eval_strategy)) == "no":
            self._follow(args, state, control, kwargs)

    def _follow(self, args: Any, state: Any, control: Any, kwargs: Mapping[str, Any]) -> None:
        """One measurement, if it is due."""
        self._evaluations += 1
        if self._evaluations % self._every or not state.is_world_process_zero:
            return
        with _in_evaluation_mode(kwargs["model"]) as network:
            model = load_from_memory(network, _get_tokenizer(kwargs), card={})
            found = self._measure(model, args, state)
        self.history.append({"step": state.global_step, **found})
        trainer = _find_trainer()
        if trainer is None:
            state.log_history.append({"epoch": state.epoch, "step": state.global_step, **found})
        else:
            trainer.log(dict(found))
        passed = [str(limit) for limit in self._limits if limit.is_passed_by(found)]
        if passed:
            _logger.warning(f"Training stops at step {state.global_step}: {', '.join(passed)}.")
            control.should_training_stop = True

    def _measure(self, model: Model, args: Any, state: Any) -> dict[str, float]:
        """All figures of one model."""
        found: dict[str, float] = {}
        folder = Path(args.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        if self._canaries is not None:
            losses = {
                "training_loss": _get_last_logged(state, "loss"),
                "validation_loss": _get_last_logged(state, "eval_loss"),
                "step": state.global_step,
            }
            follower = ExposureTracker(self._canaries, self._file or folder / EXPOSURE_FILE, audit=self._audit)
            found |= follower.measure(model, round(float(state.epoch or 0), 4), losses)
        if self._members is not None and self._held_out is not None:
            with make_scratch_folder(folder) as work:
                found |= measure_membership(model, self._members, self._held_out, work)
        return found

    def _refuse_unknown_limits(self) -> None:
        """Refuse a limit on a figure that is not measured: it would never be passed."""
        shown = [FIGURES[0]] * (self._manifest is not None) + [FIGURES[1]] * (self._members is not None)
        for limit in self._limits:
            known = limit.name in shown or (limit.name.startswith("exposure_bits_planted_") and self._manifest)
            if not known or limit.end is not None:
                raise PlanError(
                    f"The limit {str(limit)!r} is on no figure that is followed.",
                    do=f"Followed: {', '.join(shown)}.",
                    code="no_such_finding",
                )


def _read_tracked_corpus(source: Any) -> Corpus:
    """A corpus that a callback follows, or what one can be read from."""
    return source if isinstance(source, Corpus) else read_corpus(source)


def _get_tokenizer(kwargs: Mapping[str, Any]) -> Any:
    """The tokenizer that the Trainer gives to a callback.

    Raises:
        PlanError: It was given none.
    """
    tokenizer = kwargs.get("processing_class") or kwargs.get("tokenizer")
    if tokenizer is None:
        raise PlanError(
            "The Trainer has no tokenizer, without which nothing can be measured.",
            do="Give it: Trainer(processing_class=tokenizer, ...).",
            code="no_tokenizer",
        )
    return getattr(tokenizer, "tokenizer", tokenizer)  # a processor of several kinds of data has one of texts


def _find_trainer() -> Trainer | None:
    """The Trainer that is calling: it tells its callbacks everything but itself, and only its own log reaches all."""
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Trainer):
            return caller
        frame = frame.f_back
    return None


@contextmanager
def _in_evaluation_mode(model: Any) -> Iterator[Any]:
    """The trained network, unwrapped and in evaluation mode while the callback measures it."""
    network = getattr(model, "module", model) if not hasattr(model, "config") else model
    training = network.training
    network.eval()
    try:
        with _keep_random_state():
            yield network
    finally:
        network.train(training)


@contextmanager
def _keep_random_state() -> Iterator[None]:
    """Keep what the callback does from moving the random numbers of the training."""
    state = np.random.get_state()  # noqa: NPY002 - it is the training's
    with torch.random.fork_rng():
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002


def _get_last_logged(state: Any, name: str) -> float | None:
    """The last value that the Trainer logged under a name, for a callback."""
    return next((row[name] for row in reversed(state.log_history) if name in row), None)
