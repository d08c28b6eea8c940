"""The command line within the scope of a key.

It keeps an agent or a script that was given a key to what the key may find. It is no wall: whoever
can read the files of home can read them without Osler.
"""

from __future__ import annotations

from pathlib import Path

from osler.errors import BadConfig, BadRun, read_text_file
from osler.settings import Settings
from osler_serve.keys import Authenticator
from osler_serve.ledger import Ledger
from osler_serve.problems import RefusedRequest
from osler_serve.scopes import recorded_reach


def narrow_by_key(settings: Settings) -> Settings:
    """The settings as the key in access.key_file has them.

    Raises `BadConfig` for a key that is not one, or may not run the strategy of the settings.
    """
    from osler_serve.app import FOLDER

    file = settings.access.key_file
    assert file is not None  # noqa: S101  its caller looks
    fix = "name a file that holds the key alone"
    key = read_text_file(file, BadConfig, fix, what="access.key_file ").strip()
    ledger = Ledger(settings.home / FOLDER)
    try:
        caller = Authenticator(ledger, settings.serve).authenticate_request(f"Bearer {key}")
    except RefusedRequest as error:
        fix = "make one: osler serve key add NAME"
        raise BadConfig("access.key_file holds no key of this server", fix=fix) from error
    finally:
        ledger.close()
    if caller.id == "local":
        raise BadConfig("access.key_file holds no key of this server", fix="see its form")
    if not caller.scope.allows_strategy(kind := settings.strategy.kind):
        raise BadConfig(f"this key may not run {kind}", fix="choose another --strategy")
    return caller.scope.narrow_settings(settings)


def is_run_open(settings: Settings, folder: Path) -> bool:
    """Whether the recorded run may be shown; any may where no key is named."""
    if settings.access.key_file is None:
        return True
    try:
        return recorded_reach(folder).is_open_to(settings.access)
    except BadRun:
        return False
