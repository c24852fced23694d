"""`tome collect`: the table with its places and figures, files, and what is refused."""

import json

from tests.language.openai_server import OpenAIServer, reply_with

ROWS = {"rows": [{"quote": "Ada Marsh, put out the light at nine", "cells": ["Ada Marsh", "nine"]}]}
COLUMNS = ("--column", "who", "--column", "hour:number")


def test_a_table_is_printed_with_places_figures_and_what_was_read(command, log_in_tome):
    with OpenAIServer(lambda _: reply_with(json.dumps(ROWS))) as server:
        model = ("--model", "openai:test", "--base-url", server.url)
        ran = command("collect", "who did what", *COLUMNS, "--figure", "sum hour", *model)
        assert ran.code == 0, ran.err
        for words in ("Ada Marsh", "log.txt, part 1", "count: 1 (1 row)", "sum of hour: 9 (1 row)"):
            assert words in ran.out
        assert "all passages in scope were read, and nothing was left out · 1 call" in ran.out
        again = command("collect", "who did what", *COLUMNS, "--json", *model)
        table = json.loads(again.out)
        assert (table["all_read"], table["cost"]["calls"]) == (True, 0)
        assert table["rows"][0]["cells"][0]["quotes"][0]["text"] == "Ada Marsh, put out the light at nine"
        saved = command("collect", "who did what", *COLUMNS, "--output", "rows.csv", *model)
        assert "Ada Marsh" not in saved.out
        assert (
            log_in_tome.with_name("rows.csv").read_text().startswith("who,hour,support,source\nAda Marsh,nine,quoted,")
        )
        assert "| Ada Marsh[^1] | nine[^1] |" in command("collect", "who did what", *COLUMNS, "--markdown", *model).out


def test_what_cannot_be_collected_is_one_line(command, log_in_tome):
    assert "a model has to read, and none is set" in command("collect", "all keepers").err
    refused = command("collect", "all", "--column", "a:b")
    assert refused.code == 2
    assert "cannot read the column 'a:b'" in refused.err
