package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.batch.v1.CronJob;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.ArrayList;
import org.junit.jupiter.api.Test;

class PoolTest {
  @Test
  void aFaultIsRepeated() throws Exception {
    try (var cluster = new PoolCluster()) {
      cluster.control(
          "POST",
          "faults",
          "{\"on\": {\"verbs\": \"create\", \"resource\": \"configmaps\"}, \"do\": {\"status\": {\"code\": 503}}, \"times\": 1}");
      var map = new ConfigMapBuilder().withNewMetadata().withName("a").endMetadata().build();
      cluster.client.configMaps().inNamespace("default").resource(map).create(); // the client repeats what is refused with 503
      var statuses = new ArrayList<Integer>();
      var seen = cluster.control("GET", "requests?verb=create&resource=configmaps", "");
      seen.get("items").forEach(one -> statuses.add(one.get("status").asInt()));
      assertEquals(java.util.List.of(503, 201), statuses);
    }
  }

  @Test
  void aCronJobRunsAnHourLater() throws Exception {
    try (var cluster = new PoolCluster()) {
      cluster.control("POST", "clock/hold", "");
      var cron =
          """
          apiVersion: batch/v1
          kind: CronJob
          metadata: {name: hourly, namespace: default}
          spec:
            schedule: 0 * * * *
            jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: ["true"]}]}}}}
          """;
      cluster.client.resource(Serialization.unmarshal(cron, CronJob.class)).create();
      cluster.control("POST", "settle", "");
      cluster.control("POST", "clock/advance", "{\"seconds\": 3600}");
      cluster.control("POST", "settle", "");
      assertEquals(1, cluster.client.batch().v1().jobs().inNamespace("default").list().getItems().size());
    }
  }
}
