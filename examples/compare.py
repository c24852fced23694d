"""Compare systems on questions with known answers: a metric of one's own, significance, and a plot.

python examples/compare.py     # the 24 questions about the bundled story, into compare/
"""

from __future__ import annotations

from tomewise import Experiment
from tomewise.parts import Metric, Outcome


def measure_aim(outcome: Outcome) -> float:
    """The share of the quotations that touch a passage with reference evidence; 0 where nothing is quoted."""
    gold = outcome.item.spans
    cited = outcome.prediction.cited
    hits = sum(any(each.start < span.end and span.start < each.end for span in gold) for each in cited)
    return hits / max(1, len(cited))


def main() -> None:
    """Print the score of each system and whether it differs from the baseline, and draw both metrics."""
    experiment = Experiment(
        ["naive", "hybrid", ("hybrid", {"limit": 5})],
        "sample",
        ["span-recall@5", Metric("aim", "spans", measure_aim)],
        out="compare",  # a second run asks nothing twice
    )
    experiment.run()  # model="openai:gpt-4o-mini" of Experiment compares answers of a real model

    for line in experiment.table(baseline="naive").lines:
        cells = []
        for name, cell in line.cells.items():
            p = "" if cell.p_holm is None else f" (p = {cell.p_holm:.2f} against naive)"
            cells.append(f"{name} {cell.value:.0%}{p}" if cell.value is not None else f"{name} -")
        print(f"{line.system:15}", ", ".join(cells), f"- {line.per_question['calls']:.1f} calls a question")

    frame = experiment.to_frame()  # a row for each system and question
    axes = (
        frame.groupby("system")[["score:span-recall@5", "score:aim"]]
        .mean()
        .plot.bar(rot=0, ylabel="mean of 24 questions")
    )
    axes.figure.savefig("compare/scores.png")
    print("compare/scores.png")


if __name__ == "__main__":
    main()
