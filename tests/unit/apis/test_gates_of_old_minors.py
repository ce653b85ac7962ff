"""Rules that only a gate of an old minor shows; the answers are those of kube-apiserver with the gate off."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from fakekube import Cluster


def test_zero_sleep_without_its_gate() -> None:
    """Recorded of 1.33.13 with `--feature-gates=PodLifecycleSleepActionAllowZero=false`."""
    container = {"name": "c", "image": "i", "lifecycle": {"preStop": {"sleep": {"seconds": 0}}}}
    body = json.dumps({"metadata": {"name": "p"}, "spec": {"containers": [container]}}).encode()
    with Cluster(version="1.33", feature_gates={"PodLifecycleSleepActionAllowZero": False}) as cluster:
        path = f"{cluster.url}/api/v1/namespaces/default/pods"
        request = urllib.request.Request(path, body, {"Content-Type": "application/json"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
    with refused.value as error:
        message = json.load(error)["message"]
    assert message == (
        'Pod "p" is invalid: spec.containers[0].lifecycle.preStop.sleep: Invalid value: 0: must be greater than 0 and less than '
        "terminationGracePeriodSeconds (30). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
    )
