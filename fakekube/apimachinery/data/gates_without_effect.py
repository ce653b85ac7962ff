"""The feature gates that have no effect here, with the reason of each.

Invariant: a gate stands here or is read somewhere in fakekube, not both; a test holds both ways. Gates that are locked in every
minor do not stand here, since they cannot be changed.

Specified by: where the sources of the minors read their gates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from logging import getLogger
from typing import Final

_log = getLogger(__name__)

_NAMES_BY_REASON: Final[Mapping[str, str]] = {
    "It is read by kubelets, container runtimes or volume plugins only.": """
        AllowDNSOnlyNodeCSR AllowOverwriteTerminationGracePeriodSeconds CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions
        CRIListStreaming ChangeContainerStatusOnKubeletRestart ContainerCheckpoint DefaultPodSysctls
        DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion EventedPLEG ExecProbeTimeout GracefulNodeShutdown
        GracefulNodeShutdownBasedOnPodPriority HugepageAwareEviction ImageMaximumGCAge InPlacePodVerticalScalingExclusiveCPUs
        InPlacePodVerticalScalingExclusiveMemory InTreePluginPortworxUnregister KubeletAllocatedPodsEndpoint
        KubeletCgroupDriverFromCRI KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletPSI
        KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletPodResourcesListUseActivePods
        KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC KubeletTracing LegacySidecarContainers
        LocalStorageCapacityIsolationFSQuotaMonitoring MemoryQoS NodeLogQuery NodeSwap PLEGOnDemandRelist
        PodAndContainerStatsFromCRI PodLevelResourceManagers PodReadyToStartContainersCondition PodsAPI
        PreventStaticPodAPIReferences QOSReserved ReduceDefaultCrashLoopBackOffDecay ReloadKubeletClientCAFile
        ReloadKubeletServerCertificateFile RotateKubeletServerCertificate SystemdWatchdog TopologyManagerPolicyAlphaOptions
        TopologyManagerPolicyBetaOptions TopologyManagerPolicyOptions WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown
    """,
    "It is read by kube-proxy only.": """
        AllowServiceExternalIPs KubeProxyIPVS KubeProxyNFTablesLocalhostNodePorts NFTablesNetlink WinDSR WinOverlay
    """,
    "It is about how fast or in which order kube-scheduler works, or about an alpha part of it that is not here.": """
        DRASchedulerFilterTimeout GangScheduling InterPodAffinityHostnameFastPath NominatedNodeNameForExpectation
        OpportunisticBatching SchedulerAsyncAPICalls SchedulerAsyncPreemption SchedulerPopFromBackoffQ SchedulerPreQueueingHints
        SchedulerQueueingHints StorageCapacityScoring
    """,
    "It is about how kube-controller-manager or a cloud's controllers work inside.": """
        CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
        ControllerManagerReleaseLeaderElectionLockOnExit HPAOptimizedSelectorStore NodeControllerLeaseCircuitBreaker
        OrderedNamespaceDeletion SeparateTaintEvictionController StaleControllerConsistencyDaemonSet
        StaleControllerConsistencyHPA StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
        StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison
    """,
    "It is read by Go clients (client-go) only.": """
        AtomicFIFO ClientsAllowCARotation ClientsAllowCBOR ClientsAllowTLSCacheGC ClientsPreferCBOR InOrderInformers
        InOrderInformersBatchProcess InformerResourceVersion UnlockWhileProcessingFIFO WatchListClient
    """,
    "It is about how kube-apiserver reads etcd and keeps its watch cache; the answers are the same.": """
        ConcurrentWatchObjectDecode ConsistentListFromCache ConsistentListFromCacheSkipTimeoutFallback DetectCacheInconsistency
        EtcdRangeStream ResilientWatchCacheInitialization SeparateCacheWatchRPC
    """,
    "It is about the inside of kube-apiserver (threads, tracing, encryption at rest, connections); the answers are the same.": """
        APIServerTracing APIServingWithRoutine DeclarativeValidation DeclarativeValidationTakeover DisableAllocatorDualWrite
        ExtendWebSocketsToKubelet ExternalServiceAccountTokenSigner KMSv1 LoggingBetaOptions PortForwardWebsockets
        SizeBasedListCostEstimate StorageNamespaceIndex StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
        StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
        TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation WebhookRoundTripLoadBalancing
    """,
    "Nothing in Kubernetes reads it.": """
        ComponentSLIs ContextualLogging CustomCPUCFSQuotaPeriod InPlacePodVerticalScalingAllocatedStatus LoggingAlphaOptions
        NativeHistograms NodeLifecycleConditions RuntimeClassInImageCriApi WindowsHostNetwork
    """,
}

REASONS: Final[Mapping[str, str]] = {name: reason for reason, names in _NAMES_BY_REASON.items() for name in names.split()}
"""Gate → why it has no effect."""

_told: Final[set[str]] = set()


def warn_of_gates_without_effect(names: Iterable[str]) -> None:
    """Logs a warning for each of these gates that has no effect here, once in a process."""
    for name in names:
        reason = REASONS.get(name)
        if reason is not None and name not in _told:
            _told.add(name)
            _log.warning("The feature gate %s has no effect: %s", name, reason[:1].lower() + reason[1:])
