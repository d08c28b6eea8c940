"""Measures of a report, by name: a record of a done sample → a number, or none.

A measure that does not apply to a record gives `None`. One that fails is an error that names
the measure and the sample: a report never leaves a number out without saying so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from osler.errors import BadRun
from osler.types import Grounding, Halt
from osler_lab.evaluate.metrics import choice, overlap, retrieval
from osler_lab.evaluate.record import KINDS, Kind, SampleRecord
from osler_lab.evaluate.searches import RecordedDocument


@dataclass(frozen=True, slots=True)
class Measure:
    """Measure of a record: its name, its title and its function."""

    name: str
    title: str
    of: Callable[[SampleRecord], float | None]
    kinds: tuple[Kind, ...] = KINDS
    percent: bool = True
    """Whether it is a share, shown times 100."""
    counts_failed: bool = False
    """Whether a sample that failed counts as 0; else it is in no figure."""


def measure_value(measure: Measure, record: SampleRecord) -> float | None:
    """Raises `BadRun` naming the measure and the sample where the measure fails."""
    if record.sample.kind not in measure.kinds:
        return None
    if record.status == "failed":
        # Who could leave out the samples that fail would score the better, the more of them fail.
        gold = record.sample.gold
        return 0.0 if measure.counts_failed and (gold.letters or gold.texts) else None
    try:
        return measure.of(record)
    except Exception as error:
        key = record.key
        raise BadRun(
            f"measure {measure.name!r} failed on {key.task} {key.id} under {key.strategy}:"
            f" {type(error).__name__}: {error}"
        ) from error


def answer_text(record: SampleRecord) -> str:
    """The answer without its citation marks."""
    # Chinese sentences stand without spaces, and a metric on characters would count them.
    between = "" if record.sample.question.language == "zh" else " "
    return between.join(statement.text for statement in record.outcome.statements)


def chosen_letters(record: SampleRecord) -> frozenset[str]:
    """The letters that were chosen; empty where none could be read."""
    outcome = record.outcome
    return choice.chosen_letters(record.sample.question, outcome.option, outcome.text)


def _score_accuracy(record: SampleRecord) -> float:
    return choice.is_exact_choice(chosen_letters(record), record.sample.gold.letters)


def _short_answer_score(
    score: Callable[[str, tuple[str, ...]], float],
) -> Callable[[SampleRecord], float | None]:
    def of(record: SampleRecord) -> float | None:
        golds = record.sample.gold.texts
        return score(answer_text(record), golds) if golds else None

    return of


def _field_equals(field: str, wanted: str) -> Callable[[SampleRecord], float]:
    return lambda record: float(getattr(record.outcome, field) == wanted)


def _cost_of(field: str) -> Callable[[SampleRecord], float]:
    return lambda record: float(getattr(record.outcome.usage, field))


def _match_gold(
    passages: Sequence[str], documents: Sequence[RecordedDocument], support: Sequence[str]
) -> list[str | None] | None:
    """Gold document of each passage, `None` for others.

    `None` as a whole where there is no gold, or where it names documents by what is not known of
    these: a comparison that cannot succeed is no miss.
    """
    if not support or not _are_told_apart(support, documents):
        return None
    return [
        next((name for name in support if _is_of(passage, name, found)), None)
        for passage, found in zip(passages, documents, strict=True)
    ]


def _is_of(passage: str, name: str, found: RecordedDocument) -> bool:
    return retrieval.rests_on(passage, name, title=found.title, code=found.code, url=found.url)


def _are_told_apart(support: Sequence[str], documents: Sequence[RecordedDocument]) -> bool:
    """Whether what is known of the documents would show that one of them is gold."""
    if not documents:  # nothing was found, so no gold was
        return True
    known = {"code": True, "title": any(d.title for d in documents)}
    known["address"] = any(d.url for d in documents)
    return all(known[retrieval.kind_of_name(name)] for name in support)


def _retrieved_gold(record: SampleRecord) -> list[str | None] | None:
    """The passages that were found, in rank order, as `_match_gold` has them."""
    outcome = record.outcome
    if not outcome.usage.searches:
        return None
    documents = outcome.documents or (RecordedDocument(),) * len(outcome.retrieved)
    return _match_gold(outcome.retrieved, documents, record.sample.gold.support)


def _retrieval_recall(record: SampleRecord) -> float | None:
    found = _retrieved_gold(record)
    # Over documents, not passages: three passages of one gold document count once.
    return None if found is None else retrieval.recall_at(found, record.sample.gold.support, 10)


def _reciprocal_rank(record: SampleRecord) -> float | None:
    found = _retrieved_gold(record)
    return None if found is None else retrieval.reciprocal_rank(found, record.sample.gold.support)


def _cited_gold(record: SampleRecord) -> list[str | None] | None:
    """The evidence that statements cite, as `_match_gold` has it."""
    numbers = {number for statement in record.outcome.statements for number in statement.cites}
    cited = [e for number, e in enumerate(record.outcome.evidence, 1) if number in numbers]
    documents = [RecordedDocument(e.title, e.code, e.url) for e in cited]
    return _match_gold([e.passage for e in cited], documents, record.sample.gold.support)


def _citation_precision(record: SampleRecord) -> float | None:
    cited = _cited_gold(record)
    return retrieval.precision([name is not None for name in cited]) if cited else None


def _citation_recall(record: SampleRecord) -> float | None:
    cited = _cited_gold(record)
    if cited is None or not record.outcome.evidence:
        return None
    return retrieval.recall_at(cited, record.sample.gold.support, len(cited))


def _evidence_recall(record: SampleRecord) -> float | None:
    """ROUGE-R against what is cited: how much of it the answer says (TC-RAG App. 8.5)."""
    quotes = " ".join(dict.fromkeys(e.quote for e in record.outcome.evidence))
    return overlap.rouge_r(answer_text(record), (quotes,)) if quotes else None


def _accelerator_seconds(record: SampleRecord) -> float | None:
    outcome = record.outcome
    return outcome.usage.seconds * outcome.accelerators if outcome.accelerators else None


_CHOICES: tuple[Kind, ...] = ("choice", "choices")
_LONG: tuple[Kind, ...] = ("long",)
_SHORT: tuple[Kind, ...] = ("short",)

_scored = partial(Measure, counts_failed=True)
_cost = partial(Measure, percent=False)

MEASURES: tuple[Measure, ...] = (
    _scored("accuracy", "accuracy (exact set of options)", _score_accuracy, _CHOICES),
    Measure(
        "unparsed",
        "no option could be read (counted as wrong)",
        lambda record: float(not chosen_letters(record)),
        _CHOICES,
    ),
    _scored("held", "the answer holds the gold", _short_answer_score(overlap.holds_any), _SHORT),
    _scored("em", "exact match", _short_answer_score(overlap.exact_match), _SHORT),
    _scored("f1", "F1 of tokens", _short_answer_score(overlap.f1), _SHORT),
    _scored(
        "rouge_l", "ROUGE-L F1", _short_answer_score(lambda a, g: overlap.rouge_l(a, g).f1), _LONG
    ),
    _scored("rouge_r", "ROUGE-R (recall)", _short_answer_score(overlap.rouge_r), _LONG),
    Measure("rouge_r_evidence", "ROUGE-R against the evidence", _evidence_recall, _LONG),
    _scored("bleu_1", "BLEU-1", _short_answer_score(lambda a, g: overlap.bleu(a, g, 1)), _LONG),
    _scored("bleu_4", "BLEU-4", _short_answer_score(lambda a, g: overlap.bleu(a, g, 4)), _LONG),
    _scored(
        "paper_bleu_4",
        "BLEU-4 as TC-RAG's code has it",
        _short_answer_score(lambda a, g: overlap.paper_bleu(a, g, 4)),
        _LONG,
    ),
    _scored("grounded", "every statement cited", _field_equals("grounding", Grounding.GROUNDED)),
    Measure("abstained", "no answer given", _field_equals("grounding", Grounding.ABSTAINED)),
    _scored("converged", "ended by itself", _field_equals("halt", Halt.CONVERGED)),
    Measure("recall_10", "gold documents among the first 10 found", _retrieval_recall),
    Measure("mrr", "reciprocal rank of the first gold document", _reciprocal_rank),
    Measure("citation_precision", "citations that are gold documents", _citation_precision),
    Measure("citation_recall", "gold documents that are cited", _citation_recall),
    _cost("calls", "model calls", _cost_of("calls")),
    _cost("tokens", "tokens worked on", _cost_of("tokens")),
    _cost("prompt_tokens", "tokens of prompts", _cost_of("prompt_tokens")),
    _cost("completion_tokens", "tokens written", _cost_of("completion_tokens")),
    _cost("cached", "prompt tokens from the cache", _cost_of("cached_tokens")),
    _cost("searches", "searches", _cost_of("searches")),
    _cost("model_s", "seconds in the model", _cost_of("seconds")),
    _cost("search_s", "seconds in searches", lambda record: record.outcome.search_s),
    _cost(
        "accelerator_s",
        "seconds of accelerators (those in the model, times their number)",
        _accelerator_seconds,
    ),
    _cost("wall_s", "seconds in all", lambda record: record.seconds),
)
BY_NAME = {measure.name: measure for measure in MEASURES}

PRIMARY: dict[Kind, str] = {
    "choice": "accuracy",
    "choices": "accuracy",
    "short": "held",
    "long": "rouge_l",
}
"""Measure by which strategies are compared, for each kind of question."""
