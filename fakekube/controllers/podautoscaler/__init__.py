"""HorizontalPodAutoscalers: replicas of a scale target, as metrics and rules want them.

`controller` looks at each autoscaler every 15 seconds of the clock; `metric_sources` computes what one metric proposes;
`replica_calculator` does the arithmetic over pods; `metrics_client` asks the metrics APIs, if somebody serves them;
`behavior` stabilizes and limits what is proposed.

Specified by: pkg/controller/podautoscaler.
"""
