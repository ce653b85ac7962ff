//! Each test takes a cluster of its own from the pool: `fakekube run --clusters -- cargo test`

use serde_json::{json, Value};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A fork of the pool's own cluster, which ends when it is dropped.
struct Cluster {
    made: Value,
}

fn send(method: &str, url: &str, body: Value) -> (u16, Value) {
    let request = ureq::request(method, url);
    let answered = if body.is_null() { request.call() } else { request.send_json(body) };
    let response = match answered {
        Ok(response) | Err(ureq::Error::Status(_, response)) => response,
        Err(error) => panic!("{method} {url}: {error}"),
    };
    (response.status(), response.into_json().unwrap_or(Value::Null))
}

fn pool() -> String {
    format!("{}/fakekube/v1/clusters", std::env::var("FAKEKUBE_POOL").expect("FAKEKUBE_POOL"))
}

impl Cluster {
    fn new() -> Self {
        let (status, made) = send("POST", &pool(), json!({"from": "fork"}));
        assert_eq!(status, 201, "{made}");
        Cluster { made }
    }

    fn api(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        send(method, &format!("{}{path}", self.made["url"].as_str().unwrap()), body)
    }

    fn control(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = send(method, &format!("{}/{path}", self.made["control"].as_str().unwrap()), body);
        assert!(status < 300, "{answer}");
        answer
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        send("DELETE", &format!("{}/{}", pool(), self.made["name"].as_str().unwrap()), Value::Null);
    }
}

/// The client under test: it repeats what is refused with 503.
fn create(cluster: &Cluster, path: &str, body: &Value) -> u16 {
    (0..3).map(|_| cluster.api("POST", path, body.clone()).0).find(|status| *status != 503).expect("given up")
}

#[test]
fn a_fault_is_repeated() {
    let cluster = Cluster::new();
    let on = json!({"verbs": "create", "resource": "configmaps"});
    cluster.control("POST", "faults", json!({"on": on, "do": {"status": {"code": 503}}, "times": 1}));
    assert_eq!(create(&cluster, MAPS, &json!({"metadata": {"name": "a"}})), 201);
    let seen = cluster.control("GET", "requests?verb=create&resource=configmaps", Value::Null);
    let statuses: Vec<_> = seen["items"].as_array().unwrap().iter().map(|one| one["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [503, 201]);
}

#[test]
fn a_cron_job_runs_an_hour_later() {
    let cluster = Cluster::new();
    cluster.control("POST", "clock/hold", json!({}));
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox", "command": ["true"]}]});
    let spec = json!({"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}});
    let cron = json!({"metadata": {"name": "hourly"}, "spec": spec});
    assert_eq!(create(&cluster, "/apis/batch/v1/namespaces/default/cronjobs", &cron), 201);
    cluster.control("POST", "settle", json!({}));
    cluster.control("POST", "clock/advance", json!({"seconds": 3600}));
    cluster.control("POST", "settle", json!({}));
    let (_, jobs) = cluster.api("GET", "/apis/batch/v1/namespaces/default/jobs", Value::Null);
    assert_eq!(jobs["items"].as_array().unwrap().len(), 1);
}
