"""Identity reviews: TokenReviews and SelfSubjectReviews. The server answers a POST and stores nothing.

Specified by: pkg/registry/authentication.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import status
from fakekube.apis.rest.strategy import WriteContext
from fakekube.base.objects import Object


def review_token(context: WriteContext, name: str, review: Object) -> Object:
    """Handles a TokenReview; status fields that the client sends are kept if authentication does not set them.

    Raises StatusError 400.
    """
    spec = review.get("spec") or {}
    if not spec.get("token"):
        raise status.bad_request("token is required for TokenReview in authentication")
    context.check(review)
    answer = context.services.authenticate(spec["token"], spec.get("audiences") or ())
    kept = {name: value for name, value in (review.get("status") or {}).items() if name != "authenticated"}
    return {**review, "status": {"user": {}, **kept, **{name: value for name, value in answer.items() if value}}}


def review_self(context: WriteContext, name: str, review: Object) -> Object:
    """Handles a SelfSubjectReview."""
    context.check(review)
    asker = current_user(context)
    info = {"username": asker.pop("user"), **asker}
    user = {key: value for key, value in info.items() if value}
    return {"metadata": {"creationTimestamp": context.now()}, "status": {"userInfo": user}}


def current_user(context: WriteContext) -> Object:
    """Returns the user of a request as the spec of an access review names it."""
    return {
        "user": context.user,
        "uid": context.uid,
        "groups": list(context.groups),
        "extra": {key: list(values) for key, values in context.extra.items()},
    }
