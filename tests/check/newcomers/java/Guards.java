// Keeps a ServiceAccount and a NetworkPolicy for each Widget, and says so in its status. The JDK's HTTP client, which asks a server without
// TLS for HTTP/2 by an upgrade; a thread for each watch, three workers, and a finalizer by a JSON patch that tests what it changes.
//
//   KUBECONFIG=… java Guards.java            (DEFECT=NAME puts one in)

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public final class Guards {
  static final String DEFECT = Objects.requireNonNullElse(System.getenv("DEFECT"), "");
  static final String FINALIZER = "checked.dev/guards";
  static final long SILENCE = 14_000;

  static final class Refusal extends IOException {
    final int code;
    final long wait;

    Refusal(int code, String text, long wait) {
      super(code + " " + text.substring(0, Math.min(text.length(), 200)));
      this.code = code;
      this.wait = wait;
    }
  }

  // ------------------------------------------------------------------ JSON

  /** Reads a JSON text into maps, lists, strings, booleans and numbers; numbers keep their text. */
  static final class Json {
    private final String text;
    private int at;

    Json(String text) {
      this.text = text;
    }

    static Object parse(String text) {
      return new Json(text).value();
    }

    private char next() {
      while (Character.isWhitespace(text.charAt(at))) at++;
      return text.charAt(at);
    }

    private Object value() {
      switch (next()) {
        case '{': {
          Map<String, Object> found = new LinkedHashMap<>();
          at++;
          while (next() != '}') {
            String key = string();
            next();
            at++;
            found.put(key, value());
            if (next() == ',') at++;
          }
          at++;
          return found;
        }
        case '[': {
          List<Object> found = new ArrayList<>();
          at++;
          while (next() != ']') {
            found.add(value());
            if (next() == ',') at++;
          }
          at++;
          return found;
        }
        case '"':
          return string();
        default: {
          int from = at;
          while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at++;
          String word = text.substring(from, at);
          return switch (word) {
            case "true" -> Boolean.TRUE;
            case "false" -> Boolean.FALSE;
            case "null" -> null;
            default -> new Literal(word);
          };
        }
      }
    }

    private String string() {
      next();
      StringBuilder found = new StringBuilder();
      at++;
      while (true) {
        int run = at;
        while (text.charAt(at) != '"' && text.charAt(at) != '\\') at++;
        found.append(text, run, at);
        if (text.charAt(at++) == '"') return found.toString();
        char escape = text.charAt(at++);
        switch (escape) {
          case 'n' -> found.append('\n');
          case 't' -> found.append('\t');
          case 'r' -> found.append('\r');
          case 'b' -> found.append('\b');
          case 'f' -> found.append('\f');
          case 'u' -> {
            found.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
            at += 4;
          }
          default -> found.append(escape);
        }
      }
    }

    static String write(Object value) {
      if (value instanceof Map<?, ?> map) {
        List<String> parts = new ArrayList<>();
        map.forEach((key, inner) -> parts.add(write(key) + ":" + write(inner)));
        return "{" + String.join(",", parts) + "}";
      }
      if (value instanceof List<?> list) {
        List<String> parts = new ArrayList<>();
        list.forEach(inner -> parts.add(write(inner)));
        return "[" + String.join(",", parts) + "]";
      }
      if (value instanceof String string) {
        StringBuilder found = new StringBuilder("\"");
        for (char one : string.toCharArray()) {
          if (one == '"' || one == '\\') found.append('\\').append(one);
          else if (one < ' ') found.append(String.format("\\u%04x", (int) one));
          else found.append(one);
        }
        return found.append('"').toString();
      }
      return String.valueOf(value);
    }
  }

  record Literal(String text) {
    @Override
    public String toString() {
      return text;
    }
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> map(Object value) {
    return value == null ? Map.of() : (Map<String, Object>) value;
  }

  @SuppressWarnings("unchecked")
  static List<Object> list(Object value) {
    return value == null ? List.of() : (List<Object>) value;
  }

  static Map<String, Object> metadata(Map<String, Object> object) {
    return map(object.get("metadata"));
  }

  static Map<String, Object> of(Object... pairs) {
    Map<String, Object> found = new LinkedHashMap<>();
    for (int i = 0; i < pairs.length; i += 2) found.put((String) pairs[i], pairs[i + 1]);
    return found;
  }

  // ------------------------------------------------------------------ the API

  static final class Api {
    private final String config;
    private final String server;
    private final HttpClient http;

    Api() throws Exception {
      config = Files.readString(Path.of(System.getenv("KUBECONFIG")));
      server = field("server");
      HttpClient.Builder builder = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10));
      String authority = field("certificate-authority-data");
      if (authority != null) builder.sslContext(trusting(Base64.getDecoder().decode(authority)));
      http = builder.build();
    }

    private static SSLContext trusting(byte[] pem) throws Exception {
      KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
      store.load(null, null);
      int number = 0;
      for (var one : CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(pem))) {
        store.setCertificateEntry("authority" + number++, one);
      }
      TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      trust.init(store);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(null, trust.getTrustManagers(), null);
      return context;
    }

    private String field(String name) {
      Matcher found = Pattern.compile("(?m)^\\s*(?:- )?" + name + ": *['\"]?([^'\"\\n]*)").matcher(config);
      return found.find() ? found.group(1) : null;
    }

    private HttpRequest.Builder request(String path) throws IOException {
      String file = field("tokenFile");
      String token = file != null ? Files.readString(Path.of(file)).trim() : field("token");
      HttpRequest.Builder one = HttpRequest.newBuilder(URI.create(server + path)).header("User-Agent", "guards/0.4").header("Accept", "application/json");
      return token == null ? one : one.header("Authorization", "Bearer " + token);
    }

    private static Refusal refusal(int code, HttpResponse<?> answer, String text) {
      long seconds = answer.headers().firstValueAsLong("Retry-After").orElse(0);
      return new Refusal(code, text, DEFECT.equals("no-retry-after") ? 0 : seconds * 1000);
    }

    Map<String, Object> call(String method, String path, String type, Object body) throws IOException, InterruptedException {
      HttpRequest.Builder one = request(path).timeout(Duration.ofSeconds(12));
      if (body == null) one.method(method, BodyPublishers.noBody());
      else one.header("Content-Type", type).method(method, BodyPublishers.ofString(Json.write(body)));
      HttpResponse<String> answer = http.send(one.build(), BodyHandlers.ofString());
      if (answer.statusCode() >= 300) throw refusal(answer.statusCode(), answer, answer.body());
      return map(Json.parse(answer.body()));
    }

    InputStream stream(String path) throws IOException, InterruptedException {
      HttpResponse<InputStream> answer = http.send(request(path).timeout(Duration.ofSeconds(12)).build(), BodyHandlers.ofInputStream());
      if (answer.statusCode() != 200) {
        try (InputStream body = answer.body()) {
          throw refusal(answer.statusCode(), answer, new String(body.readAllBytes(), StandardCharsets.UTF_8));
        }
      }
      return answer.body();
    }
  }

  // ------------------------------------------------------------------ the cache

  static final ScheduledExecutorService TIMER = Executors.newScheduledThreadPool(1, Guards::daemon);

  static Thread daemon(Runnable task) {
    Thread thread = new Thread(task);
    thread.setDaemon(true);
    return thread;
  }

  /** Keeps the objects of a collection; tells each change with the object, or the last one and that it is gone. */
  static final class Reflector implements Runnable {
    final Map<String, Map<String, Object>> known = new ConcurrentHashMap<>();
    volatile boolean synced;
    private final Api api;
    private final String path;
    private final BiConsumer<Map<String, Object>, Boolean> told;
    private String revision = "";
    private long pause;

    Reflector(Api api, String path, BiConsumer<Map<String, Object>, Boolean> told) {
      this.api = api;
      this.path = path;
      this.told = told;
    }

    @Override
    public void run() {
      calm();
      while (true) {
        long begun = System.nanoTime();
        long least = 0;
        try {
          if (revision.isEmpty()) relist();
          long came = follow();
          if (came > 0 || lasted(begun) > 2000) {
            calm();
            continue;
          }
          if (!DEFECT.equals("never-lists")) revision = "";
        } catch (Refusal problem) {
          least = problem.wait;
          boolean stale = problem.code == 410 && !DEFECT.equals("keeps-revision");
          if (stale || problem.code == 504) revision = "";
          if (problem.code == 500 && DEFECT.equals("500-ends")) System.exit(2);
        } catch (IOException problem) {
          System.out.println(path + " " + problem);
          if (lasted(begun) > 4000) calm();
        } catch (InterruptedException problem) {
          return;
        }
        sleep(Math.max(least, DEFECT.equals("always-a-second") ? 1000 : pause / 2 + ThreadLocalRandom.current().nextLong(pause)));
        pause = Math.min(pause * 2, 30_000);
      }
    }

    private void calm() {
      pause = 900;
    }

    private static long lasted(long begun) {
      return (System.nanoTime() - begun) / 1_000_000;
    }

    private void relist() throws IOException, InterruptedException {
      Map<String, Map<String, Object>> found = new HashMap<>();
      String next = "";
      Map<String, Object> page;
      do {
        page = api.call("GET", path + "?limit=250" + next, null, null);
        for (Object one : list(page.get("items"))) found.put(key(map(one)), map(one));
        Object token = metadata(page).get("continue");
        next = token == null || token.equals("") ? "" : "&continue=" + URLEncoder.encode((String) token, StandardCharsets.UTF_8);
      } while (!next.isEmpty());
      for (String key : Set.copyOf(known.keySet())) {
        if (!found.containsKey(key)) {
          Map<String, Object> gone = known.remove(key);
          if (!DEFECT.equals("forgets-gone")) told.accept(gone, true);
        }
      }
      found.forEach((key, one) -> keep(one));
      revision = (String) metadata(page).get("resourceVersion");
      synced = true;
    }

    private void keep(Map<String, Object> one) {
      Map<String, Object> old = known.put(key(one), one);
      if (old == null || !metadata(old).get("resourceVersion").equals(metadata(one).get("resourceVersion"))) told.accept(one, false);
    }

    private long follow() throws IOException, InterruptedException {
      int seconds = 240 + ThreadLocalRandom.current().nextInt(120);
      String query = "?watch=1&allowWatchBookmarks=true&timeoutSeconds=" + seconds + "&resourceVersion=" + revision;
      InputStream body = api.stream(path + query);
      AtomicLong heard = new AtomicLong(System.nanoTime());
      ScheduledFuture<?> guard = TIMER.scheduleAtFixedRate(() -> {
        if (lasted(heard.get()) > SILENCE) close(body);
      }, 1, 1, TimeUnit.SECONDS);
      if (DEFECT.equals("no-guard")) guard.cancel(false);
      long came = 0;
      try (body) {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        byte[] piece = new byte[32_768];
        for (int length; (length = body.read(piece)) >= 0; ) {
          heard.set(System.nanoTime());
          for (int i = 0; i < length; i++) {
            if (piece[i] != '\n') line.write(piece[i]);
            else {
              if (accept(map(Json.parse(line.toString(StandardCharsets.UTF_8))))) came++;
              line.reset();
            }
          }
          if (DEFECT.equals("drops-rest")) line.reset();
        }
        if (line.size() > 0) throw new IOException("cut in an event");
      } finally {
        guard.cancel(false);
      }
      return came;
    }

    private boolean accept(Map<String, Object> event) throws Refusal {
      Map<String, Object> object = map(event.get("object"));
      switch ((String) event.get("type")) {
        case "ADDED", "MODIFIED" -> keep(object);
        case "DELETED" -> {
          known.remove(key(object));
          told.accept(object, true);
        }
        case "BOOKMARK" -> {
          revision = (String) metadata(object).get("resourceVersion");
          return false;
        }
        case "ERROR" -> {
          int code = Integer.parseInt(String.valueOf(object.getOrDefault("code", "500")));
          Object seconds = map(object.get("details")).get("retryAfterSeconds");
          throw new Refusal(code, String.valueOf(object.get("message")), seconds == null ? 0 : 1000 * Long.parseLong(seconds.toString()));
        }
        default -> {
          return false;
        }
      }
      if (!DEFECT.equals("revision-of-list")) revision = (String) metadata(object).get("resourceVersion");
      return true;
    }
  }

  static void close(InputStream body) {
    try {
      body.close();
    } catch (IOException problem) {
      System.out.println(problem);
    }
  }

  static void sleep(long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException problem) {
      Thread.currentThread().interrupt();
    }
  }

  static String key(Map<String, Object> object) {
    return metadata(object).get("namespace") + "/" + metadata(object).get("name");
  }

  // ------------------------------------------------------------------ the work

  private final Api api;
  private final Reflector widgets;
  private final Reflector accounts;
  private final Reflector policies;
  private final ScheduledExecutorService workers = Executors.newScheduledThreadPool(3);
  private final Map<String, Integer> failures = new ConcurrentHashMap<>();
  private final Set<String> waiting = new HashSet<>();
  private final Set<String> working = new HashSet<>();
  private final Set<String> again = new HashSet<>();

  Guards(Api api) {
    this.api = api;
    widgets = new Reflector(api, "/apis/checked.dev/v1/widgets", (one, gone) -> plan(key(one), 0));
    accounts = new Reflector(api, "/api/v1/serviceaccounts", (one, gone) -> planOwner(one));
    policies = new Reflector(api, "/apis/networking.k8s.io/v1/networkpolicies", (one, gone) -> planOwner(one));
  }

  private void planOwner(Map<String, Object> child) {
    for (Object reference : list(metadata(child).get("ownerReferences"))) {
      if ("Widget".equals(map(reference).get("kind"))) plan(metadata(child).get("namespace") + "/" + map(reference).get("name"), 0);
    }
  }

  private void plan(String key, long milliseconds) {
    synchronized (waiting) {
      if (!waiting.add(key)) return;
    }
    workers.schedule(() -> work(key), milliseconds, TimeUnit.MILLISECONDS);
  }

  private void work(String key) {
    synchronized (waiting) {
      waiting.remove(key);
      if (!working.add(key)) {
        again.add(key);
        return;
      }
    }
    long pause = -1;
    try {
      reconcile(key);
      failures.remove(key);
    } catch (Refusal problem) {
      System.out.println(key + " " + problem.getMessage());
      pause = pauseAfter(key, problem.wait);
    } catch (IOException problem) {
      System.out.println(key + " " + problem);
      pause = pauseAfter(key, 0);
    } catch (InterruptedException problem) {
      Thread.currentThread().interrupt();
    }
    boolean more;
    synchronized (waiting) {
      working.remove(key);
      more = again.remove(key);
    }
    if (DEFECT.equals("drops-failed")) pause = -1;
    if (pause >= 0) plan(key, pause);
    else if (more) plan(key, 0);
  }

  private long pauseAfter(String key, long least) {
    if (DEFECT.equals("at-once")) return 20;
    int count = failures.merge(key, 1, Integer::sum);
    return Math.max(least, Math.min(100L << Math.min(count, 8), 20_000) + ThreadLocalRandom.current().nextLong(100L << Math.min(count, 5)));
  }

  private void reconcile(String key) throws IOException, InterruptedException {
    Map<String, Object> widget = widgets.known.get(key);
    if (widget == null) return;
    String path = "/apis/checked.dev/v1/namespaces/" + metadata(widget).get("namespace") + "/widgets/" + metadata(widget).get("name");
    List<Object> finalizers = list(metadata(widget).get("finalizers"));
    if (metadata(widget).get("deletionTimestamp") != null && !DEFECT.equals("ignores-deletion")) {
      int place = finalizers.indexOf(FINALIZER);
      if (place < 0) return;
      Object test = of("op", "test", "path", "/metadata/finalizers/" + place, "value", FINALIZER);
      Object remove = of("op", "remove", "path", "/metadata/finalizers/" + place);
      ignoring(404, () -> api.call("PATCH", path, "application/json-patch+json", List.of(test, remove)));
      return;
    }
    if (!finalizers.contains(FINALIZER)) {
      Object revision = of("op", "test", "path", "/metadata/resourceVersion", "value", metadata(widget).get("resourceVersion"));
      Object add = finalizers.isEmpty()
          ? of("op", "add", "path", "/metadata/finalizers", "value", List.of(FINALIZER))
          : of("op", "add", "path", "/metadata/finalizers/-", "value", FINALIZER);
      ignoring(404, () -> api.call("PATCH", path, "application/json-patch+json", List.of(revision, add)));
      return; // its own event brings it back
    }
    String message = String.valueOf(map(widget.get("spec")).get("message"));
    Map<String, Object> account = of("apiVersion", "v1", "kind", "ServiceAccount", "metadata", childMetadata(widget, "user", message));
    Map<String, Object> policy = of("apiVersion", "networking.k8s.io/v1", "kind", "NetworkPolicy", "metadata", childMetadata(widget, "guard", message),
        "spec", of("podSelector", of("matchLabels", of("app", metadata(widget).get("name"))), "policyTypes", List.of("Ingress")));
    boolean mine = ensure(accounts, "/api/v1", "serviceaccounts", widget, account) & ensure(policies, "/apis/networking.k8s.io/v1", "networkpolicies", widget, policy);
    report(widget, path, mine ? "True" : "False", mine ? "Kept" : "NotMine");
  }

  private Map<String, Object> childMetadata(Map<String, Object> widget, String suffix, String message) {
    Map<String, Object> owner = of("apiVersion", "checked.dev/v1", "kind", "Widget", "name", metadata(widget).get("name"), "uid", metadata(widget).get("uid"),
        "controller", true, "blockOwnerDeletion", true);
    return of("name", metadata(widget).get("name") + "-" + suffix, "namespace", metadata(widget).get("namespace"),
        "annotations", of("checked.dev/message", message), "ownerReferences", List.of(owner));
  }

  /** Makes or mends a child; returns whether it is that of the widget. */
  private boolean ensure(Reflector reflector, String group, String plural, Map<String, Object> widget, Map<String, Object> wanted)
      throws IOException, InterruptedException {
    String collection = group + "/namespaces/" + metadata(widget).get("namespace") + "/" + plural;
    Map<String, Object> found = reflector.known.get(key(wanted));
    if (found == null) {
      try {
        api.call("POST", collection, "application/json", wanted);
        return true;
      } catch (Refusal problem) {
        if (problem.code != 409) throw problem;
        found = api.call("GET", collection + "/" + metadata(wanted).get("name"), null, null);
      }
    }
    boolean mine = list(metadata(found).get("ownerReferences")).stream()
        .anyMatch(one -> Boolean.TRUE.equals(map(one).get("controller")) && metadata(widget).get("uid").equals(map(one).get("uid")));
    if (!mine && !DEFECT.equals("any-owner")) return false;
    Object message = map(metadata(wanted).get("annotations")).get("checked.dev/message");
    if (message.equals(map(metadata(found).get("annotations")).get("checked.dev/message"))) return true;
    Map<String, Object> change = of("metadata", of("uid", metadata(found).get("uid"), "annotations", of("checked.dev/message", message)));
    ignoring(404, () -> api.call("PATCH", collection + "/" + metadata(wanted).get("name"), "application/merge-patch+json", change));
    return true;
  }

  private void report(Map<String, Object> widget, String path, String status, String reason) throws IOException, InterruptedException {
    for (int attempt = 0; attempt < 4; attempt++) {
      Map<String, Object> current = attempt == 0 || DEFECT.equals("stale-status") ? widget : orNothing(path);
      if (current == null || !metadata(current).get("uid").equals(metadata(widget).get("uid"))) return;
      List<Object> conditions = new ArrayList<>();
      Map<String, Object> old = Map.of();
      for (Object one : list(map(current.get("status")).get("conditions"))) {
        if ("Guarded".equals(map(one).get("type"))) old = map(one);
        else conditions.add(one);
      }
      boolean same = status.equals(old.get("status")) && reason.equals(old.get("reason"));
      if (same) return;
      Object since = status.equals(old.get("status")) ? old.get("lastTransitionTime") : Instant.now().truncatedTo(ChronoUnit.SECONDS).toString();
      conditions.add(of("type", "Guarded", "status", status, "reason", reason, "message", "", "lastTransitionTime", since));
      Map<String, Object> changed = new LinkedHashMap<>(current);
      Map<String, Object> inner = new LinkedHashMap<>(map(current.get("status")));
      inner.put("conditions", conditions);
      changed.put("status", inner);
      try {
        api.call("PUT", path + "/status", "application/json", changed);
        return;
      } catch (Refusal problem) {
        if (problem.code == 404) return;
        if (problem.code != 409) throw problem;
        sleep(10L << attempt);
      }
    }
    throw new Refusal(409, "the status still conflicts", 0);
  }

  private Map<String, Object> orNothing(String path) throws IOException, InterruptedException {
    try {
      return api.call("GET", path, null, null);
    } catch (Refusal problem) {
      if (problem.code == 404) return null;
      throw problem;
    }
  }

  interface Request {
    void send() throws IOException, InterruptedException;
  }

  private static void ignoring(int code, Request request) throws IOException, InterruptedException {
    try {
      request.send();
    } catch (Refusal problem) {
      if (problem.code != code) throw problem;
    }
  }

  void run() throws InterruptedException {
    List<Reflector> all = List.of(accounts, policies, widgets);
    for (Reflector one : all) {
      Thread thread = new Thread(one);
      thread.start();
      if (one == widgets) thread.join();
      else while (!one.synced) sleep(20);
    }
  }

  public static void main(String[] arguments) throws Exception {
    new Guards(new Api()).run();
  }
}
