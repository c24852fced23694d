"""Endpoints for the models that the operator lets clients choose. Keys never pass through here."""

from __future__ import annotations

from fastapi import Request

from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.price_list import ModelPrice, find_model_price
from tomewise.server.bodies import ChosenModel
from tomewise.server.operations import BUSY, Family
from tomewise.server.replies import ModelList, ModelReply, ModelTrial
from tomewise.server.service import Wanted
from tomewise.server.streaming import run_while_connected

family = Family("/api/models", "models")


@family.get("")
def list_models(service: Wanted) -> ModelList:
    """The models that a request may name, the default first. No server is asked for them."""
    models: list[ModelReply] = []
    for name in service.library.models:
        spec = service.library.find_spec(name)
        unknown = 0.0 if name == EXTRACTIVE else None
        price = find_model_price(spec) if spec else ModelPrice(name, unknown, unknown)
        models.append(
            ModelReply(
                name=name,
                is_default=not models,
                window=spec.window if spec else None,
                input_price=price.input,
                output_price=price.output,
            )
        )
    return ModelList(models=models)


@family.post("/test", errors=(*BUSY, "unknown_name", "missing_dependency"))
async def test_model(body: ChosenModel, request: Request, service: Wanted) -> ModelTrial:
    """Ask a model one small question. Of a model that fails `ok` is false, and `reason` says why."""
    trial = await run_while_connected(request, service.try_model(body.model))
    reason = service.library.clean(trial.problem)
    known = {name: getattr(trial, name) for name in ("window", "structured", "streams", "seconds", "spent")}
    return ModelTrial(ok=not reason, reason=reason, **known)
