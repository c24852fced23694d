"""The network of the schemata in one line."""

from __future__ import annotations

from tomewise.memory.schemata.network import describe_network

ONE = {
    "alpha": 0.7,
    "sigma": 1.0,
    "k": 10,
    "theta": 0.4,
    "passages": 90,
    "isolated": 9,
    "clusters": [20, 3],
    "calls": 30,
}


def test_one_network():
    line = "alpha 0.7, sigma 1, theta 0.4, k 10; 10.0% of 90 passages isolated; clusters by level 20, 3; "
    assert describe_network([ONE]) == line + "the last batch asked for 30 summaries"


def test_the_networks_of_several_tomes():
    unlinked = {**ONE, "theta": 0.25, "passages": 10, "isolated": 10, "clusters": [], "calls": 0}
    third = {**ONE, "clusters": [1, 1, 1]}
    line = "alpha 0.7, sigma 1, theta 0.25 to 0.4, k 10; 14.7% of 190 passages isolated; clusters by level 21, 4, 1; "
    assert describe_network([ONE, unlinked, third]) == line + "the last batch asked for 60 summaries"
    assert "100.0% of 10 passages isolated; no clusters; " in describe_network([unlinked])
