"""Strategies of other packages whose makers are not as they should be."""

from typing import ClassVar

import pytest

from osler.build.plugins import StrategyMaker, load_maker
from osler.errors import BadConfig
from osler.settings import PluginSettings
from osler_lab.baselines.settings import FlareSettings


class HalfMaker(StrategyMaker):
    """Makes nothing."""


@pytest.mark.parametrize("place", ["nowhere:Maker", "osler.text:Maker", f"{__name__}:HalfMaker"])
def test_a_maker_that_makes_nothing_is_named(place: str) -> None:
    class Settings(PluginSettings):
        maker: ClassVar[str] = place

    with pytest.raises(BadConfig, match=place.partition(":")[2]) as caught:
        load_maker(Settings)
    assert "make_solver" in caught.value.fix


def test_the_maker_of_a_method_is_loaded_once() -> None:
    assert load_maker(FlareSettings) is load_maker(FlareSettings)
