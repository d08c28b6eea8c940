"""Goes on with the runs of servers of the same home that died."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from osler.errors import OslerError
from osler_serve.active_runs import ActiveRun
from osler_serve.keys import Authenticator
from osler_serve.ledger import RunClaim
from osler_serve.replies import Status
from osler_serve.run_manager import RunManager
from osler_serve.shared_runs import read_request

_LOG = logging.getLogger("osler_serve")
# Seconds between two looks at the other servers of the home.
_LOOK = 0.5
# Times that a run is taken from a server that died: one that kills its servers must not kill all.
_MOST_TRIES = 3


async def watch_others(desk: RunManager, gate: Authenticator) -> None:
    """Takes the runs of servers that died, cancels what another server was asked to cancel, and
    counts the callers' requests there; for ever."""
    while True:
        await asyncio.sleep(_LOOK)
        try:
            told = await asyncio.to_thread(desk.shared.share_counts, gate.count_asked())
            gate.note_elsewhere(told)
            for claim, said in await asyncio.to_thread(desk.shared.take_orphans):
                await _adopt_run(desk, gate, claim, said)
            for id in await asyncio.to_thread(desk.shared.asked_to_stop):
                if (live := desk.find_any(id)) is not None:
                    await desk.cancel_run(live)
        except (OSError, OslerError) as error:  # a full disk, a lock: looked at again
            _LOG.warning("the runs of other servers cannot be seen: %s", error)


async def _adopt_run(
    desk: RunManager, gate: Authenticator, claim: RunClaim, said: list[str]
) -> None:
    if desk.is_kept(claim.id):  # whole on disk; only its end was not noted
        await asyncio.to_thread(_end_claim, desk, claim, "finished")
        return
    asked = read_request(claim.request)
    if asked is None or claim.tries > _MOST_TRIES or desk.draining:
        why = "the server stopped"
        if claim.tries > _MOST_TRIES:
            why = f"its server died {claim.tries} times, and it is not begun again"
        await asyncio.to_thread(_end_claim, desk, claim, "interrupted", why, said)
        return
    live = ActiveRun(
        claim.id,
        gate.caller_of_run(claim.caller, asked.workspace),
        asked.question,
        asked.settings,
        asked.created,
        asked.plan,
        asked.danger,
        reserved=claim.reserved,
        tries=claim.tries,
    )
    desk.begin_again(live)
    _LOG.warning("run %s is begun again: its server died", live.id)


def _end_claim(
    desk: RunManager, claim: RunClaim, status: Status, why: str = "", said: Sequence[str] = ()
) -> None:
    code = "interrupted" if why else ""
    desk.ledger.end_run(claim.id, status, code=code, detail=why, events="\n".join(said))
    desk.shared.close_lines(claim.id)
