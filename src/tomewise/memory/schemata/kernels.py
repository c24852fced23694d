"""The compiled loops of the schemata: lists of best partners, networks, replicas, labels, and what is left over.

Importing Numba is slow, so this module is imported when it is first used. A network is given in compressed rows: the
neighbours of vertex v are `neighbours[starts[v]:starts[v + 1]]`. A position in `neighbours` is called a slot. Clusters
are rows of `members`, int64 (clusters, room): vertices, then -1.
"""

from __future__ import annotations

from math import exp, floor

import numpy as np
from numba import njit

_compiled, _inlined = njit(cache=True, nogil=True), njit(cache=True, nogil=True, inline="always")
_MARGIN = 1e-5  # by how much a cosine in single precision, of either order of summation, may be wrong
_LEAST_GAIN = 1e-9  # of a move, so that rounding cannot make labels run in a circle


@_compiled
def offer_scores(
    cosines, rows, columns, on_diagonal, is_open, is_new, vectors, at, documents, positions, alpha, sigma, scores,
    partners,
):  # fmt: skip
    """Offer each pair of a block to the lists of both its vertices, unless both knew each other before.

    `cosines` has the shape (len(rows), len(columns)) and tells which pairs may matter; their scores are then computed
    in an order of their own, so that they do not depend on the block. In a block `on_diagonal`, rows and columns are
    the same vertices. `scores`, float64, and `partners`, int64, have the shape (vertices, k): the lists, best first, -1
    where there are fewer than k. Rows are open: their lists are made anew. The vector of v is `vectors[at[v]]`.
    """
    last = scores.shape[1] - 1
    # Most pairs reach neither list: what decides that is read in one run. No score reaches the floor of a closed list.
    column_documents, floors = documents[columns], scores[columns, last]
    open_floors = np.where(is_open[columns], floors, np.inf)
    for i in range(rows.size):
        a = rows[i]
        document, floor_a = documents[a], scores[a, last]
        limits = floors if is_new[a] else open_floors
        for j in range(i + 1 if on_diagonal else 0, columns.size):
            score, near = alpha * (cosines[i, j] + _MARGIN), 0.0
            if document == column_documents[j]:
                distance = (positions[a] - positions[columns[j]]) / sigma
                near = (1 - alpha) * exp(-0.5 * distance * distance)
            if score + near < floor_a and score + near < limits[j]:
                continue
            b = columns[j]
            exact = alpha * _multiply(vectors[at[a]], vectors[at[b]]) + near
            exact = floor(exact * 1e6 + 0.5) / 1e6
            _insert(scores[a], partners[a], exact, b)
            floor_a = scores[a, last]
            if is_new[a] or is_open[b]:
                _insert(scores[b], partners[b], exact, a)
                floors[j] = scores[b, last]
                if is_open[b]:
                    open_floors[j] = floors[j]
        if on_diagonal:
            floors[i] = floor_a


@_inlined
def _multiply(a, b):
    """The product of two vectors, summed in one fixed order."""
    first = second = third = fourth = 0.0
    whole = a.size - a.size % 4
    for i in range(0, whole, 4):
        first += np.float64(a[i]) * np.float64(b[i])
        second += np.float64(a[i + 1]) * np.float64(b[i + 1])
        third += np.float64(a[i + 2]) * np.float64(b[i + 2])
        fourth += np.float64(a[i + 3]) * np.float64(b[i + 3])
    for i in range(whole, a.size):
        first += np.float64(a[i]) * np.float64(b[i])
    return (first + second) + (third + fourth)


@_compiled
def score_pairs(first, second, vectors, at, documents, positions, alpha, sigma):
    """The score of each pair, as in `offer_scores`."""
    scores = np.empty(first.size)
    for i in range(first.size):
        a, b = first[i], second[i]
        near = 0.0
        if documents[a] == documents[b]:
            distance = (positions[a] - positions[b]) / sigma
            near = (1 - alpha) * exp(-0.5 * distance * distance)
        exact = alpha * _multiply(vectors[at[a]], vectors[at[b]]) + near
        scores[i] = floor(exact * 1e6 + 0.5) / 1e6
    return scores


@_compiled
def fill_lists(owners, others, values, scores, partners):
    """Put each of these into the list of its owner; see `offer_scores`."""
    for i in range(owners.size):
        _insert(scores[owners[i]], partners[owners[i]], values[i], others[i])


@_compiled
def keep_strongest(starts, columns, weights, k):
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


@_inlined
def _insert(best, partners, score, partner):
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


@_compiled
def fill_rows(a, b, values, starts, smaller, neighbours, reverse, weights):
    """Write the neighbours of all vertices, ascending, and for each slot that of the opposite direction, and a weight.

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
        weights[forward] = weights[backward] = values[i]


@_compiled
def find_components(starts, neighbours, replicas):
    """Number the connected components of each ego network without its centre.

    Writes to `replicas`, int64 (slots,), the component of the slot's vertex to which the slot's neighbour belongs.
    Components are numbered by vertex, then by their first neighbour. Returns how many there are.
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


@_inlined
def _find_root(parents, slot):
    while parents[slot] != slot:
        parents[slot] = parents[parents[slot]]
        slot = parents[slot]
    return slot


@_inlined
def _join(parents, slot_a, slot_b):
    """Join two components; returns whether they were different ones."""
    first, second = _find_root(parents, slot_a), _find_root(parents, slot_b)
    if first == second:
        return False
    parents[max(first, second)] = min(first, second)
    return True


@_compiled
def find_labels(starts, neighbours, weights, gamma, most, passes):
    """Label replicas so that the links within labels, less `gamma` for each pair within, weigh most; `most` in a label.

    Each replica begins with a label of its own. Moves of single replicas and joins of whole labels alternate until no
    labels join, or after so many `passes`. Each step raises the sum, so that it ends.
    """
    replicas = starts.size - 1
    labels, sizes = np.arange(replicas), np.ones(replicas, np.int64)
    links = np.zeros(replicas)  # of one replica, or one label, with each label
    _move(starts, neighbours, weights, labels, sizes, links, gamma, most)
    for _ in range(passes):
        if not _join_labels(starts, neighbours, weights, labels, sizes, links, gamma, most):
            break
        _move(starts, neighbours, weights, labels, sizes, links, gamma, most)
    return labels


@_compiled
def _move(starts, neighbours, weights, labels, sizes, links, gamma, most):
    """Move replicas, in a queue in their order, to the label with which they have the most links for its size."""
    replicas = labels.size
    queue = np.arange(replicas)
    waits = np.ones(replicas, np.bool_)
    first, waiting = 0, replicas
    while waiting:
        replica = queue[first]
        first = (first + 1) % replicas
        waiting -= 1
        waits[replica] = False
        own, start, end = labels[replica], starts[replica], starts[replica + 1]
        for slot in range(start, end):
            links[labels[neighbours[slot]]] += weights[slot]
        value = links[own] - gamma * (sizes[own] - 1)
        chosen, best = own, -1.0
        for slot in range(start, end):
            label = labels[neighbours[slot]]
            if label != own and sizes[label] < most:
                offer = links[label] - gamma * sizes[label]
                if offer > best or (offer == best and label < chosen):
                    chosen, best = label, offer
        for slot in range(start, end):
            links[labels[neighbours[slot]]] = 0
        if best <= value + _LEAST_GAIN or best < 0:
            if value >= -_LEAST_GAIN:
                continue
            chosen = replica
            while sizes[chosen]:  # an unused label: its own, if nobody took it, or the next one
                chosen = (chosen + 1) % replicas
        labels[replica] = chosen
        sizes[own] -= 1
        sizes[chosen] += 1
        for slot in range(start, end):
            neighbour = neighbours[slot]
            if labels[neighbour] != chosen and not waits[neighbour]:
                queue[(first + waiting) % replicas] = neighbour
                waits[neighbour] = True
                waiting += 1


@_compiled
def _join_labels(starts, neighbours, weights, labels, sizes, links, gamma, most):
    """Join each label, the smallest first, with the one that gains most by it. Returns whether any joined."""
    replicas = labels.size
    following = np.full(replicas, -1, np.int64)  # the next member of the same label
    heads = np.full(replicas, -1, np.int64)
    for replica in range(replicas - 1, -1, -1):
        following[replica] = heads[labels[replica]]
        heads[labels[replica]] = replica
    has_joined = False
    for label in np.argsort(sizes, kind="mergesort"):
        if not sizes[label]:
            continue
        member = heads[label]
        while member >= 0:
            for slot in range(starts[member], starts[member + 1]):
                links[labels[neighbours[slot]]] += weights[slot]
            member = following[member]
        chosen, best = label, _LEAST_GAIN
        member = heads[label]
        last = member
        while member >= 0:
            for slot in range(starts[member], starts[member + 1]):
                partner = labels[neighbours[slot]]
                if partner != label and sizes[label] + sizes[partner] <= most:
                    gain = links[partner] - gamma * sizes[label] * sizes[partner]
                    if gain > best or (gain == best > _LEAST_GAIN and partner < chosen):
                        chosen, best = partner, gain
            last, member = member, following[member]
        member = heads[label]
        while member >= 0:
            for slot in range(starts[member], starts[member + 1]):
                links[labels[neighbours[slot]]] = 0
            member = following[member]
        if chosen == label:
            continue
        member = heads[label]
        while member >= 0:
            labels[member] = chosen
            member = following[member]
        following[last] = heads[chosen]
        heads[chosen] = heads[label]
        heads[label] = -1
        sizes[chosen] += sizes[label]
        sizes[label] = 0
        has_joined = True
    return has_joined


@_compiled
def place_by_links(starts, neighbours, weights, members, sizes, homes):
    """Put each vertex without a home into the cluster with room to which the sum of its links is greatest.

    Writes to `members`, to `sizes` (clusters,), and to `homes` (vertices, h): the clusters of each vertex, then -1.
    """
    sums = np.zeros(sizes.size)
    for vertex in range(starts.size - 1):
        if homes[vertex, 0] >= 0:
            continue
        chosen, best = -1, 0.0
        for slot in range(starts[vertex], starts[vertex + 1]):
            for cluster in homes[neighbours[slot]]:
                if cluster < 0:
                    break
                sums[cluster] += weights[slot]
        for slot in range(starts[vertex], starts[vertex + 1]):
            for cluster in homes[neighbours[slot]]:
                if cluster < 0:
                    break
                if sizes[cluster] < members.shape[1] and (
                    sums[cluster] > best or (sums[cluster] == best and cluster < chosen)
                ):
                    chosen, best = cluster, sums[cluster]
        for slot in range(starts[vertex], starts[vertex + 1]):
            for cluster in homes[neighbours[slot]]:
                if cluster < 0:
                    break
                sums[cluster] = 0.0
        if chosen >= 0:
            _put_into_cluster(vertex, chosen, members, sizes, homes)


@_compiled
def place_by_nearest(nearest, members, sizes, homes):
    """Put each vertex without a home with the first of its `nearest` that has a cluster with room: into the smallest.

    See `place_by_links`.
    """
    for vertex in range(nearest.shape[0]):
        if homes[vertex, 0] >= 0:
            continue
        for partner in nearest[vertex]:
            if partner < 0:
                break
            chosen, least = -1, members.shape[1]
            for cluster in homes[partner]:
                if cluster < 0:
                    break
                if sizes[cluster] < least:
                    chosen, least = cluster, sizes[cluster]
            if chosen >= 0:
                _put_into_cluster(vertex, chosen, members, sizes, homes)
                break


@_inlined
def _put_into_cluster(vertex, cluster, members, sizes, homes):
    members[cluster, sizes[cluster]] = vertex
    sizes[cluster] += 1
    homes[vertex, 0] = cluster
