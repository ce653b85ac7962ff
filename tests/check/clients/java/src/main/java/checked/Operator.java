package checked;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.OwnerReference;
import io.fabric8.kubernetes.api.model.OwnerReferenceBuilder;
import io.fabric8.kubernetes.api.model.Secret;
import io.fabric8.kubernetes.api.model.SecretBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.fabric8.kubernetes.client.informers.cache.Cache;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** An operator on two SharedIndexInformers: for a ConfigMap it keeps a finalizer, an annotation, and a child with the same data. */
public final class Operator {
  private static final String FINALIZER = "checked.dev/child";

  private final KubernetesClient client = new KubernetesClientBuilder().build();
  private final ScheduledExecutorService queue = Executors.newSingleThreadScheduledExecutor();
  private final Set<String> waiting = ConcurrentHashMap.newKeySet();
  private final Map<String, Integer> failures = new HashMap<>();
  private SharedIndexInformer<ConfigMap> maps;
  private SharedIndexInformer<Secret> children;

  public static void main(String[] arguments) {
    new Operator().run();
  }

  private void run() {
    maps = client.configMaps().inAnyNamespace().withLabel("app", "checked").runnableInformer(0);
    children = client.secrets().inAnyNamespace().runnableInformer(0);
    maps.addEventHandler(handler(map -> enqueue(Cache.metaNamespaceKeyFunc(map), 0)));
    children.addEventHandler(handler(child -> {
      OwnerReference owner = controller(child);
      if (owner != null && owner.getKind().equals("ConfigMap")) {
        enqueue(child.getMetadata().getNamespace() + "/" + owner.getName(), 0);
      }
    }));
    children.run();
    maps.run();
    maps.stopped().toCompletableFuture().join();
  }

  private static <T> ResourceEventHandler<T> handler(Consumer<T> changed) {
    return new ResourceEventHandler<>() {
      @Override
      public void onAdd(T object) {
        changed.accept(object);
      }

      @Override
      public void onUpdate(T before, T object) {
        changed.accept(object);
      }

      @Override
      public void onDelete(T object, boolean unknown) {
        changed.accept(object);
      }
    };
  }

  private void enqueue(String key, long milliseconds) {
    if (waiting.add(key)) {
      queue.schedule(() -> attempt(key), milliseconds, TimeUnit.MILLISECONDS);
    }
  }

  private void attempt(String key) {
    waiting.remove(key);
    try {
      reconcile(key);
      failures.remove(key);
    } catch (RuntimeException error) {
      System.err.println(error);
      enqueue(key, Math.min(30_000, 100L << Math.min(9, failures.merge(key, 1, Integer::sum))));
    }
  }

  private void reconcile(String key) {
    ConfigMap cached = maps.getStore().getByKey(key);
    if (cached == null) {
      return;
    }
    ConfigMap map = new ConfigMapBuilder(cached).build(); // what is cached is not changed
    String name = map.getMetadata().getName() + "-child";
    if (map.isMarkedForDeletion()) {
      if (map.hasFinalizer(FINALIZER)) {
        remove(map, name);
      }
      return;
    }
    if (map.addFinalizer(FINALIZER)) {
      update(map);
      return;
    }
    keep(map, name);
    if (!Objects.equals(Informer.annotation(map), Informer.message(map))) {
      Map<String, String> annotations = new HashMap<>();
      if (map.getMetadata().getAnnotations() != null) {
        annotations.putAll(map.getMetadata().getAnnotations());
      }
      annotations.put("checked.dev/seen", Informer.message(map));
      map.getMetadata().setAnnotations(annotations);
      update(map);
    }
  }

  /** PUT with the resourceVersion of the cache; the change comes back with the next event. */
  private void update(ConfigMap map) {
    try {
      client.configMaps().resource(map).update();
    } catch (KubernetesClientException error) {
      if (error.getCode() != 404) {
        throw error;
      }
    }
  }

  private void keep(ConfigMap map, String name) {
    var owner = new OwnerReferenceBuilder().withApiVersion("v1").withKind("ConfigMap").withName(map.getMetadata().getName())
        .withUid(map.getMetadata().getUid()).withController(true).withBlockOwnerDeletion(true).build();
    Secret child = new SecretBuilder().withNewMetadata().withName(name).withNamespace(map.getMetadata().getNamespace())
        .withOwnerReferences(owner).endMetadata().addToStringData("message", Informer.message(map)).build();
    Secret present = children.getStore().getByKey(map.getMetadata().getNamespace() + "/" + name);
    OwnerReference controller = present == null ? null : controller(present);
    if (controller == null || !controller.getUid().equals(map.getMetadata().getUid())) {
      client.secrets().resource(child).fieldManager("checked").forceConflicts().serverSideApply();
    }
  }

  private void remove(ConfigMap map, String name) {
    Secret child = client.secrets().inNamespace(map.getMetadata().getNamespace()).withName(name).get();
    OwnerReference owner = child == null ? null : controller(child);
    if (owner != null && owner.getUid().equals(map.getMetadata().getUid())) {
      client.secrets().resource(child).lockResourceVersion(child.getMetadata().getResourceVersion()).delete();
    }
    map.removeFinalizer(FINALIZER);
    update(map);
  }

  private static OwnerReference controller(Secret child) {
    return child.getMetadata().getOwnerReferences().stream().filter(one -> Boolean.TRUE.equals(one.getController())).findFirst()
        .orElse(null);
  }
}
