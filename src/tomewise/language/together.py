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
from tomewise.language.cached import find_cache
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

    The passages whose output is not kept are asked about in one call, and one by one if the call fails. A passage whose
    item is missing, doubled or malformed is asked about alone. Each output is kept under its input and `together`, so
    no call is repeated for a build that was stopped, or for passages that moved to another group. Raises
    ModelUnavailable and BudgetExceeded.
    """
    if together == 1:
        return await gather_calls(catch_failure(model.ask(role, given)) for given in inputs)
    cache, outputs = find_cache(model, role), dict[int, Out | ModelError]()
    singles = [make_batch(role, [given], together) for given in inputs]
    keys = [cache.make_key(model, *single) for single in singles] if cache else []

    async def recall(at: int) -> None:
        if cache and (kept := await cache.recall(keys[at], *singles[at])):
            outputs.update((at, output) for output in read_items(role, [inputs[at]], kept) if output is not None)

    async def take(at: int, output: Out | ModelError) -> None:
        outputs[at] = output
        if cache is None:
            return
        if isinstance(output, ModelError):
            await cache.drop(keys[at])
        else:
            single, _ = singles[at]
            await cache.keep(keys[at], model, single, single.output(passages=write_items([output])))

    async def ask_alone(at: int) -> None:
        await take(at, await catch_failure(model.ask(role, inputs[at])))

    await gather_calls(map(recall, range(len(inputs))))
    missing = [at for at in range(len(inputs)) if at not in outputs]
    if len(missing) > 1:
        batch = [inputs[at] for at in missing]
        reply = await catch_failure(model.ask(*make_batch(role, batch, together)))
        items = [] if isinstance(reply, ModelError) else read_items(role, batch, reply)
        for at, output in zip(missing, items, strict=False):  # without a reply each can still be asked about alone
            if output is not None:
                await take(at, output)
        missing = [at for at in missing if at not in outputs]
        record_fallback(ASKED_ALONE, len(missing))
    await gather_calls(map(ask_alone, missing))
    return [outputs[at] for at in range(len(inputs))]


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
        whole=role.whole,
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
    for name, field in schema["properties"].items():
        fields[name] = _write_plainly(field, schema.get("$defs", {}))
    item = {"type": "object", "properties": fields, "required": ["label", *schema.get("required", ())]}
    items = Annotated[list[object], WithJsonSchema({"type": "array", "items": item})]
    return create_model(f"{role.output.__name__}Together", __base__=BatchOut, passages=(items, Field()))


def _write_plainly(node: Any, records: Mapping[str, Any]) -> Any:
    """A part of a schema with its records in their places, without what the prompt says too: each call has it."""
    if isinstance(node, list):
        return [_write_plainly(each, records) for each in node]
    if not isinstance(node, Mapping):
        return node
    if "$ref" in node:
        return _write_plainly(records[node["$ref"].rpartition("/")[2]], records)
    if "properties" in node:
        properties = {name: _write_plainly(each, records) for name, each in node["properties"].items()}
        return {"type": "object", "properties": properties, "required": node.get("required", [])}
    return {key: _write_plainly(value, records) for key, value in node.items() if key not in ("description", "default")}


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
