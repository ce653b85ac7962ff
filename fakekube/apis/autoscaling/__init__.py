"""The kinds of autoscaling: HorizontalPodAutoscalers and Scale.

Specified by: pkg/apis/autoscaling, pkg/registry/autoscaling.
"""
