"""Settings: the order of the layers, what they refuse, and the file of `osler init`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from osler.errors import BadConfig, UnknownStrategy
from osler.settings import (
    STRATEGIES,
    AnswerSettings,
    AutoSettings,
    DirectSettings,
    KagThinkerSettings,
    LoadedSettings,
    RagSettings,
    RetrieveSettings,
    Settings,
    TcRagSettings,
    flatten_settings,
    load,
    read_presets,
    render_settings,
    render_template,
    user_file,
    write_template,
)
from osler.settings.show import write_keys


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))


def loaded(
    cwd: Path,
    text: str = "",
    *,
    flags: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    preset: str | None = None,
) -> LoadedSettings:
    if text:
        (cwd / "osler.toml").write_text(text, encoding="utf-8")
    return load(flags or {}, cwd=cwd, env=env or {}, preset=preset)


def refusal(cwd: Path, text: str = "", **layers: Mapping[str, str]) -> str:
    with pytest.raises(BadConfig) as caught:
        loaded(cwd, text, **layers)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_knowledge_base_in_the_folder_is_found_from_it(tmp_path: Path) -> None:
    (tmp_path / ".osler").mkdir()
    assert loaded(tmp_path).settings.home != Path(".osler"), "it holds no knowledge base"
    (tmp_path / ".osler" / "kb").mkdir()
    here = loaded(tmp_path)
    assert here.settings.kb.path == Path(".osler/kb")
    assert here.settings.runs.path == Path(".osler/runs")
    assert here.origins["home"] == "the folder .osler"
    named = loaded(tmp_path, 'home = "elsewhere"')
    assert named.settings.home == Path("elsewhere"), "a file that names one is nearer"


def test_without_any_layer_the_settings_are_the_defaults(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert found.settings == Settings()
    assert set(found.origins.values()) == {"default"}


def test_the_defaults_of_the_papers_are_in_force() -> None:
    settings = Settings()
    assert settings.sampling.temperature == 0.6
    assert settings.sampling.max_tokens == 500
    assert settings.retrieve.k == 10
    assert TcRagSettings().sigma is None


def test_where_no_strategy_is_named_it_is_auto_and_a_key_of_another_says_whose_it_is(
    tmp_path: Path,
) -> None:
    assert Settings().strategy == loaded(tmp_path, "").settings.strategy == AutoSettings()
    message = refusal(tmp_path, "[strategy]\nsigma = 3")
    assert "set strategy.kind too; sigma belongs to tc-rag, unified" in message


def test_the_nearest_layer_wins_and_says_so(tmp_path: Path) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text(
        "[retrieve]\nk = 2\nrrf_k = 2\ndepth = 2\ndense_weight = 2\n"
        '[strategy]\nkind = "tc-rag"\nsigma = 2',
        encoding="utf-8",
    )
    found = loaded(
        tmp_path,
        "[retrieve]\nk = 3\nrrf_k = 3\ndepth = 3\n",
        env={"OSLER__RETRIEVE__K": "4", "OSLER__RETRIEVE__RRF_K": "4"},
        flags={"retrieve.k": 5, "retrieve.depth": None},
        preset="tc-rag-uct",
    )
    chosen, origins = found.settings.retrieve, found.origins
    assert (chosen.k, chosen.rrf_k, chosen.depth, chosen.dense_weight) == (5, 4, 3, 2.0)
    assert isinstance(found.settings.strategy, TcRagSettings)
    assert found.settings.strategy.sigma == 2
    assert origins["retrieve.k"] == "command line"
    assert origins["retrieve.rrf_k"] == "$OSLER__RETRIEVE__RRF_K"
    assert origins["retrieve.depth"] == f"{tmp_path / 'osler.toml'}:4"
    assert origins["retrieve.dense_weight"] == f"{user_file()}:5"
    assert origins["strategy.metric"] == "preset tc-rag-uct:5"
    assert origins["retrieve.lexical_weight"] == "default"


def test_a_named_file_takes_the_place_of_the_one_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "osler.toml").write_text("[retrieve]\nk = 3\ndepth = 30")
    (tmp_path / "other.toml").write_text("[retrieve]\nk = 4")
    found = load({}, cwd=tmp_path, env={}, file=Path("other.toml"))
    assert (found.settings.retrieve.k, found.settings.retrieve.depth) == (4, 64)


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot read"):
        load({}, cwd=tmp_path, env={}, file=Path("absent.toml"))


def test_knowledge_base_and_runs_lie_in_home(tmp_path: Path) -> None:
    settings = loaded(tmp_path, env={"OSLER__HOME": "/srv/osler"}).settings
    assert settings.kb.path == Path("/srv/osler/kb")
    assert settings.runs.path == Path("/srv/osler/runs")


def test_a_path_that_is_set_does_not_follow_home(tmp_path: Path) -> None:
    found = loaded(tmp_path, 'home = "/srv"\n[kb]\npath = "~/mine"\nsources = ["book"]')
    assert found.settings.kb.path == Path.home() / "mine"
    assert found.settings.runs.path == Path("/srv/runs")


def test_a_list_in_the_environment_is_written_with_commas(tmp_path: Path) -> None:
    found = loaded(tmp_path, env={"OSLER__KB__SOURCES": "book, guideline,"})
    assert found.settings.kb.sources == ("book", "guideline")


LISTS = ("access.private", "access.deidentify", "access.held", "serve.uploads", "kb.sources")


@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize(
    "written",
    ["guideline,own", '["guideline","own"]', "['guideline', 'own',]", ' [ "guideline","own" ] '],
)
def test_a_list_in_the_environment_may_be_written_as_toml_or_json(
    tmp_path: Path, key: str, written: str
) -> None:
    """`["guideline"]` was a source of that name, brackets and all: nothing became private."""
    section, _, name = key.partition(".")
    settings = loaded(tmp_path, env={f"OSLER__{section}__{name}".upper(): written}).settings
    assert getattr(getattr(settings, section), name) == ("guideline", "own")


@pytest.mark.parametrize("key", [*LISTS, "access.remote", "access.patients", "serve.hosts"])
@pytest.mark.parametrize("written", ["[guideline]", '["guideline"', '"guideline"', "'a','b'"])
def test_a_list_that_is_half_toml_is_refused_with_its_place(
    tmp_path: Path, key: str, written: str
) -> None:
    name = f"OSLER__{key.replace('.', '__')}".upper()
    message = refusal(tmp_path, env={name: written})
    assert name in message
    assert "a,b" in message


@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("name", ["Guideline", "guide line", "<own>", "-own"])
def test_a_name_that_no_source_can_have_is_refused(tmp_path: Path, key: str, name: str) -> None:
    section, _, last = key.partition(".")
    assert name in refusal(tmp_path, f'[{section}]\n{last} = ["{name}"]')


def test_none_in_a_nearer_layer_removes_a_limit(tmp_path: Path) -> None:
    text = "[budget]\ncalls = 5\nseconds = 1.5"
    found = loaded(tmp_path, text, env={"OSLER__BUDGET__CALLS": "none"})
    assert found.settings.budget.calls is None
    assert found.settings.budget.seconds == 1.5


def test_an_unknown_key_is_refused_with_its_place_and_the_nearest_key(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[retrieve]\n\nrrf_kk = 3")
    assert f"{tmp_path / 'osler.toml'}:3: unknown key 'rrf_kk' in [retrieve]" in message
    assert "did you mean 'rrf_k'?" in message
    assert "allowed: k, rrf_k, dense_weight" in message


def test_an_unknown_section_is_refused_with_the_sections(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[retreive]\nk = 3")
    assert "unknown section [retreive]; did you mean 'retrieve'?" in message


@pytest.mark.parametrize("text", ["[kbb]", "kbb = 1", "[[kbb]]", "[kb.inner]\nx = 1"])
def test_unknown_keys_and_sections_are_refused(tmp_path: Path, text: str) -> None:
    assert "osler.toml" in refusal(tmp_path, text)


@pytest.mark.parametrize("text", ["kb = 3", "[[kb]]", "strategy = 'rag'"])
def test_value_in_place_of_a_section_is_refused(tmp_path: Path, text: str) -> None:
    assert "is a section, not a value" in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("OSLER__RETRIEVE__KK", "unknown key 'kk'"),
        ("OSLER__KB__A__B", "unknown section [kb.a]"),
        ("OSLER__NOTHING", "unknown key 'nothing'"),
        ("OSLER__", "unknown key ''"),
    ],
)
def test_an_unknown_name_in_the_environment_is_refused(
    tmp_path: Path, name: str, told: str
) -> None:
    message = refusal(tmp_path, env={name: "1"})
    assert f"${name}: {told}" in message


def test_unrelated_environment_variables_are_ignored(tmp_path: Path) -> None:
    assert loaded(tmp_path, env={"OSLER_KB": "x", "osler__kb__x": "y"}).settings == Settings()


def test_a_syntax_error_names_file_and_line(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[kb]\nsources = [")
    assert str(tmp_path / "osler.toml") in message
    assert "line 2" in message or "end of document" in message


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "osler.toml").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8 text" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[retrieve]\nk = 0", "retrieve.k: Input should be greater than or equal to 1 (it is 0)"),
        ("[retrieve]\nk = true", "retrieve.k: expected a number, not true or false (it is True)"),
        ("[retrieve]\nk = 1.5", "retrieve.k: "),
        ("[retrieve]\ndense_weight = nan", "retrieve.dense_weight: "),
        ("[budget]\nseconds = inf", "budget.seconds: "),
        ("[budget]\ntokens = 0", "budget.tokens: "),
        ("[strategy]\nkind = 'tc-rag'\nsigma = 0", "strategy.sigma: "),
        ("[strategy]\nkind = 'tc-rag'\nmetric = 'ppl'", "strategy.metric: "),
        ("[kb]\nsources = ['']", "kb.sources: "),
        ("[kb]\nsources = 3", "kb.sources: "),
        ("[kb]\npath = ''", "kb.path: expected a path"),
        ("[kb]\ncollection = 'a b/../c'", "kb.collection: "),
        ("[kb]\nchunk = '10'", "kb.chunk: unknown chunking '10'"),
        ("[kb]\nchunk = '100+90'", "kb.chunk: chunks of 100 characters cannot overlap by 90"),
        ("home = {a = 1}", "home: "),
        ("[model]\nkind = 'gguf'", '[model]: kind = "gguf" needs path'),
        ("[retrieve]\ndense_weight = 0\nlexical_weight = 0", "[retrieve]: dense_weight and"),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_its_place(
    tmp_path: Path, text: str, told: str
) -> None:
    message = refusal(tmp_path, text)
    assert told in message
    assert f"{tmp_path / 'osler.toml'}:" in message


def test_two_wrong_values_are_both_told(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[retrieve]\nk = 0\ndepth = 0")
    assert "retrieve.k" in message
    assert "retrieve.depth" in message


def test_an_unknown_strategy_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownStrategy) as caught:
        loaded(tmp_path, flags={"strategy.kind": "tcrag"})
    assert "did you mean 'tc-rag'?" in str(caught.value)
    assert "known: direct, cot, rag, tc-rag" in str(caught.value)


def test_a_preset_given_as_a_strategy_is_recognised(tmp_path: Path) -> None:
    with pytest.raises(UnknownStrategy, match="that is a preset, --preset fast"):
        loaded(tmp_path, flags={"strategy.kind": "fast"})


def test_a_strategy_that_is_no_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownStrategy):
        loaded(tmp_path, "[strategy]\nkind = ['rag']")


def test_an_unknown_preset_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="did you mean 'fast'"):
        loaded(tmp_path, preset="fastt")


def test_choosing_another_strategy_forgets_what_was_set_for_the_first(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        '[strategy]\nkind = "tc-rag"\nsigma = 3\nk = 9',
        flags={"strategy.kind": "rag", "strategy.k": 6},
    )
    assert found.settings.strategy == RagSettings(k=6)
    assert found.origins["strategy.kind"] == "command line"


def test_naming_the_same_strategy_keeps_what_was_set_for_it(tmp_path: Path) -> None:
    found = loaded(
        tmp_path, '[strategy]\nkind = "tc-rag"\nsigma = 3', flags={"strategy.kind": "tc-rag"}
    )
    assert found.settings.strategy == TcRagSettings(sigma=3)


def test_a_key_of_another_strategy_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, '[strategy]\nkind = "direct"\nk = 3')
    assert "unknown key 'k' in [strategy] with kind = \"direct\"" in message


def test_values_are_substituted_after_parsing(tmp_path: Path) -> None:
    text = '[kb]\npath = "${BASE}/x${N:-1}$$"\nsources = ["${SOURCE:-book}"]'
    hostile = '"\nhome = "/evil'
    found = loaded(tmp_path, text, env={"BASE": f"/data{hostile}"}).settings
    assert found.kb.path == Path(f"/data{hostile}/x1$")
    assert found.kb.sources == ("book",)
    assert found.home == Settings().home


def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    message = refusal(tmp_path, '[kb]\npath = "${NOWHERE}/x"')
    assert "osler.toml:2: kb.path uses ${NOWHERE}, which is not set" in message


def test_an_empty_variable_is_a_value_and_its_default_is_not_used(tmp_path: Path) -> None:
    found = loaded(tmp_path, '[kb]\npath = "/a${EMPTY:-b}"', env={"EMPTY": ""})
    assert found.settings.kb.path == Path("/a")


def test_substituted_values_are_not_substituted_again(tmp_path: Path) -> None:
    found = loaded(tmp_path, '[kb]\npath = "/${A}"', env={"A": "${B}"})
    assert found.settings.kb.path == Path("/${B}")


@pytest.mark.parametrize("name", sorted(read_presets()))
def test_every_preset_loads(tmp_path: Path, name: str) -> None:
    assert loaded(tmp_path, preset=name).settings != Settings()


def test_the_presets_of_tc_rag_are_algorithm_1_with_the_paper_s_thresholds(tmp_path: Path) -> None:
    """Every action at every step; lines 24 and 31 as the box has them; sigma of App. 8.5."""
    cppl = loaded(tmp_path, preset="tc-rag-cppl").settings.strategy
    uct = loaded(tmp_path, preset="tc-rag-uct").settings.strategy
    box = TcRagSettings(moves="any", dialect="paper", exhausted="top", fresh=False)
    assert cppl == box.model_copy(update={"metric": "cppl", "sigma": 10})
    assert uct == box.model_copy(update={"metric": "uct", "sigma": 20})


def test_the_presets_of_kag_thinker_are_the_ways_to_run_it(tmp_path: Path) -> None:
    """Text (§4.1), the graph by form as well (§3.4), a planner for another reader (Table 8)."""
    text, hybrid, planner = (
        loaded(tmp_path, preset=f"kag-thinker-{way}").settings
        for way in ("text", "hybrid", "planner")
    )
    paper = KagThinkerSettings(own_search=0, fresh=False)
    assert text.strategy == paper.model_copy(update={"retriever": "text"})
    assert hybrid.strategy == planner.strategy == paper
    assert planner.model_for("planner").name == "kag-thinker-multiturn"
    assert planner.model_for("reader") == planner.model == Settings().model
    spoken = loaded(tmp_path, preset="kag-thinker-checkpoint").settings
    assert spoken.strategy == KagThinkerSettings(dialogue="checkpoint")
    assert spoken.model_for("reader").name == "kag-thinker-multiturn"


FAMILIES = ("claude", "deepseek-r1", "gemma3", "gpt", "llama3", "medgemma", "qwen3")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_s_preset_is_a_server_s_model_and_says_what_it_was_checked_against(
    tmp_path: Path, name: str
) -> None:
    settings = loaded(tmp_path, preset=name).settings
    assert settings.model.kind == "openai"
    assert settings.model.request_fields is not None
    assert settings.strategy == Settings().strategy
    words = " ".join(line.strip("# ") for line in read_presets()[name].splitlines())
    assert "Checked against documentation alone" in words
    assert "No claim of quality" in words
    # A layer nearer than a preset, as a file is, names the user's own.
    mine = loaded(tmp_path, '[model]\nname = "mine"\n', preset=name).settings
    assert (mine.model.name, mine.model.url) == ("mine", settings.model.url)


def test_the_page_of_the_command_line_names_every_preset() -> None:
    page = (Path(__file__).parents[3] / "docs/guide/cli.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if "a preset: `--profile`" in line)
    assert {f"`{name}`" for name in read_presets()} <= set(re.findall(r"`[\w-]+`", line))


def test_fast_searches_once_and_lets_no_model_write(tmp_path: Path) -> None:
    settings = loaded(tmp_path, preset="fast").settings
    assert isinstance(settings.strategy, RagSettings)
    assert settings.model.writes == "no"


def test_quotes_lets_a_model_pick_and_not_write(tmp_path: Path) -> None:
    settings = loaded(tmp_path, preset="quotes").settings
    assert (settings.model.writes, settings.answer.judge) == ("no", "model")


def test_the_template_loads_to_the_defaults(tmp_path: Path) -> None:
    assert loaded(tmp_path, render_template()).settings == Settings()


def test_the_template_without_comment_marks_loads_to_the_defaults(tmp_path: Path) -> None:
    text = "\n".join(
        line.removeprefix("#") if not line.startswith("# ") else line
        for line in render_template().splitlines()
    )
    found = loaded(tmp_path, text)
    assert found.settings == Settings()
    assert "default" not in found.origins.values()


def test_the_template_describes_every_key() -> None:
    lines = render_template().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("#") and not line.startswith("# "):
            assert lines[number - 1].startswith("# "), line


def test_the_template_is_not_written_over_a_file(tmp_path: Path) -> None:
    target = tmp_path / "osler.toml"
    write_template(target)
    with pytest.raises(BadConfig, match="already exists; --force"):
        write_template(target)
    write_template(target, overwrite=True)
    assert target.read_text(encoding="utf-8") == render_template()


def test_a_template_cannot_be_written_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot write"):
        write_template(tmp_path / "no" / "osler.toml")


def test_shown_settings_can_be_loaded_again(tmp_path: Path) -> None:
    first = loaded(tmp_path, env={"OSLER__KB__PATH": 'a"b$c\\d', "OSLER__BUDGET__CALLS": "3"})
    again = loaded(tmp_path, render_settings(first))
    assert again.settings == first.settings


def test_every_value_is_shown_with_its_origin(tmp_path: Path) -> None:
    shown = render_settings(loaded(tmp_path, "[retrieve]\nk = 3"), origin=True)
    assert f"k = 3  # {tmp_path / 'osler.toml'}:2" in shown
    assert "depth = 64  # default" in shown
    # A role is shown only when it has a model of its own.
    assert set(tomllib.loads(shown)) == set(Settings.model_fields) - {"roles"}


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Settings().retrieve.k = 3


@pytest.mark.parametrize(("processors", "threads"), [(8, 7), (2, 1), (1, 1), (None, 1)])
def test_default_threads_are_the_processors_less_one_and_at_least_one(
    monkeypatch: pytest.MonkeyPatch, processors: int | None, threads: int
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: processors)
    assert Settings().model.thread_count == threads
    assert Settings.model_validate({"model": {"threads": 3}}).model.thread_count == 3


SECTIONS = [
    *(type(v) for v in vars(Settings()).values() if isinstance(v, BaseModel)),
    *STRATEGIES.values(),
]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda s: s.__name__)
def test_every_number_is_bounded_on_both_sides(section: type[BaseModel]) -> None:
    schema = section.model_json_schema()["properties"]
    for name, field in schema.items():
        for kind in field.get("anyOf", [field]):
            if kind.get("type") in ("integer", "number"):
                assert {"maximum", "exclusiveMaximum"} & kind.keys(), name
                assert {"minimum", "exclusiveMinimum"} & kind.keys(), name


@given(
    k=st.integers(1, 200),
    weight=st.floats(0, 100, exclude_min=True),
    share=st.floats(0, 1),
    path=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(
        str.strip
    ),
)
def test_any_settings_survive_being_shown_and_loaded(
    tmp_path_factory: pytest.TempPathFactory, k: int, weight: float, share: float, path: str
) -> None:
    settings = Settings.model_validate(
        {
            "kb": {"path": f"/{path}"},
            "retrieve": RetrieveSettings(k=k, dense_weight=weight),
            "answer": AnswerSettings(answers_from=share),
            "strategy": DirectSettings(),
        }
    )
    origins = dict.fromkeys(flatten_settings(settings), "x")
    cwd = tmp_path_factory.mktemp("any")
    (cwd / "osler.toml").write_text(
        render_settings(LoadedSettings(settings, origins)), encoding="utf-8", newline="\n"
    )
    assert load({}, cwd=cwd, env={}).settings == settings


JUDGE = """
[model]
kind = "openai"
url = "http://127.0.0.1:8000/v1"
name = "big"
[roles.judge]
name = "strict"
"""


def test_a_role_is_as_the_model_but_for_what_it_sets(tmp_path: Path) -> None:
    settings = loaded(tmp_path, JUDGE).settings
    judge = settings.model_for("judge")
    assert (judge.url, judge.name) == ("http://127.0.0.1:8000/v1", "strict")
    assert settings.model_for("reader") == settings.model != judge


def test_an_endpoint_of_a_role_can_come_from_the_environment(tmp_path: Path) -> None:
    env = {
        "OSLER__ROLES__READER__KIND": "openai",
        "OSLER__ROLES__READER__URL": "http://127.0.0.1:1/v1",
        "OSLER__ROLES__READER__NAME": "m",
    }
    found = loaded(tmp_path, env=env)
    assert found.settings.model_for("reader").url == "http://127.0.0.1:1/v1"
    assert found.settings.model_for("planner").kind == "packaged"
    assert found.origins["roles.reader.url"] == "$OSLER__ROLES__READER__URL"
    assert found.origins["roles.reader.context"] == "as [model]"


def test_roles_are_shown_and_loaded_again(tmp_path: Path) -> None:
    first = loaded(tmp_path, JUDGE)
    assert "[roles.judge]" in render_settings(first)
    assert "[roles.reader]" not in render_settings(first)
    assert loaded(tmp_path, render_settings(first)).settings == first.settings
    assert Settings.model_validate(first.settings.model_dump(mode="json")) == first.settings


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[roles.raeder]\nname = 'm'", (":2", "unknown section [roles.raeder]", "roles.reader")),
        ("[roles.reader]\nnmae = 'm'", (":2", "unknown key 'nmae' in [roles.reader]", "'name'")),
        ("[roles.reader]\nkind = 'gguf'", (":2", "[roles.reader]", 'needs path = "FILE.gguf"')),
        ("[roles.reader]\nslots = 0", (":2", "roles.reader.slots", "it is 0")),
        ("[roles]\nreader = 'm'", (":2", "roles.reader is a section", "below [roles.reader]")),
        ("roles = 'm'", (":1", "roles is a section", "below [roles.planner]")),
    ],
)
def test_a_wrong_role_is_told_with_its_place(
    tmp_path: Path, text: str, parts: tuple[str, ...]
) -> None:
    with pytest.raises(BadConfig) as caught:
        loaded(tmp_path, text)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("told", "fields"),
    [
        ("think=false", ("think=false",)),
        ('provider={"order": ["a", "b"]}', ('provider={"order": ["a", "b"]}',)),
        ('["think=false", "top_k=5"]', ("think=false", "top_k=5")),
        ("", ()),
    ],
)
def test_fields_of_a_request_are_set_outside_a_file_too(
    tmp_path: Path, told: str, fields: tuple[str, ...]
) -> None:
    server = {"model.kind": "openai", "model.url": "http://m:1/v1", "model.name": "m"}
    by_flag = loaded(tmp_path, flags=server | {"model.request": told})
    by_name = loaded(tmp_path, flags=server, env={"OSLER__MODEL__REQUEST": told})
    assert by_flag.settings.model.request == by_name.settings.model.request == fields


KEPT = """\
home = "/x"

[model]
# thinking = how long it may think, in tokens
thinking = 5  # agreed with "Ann"
request = [
  # thinking = 9
  "a=#1",  # the first
  "b=2",
]
name = "m"

[kb]
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_keys_are_written_and_every_other_line_stays(tmp_path: Path, line_end: str) -> None:
    path = tmp_path / "osler.toml"
    path.write_text(KEPT, encoding="utf-8", newline=line_end)
    write_keys(path, "model", {"thinking": 7, "parallel": 2})
    written = KEPT.replace("= 5 ", "= 7 ").replace("[model]\n", "[model]\nparallel = 2\n")
    assert path.read_bytes().decode() == written.replace("\n", line_end)
    write_keys(path, "model", {"request": ["c=1"]})
    lines = path.read_text("utf-8").splitlines()
    assert lines[3:9] == [*written.splitlines()[3:6], 'request = ["c=1"]', 'name = "m"', ""]


def test_a_key_in_another_form_is_refused_with_the_form_to_write(tmp_path: Path) -> None:
    path = tmp_path / "osler.toml"
    path.write_text("strategy.k = 5\n", encoding="utf-8")
    with pytest.raises(BadConfig, match=r"below \[strategy\]"):
        write_keys(path, "strategy", {"k": 3})
    assert path.read_text("utf-8") == "strategy.k = 5\n"
