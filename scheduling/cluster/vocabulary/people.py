"""By what names the portal acts for people on a cluster: under a prefix of its own, as one group.

A name of the portal is not a name of the cluster: whoever is called like an administrator there has none of
the rights that the cluster gives to that user. Policies read both as one person.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "weir:"
"""Before the name of whoever the portal acts for."""
GROUP: Final = "weir:people"
"""The one group that the portal acts as; Weir binds it to what teams may do, in managed namespaces alone.
Which of them somebody works in, the portal and the policies for personas say."""
