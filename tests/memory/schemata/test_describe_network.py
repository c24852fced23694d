"""The network of the schemata in one line."""

from __future__ import annotations

from tomewise.memory.schemata.network import describe_network

ONE = {
    "alpha": 0.7,
    "sigma": 1.0,
    "k": 10,
    "theta": None,
    "passages": 90,
    "outside": 1,
    "clusters": [20, 3],
    "older": 2,
    "calls": 30,
}


def test_one_network():
    assert describe_network([ONE]) == (
        "alpha 0.7, sigma 1, k 10; 90 passages, 1 in no cluster; clusters by level 20, 3; 2 summaries older than their "
        "members; the last build asked for 30"
    )


def test_the_networks_of_several_tomes():
    alone = {**ONE, "passages": 2, "outside": 2, "clusters": [], "older": 0, "calls": 0}
    third = {**ONE, "clusters": [1, 1, 1]}
    assert describe_network([ONE, alone, third]) == (
        "alpha 0.7, sigma 1, k 10; 182 passages, 4 in no cluster; clusters by level 21, 4, 1; 4 summaries older than "
        "their members; the last build asked for 60"
    )
    assert "k 10, theta 0.5; 2 passages, 2 in no cluster; no clusters; " in describe_network([{**alone, "theta": 0.5}])
