"""Prompt templates from strangers: what they may reach, how much they may write, how long they may take."""

import pickle
import time

import pytest

from tomewise.errors import UsageError
from tomewise.language import roles
from tomewise.language.prompts import Prompts
from tomewise.language.templates import LONGEST, Template

TEXT = "The keeper put out the light."
GIVEN = roles.AnswerIn(
    question="Who?",
    options=["a", "b"],
    evidence=[roles.Shown(label="E1", text=TEXT, title="Log"), roles.Shown(label="E2", text="Nobody asked.")],
    notes=["n"] * 60,
)


@pytest.fixture
def render(tmp_path):
    def render(template, given=GIVEN):
        (tmp_path / "answer.md").write_text(template, encoding="utf-8")
        return Prompts(tmp_path).render(roles.ANSWER, given)

    return render


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("method", ["parse_raw", "model_validate_json", "parse_file"])
def test_no_code_runs_by_way_of_the_input(render, tmp_path, method):
    made = tmp_path / "made"
    bomb = pickle.dumps(Touch(made), protocol=0).decode("latin-1").replace("\\", "\\\\").replace("\n", "\\n")
    template = f"""{{{{ evidence[0].{method}('{bomb}', proto="pickle", allow_pickle=True) }}}}"""
    with pytest.raises(UsageError, match=r"answer\.md"):
        render(template)
    assert not made.exists()


@pytest.mark.parametrize(
    "template",
    [
        "{{ evidence[0].model_dump }}", "{{ evidence[0].items }}", "{{ evidence.append }}", "{{ question.format }}",
        "{{ question.upper }}", "{{ question['upper'] }}", "{{ question.__class__ }}", "{{ question['__class__'] }}",
        "{{ evidence[0]['__class__'] }}", "{{ [].__class__ }}", "{{ ''.__class__.__mro__ }}", "{{ (1).real }}",
        "{{ loop }}", "{{ self }}", "{{ self._TemplateReference__context }}", "{{ _ends }}",
        "{{ question | _checked_items }}", "{{ __name__ }}", "{{ range }}", "{{ cycler }}", "{{ joiner }}",
        "{{ namespace }}", "{{ lipsum }}", "{{ dict }}", "{{ range(3) }}", "{{ question() }}",
        "{{ fenced('a', 'text') }}", "{{ question | attr('upper') }}", "{{ evidence | map(attribute='__class__') }}",
        "{{ evidence | map('upper') | list }}", "{{ question | format }}", "{{ question | string }}",
        "{{ question | safe }}", "{{ question | pprint }}", "{{ question is callable }}", "{{ {'a': 1} }}",
        "{{ 2 ** 99 }}", "{% for item in notes %}{{ loop.cycle }}{% endfor %}",
        "{% for item in notes %}{{ loop._iterator }}{% endfor %}",
        "{% for item in notes %}{{ loop.changed(1) }}{% endfor %}",
        "{% for item in notes recursive %}{{ loop(notes) }}{% endfor %}",
        "{% for item in notes recursive %}{% endfor %}", "{% set a = question %}{{ a }}", "{% set a %}x{% endset %}",
        "{% with a = question %}{{ a }}{% endwith %}", "{% macro m() %}x{% endmacro %}{{ m() }}",
        "{% call question() %}x{% endcall %}", "{% block b %}x{% endblock %}", "{% filter upper %}x{% endfilter %}",
        "{% autoescape true %}x{% endautoescape %}", "{% include 'answer.md' %}", "{% import 'answer.md' as a %}",
        "{% from 'answer.md' import a %}", "{% extends 'answer.md' %}", "{% do question %}",
        "{% for item in [notes, notes] %}x{% endfor %}", "{% for letter in question %}{{ letter }}{% endfor %}",
        "{{ question | fenced('no_such_tag') }}", "{{ question | fenced('a></evidence') }}",
    ],
)  # fmt: skip
def test_what_a_template_may_not_do_is_refused_by_name(render, template):
    with pytest.raises(UsageError, match=r"answer\.md"):
        render(template)


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{{ evidence[0].text }}", TEXT),
        ("{{ evidence[0]['title'] }}", "Log"),
        ("{{ evidence[-1].label }}{{ evidence[:1] | length }}", "E21"),
        ("{% for item in evidence %}{{ loop.index }}/{{ loop.length }}{{ item.label }} {% endfor %}", "1/2E1 2/2E2"),
        ("{% for item in evidence if item.label == 'E2' %}{{ loop.last }}{% else %}no{% endfor %}", "True"),
        ("{{ ('Q: ' ~ question) | fenced('question') }}", "<question>\nQ: Who?\n</question>"),
        ("{{ options | join(', ') }}{{ (3 * 0.7) | int }}", "a, b2"),
        ("{{ 'yes' if question in ['Who?', 'Where?'] and notes else 'no' }}", "yes"),
        ("{{ missing | default('none') }}{% if missing is defined %}x{% endif %}", "none"),
        ("{% if not instructions %}{{ question | upper }}{% endif %}", "WHO?"),
        ("{% raw %}{{ x }}{% endraw %}{# a remark #}", "{{ x }}"),
    ],
)
def test_what_a_prompt_needs_works(render, template, shown):
    assert render(template) == shown


def nest(depth, body, over="notes"):
    loops = "".join(f"{{% for v{level} in {over} %}}" for level in range(depth))
    return loops + body + "{% endfor %}" * depth


@pytest.mark.parametrize(
    "template",
    [
        nest(6, ""),
        nest(6, "x"),
        nest(6, "{{ '' }}"),
        nest(4, "{% if notes | join(question) == '' %}x{% endif %}"),
        nest(15, "{{ v0 }}"),
        nest(6, "{% if v1 %}{% endif %}", over="(notes if notes else options)"),
    ],
)
def test_loops_end(template):
    begun = time.thread_time()
    with pytest.raises(Exception, match="too long"):
        Template(template).render(GIVEN.model_dump(), seconds=0.2)
    assert time.thread_time() - begun < 2


def test_what_is_written_ends():
    with pytest.raises(Exception, match="more than 1,000 characters"):
        Template(nest(3, "{{ question }}")).render(GIVEN.model_dump(), most=1000)


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{{ 'x' * 10**9 }}", "pow"),
        ("{{ 'x' * 1000000000 }}", "numbers"),
        ("{{ [1] * 1000000000 }}", "numbers"),
        ("{{ question + question }}", "numbers"),
        ("{{ '%1000000000d' % 1 }}", "numbers"),
        ("{{ question" + " | numbered" * 12 + " }}", "lists"),
        ("{{ question" + " | join(question)" * 12 + " }}", "lists"),
        ("{{ " + "notes | join(" * 12 + "question" + ")" * 12 + " }}", "joins"),
        ("{{ " + "(" * 30 + "question" + " ~ question)" * 30 + " }}", None),
        ("{{ " + "1" * 5000 + " }}", "compiled"),
        ("{{ 1 }}" + "x" * LONGEST, "characters"),
        ("{{ " + "-" * 1000 + "1 }}", ""),
        ("{{ " + "(" * 20_000 + " }}", ""),
        ("{{ " + "not " * 20_000 + "1 }}", ""),
        (nest(30, "x"), "blocks"),
        ("{% if a %}" * 90 + "{% endif %}" * 90, "deep"),
        ("{{ 1" + " + 1" * 200 + " }}", "deep"),
        ("{%" * 30_000, ""),
        ("{{ '" * 20_000, ""),
        ("{#" * 30_000, ""),
    ],
)
def test_nothing_multiplies_a_text_or_the_work(render, template, says):
    begun = time.thread_time()
    given = GIVEN.model_copy(update={"question": "Who? " * 200})
    if says is None:
        assert len(render(template, given)) < 50_000
    else:
        with pytest.raises(UsageError, match=r"answer\.md") as raised:
            render(template, given)
        assert says in str(raised.value)
    assert time.thread_time() - begun < 3


@pytest.mark.parametrize(
    "template",
    [
        "{{ " + " ~ ".join(["options | join(question)"] * 30) + " }}",
        "{{ 'a' | fenced('evidence', " + ", ".join(f"k{n}=options | join(question)" for n in range(30)) + ") }}",
    ],
    ids=["joined", "attributes"],
)
def test_large_texts_are_not_held_side_by_side(template):
    given = {"question": "x" * 400_000, "options": ["a"] * 100}  # 40 million characters each
    with pytest.raises(Exception, match="filters make more than 200,000,000 characters"):
        Template(template).render(given)


@pytest.mark.parametrize("operator", ["*", "//", "%"])
def test_numbers_of_any_length_are_not_reckoned_with(operator):
    template = f"{{{{ question | int(0, 16) {operator} notes[0] | int(0, 16) }}}}"
    begun = time.thread_time()
    with pytest.raises(Exception, match="is for numbers up to"):
        Template(template).render({"question": "f" * 1_000_000, "notes": ["f" * 500_000]})
    assert time.thread_time() - begun < 1


def test_an_endless_file_is_not_read_to_its_end(tmp_path):
    with (tmp_path / "answer.md").open("wb") as file:
        file.truncate(10**12)  # a hole: it takes no room on the disk
    with pytest.raises(UsageError, match="characters"):
        Prompts(tmp_path).render(roles.ANSWER, GIVEN)


def test_data_of_a_prompt_is_plain():
    class Shell(str):
        def __str__(self):
            raise AssertionError("a method of the input was called")

    given = roles.FuseIn.model_construct(question=Shell("Who?"), cues=[])
    assert "Who?" in Prompts().render(roles.FUSE, given)
