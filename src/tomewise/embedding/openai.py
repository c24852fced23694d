"""Embedding models behind an address that speaks the OpenAI embeddings API."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tomewise.addresses import find_loopback
from tomewise.credentials import remember_credentials
from tomewise.embedding.unit_rows import UnitRows, Vectors, run_at_once
from tomewise.errors import BadReply, MissingDependency, ModelError, ModelUnavailable, UsageError
from tomewise.language.adapting import Adapter, learn, merge, read_refusal
from tomewise.language.spec import check_address
from tomewise.settings import read_key, read_variable

if TYPE_CHECKING:
    from openai import OpenAI
    from tokenizers import Tokenizer

ADDRESS = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
KNOWN_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
BATCH = 64  # texts in one request
PARALLEL_REQUESTS = 4
RETRIES = 4
TIMEOUT = 60.0  # seconds
LONGEST_TOKEN = 6  # characters; a limit of the approximate tokenizer


class OpenAIEmbedder(UnitRows):
    """The embedding model `model` at `base_url` (any address that speaks the OpenAI API).

    Without `base_url`, the address is OPENAI_BASE_URL, or else that of OpenAI. Without `api_key`, the key is
    OPENAI_API_KEY. `dimensions` asks the model for shorter vectors and becomes part of the name ("openai:MODEL@256").
    Without it, the vectors have the model's own dimensions. If these are not known, one word is embedded to find out.
    With `loopback_only`, only a server on this machine is asked, and without a key (see `checked_transport`).
    A server that takes fewer texts in a request, or shorter ones, gets them so from its first refusal on. Time-outs and
    the status codes 429 and 5xx are retried with growing pauses. Raises UsageError (an address that
    cannot be read, or is never asked), ModelUnavailable (no key for OpenAI, no connection, key refused, all retries
    failed), ModelError (request refused), BadReply (wrong number of vectors or of dimensions).
    """

    max_tokens = 512  # as the approximate `tokenizer` counts them; a passage is never longer

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        *,
        loopback_only: bool = False,
    ) -> None:
        if dimensions is not None and dimensions < 1:
            raise UsageError(f"an embedder cannot have {dimensions} dimensions: give 1 or more")
        self.address = base_url or read_variable("OPENAI_BASE_URL") or ADDRESS
        """The address of the server."""
        check_address(self.address)
        remember_credentials(api_key, self.address)
        self._model = model
        self._api_key = api_key
        self._requested_dimensions = dimensions
        self._adapter = Adapter(f"openai:{model} at {self.address}")
        self.loopback_only = loopback_only
        """Whether only a server on this machine is asked."""
        self.name = f"openai:{model}" + (f"@{dimensions}" if dimensions else "")

    @cached_property
    def dimensions(self) -> int:
        known_dimensions = self._requested_dimensions or KNOWN_DIMENSIONS.get(self._model)
        return known_dimensions or len(self._request(["word"])[0])

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """An approximation: its tokens are words (in pieces of 6 characters), punctuation marks, and single ideographs.

        The model's own tokenizer is not available. For English text this one counts a few tokens more, so
        passages that fit by its count also fit the model.
        """
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

        tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(clean_text=False, lowercase=False, strip_accents=False)
        pieces = pre_tokenizers.Split(Regex(f".{{1,{LONGEST_TOKEN}}}"), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), pieces])
        return tokenizer

    def _embed_distinct(self, texts: list[str]) -> Vectors:
        cut_texts = [self._cut(text, self.max_tokens) for text in texts]
        most = self._adapter.known.batch or BATCH
        requests = [cut_texts[start : start + most] for start in range(0, len(cut_texts), most)]
        vectors = [vector for reply in run_at_once(self._ask, requests, PARALLEL_REQUESTS) for vector in reply]
        for vector in vectors:
            if len(vector) != self.dimensions:
                raise BadReply(
                    f"{self._source} gave {len(vector)} dimensions, not {self.dimensions}: "
                    "check the model, or make a new tome for it"
                )
        return np.array(vectors, np.float32)

    def _cut(self, text: str, most: int) -> str:
        """The text up to so many tokens."""
        offsets = self.tokenizer.encode(text).offsets
        cut = text[: offsets[most - 1][1]] if len(offsets) > most else text
        return cut if cut.strip() else "."  # the API refuses empty texts

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of these texts, in smaller requests or of shorter texts where the server wants them so."""
        vectors: list[list[float]] = []
        sent: list[str] = []
        before = known = self._adapter.known
        while left := texts[len(vectors) :]:
            part = [self._cut(text, known.text or self.max_tokens) for text in left[: known.batch or len(left)]]
            try:
                vectors += self._request(part)
                sent += part
            except ModelError as error:
                longest = max(len(self.tokenizer.encode(text).ids) for text in part)
                if not (refusal := read_refusal(error)) or not (found := learn(known, refusal, longest)):
                    raise
                known = found
        self._adapter.known = merge(before, known, self._adapter.known)
        self._adapter.keep()
        if any(len(part) < len(text) for part, text in zip(sent, texts, strict=True)):
            most = known.text
            warnings.warn(
                f"{self._source} takes {most:,} tokens of a text: of a longer one only the beginning is embedded; "
                f"`--passage-tokens {most}` makes passages of a new tome that fit",
                stacklevel=2,
            )
        return vectors

    @property
    def _source(self) -> str:
        return f"{self._model!r} at {self.address}"

    def _request(self, texts: list[str]) -> list[list[float]]:
        import openai

        options = {"dimensions": self._requested_dimensions} if self._requested_dimensions else {}
        source = self._source
        try:
            # Ask for "float": the client's default is base64, which some compatible servers do not support.
            reply: Any = self._client.embeddings.create(
                model=self._model, input=texts, encoding_format="float", extra_body=options
            )
        except (openai.APIConnectionError, openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise ModelUnavailable(
                f"{source} could not be reached ({error.__cause__ or error}): "
                f"check the address, the network and {KEY_VARIABLE}"
            ) from error
        except (openai.RateLimitError, openai.InternalServerError, openai.NotFoundError) as error:
            raise ModelUnavailable(f"{source} does not answer ({error}): check the name, or try again later") from error
        except openai.APIStatusError as error:
            raise ModelError(f"{source} refused {len(texts)} texts: {error}") from error
        except (openai.APIError, ValueError) as error:
            raise BadReply(f"{source} sent a reply that is not a list of embeddings: {error}") from error
        return _read_vectors(reply, len(texts), source)

    @cached_property
    def _client(self) -> OpenAI:
        key = None if self.loopback_only else read_key(KEY_VARIABLE, given=self._api_key)
        if not key and self.address.rstrip("/") == ADDRESS:
            raise ModelUnavailable(f"no key for {self._source}: set the variable {KEY_VARIABLE}")
        try:
            from openai import OpenAI
        except ImportError as error:
            raise MissingDependency("the openai client is not installed: run `pip install openai`") from error
        options: dict[str, Any] = {"base_url": self.address, "max_retries": RETRIES, "timeout": TIMEOUT}
        if self.loopback_only:
            from httpx2 import Client

            from tomewise.checked_transport import CheckedTransport

            transport = CheckedTransport(find_loopback, "is not on this machine")
            options["http_client"] = Client(transport=transport, follow_redirects=False)
        return OpenAI(api_key=key or "none", **options)


def _read_vectors(reply: Any, text_count: int, source: str) -> list[Any]:
    """The vectors of a reply, sorted by their `index`, which is the order of the texts. Raises BadReply."""
    entries = {getattr(entry, "index", None): entry for entry in getattr(reply, "data", None) or ()}
    if set(entries) != set(range(text_count)):
        raise BadReply(f"{source} did not give one embedding for each of {text_count} texts: it gave {len(entries)}")
    vectors = [getattr(entries[index], "embedding", None) for index in range(text_count)]
    if not all(
        isinstance(vector, list) and all(isinstance(number, float | int) for number in vector) for vector in vectors
    ):
        raise BadReply(f"{source} gave embeddings that are not lists of numbers")
    return vectors
