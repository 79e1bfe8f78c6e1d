from tests.support.copied_study import own, written  # noqa: F401
