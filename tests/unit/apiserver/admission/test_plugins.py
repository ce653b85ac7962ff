"""The plugins of clusters: stateless ones are shared."""

from __future__ import annotations

from fakekube.apiserver.admission.plugins import plugins
from fakekube.apiserver.options import AdmissionOptions


def test_clusters_share_stateless_plugins() -> None:
    one, other = ({plugin.name: plugin for plugin in plugins("cluster")} for _ in range(2))
    own = {name for name in one if one[name] is not other[name]}
    assert own == {"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"}


def test_plugin_flags_of_one_cluster_do_not_affect_others() -> None:
    usual = [plugin.name for plugin in plugins("cluster")]
    less = [plugin.name for plugin in plugins("cluster", AdmissionOptions(disable_admission_plugins=("LimitRanger",)))]
    more = [plugin.name for plugin in plugins("cluster", AdmissionOptions(enable_admission_plugins=("AlwaysPullImages",)))]
    assert [name for name in usual if name != "LimitRanger"] == less
    assert [name for name in more if name != "AlwaysPullImages"] == usual
    assert "AlwaysPullImages" in more
