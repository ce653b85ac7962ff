"""The HorizontalPodAutoscaler controller: scales targets according to metrics.

`controller` syncs each autoscaler every 15 seconds of the clock; `metric_sources` computes the replica count for one metric;
`replica_calculator` computes it from the metrics of pods; `metrics_client` reads the metrics APIs, if they are served;
`behavior` stabilizes and limits the replica count.

Specified by: pkg/controller/podautoscaler.
"""
