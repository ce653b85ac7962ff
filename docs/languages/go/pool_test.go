// Each test takes a cluster of its own from the pool: `fakekube run --clusters -- go test ./...`
package pool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
)

type object = map[string]any

// Cluster is one cluster of the pool.
type Cluster struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Control string `json:"control"`
}

// send sends a request, decodes the response into out unless that is nil, and returns the status.
func send(t *testing.T, method, url string, body, out any) int {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(method, url, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if out != nil {
		if err := json.NewDecoder(response.Body).Decode(out); err != nil {
			t.Fatal(err)
		}
	}
	return response.StatusCode
}

// newCluster forks the pool's own cluster; the fork ends with the test.
func newCluster(t *testing.T) Cluster {
	t.Helper()
	pool := os.Getenv("FAKEKUBE_POOL") + "/fakekube/v1/clusters"
	var made Cluster
	if code := send(t, "POST", pool, object{"from": "fork"}, &made); code != 201 {
		t.Fatalf("the pool answers %d", code)
	}
	t.Cleanup(func() { send(t, "DELETE", pool+"/"+made.Name, nil, nil) })
	return made
}

// create is the client under test: it repeats what is refused with 503.
func create(t *testing.T, cluster Cluster, path string, body object) error {
	for attempt := 0; attempt < 3; attempt++ {
		switch code := send(t, "POST", cluster.URL+path, body, nil); code {
		case 201:
			return nil
		case 503:
		default:
			return fmt.Errorf("refused with %d", code)
		}
	}
	return fmt.Errorf("given up")
}

const maps = "/api/v1/namespaces/default/configmaps"

func TestAFaultIsRepeated(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	fault := object{"on": object{"verbs": "create", "resource": "configmaps"}, "do": object{"status": object{"code": 503}}, "times": 1}
	if code := send(t, "POST", cluster.Control+"/faults", fault, nil); code != 201 {
		t.Fatalf("the fault is refused with %d", code)
	}
	if err := create(t, cluster, maps, object{"metadata": object{"name": "a"}}); err != nil {
		t.Fatal(err)
	}
	var seen struct{ Items []struct{ Status int } }
	send(t, "GET", cluster.Control+"/requests?verb=create&resource=configmaps", nil, &seen)
	if len(seen.Items) != 2 || seen.Items[0].Status != 503 || seen.Items[1].Status != 201 {
		t.Fatalf("unexpected requests: %v", seen.Items)
	}
}

func TestACronJobRunsAnHourLater(t *testing.T) {
	t.Parallel()
	cluster := newCluster(t)
	send(t, "POST", cluster.Control+"/clock/hold", nil, nil)
	container := object{"name": "main", "image": "busybox", "command": []string{"true"}}
	pod := object{"spec": object{"restartPolicy": "Never", "containers": []object{container}}}
	job := object{"spec": object{"template": pod}}
	cron := object{"metadata": object{"name": "hourly"}, "spec": object{"schedule": "0 * * * *", "jobTemplate": job}}
	if err := create(t, cluster, "/apis/batch/v1/namespaces/default/cronjobs", cron); err != nil {
		t.Fatal(err)
	}
	send(t, "POST", cluster.Control+"/settle", nil, nil)
	send(t, "POST", cluster.Control+"/clock/advance", object{"seconds": 3600}, nil)
	send(t, "POST", cluster.Control+"/settle", nil, nil)
	var jobs struct{ Items []any }
	send(t, "GET", cluster.URL+"/apis/batch/v1/namespaces/default/jobs", nil, &jobs)
	if len(jobs.Items) != 1 {
		t.Fatalf("there are %d jobs", len(jobs.Items))
	}
}
