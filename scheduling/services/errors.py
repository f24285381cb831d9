"""What a service says when it refuses: one shape, mapped once for the API and once for pages."""

from __future__ import annotations


class ServiceError(Exception):
    """A refusal a person can act on.

    ``code`` is stable and for programs, ``sentence`` says what is wrong, ``remedy`` what to do about
    it, and ``field`` names the input at fault (None: the request as a whole).
    """

    def __init__(
        self, code: str, sentence: str, remedy: str = "", *, field: str | None = None
    ) -> None:
        self.code = code
        self.sentence = sentence
        self.remedy = remedy
        self.field = field
        super().__init__(" ".join(part for part in (sentence, remedy) if part))


def name_refused() -> ServiceError:
    """What is said of a name that something has which the person may not see."""
    return ServiceError(
        "bad_name", "That name cannot be used here.", "Choose another name.", field="name"
    )


class LifecycleError(ServiceError):
    """A step that the lifecycle does not have; says which, so that the story is in the log."""

    def __init__(self, sentence: str) -> None:
        super().__init__("illegal_transition", sentence, "Read the workload again and decide anew.")
