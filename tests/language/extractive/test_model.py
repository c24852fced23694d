from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tomewise.language.extractive import ExtractiveModel
from tomewise.language.roles import ANSWER, GIST, LEVEL_BAND, ROLES, AnswerIn, AnswerOut, LevelOut, PassageIn, Shown
from tomewise.run import meter
from tomewise.types import Form, Role

PIECES = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "Mr. Scrooge met Bob Cratchit in London on 24 December 1843. ",
            "He was not kind. She left him! ",
            "Ann: I think the remote costs 25 euros.\n",
            "他来了。她走了！",
            "Who killed the man that Mary's brother met in Paris? ",
            "\n\n",
            "“Stop,” it said… ",
        ]
    ),
)
DRAWN = {str: st.lists(PIECES, max_size=6).map("".join), int: st.integers(0, 300), bool: st.booleans()}
DRAWN[int | None] = st.none() | DRAWN[int]
DRAWN[Form | None] = st.sampled_from([None, *get_args(Form)])


def draw_value(annotation: Any) -> st.SearchStrategy[Any]:
    """Any value of a field, its texts odd or plain."""
    if annotation in DRAWN:
        return DRAWN[annotation]
    if get_origin(annotation) is list:
        return st.lists(draw_value(get_args(annotation)[0]), max_size=4)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return draw_input(annotation)
    if is_dataclass(annotation):
        kinds = get_type_hints(annotation)
        return st.builds(annotation, **{field.name: draw_value(kinds[field.name]) for field in fields(annotation)})
    return st.sampled_from(get_args(annotation))


def draw_input(kind: type[BaseModel]) -> st.SearchStrategy[Any]:
    drawn = {name: draw_value(field.annotation) for name, field in kind.model_fields.items()}
    labels = {"label": st.sampled_from(["E1", "E2", "F1"])} if "label" in drawn else {}
    return st.builds(kind, **{**drawn, **labels})


@pytest.fixture
def model(embedder: Any) -> ExtractiveModel:
    return ExtractiveModel(embedder)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_any_input_gives_a_valid_output_and_the_same_one_again(
    model: ExtractiveModel, role: Role[BaseModel, BaseModel], data: st.DataObject
):
    given_ = data.draw(draw_input(role.input))
    output = await model.ask(role, given_)
    assert role.output.model_validate(output.model_dump()) == output
    assert await model.ask(role, given_) == output
    if isinstance(output, AnswerOut) and isinstance(given_, AnswerIn):
        shown = {(quote.label, quote.quote) for quote in output.quotes}
        assert all(any(e.label == label and quote in e.text for e in given_.evidence) for label, quote in shown)
        assert output.choice is None or (given_.options and not output.refused)
        assert output.supported != "full"
    if isinstance(output, LevelOut):
        low, high = LEVEL_BAND[output.level]
        assert low <= output.score <= high


@pytest.mark.parametrize("piece", ["A b. ", "........", "ab", "\n \n", "Who is the X of the Y ", "The man who ", '"A '])
async def test_a_megabyte_is_read_in_bounded_time(model: ExtractiveModel, piece: str):
    text = piece * (1_000_000 // len(piece))
    given_ = AnswerIn(question=text, evidence=[Shown(label="E1", text=text)], notes=[text], options=[text, text])
    assert isinstance(await model.ask(ANSWER, given_), AnswerOut)
    assert (await model.ask(GIST, PassageIn(text=text))).memory


async def test_calls_are_metered_and_cost_nothing(model: ExtractiveModel):
    with meter() as seen:
        await model.ask(GIST, PassageIn(text="Mr. Scrooge was cold. He sat down."))
    [call] = seen.calls
    assert (call.role, call.model, call.dollars) == ("gist", "extractive", 0.0)
    assert call.input_tokens > 0
    assert call.output_tokens > 0
