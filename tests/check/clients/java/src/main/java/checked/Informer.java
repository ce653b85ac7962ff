package checked;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A SharedIndexInformer of fabric8 that writes what a ConfigMap says into its annotation. */
public final class Informer {
  public static void main(String[] arguments) throws InterruptedException {
    ExecutorService worker = Executors.newSingleThreadExecutor();
    KubernetesClient client = new KubernetesClientBuilder().build();
    var informer = client.configMaps().inAnyNamespace().withLabel("app", "checked").inform(new ResourceEventHandler<>() {
      @Override
      public void onAdd(ConfigMap map) {
        worker.submit(() -> note(client, map));
      }

      @Override
      public void onUpdate(ConfigMap before, ConfigMap map) {
        worker.submit(() -> note(client, map));
      }

      @Override
      public void onDelete(ConfigMap map, boolean unknown) {}
    });
    informer.stopped().toCompletableFuture().join();
  }

  static String annotation(ConfigMap map) {
    Map<String, String> all = map.getMetadata().getAnnotations();
    return all == null ? null : all.get("checked.dev/seen");
  }

  static String message(ConfigMap map) {
    return map.getData() == null ? null : map.getData().get("message");
  }

  private static void note(KubernetesClient client, ConfigMap map) {
    String message = message(map);
    if (message == null || Objects.equals(annotation(map), message)) {
      return;
    }
    String patch = "{\"metadata\":{\"annotations\":{\"checked.dev/seen\":\"" + message + "\"}}}";
    try {
      client.configMaps().resource(map).patch(PatchContext.of(PatchType.JSON_MERGE), patch);
    } catch (RuntimeException error) {
      System.err.println(error);
    }
  }
}
