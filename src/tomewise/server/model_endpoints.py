"""Endpoints for the models that the operator lets clients choose. Keys never pass through here."""

from __future__ import annotations

import asyncio

from fastapi import Request

from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.price_list import ModelPrice, find_model_price
from tomewise.outgoing.answer_models import Spent
from tomewise.server.bodies import ChosenModel
from tomewise.server.library import Library
from tomewise.server.operations import BUSY, Family
from tomewise.server.replies import ModelList, ModelReply, ModelTrial
from tomewise.server.service import Wanted
from tomewise.server.streaming import run_while_connected

family = Family("/api/models", "models")


@family.get("")
async def list_models(service: Wanted) -> ModelList:
    """The models that a request may name, the default first. No server is asked for them."""
    return ModelList(models=await asyncio.to_thread(_describe_models, service.library))


@family.post("/test", errors=(*BUSY, "unknown_name", "missing_dependency"))
async def test_model(body: ChosenModel, request: Request, service: Wanted) -> ModelTrial:
    """Ask a model for one word. A model that fails is no error: `ok` is false, and `reason` says why."""
    trial = await run_while_connected(request, service.try_model(body.model))
    spent = Spent.of(trial.spent)
    reason = service.library.clean(trial.reason)
    return ModelTrial(ok=not reason, reason=reason, window=trial.window, seconds=trial.seconds, spent=spent)


def _describe_models(library: Library) -> list[ModelReply]:
    return [_describe_model(name, library, is_default=not number) for number, name in enumerate(library.models)]


def _describe_model(name: str, library: Library, *, is_default: bool) -> ModelReply:
    spec = library.find_spec(name)
    unknown = 0.0 if name == EXTRACTIVE else None
    price = find_model_price(spec) if spec else ModelPrice(name, unknown, unknown)
    return ModelReply(
        name=name,
        is_default=is_default,
        window=spec.window if spec else None,
        input_price=price.input,
        output_price=price.output,
    )
