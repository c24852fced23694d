"""English words that do not show what a text is about."""

from __future__ import annotations

STOP = frozenset(
    """a about above after again against all also although always am among an and another any anybody anyone anything
    are around as at away back be became because become been before began behind being below beside between beyond
    both but by came can cannot come could d did do does doing done down during each either else enough even ever
    every everybody everyone everything except few first for found from further gave get go goes going gone got had
    has have having he her here hers herself him himself his how however i if in indeed inside instead into is it its
    itself just last least less let ll like m made make many may maybe me might mine more most much must my myself
    near neither never no nobody none nor not nothing now of off often oh ok okay on once one only onto or other
    others our ours ourselves out over own perhaps please quite rather re really s same saw see seem seemed seems
    several shall she should since so some somebody someone something sometimes soon still such t than that the their
    theirs them themselves then there therefore these they thing things this those though through thus till to
    together too took toward towards under unless until up upon us use used very ve was way we well went were what
    whatever when whenever where wherever whether which while who whoever whole whom whose why will with within
    without would yes yet you your yours yourself yourselves uh um mm hmm yeah yep gonna mean know right""".split()
)
