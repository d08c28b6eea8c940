"""Programs that a model might write: the honest ones run, the hostile ones reach nothing."""

import asyncio
import os
from pathlib import Path

import pytest

from osler.errors import BadCalculation
from osler.methods.kag.executors import LONGEST, SandboxResult, run_calculation

pytest.importorskip("pydantic_monty", reason="written calculations need the extra math")

MARK = "the sandbox read this from outside"

HONEST: list[tuple[str, object]] = [
    ("16 * 37 * 1", 592),
    ("weight = 16\ntbsa = 46 - (12 - 3)\nweight * tbsa * 1.0", 592.0),
    ("def colloid(kg, percent):\n    return kg * percent\ncolloid(16, 37)", 592),
    ("import math\nround(400 / math.sqrt(60 / 75), 1)", 447.2),
    (
        "t = 0\nfor amount in [210.4, 569.2, 1035.2, 2044.5, 1035]:\n    t += amount\nt",
        4894.3,
    ),
    ("print('colloid', 592)\nprint(592)", "592"),
    (
        "from datetime import date, timedelta\nstr(date(2024, 1, 1) + timedelta(days=280))",
        "2024-10-07",
    ),
    ("(140 - 60) * 72 / (72 * 1.0) * (0.85 if sex == 'female' else 1)", 68.0),
    ("sorted([3, 1, 2])[0]", 1),
    ("x = {'a': 1, 'b': 2}\nsum(x.values())", 3),
    ("f'{592:.1f} ml'", "592.0 ml"),
    ("体重 = 16\n体重 * 2", 32),
    ("[x for x in range(10) if x % 2][-1]", 9),
    ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    v = 0\nv", 0),
    ("True if 592 > 500 else False", True),
    ("9.57 * 0.642 + 3.78 * 1.435 + 11.2 * 0.182 + 6.43 > 20", True),
    ("class Dose:\n    def __init__(self, mg):\n        self.mg = mg\nDose(5).mg * 3", 15),
    ("min(max(0.5, 1), 4)", 1),
    ("a, b = 7, 2\na // b + a % b", 4),
    (
        "'ABCD'[[500, 800, 400, 600].index(min([500, 800, 400, 600], key=lambda v: abs(v - 592)))]",
        "D",
    ),
    ("kg, cm = 70, 175\nround(kg / (cm / 100) ** 2, 1)", 22.9),
    ("import math\nround(math.sqrt(70 * 175 / 3600), 2)", 1.84),
    (
        "def fluid(kg):\n    return 100 * min(kg, 10) + 50 * max(0, min(kg - 10, 10))\nfluid(16)",
        1300,
    ),
    ("140 - (103 + 24)", 13),
    ("round(2.1 + 0.8 * (4.0 - 2.5), 2)", 3.3),
    ("4 * 70 * 20 / 2 / 8", 350.0),
    ("score = sum([True, False, True, 2])\nscore", 4),
    ("match 3:\n    case 3:\n        v = 'three'\n    case _:\n        v = 'other'\nv", "three"),
    ("import re\nfloat(re.search(r'([0-9.]+) *kg', 'weight=16kg')[1]) * 2", 32.0),
    ("import json\njson.loads('{\"dose\": 5}')['dose'] * 3", 15),
]

LEAKS = [
    "open(path).read()",
    "import os\nos.listdir('/')",
    "import os\nos.environ['SECRET']",
    "import os\nos.system('cat ' + path)",
    "import subprocess\nsubprocess.run(['cat', path], capture_output=True).stdout",
    "import socket\nsocket.create_connection(('127.0.0.1', 80))",
    "import urllib.request\nurllib.request.urlopen('http://127.0.0.1/').read()",
    "from pathlib import Path\nPath(path).read_text()",
    "import ctypes\nctypes.CDLL(None).getpid()",
    "import sys\nsys.modules['os'].getpid()",
    "().__class__.__bases__[0].__subclasses__()",
    "[c for c in ().__class__.__mro__[1].__subclasses__() if c.__name__ == 'Popen'][0](['id'])",
    "(lambda: 0).__globals__['__builtins__']",
    "__import__('os').getpid()",
    "eval('open(path).read()')",
    "exec('import os')\nos.getpid()",
    "compile('1', 'x', 'eval')",
    "__builtins__.open(path).read()",
    "getattr(__builtins__, 'open')(path).read()",
    "import importlib\nimportlib.import_module('os').getpid()",
    "import pickle\npickle.loads(b'cos\\nsystem\\n(S\"id\"\\ntR.')",
    "import builtins\nbuiltins.open(path).read()",
    "import inspect\ninspect.currentframe().f_back.f_globals",
    "import numpy\nnumpy.fromfile(path)",
]

DENIALS = [
    "while True:\n    pass",
    "9 ** 9 ** 9",
    "1 << 10 ** 12",
    "'a' * 10 ** 10",
    "[0] * 10 ** 10",
    "x = []\nwhile True:\n    x.append('a' * 1000)",
    "def f():\n    return f()\nf()",
    "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
    "while True:\n    print('flood')",
    "import os\nwhile True:\n    os.fork()",
    "import threading\nthreading.Thread(target=print).start()\nwhile True: pass",
    "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass",
    "(" * 5000 + "1" + ")" * 5000,
    "sum(range(10 ** 11))",
    "x = 'a'\nfor _ in range(60):\n    x += x\nlen(x)",
    "d = {}\nfor i in range(10 ** 9):\n    d[i] = i",
    "int('9' * 10 ** 6) ** 2 > 0 and [i for i in iter(int, 1)]",
    "a = []\na.append(a)\nwhile True: a = [a, a]",
    "list(iter(lambda: 1, 0))",
    "import asyncio\nasyncio.run(asyncio.sleep(10 ** 6))\nwhile True: pass",
    "import time\nwhile True:\n    time.time()",
    "def f(n):\n    return f(n + 1) + f(n + 1)\nf(0)",
    "x = 2\nwhile True:\n    x = x * x",
    "s = set()\nn = 0\nwhile True:\n    n += 1\n    s.add(n)",
    "x = []\nfor _ in range(10 ** 6):\n    x = [x]\nstr(x) * 10 ** 8",
    "class A:\n    def __eq__(self, other):\n        return self == other\nA() == A()\nwhile 1: 1",
    "'{:>10000000000}'.format(1)",
    "sorted(range(10 ** 9), key=lambda n: -n)",
]


@pytest.mark.parametrize(("code", "value"), HONEST)
async def test_sandbox_returns_the_result_of_an_honest_program(code: str, value: object) -> None:
    found = (await run_calculation(code, {"sex": "female"})).value
    assert found == pytest.approx(value) if isinstance(value, float) else found == value


@pytest.mark.parametrize("code", LEAKS)
async def test_sandbox_gives_no_access_to_files_network_or_environment(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(MARK)
    monkeypatch.setenv("SECRET", MARK)
    assert MARK not in await said_by(code, str(secret))


async def said_by(code: str, path: str) -> str:
    """All that comes back: it may list names of its own world, but no data of ours."""
    try:
        found = await run_calculation(code, {"path": path})
    except BadCalculation as error:
        return str(error)
    assert found.value != os.getpid()
    return f"{found.value}{found.printed}"


@pytest.mark.parametrize("code", DENIALS)
async def test_sandbox_stops_programs_that_exhaust_time_or_memory(code: str) -> None:
    with pytest.raises(BadCalculation):
        await asyncio.wait_for(run_calculation(code), 20)


async def test_sandbox_inputs_are_never_executed_as_code() -> None:
    name = "'); import os; os.system('id') #"
    assert await run_calculation("name", {"name": name}) == SandboxResult(name)


async def test_a_program_s_own_error_comes_back_for_the_model_to_mend() -> None:
    with pytest.raises(BadCalculation, match="ZeroDivisionError"):
        await run_calculation("1 / 0")


async def test_sandbox_refuses_none_and_infinity_as_results() -> None:
    with pytest.raises(BadCalculation, match="gave no result"):
        await run_calculation("x = 1")
    with pytest.raises(BadCalculation, match="not a finite number"):
        await run_calculation("float('inf')")


async def test_sandbox_refuses_a_program_over_its_length_limit() -> None:
    with pytest.raises(BadCalculation, match=f"at most {LONGEST}"):
        await run_calculation("1 + " * LONGEST + "1")


async def test_sandbox_has_seeded_randomness() -> None:
    code = "import random\nf'{random.random()}'"
    assert await run_calculation(code) == await run_calculation(code)


async def test_sandbox_keeps_concurrent_calculations_apart() -> None:
    found = await asyncio.gather(*(run_calculation("n * 2", {"n": n}) for n in range(20)))
    assert [each.value for each in found] == [2 * n for n in range(20)]


@pytest.mark.parametrize("code", ["10**400", "-(10**5000)"])
async def test_a_huge_integer_is_a_calculation_that_failed(code: str) -> None:
    with pytest.raises(BadCalculation, match="over 300 digits"):
        await run_calculation(code)


async def test_a_program_that_asks_for_today_is_told_that_there_is_no_clock() -> None:
    """It was given 1 January 2000, and told nobody."""
    with pytest.raises(BadCalculation, match="no clock"):
        await run_calculation("from datetime import date\ndate.today().year - 1950")
