"""Stop work after too many failures of the model in a row: further calls would cost and give nothing."""

from __future__ import annotations

from tomewise.errors import BudgetExceeded, KeepsFailing, ModelError, ModelUnavailable
from tomewise.language.forwarding import Forwarding
from tomewise.run import Meter, current_run
from tomewise.types import In, LanguageModel, Out, Role


class StopAtFailures(Forwarding):
    """Raises `KeepsFailing` when `most` asks of a run (`open_run`) failed with no reply between them.

    An ask counts once, with all its retries and its repair, when it ends. Put this inside `Cached`: a reply from the
    cache says nothing about the model.
    """

    def __init__(self, model: LanguageModel, most: int) -> None:
        super().__init__(model)
        self._most = most

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model. Raises `KeepsFailing` too."""
        used = current_run().used
        try:
            output = await self._model.ask(role, given)
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            if used is not None:
                used.failures += 1
                if used.failures >= self._most:
                    raise KeepsFailing(self._explain(used, error)) from error
            raise
        if used is not None:
            used.replies += 1
            used.failures = 0
        return output

    def _explain(self, used: Meter, last: ModelError) -> str:
        spent = used.total
        price = "at an unknown price" if spent.dollars is None else f"for {spent.dollars:.4f} dollars"
        return (
            f"{used.failures} calls of {self.name} failed with no reply between them, so this was stopped. The "
            f"last reason: {last}. Kept: {used.replies} replies, for which the next try does not ask again. Spent: "
            f"{spent.calls} requests and {spent.input_tokens + spent.output_tokens} tokens {price}. "
            "Mend the cause or name another model, then try again; max_failures sets how many failures are too many"
        )
