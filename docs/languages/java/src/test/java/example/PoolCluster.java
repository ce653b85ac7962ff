package example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** A fork of the pool's own cluster, which ends when it is closed: `fakekube run --clusters -- mvn test`. */
final class PoolCluster implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final HttpClient HTTP = HttpClient.newHttpClient();
  private static final String POOL = System.getenv("FAKEKUBE_POOL") + "/fakekube/v1/clusters";

  private final JsonNode made;
  final KubernetesClient client;

  PoolCluster() throws IOException, InterruptedException {
    made = send("POST", POOL, "{\"from\": \"fork\"}");
    Config config = Config.fromKubeconfig(made.get("kubeconfig").asText());
    config.setRequestRetryBackoffLimit(3);
    config.setRequestRetryBackoffInterval(10);
    client = new KubernetesClientBuilder().withConfig(config).build();
  }

  /** Sends a request to the control API of this cluster, and returns the body of the response. */
  JsonNode control(String method, String path, String body) throws IOException, InterruptedException {
    return send(method, made.get("control").asText() + "/" + path, body);
  }

  private static JsonNode send(String method, String url, String body) throws IOException, InterruptedException {
    var request = HttpRequest.newBuilder(URI.create(url)).header("Content-Type", "application/json");
    request.method(method, HttpRequest.BodyPublishers.ofString(body));
    var response = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
    if (response.statusCode() >= 400) {
      throw new IOException(method + " " + url + ": " + response.body());
    }
    return JSON.readTree(response.body());
  }

  @Override
  public void close() throws IOException, InterruptedException {
    client.close();
    send("DELETE", POOL + "/" + made.get("name").asText(), "");
  }
}
