"""The wording rules that a program can count."""

from __future__ import annotations

import pytest

from tools import check_words


def list_subjects(source: str, *, messages: bool = True) -> list[str]:
    return [fault.subject for fault in check_words.check_source(source, messages=messages)]


FALSE_NAMES = ("fitting", "_told_apart", "estimated_tokens", "spent", "unseen", "rebuilt")
TRUE_NAMES = ("fit_to_budget", "embed", "need_key", "put", "_cut", "read_rows", "test_told", "bring")
FOUND = {
    **{f"def {name}(): ...": [name] for name in FALSE_NAMES},
    **{f"def {name}(): ...": [] for name in TRUE_NAMES},
    "async def fitting(): ...": ["fitting"],
    "def told(): ...": ["told", "told"],
    "class A:\n    @property\n    def spent(self): ...": [],
    "class A:\n    @cached_property\n    def held(self): ...": ["held"],
    "class A:\n    def __add__(self, other): ...": [],
    "class A:\n    def add(self, other): ...": ["other"],
    'raise E(f"the server {name} said {reply}")': ["said"],
    'VERBS = ("said", "told")': [],
}


@pytest.mark.parametrize(("source", "subjects"), FOUND.items())
def test_functions_begin_with_a_base_form_and_names_say_what_they_hold(source: str, subjects: list[str]) -> None:
    assert list_subjects(source) == subjects
    if source.startswith("raise"):
        assert list_subjects(source, messages=False) == [], "strings of tests are not checked"


PRODUCTS = (
    """f"{n} piece{'s' * (n != 1)}" """,
    """f"a {'whole ' * (kind == 'int')}number" """,
    """"s" * (a > 1 and b > 1)""",
    """def f(flag: bool): return f"a {'whole ' * flag}number" """,
    """flag = a > 1\nb = "s" * flag""",
    """class A:\n    flag: bool\n    def f(self): return "s" * self.flag""",
)
REPEATED = ('"word " * 30', '"word " * count', '"l" + "r" * (len(rows) - 1)', "price * (n != 1)", '"x" * (n or 1)')


@pytest.mark.parametrize(
    ("source", "count"), [*dict.fromkeys(PRODUCTS, 1).items(), *dict.fromkeys(REPEATED, 0).items()]
)
def test_a_product_of_a_bool_and_a_string_is_found(source: str, count: int) -> None:
    assert len(list_subjects(source)) == count


def test_words_are_found_on_their_lines() -> None:
    module = '"""A title.\n\nThere is\nno reply."""\n\n\n'
    source = module + 'def f():\n    """A title.\n\n    As told.\n    """\n    # Nothing is none.\n'
    assert [(fault.line, fault.subject) for fault in check_words.check_source(source, messages=False)] == [
        (3, "is no"),
        (10, "told"),
        (12, "is none"),
    ]
