"""Attacks, each by name: as a researcher in the portal, as a member by kubectl, as nobody."""
