"""A plan of logical forms in the terminal: the steps as a tree, then what each came to."""

from __future__ import annotations

from collections.abc import Iterator

from osler.trace import BoundaryChecked, Calculated, Focused, FormNode, FormSolved, FormsPlanned

FormEvent = FormsPlanned | BoundaryChecked | Focused | Calculated | FormSolved
Line = tuple[str, str, str]
"""Mark, words, style."""


def describe_event(event: FormEvent) -> Iterator[Line]:
    match event:
        case FormsPlanned():
            yield from _describe_forms(event)
        case BoundaryChecked():
            yield (
                "  #",
                f"step {event.n} {_describe_boundary(event)}",
                "green" if event.known else "yellow",
            )
        case Focused():
            verdict = "enough" if event.enough else "not enough"
            yield "  ~", f"step {event.n}, search {event.turn}: {verdict}: {event.reason}", "blue"
        case Calculated():
            result = f"failed: {event.error}" if event.error else event.value
            style = "red" if event.error else "cyan"
            yield "  =", f"step {event.n} by {event.engine}: {event.code}: {result}", style
        case FormSolved():
            yield _describe_solution(event)


def _describe_forms(event: FormsPlanned) -> Iterator[Line]:
    count = len(event.nodes)
    steps = f"{count} step{'' if count == 1 else 's'}"
    yield "", f"plan of {steps} ({event.origin})", "magenta"
    for node in event.nodes:
        depth = _node_depth(node, {each.n: each for each in event.nodes})
        yield "  " * depth + f"  {node.n}.", _describe_node(node), "magenta"
    for warning in event.warnings:
        yield "  !", warning, "yellow"


def _describe_node(node: FormNode) -> str:
    after = f" (after {', '.join(map(str, node.needs))})" if node.needs else ""
    return f"{node.fn}: {node.step}{after}"


def _node_depth(node: FormNode, nodes: dict[int, FormNode]) -> int:
    """How many steps stand before this one, along the longest way."""
    return max((1 + _node_depth(nodes[n], nodes) for n in node.needs if n in nodes), default=0)


def _describe_boundary(event: BoundaryChecked) -> str:
    if not event.answer:
        return "is not known: it must be looked up"
    said = f'says "{event.answer}"'
    signals = []
    if event.probability is not None:
        sign = ">=" if event.probability >= event.tau else "<"
        about = "" if event.exact else "at most "
        signals.append(f"least probability {about}{event.probability:.2f} {sign} {event.tau:g}")
    if event.state is not None and event.sigma is not None:
        sign = "<" if event.state < event.sigma else ">="
        signals.append(f"{event.metric} {event.state:.3g} {sign} sigma {event.sigma:.3g}")
    if event.self_check is not None:
        signals.append("stands by it" if event.self_check else "does not stand by it")
    verdict = "own knowledge" if event.known else "look it up"
    return f"{said}, {', '.join(signals) or 'no signal'}: {verdict}"


def _describe_solution(event: FormSolved) -> Line:
    if event.status == "failed":
        return "  -", f"step {event.n}: no answer", "red"
    basis = "own knowledge" if event.own_knowledge else ", ".join(event.passages)
    return "  +", f"step {event.n}: {event.answer}" + (f"  [{basis}]" if basis else ""), "green"
