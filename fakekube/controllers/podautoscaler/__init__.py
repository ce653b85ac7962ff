"""The HorizontalPodAutoscaler controller: scales targets according to metrics.

`controller` syncs each autoscaler every 15 seconds of the clock, and stabilizes and limits the replica count;
`replica_calculator` computes the replica count for one metric from the metrics of pods, which it reads from the metrics APIs, if
they are served.

Specified by: pkg/controller/podautoscaler.
"""
