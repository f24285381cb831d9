"""The command line of Weir: everything over the portal's REST API, as whoever's token it holds."""
