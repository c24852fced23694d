"""The compiled loops of the schemata: best links, rows of a network, components of ego networks, label propagation.

Importing Numba is slow, so this module is imported when it is first used. A network is given in compressed rows: the
neighbours of vertex v are `neighbours[starts[v]:starts[v + 1]]`. A position in `neighbours` is called a slot.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def offer_scores(
    cosines: Any, rows: Any, columns: Any, on_diagonal: Any, documents: Any, positions: Any, alpha: Any, sigma: Any,
    least: Any, best: Any, partners: Any,
) -> None:  # fmt: skip
    """Offer the score of each pair of a block to the best partners of both its vertices.

    `cosines` has the shape (len(rows), len(columns)). In a block `on_diagonal`, rows and columns are the same vertices
    and each pair is offered once. `best`, float32, and `partners`, int64, have the shape (vertices, k): the scores of
    each vertex, best first, and its partners, -1 where there are fewer than k. Of two partners with equal scores the
    smaller one wins.
    """
    last = best.shape[1] - 1
    column_documents = documents[columns]
    floors = best[columns, last]  # most pairs reach the list of neither vertex: the lists are read for the others alone
    for i in range(rows.size):
        a = rows[i]
        floor, document = best[a, last], documents[a]
        for j in range(i + 1 if on_diagonal else 0, columns.size):
            score = cosines[i, j]
            if document == column_documents[j]:
                distance = (positions[a] - positions[columns[j]]) / sigma
                score = np.float32(alpha * score + (1 - alpha) * exp(-0.5 * distance * distance))
            if score < least or (score < floor and score < floors[j]):
                continue
            b = columns[j]
            _insert(best[a], partners[a], score, b)
            _insert(best[b], partners[b], score, a)
            floor, floors[j] = best[a, last], best[b, last]
            if on_diagonal:
                floors[i] = floor


@njit(cache=True, nogil=True)
def offer_links(a: Any, b: Any, weights: Any, best: Any, partners: Any) -> None:
    """Offer each link (a, b) with its weight to the best partners of both its ends; see `offer_scores`."""
    for i in range(a.size):
        weight = np.float32(weights[i])
        _insert(best[a[i]], partners[a[i]], weight, b[i])
        _insert(best[b[i]], partners[b[i]], weight, a[i])


@njit(cache=True, nogil=True)
def keep_strongest(starts: Any, columns: Any, weights: Any, k: Any) -> Any:
    """Which entries of a matrix in compressed rows are among the k greatest of their row; ties go to small columns."""
    is_strongest = np.zeros(columns.size, np.bool_)
    best, indices = np.empty(k, np.float64), np.empty(k, np.int64)
    for row in range(starts.size - 1):
        best[:] = 0.0
        indices[:] = -1
        for index in range(starts[row], starts[row + 1]):
            if weights[index] > 0:
                _insert(best, indices, weights[index], index)
        for index in indices:
            if index >= 0:
                is_strongest[index] = True
    return is_strongest


@njit(cache=True, nogil=True)
def fill_rows(a: Any, b: Any, starts: Any, smaller: Any, neighbours: Any, reverse: Any) -> None:
    """Write the neighbours of all vertices, ascending, and for each slot that of the opposite direction.

    Links (a, b) are sorted, each with a < b. `smaller` counts the neighbours of each vertex that are smaller than it.
    """
    next_smaller = starts[:-1].copy()
    next_larger = next_smaller + smaller
    for i in range(a.size):
        forward, backward = next_larger[a[i]], next_smaller[b[i]]
        next_larger[a[i]] += 1
        next_smaller[b[i]] += 1
        neighbours[forward], neighbours[backward] = b[i], a[i]
        reverse[forward], reverse[backward] = backward, forward


@njit(cache=True, nogil=True)
def group_equal(values: Any, count: Any) -> Any:
    """Group indices by their value from 0 to count - 1: returns where each group starts, and the indices by group."""
    starts = np.zeros(count + 1, np.int64)
    for value in values:
        starts[value + 1] += 1
    starts = np.cumsum(starts)
    following = starts[:-1].copy()
    indices = np.empty(values.size, np.int64)
    for index in range(values.size):
        indices[following[values[index]]] = index
        following[values[index]] += 1
    return starts, indices


@njit(cache=True, nogil=True)
def find_ranges(groups: Any, values: Any, lowest: Any, highest: Any) -> None:
    """Write the least and the greatest value of each group, for values from 0 up; see `lowest` for a group of none."""
    for index in range(values.size):
        group, value = groups[index], values[index]
        if value >= 0:
            lowest[group] = min(lowest[group], value)
            highest[group] = max(highest[group], value)


@njit(cache=True, nogil=True, inline="always")
def _insert(best: Any, partners: Any, score: Any, partner: Any) -> None:
    last = best.size - 1
    if score < best[last] or (score == best[last] and 0 <= partners[last] < partner):
        return
    at = last
    while at > 0 and (score > best[at - 1] or (score == best[at - 1] and partner < partners[at - 1])):
        best[at] = best[at - 1]
        partners[at] = partners[at - 1]
        at -= 1
    best[at] = score
    partners[at] = partner


@njit(cache=True, nogil=True)
def find_components(starts: Any, neighbours: Any, replicas: Any) -> Any:
    """Number the replicas of all vertices: the connected components of each ego network without its centre.

    Writes to `replicas`, int64 (slots,), the replica of the slot's vertex to which the slot's neighbour belongs.
    Replicas are numbered by vertex, then by their first neighbour. Returns how many there are.
    """
    vertices = starts.size - 1
    indices = np.full(vertices, -1, np.int64)  # the index of a vertex among the neighbours of the present centre
    parents = np.empty(neighbours.size, np.int64)
    count = 0
    for centre in range(vertices):
        start, end = starts[centre], starts[centre + 1]
        for slot in range(start, end):
            indices[neighbours[slot]] = slot
            parents[slot] = slot
        parts = end - start
        for slot in range(start, end):
            if parts == 1:
                break
            neighbour = neighbours[slot]
            for other_slot in range(starts[neighbour], starts[neighbour + 1]):
                linked_slot = indices[neighbours[other_slot]]
                if linked_slot > slot and _join(parents, slot, linked_slot):
                    parts -= 1
        for slot in range(start, end):
            indices[neighbours[slot]] = -1
            root = _find_root(parents, slot)  # the first slot of its component, so its number is known
            if root == slot:
                replicas[slot] = count
                count += 1
            else:
                replicas[slot] = replicas[root]
    return count


@njit(cache=True, nogil=True, inline="always")
def _find_root(parents: Any, slot: Any) -> Any:
    while parents[slot] != slot:
        parents[slot] = parents[parents[slot]]
        slot = parents[slot]
    return slot


@njit(cache=True, nogil=True, inline="always")
def _join(parents: Any, slot_a: Any, slot_b: Any) -> Any:
    """Join two components; returns whether they were different ones."""
    first, second = _find_root(parents, slot_a), _find_root(parents, slot_b)
    if first == second:
        return False
    parents[max(first, second)] = min(first, second)
    return True


@njit(cache=True, nogil=True)
def propagate(starts: Any, neighbours: Any, labels: Any, sweeps: Any) -> Any:
    """Change labels in place until each replica has a label that most of its neighbours have, or `sweeps` are over.

    The first sweep visits the replicas that do not have such a label, in ascending order; each later sweep those with a
    neighbour that changed. A replica sees changes of the same sweep. Of several labels that are most frequent it keeps
    its own, or takes the smallest. Returns the number of visits, and of replicas that still had to be visited.
    """
    replicas = starts.size - 1
    waits = np.zeros(replicas, np.bool_)
    waiting = 0
    for replica in range(replicas):
        if _choose_label(starts, neighbours, labels, replica) != labels[replica]:
            waits[replica] = True
            waiting += 1
    visits = 0
    for _ in range(sweeps):
        if not waiting:
            break
        front = np.flatnonzero(waits)
        for at in range(front.size):
            replica = front[at]
            waits[replica] = False
            waiting -= 1
            visits += 1
            label = _choose_label(starts, neighbours, labels, replica)
            if label != labels[replica]:
                labels[replica] = label
                for slot in range(starts[replica], starts[replica + 1]):
                    neighbour = neighbours[slot]
                    if not waits[neighbour]:
                        waits[neighbour] = True
                        waiting += 1
    return visits, waiting


@njit(cache=True, nogil=True)
def _choose_label(starts: Any, neighbours: Any, labels: Any, replica: Any) -> Any:
    near = np.sort(labels[neighbours[starts[replica] : starts[replica + 1]]])
    chosen = labels[replica]
    most = own_count = start = 0
    for end in range(1, near.size + 1):
        if end == near.size or near[end] != near[start]:
            if near[start] == labels[replica]:
                own_count = end - start
            if end - start > most:
                chosen, most = near[start], end - start
            start = end
    return labels[replica] if own_count == most else chosen
