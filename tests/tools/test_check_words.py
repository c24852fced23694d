"""The wording rules that a program can count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_words


def list_subjects(source: str, *, messages: bool = True) -> list[str]:
    return [fault.subject for fault in check_words.check_source(source, messages=messages)]


@pytest.mark.parametrize("name", ["fitting", "_told_apart", "told", "estimated_tokens", "spent", "unseen", "rebuilt"])
def test_a_function_name_may_not_begin_with_a_participle(name: str) -> None:
    assert list_subjects(f"def {name}(): ...") == [name] * (2 if name == "told" else 1)
    assert list_subjects(f"async def {name}(): ...")


@pytest.mark.parametrize(
    "name", ["fit_to_budget", "embed", "need_key", "put", "_cut", "read_rows", "test_told", "bring"]
)
def test_a_function_name_may_begin_with_a_base_form(name: str) -> None:
    assert list_subjects(f"def {name}(): ...") == []


def test_a_property_may_be_a_participle_but_must_say_what_it_holds() -> None:
    assert list_subjects("class A:\n    @property\n    def spent(self): ...") == []
    assert list_subjects("class A:\n    @cached_property\n    def held(self): ...") == ["held"]


@pytest.mark.parametrize(
    "source",
    [
        "one = 1",
        "[0 for one in rows]",
        "def f(one): ...",
        "def f(*, one=1): ...",
        "lambda one: 0",
        "class A:\n    one: int",
        "self.one = 1",
        "with f() as one: ...",
        "try: ...\nexcept E as one: ...",
        "import a as one",
        "match a:\n    case [one]: ...",
        "if (one := 1): ...",
    ],
)
def test_every_kind_of_name_is_checked_once(source: str) -> None:
    assert list_subjects(source) == ["one"]
    assert list_subjects(source.replace("one", "_other")) == ["_other"]
    assert list_subjects(source.replace("one", "passage")) == []


def test_an_operator_may_call_its_operand_other() -> None:
    assert list_subjects("class A:\n    def __add__(self, other): ...") == []
    assert list_subjects("class A:\n    def add(self, other): ...") == ["other"]


@pytest.mark.parametrize(
    "source",
    [
        """f"{n} piece{'s' * (n != 1)}" """,
        """(n != 1) * "s" """,
        """f"a {'whole ' * (kind == 'int')}number" """,
        """"not " * (not flag)""",
        """"s" * (a > 1 and b > 1)""",
        """"s" * any(rows)""",
        """def f(flag: bool): return f"a {'whole ' * flag}number" """,
        """flag = a > 1\nb = "s" * flag""",
        """class A:\n    flag: bool\n    def f(self): return "s" * self.flag""",
    ],
)
def test_a_product_of_a_bool_and_a_string_is_found(source: str) -> None:
    assert len(list_subjects(source)) == 1


@pytest.mark.parametrize(
    "source",
    ['"word " * 30', '"word " * count', '"l" + "r" * (len(rows) - 1)', "price * (count != 1)", '"x" * (count or 1)'],
)
def test_a_repeated_string_is_not_a_product_with_a_bool(source: str) -> None:
    assert list_subjects(source) == []


def test_words_are_found_on_their_lines() -> None:
    module = '"""A title.\n\nThere is\nno reply."""\n\n\n'
    source = module + 'def f():\n    """A title.\n\n    As told.\n    """\n    # Nothing is none.\n'
    assert [(fault.line, fault.subject) for fault in check_words.check_source(source, messages=False)] == [
        (3, "is no"),
        (10, "told"),
        (12, "is none"),
    ]


def test_messages_are_checked_and_strings_of_tests_are_not() -> None:
    source = 'raise E(f"the server {name} said {reply}")'
    assert list_subjects(source) == ["said"]
    assert list_subjects(source, messages=False) == []
    assert list_subjects('VERBS = ("said", "told")') == []


@pytest.mark.parametrize("text", ["It is no longer here.", "Aforesaid, untold.", "Use `told` not.", "```\ntold\n```"])
def test_other_uses_of_the_words_are_allowed(text: str) -> None:
    assert list(check_words.find_words(text, 1)) == []


def test_code_in_a_page_does_not_move_the_lines() -> None:
    assert [fault.line for fault in check_words.find_words("a\n```\nsaid\n```\nIt IS No use.", 1)] == [5]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in check_words.FOLDERS:
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(check_words, "ROOT", tmp_path)
    monkeypatch.setattr(check_words, "EXCEPTIONS", {})
    return tmp_path


def test_a_project_without_faults(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "src" / "a.py").write_text("def fit(): ...\n")
    assert check_words.main() == 0
    assert capsys.readouterr().out == "words: no faults (0 named exceptions)\n"


def test_a_fault_is_printed_with_its_place(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "src" / "a.py").write_text("\ndef fitting(): ...\n")
    (project / "README.md").write_text("As told.\n")
    assert check_words.main() == 1
    source, page = capsys.readouterr().out.splitlines()
    assert source == "src/a.py:2: 'fitting': begin the name of a function with a verb in its base form"
    assert page == "README.md:1: 'told': see the words in CONTRIBUTING.md"


def test_an_exception_covers_its_file_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.py", "b.py"):
        (project / "src" / name).write_text("# There is no way.\n")
    monkeypatch.setattr(check_words, "EXCEPTIONS", {"src/a.py: is no": "a quotation"})
    assert check_words.main() == 1
    assert capsys.readouterr().out == "src/b.py:1: 'is no': see the words in CONTRIBUTING.md\n"


def test_unused_exceptions_and_more_than_ten_are_faults(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_words, "EXCEPTIONS", {f"src/{number}.py: told": "" for number in range(11)})
    assert check_words.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "src/0.py: told: this exception is not needed: remove it"
    assert lines[-1] == "11 exceptions: keep at most 10"
