"""Ask about several neighbouring passages in one call; the reply holds one item for each passage, under its label.

The role of a batch has the name and the prompt of the role for one passage, so that the models and prompts chosen for
that role are used for batches too. The template sees a list `passages` of inputs, in place of the fields of one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, WithJsonSchema, create_model

from tomewise.concurrency import gather_calls
from tomewise.errors import BadReply, BudgetExceeded, ModelError, ModelUnavailable
from tomewise.language.cached import Cached
from tomewise.language.labels import find_number, read_label
from tomewise.language.reply import make_lean_schema
from tomewise.language.roles import Batch, BatchOut, PassageIn
from tomewise.run import ASKED_ALONE, record_fallback
from tomewise.types import In, LanguageModel, Out, Role

MOST_TOGETHER = 16  # passages in one call: the reply to more may not fit the bound of a model
T = TypeVar("T")


async def ask_together(
    model: LanguageModel, role: Role[In, Out], inputs: Sequence[In], together: int
) -> list[Out | ModelError]:
    """The outputs of `role` for neighbouring passages, in order; an error in place of an output that failed for good.

    The passages whose output is not cached are asked about in one call, and one by one if the call fails. A passage
    whose item is missing, doubled or malformed is asked about alone. Each output is cached under its input and
    `together`, so no call is repeated for a build that was stopped, or for passages that moved to another group. Raises
    ModelUnavailable and BudgetExceeded.
    """
    if together == 1:
        return await gather_calls(catch_failure(model.ask(role, given)) for given in inputs)
    recalled = await gather_calls(_recall_output(model, role, given, together) for given in inputs)
    outputs: dict[int, Out | ModelError] = {at: output for at, output in enumerate(recalled) if output is not None}
    missing = [at for at in range(len(inputs)) if at not in outputs]
    if len(missing) > 1:
        found = await _ask_batch(model, role, [inputs[at] for at in missing], together)
        outputs |= {at: output for at, output in zip(missing, found, strict=True) if output is not None}
        record_fallback(ASKED_ALONE, len(inputs) - len(outputs))
    alone = [at for at in missing if at not in outputs]
    outputs |= zip(
        alone, await gather_calls(_ask_alone(model, role, inputs[at], together) for at in alone), strict=True
    )
    return [outputs[at] for at in range(len(inputs))]


async def _recall_output(model: LanguageModel, role: Role[In, Out], given: In, together: int) -> Out | None:
    if not isinstance(model, Cached):
        return None
    cached = await model.recall(*make_batch(role, [given], together))
    return None if cached is None else read_items(role, [given], cached)[0]


async def _ask_batch(
    model: LanguageModel, role: Role[In, Out], inputs: Sequence[In], together: int
) -> list[Out | None]:
    """One call; no outputs if it fails, because every passage can still be asked about alone."""
    reply = await catch_failure(model.ask(*make_batch(role, inputs, together)))
    if isinstance(reply, ModelError):
        return [None] * len(inputs)
    outputs = read_items(role, inputs, reply)
    for given, output in zip(inputs, outputs, strict=True):
        if output is not None:
            await _keep_output(model, role, given, together, output)
    return outputs


async def _keep_output(model: LanguageModel, role: Role[In, Out], given: In, together: int, output: Out) -> None:
    if isinstance(model, Cached):
        batch_role, batch = make_batch(role, [given], together)
        await model.keep(batch_role, batch, batch_role.output(passages=write_items([output])))


async def _ask_alone(model: LanguageModel, role: Role[In, Out], given: In, together: int) -> Out | ModelError:
    output = await catch_failure(model.ask(role, given))
    if not isinstance(output, ModelError):
        await _keep_output(model, role, given, together, output)
    elif isinstance(model, Cached):
        await model.drop(*make_batch(role, [given], together))
    return output


async def catch_failure(call: Awaitable[T]) -> T | ModelError:
    """The result of a call, or its error if other calls may still succeed; raises the errors that end all calls."""
    try:
        return await call
    except (ModelUnavailable, BudgetExceeded):
        raise
    except ModelError as error:
        return error


def count_tokens_together(model: LanguageModel, role: Role[In, Out], inputs: Sequence[In], together: int) -> int:
    """The input tokens of asking about these passages in one call."""
    if len(inputs) == 1:
        return model.count_input_tokens(role, inputs[0])
    return model.count_input_tokens(*make_batch(role, inputs, together))


def make_batch(role: Role[In, Out], inputs: Sequence[BaseModel], together: int) -> tuple[Role[Batch, BatchOut], Batch]:
    """The role and the input that ask about these passages in one call."""
    passages = [each for each in inputs if isinstance(each, PassageIn)]
    return make_batch_role(role, len(inputs)), Batch(together=together, passages=passages)


@lru_cache(maxsize=128)
def make_batch_role(role: Role[In, Out], size: int) -> Role[Batch, BatchOut]:
    """The role for `size` passages in one call. Its reply is faulty if no item can be used: then it is repaired."""
    return Role(
        role.name,
        Batch,
        _make_output(role),
        output_tokens=role.output_tokens * size,
        find_fault=partial(_find_fault, role),
        prompt=role.prompt,
        tags=role.tags,
    )


def split_batch_role(role: Role[Any, Any]) -> tuple[Role[Any, Any], int]:
    """The role for one passage behind a batch role, and the size of the batch; for another role, itself and 0."""
    if role.input is not Batch or not isinstance(role.find_fault, partial):
        return role, 0
    single: Role[Any, Any] = role.find_fault.args[0]
    return single, role.output_tokens // single.output_tokens


@lru_cache(maxsize=128)
def _make_output(role: Role[In, Out]) -> type[BatchOut]:
    schema = make_lean_schema(role.output)
    fields = {"label": {"type": "string"}}
    for name, field in schema["properties"].items():  # without what the prompt says too: it is sent with every call
        fields[name] = {key: value for key, value in field.items() if key not in ("description", "default")}
    item = {"type": "object", "properties": fields, "required": ["label", *schema.get("required", ())]}
    items = Annotated[list[object], WithJsonSchema({"type": "array", "items": item})]
    return create_model(f"{role.output.__name__}Together", __base__=BatchOut, passages=(items, Field()))


def _find_fault(role: Role[Any, Any], given: Batch, output: BatchOut) -> str | None:
    if any(item is not None for item in read_items(role, given.passages, output)):
        return None
    labels = ", ".join(f"P{number}" for number in range(1, len(given.passages) + 1))
    return f"`passages` holds no item that can be used: write one for each of {labels}, with its `label`"


def write_items(outputs: Sequence[BaseModel]) -> list[object]:
    """The items of a reply that holds these outputs, in the order of the passages."""
    return [{"label": f"P{number}", **output.model_dump(mode="json")} for number, output in enumerate(outputs, start=1)]


def read_items(role: Role[In, Out], inputs: Sequence[In], output: BatchOut) -> list[Out | None]:
    """The output for each input; None where its item is missing, doubled, malformed or refused by the role."""
    items: dict[int, list[Mapping[str, Any]]] = {}
    for item in output.passages:
        if isinstance(item, dict) and (number := find_number(read_label(item.get("label")), "P")):
            items.setdefault(number, []).append(item)
    return [_read_item(role, given, items.get(number, [])) for number, given in enumerate(inputs, start=1)]


def _read_item(role: Role[In, Out], given: In, items: Sequence[Mapping[str, Any]]) -> Out | None:
    fields = {name: items[0][name] for name in role.output.model_fields if name in items[0]} if items else {}
    if len(items) != 1 or not fields:
        return None
    try:
        return role.accept(given, role.output.model_validate(fields))
    except (ValidationError, BadReply):
        return None
