"""What tokens cost: a table that the user writes, since prices change and none is shipped."""

from __future__ import annotations

from math import isfinite
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from osler.settings.fields import SettingsSection, split_list
from osler.trace import Price


class PriceSettings(SettingsSection):
    currency: str = Field(default="", max_length=16)
    """The currency of the table, as "EUR"."""
    models: Annotated[tuple[str, ...], BeforeValidator(split_list)] = ()
    """Prices of a million tokens, "NAME=READ/CACHED/WRITTEN", as "small-model=0.5/0.1/1.5"; NAME is
    that of the model on its server. What is not here has no price, and its cost is not told."""

    @model_validator(mode="after")
    def _check_table(self) -> PriceSettings:
        if self.models and not self.currency.strip():
            raise ValueError('prices need a currency: currency = "EUR"')
        self.table  # noqa: B018 - reads every line
        return self

    @property
    def table(self) -> dict[str, Price]:
        """Prices by the model's name. Raises `ValueError` for a line that is none."""
        return dict(_read_price(line, self.currency.strip()) for line in self.models)


def _read_price(line: str, currency: str) -> tuple[str, Price]:
    # A name may hold the sign itself; numbers do not.
    name, _, told = line.rpartition("=")
    try:
        read, cached, written = (float(number) for number in told.split("/"))
    except ValueError:
        read = cached = written = -1.0
    if not name.strip() or not all(isfinite(n) and n >= 0 for n in (read, cached, written)):
        raise ValueError(f'models: "{line}" is not "NAME=READ/CACHED/WRITTEN"')
    return name.strip(), Price(read, cached, written, currency)
