"""Operations of the server itself: whether it answers, what it is, the sample that a first visit offers, its models.

A client chooses among the models that the operator offers. Keys never pass through here.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from functools import cache
from typing import Any

from fastapi import Request

from tomewise import __version__
from tomewise.errors import TomewiseError
from tomewise.language.choose_model import EXTRACTIVE
from tomewise.language.price_list import ModelPrice, find_model_price
from tomewise.server.bodies import ChosenModel
from tomewise.server.limits import JSON_BYTES
from tomewise.server.operations import BUSY, Family
from tomewise.server.replies import Health, Info, ModelList, ModelReply, ModelTrial, Sample, SampleQuestion
from tomewise.server.service import Wanted
from tomewise.server.streaming import run_while_connected

family = Family("/api", "server")


@family.get("/health", is_open=True)
async def check_health() -> Health:
    """Whether the server answers. Needs no token."""
    return Health(ok=True)


@family.get("/info", reply=Info, leaves_out=True, errors=("stopping",))
async def show_info(request: Request, service: Wanted, systems: bool = True) -> dict[str, Any]:
    """The version, the model, the systems with their settings, the limits, and what was spent since the start.

    `systems=false` leaves out the systems: the first look at all of them takes a second.
    """
    options = service.options
    return {
        "version": __version__,
        "model": service.library.model_name,
        **({"systems": await run_while_connected(request, asyncio.to_thread(_summarise_systems))} if systems else {}),
        "limits": {
            **service.library.limits,
            "questions": options.questions,
            "waiting": options.waiting,
            "seconds": options.seconds,
            "upload_bytes": options.max_upload,
            "body_bytes": JSON_BYTES,
        },
        "read_only": options.read_only,
        "makes_tomes": service.library.makes_tomes,
        "spent": service.library.spent,
    }


@cache
def _summarise_systems() -> list[dict[str, Any]]:
    from tomewise.systems.efforts import EFFORTS
    from tomewise.systems.registry import SYSTEMS, parse_variant
    from tomewise.tome.system_summary import summarise_system

    summaries = []
    for name in SYSTEMS.list_names():
        try:
            summary = asdict(summarise_system(parse_variant(name)))
            effort = next((effort for effort, systems in EFFORTS.items() if name in systems), None)
            summaries.append({**summary, "effort": effort})
        except TomewiseError as error:  # a broken plugin does not hide the other systems
            summaries.append({"name": name, "description": str(error)})
    return summaries


@family.get("/sample")
async def show_sample() -> Sample:
    """The bundled story as a document to add, and questions about it."""
    from tomewise.sample import STORY, read_questions

    asked = [SampleQuestion(question=each.question, options=list(each.options)) for each in read_questions()]
    return Sample(id=STORY.name, text=STORY.read_text(encoding="utf-8"), questions=asked)


@family.get("/models", tag="models")
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


@family.post("/models/test", tag="models", errors=(*BUSY, "unknown_name", "missing_dependency"))
async def test_model(body: ChosenModel, request: Request, service: Wanted) -> ModelTrial:
    """Ask a model one small question. Of a model that fails `ok` is false, and `reason` says why."""
    trial = await run_while_connected(request, service.try_model(body.model))
    reason = service.library.clean(trial.problem)
    known = {name: getattr(trial, name) for name in ("window", "structured", "streams", "seconds", "spent")}
    return ModelTrial(ok=not reason, reason=reason, **known)
