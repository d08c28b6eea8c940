"""What is public is said, exists, and costs nothing to import."""

import subprocess
import sys

import osler

HEAVY = ("pydantic", "numpy", "rich", "typer", "onnx", "onnxruntime", "xllamacpp", "lxml", "jinja2")


def test_every_public_name_exists_and_is_documented() -> None:
    for name in osler.__all__:
        assert getattr(osler, name).__doc__


def test_nothing_else_is_public() -> None:
    assert set(osler.__all__) <= set(dir(osler))
    assert len(osler.__all__) <= 25


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(osler, "nonsense")


def test_import_osler_loads_nothing_heavy() -> None:
    code = (
        f"import sys, osler; sys.stderr.write(','.join(m for m in {HEAVY!r} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.stderr.strip() == ""
    assert done.returncode == 0


def test_the_help_page_loads_no_engine_and_no_settings() -> None:
    code = (
        "import sys\n"
        "from osler.cli import main\n"
        "sys.argv = ['osler', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'pydantic', 'numpy', 'onnx', 'xllamacpp', 'lxml'} & set(sys.modules)\n"
        "sys.stderr.write(','.join(heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.stderr.strip() == ""
    assert done.returncode == 0
