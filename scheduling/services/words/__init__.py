from scheduling.engine.reasons.wording import span

__all__ = ["span"]
