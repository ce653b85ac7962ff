// Applies a PodDisruptionBudget for each Deployment with a label. net/http alone; pages of two; one goroutine for each key.
//
//	KUBECONFIG=… raw            (DEFECT=NAME puts one in)
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	silence = 12 * time.Second
	manager = "budgets"
)

var (
	defect = os.Getenv("DEFECT")
	config = func() string {
		text, err := os.ReadFile(os.Getenv("KUBECONFIG"))
		if err != nil {
			panic(err)
		}
		return string(text)
	}()
	server = field("server")
	client = &http.Client{Transport: transport()}
)

func field(name string) string {
	found := regexp.MustCompile(`(?m)^\s*(?:- )?` + name + `: *['"]?([^'"\n]*)`).FindStringSubmatch(config)
	if found == nil {
		return ""
	}
	return found[1]
}

func transport() *http.Transport {
	made := http.DefaultTransport.(*http.Transport).Clone()
	if authority, err := base64.StdEncoding.DecodeString(field("certificate-authority-data")); err == nil && len(authority) > 0 {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		made.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return made
}

type object struct {
	Metadata struct {
		Name, Namespace, UID, ResourceVersion, Continue, DeletionTimestamp string
		Annotations                                                        map[string]string
		OwnerReferences                                                    []owner
	}
	Spec struct {
		MaxUnavailable any
		Selector       json.RawMessage
	}
	Code    int
	Message string
	Details struct{ RetryAfterSeconds int }
	Items   []*object
}

type owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

func (o *object) key() string { return o.Metadata.Namespace + "/" + o.Metadata.Name }

type refusal struct {
	code  int
	text  string
	after time.Duration
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %.200s", r.code, r.text) }

func send(ctx context.Context, method, target, kind string, body any) (*http.Response, error) {
	var data io.Reader
	if body != nil {
		text, _ := json.Marshal(body)
		data = bytes.NewReader(text)
	}
	request, _ := http.NewRequestWithContext(ctx, method, server+target, data)
	request.Header.Set("User-Agent", "budgets/5")
	request.Header.Set("Accept", "application/json")
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	token := field("token")
	if file := field("tokenFile"); file != "" {
		text, _ := os.ReadFile(file)
		token = strings.TrimSpace(string(text))
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		after, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return nil, &refusal{answer.StatusCode, string(text), time.Duration(after) * time.Second}
	}
	return answer, nil
}

func call(method, target, kind string, body any) (*object, error) {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	answer, err := send(ctx, method, target, kind, body)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	found := &object{}
	return found, json.NewDecoder(answer.Body).Decode(found)
}

type store struct {
	path, selector string
	changed        func(key string)
	mutex          sync.Mutex
	objects        map[string]*object
	revision       string
	ready          sync.WaitGroup
	once           sync.Once
}

func newStore(path, selector string, changed func(string)) *store {
	made := &store{path: path, selector: url.QueryEscape(selector), changed: changed, objects: map[string]*object{}}
	made.ready.Add(1)
	return made
}

func (s *store) get(key string) *object {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.objects[key]
}

func (s *store) list() error {
	found, token := map[string]*object{}, ""
	for {
		page, err := call("GET", s.path+"?labelSelector="+s.selector+"&limit=2&continue="+url.QueryEscape(token), "", nil)
		if err != nil {
			return err
		}
		for _, one := range page.Items {
			found[one.key()] = one
		}
		s.revision = page.Metadata.ResourceVersion
		if token = page.Metadata.Continue; token == "" {
			break
		}
	}
	s.mutex.Lock()
	before := s.objects
	if defect != "revision-only" || len(before) == 0 {
		s.objects = found
	}
	s.mutex.Unlock()
	for key := range before {
		if found[key] == nil {
			s.changed(key)
		}
	}
	for key := range found {
		s.changed(key)
	}
	s.once.Do(s.ready.Done)
	return nil
}

func (s *store) watch() (came int, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	timer := time.AfterFunc(silence, stop)
	defer timer.Stop()
	query := fmt.Sprintf("?watch=1&allowWatchBookmarks=true&labelSelector=%s&timeoutSeconds=%d", s.selector, 300+rand.Intn(300))
	if defect != "from-now" {
		query += "&resourceVersion=" + s.revision
	}
	answer, err := send(ctx, "GET", s.path+query, "", nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	reader := bufio.NewReader(answer.Body)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return came, nil
		}
		if err != nil {
			if ctx.Err() != nil { // nothing was heard for long: a new connection, and no failure
				return came + 1, nil
			}
			return came, err
		}
		timer.Reset(silence)
		var event struct {
			Type   string
			Object *object
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return came, err
		}
		one := event.Object
		switch event.Type {
		case "ERROR":
			return came, &refusal{one.Code, one.Message, time.Duration(one.Details.RetryAfterSeconds) * time.Second}
		case "BOOKMARK":
			s.revision = one.Metadata.ResourceVersion
			continue
		case "ADDED", "MODIFIED", "DELETED":
		default:
			continue
		}
		s.mutex.Lock()
		if event.Type == "DELETED" {
			delete(s.objects, one.key())
		} else {
			s.objects[one.key()] = one
		}
		s.mutex.Unlock()
		s.revision = one.Metadata.ResourceVersion
		came++
		s.changed(one.key())
	}
}

func (s *store) run() {
	pause := 400 * time.Millisecond
	for {
		var err error
		var came int
		begun := time.Now()
		if s.revision == "" {
			err = s.list()
		}
		if err == nil {
			came, err = s.watch()
		}
		long := came > 0 || time.Since(begun) > 2*time.Second
		if err == nil && long {
			pause = 400 * time.Millisecond
			continue
		}
		least := time.Duration(0)
		var refused *refusal
		if errors.As(err, &refused) {
			least = refused.after
			if refused.code == 410 || refused.code == 504 {
				s.revision = ""
			}
		} else if err == nil {
			s.revision = ""
		}
		if err != nil {
			fmt.Println(s.path, err)
			if came > 0 {
				pause = 400 * time.Millisecond
			}
		}
		factor := 0.7 + rand.Float64()
		if defect == "no-jitter" {
			factor = 1
		}
		time.Sleep(max(least, time.Duration(float64(pause)*factor)))
		pause = min(2*pause, 25*time.Second)
	}
}

// keys has a channel for each key with its goroutine: a full channel has the next turn already.
var (
	keys        = map[string]chan struct{}{}
	lock        sync.Mutex
	shops, mine *store
)

func poke(key string) {
	lock.Lock()
	defer lock.Unlock()
	turn := keys[key]
	if turn == nil {
		turn = make(chan struct{}, 1)
		keys[key] = turn
		go work(key, turn)
	}
	select {
	case turn <- struct{}{}:
	default:
	}
}

func work(key string, turn chan struct{}) {
	mine.ready.Wait()
	shops.ready.Wait()
	tries := 0
	for range turn {
		err := reconcile(key)
		if err == nil {
			tries = 0
			continue
		}
		fmt.Println(key, err)
		pause := min(time.Duration(200<<tries)*time.Millisecond, 30*time.Second)
		tries = min(tries+1, 10)
		pause = time.Duration(float64(pause) * (0.8 + 0.7*rand.Float64()))
		var refused *refusal
		if errors.As(err, &refused) {
			pause = max(pause, refused.after)
		}
		time.AfterFunc(pause, func() { poke(key) })
	}
}

func reconcile(key string) error {
	shop := shops.get(key)
	if shop == nil || shop.Metadata.DeletionTimestamp != "" {
		return nil
	}
	name, namespace := shop.Metadata.Name, shop.Metadata.Namespace
	spare := shop.Metadata.Annotations["checked.dev/spare"]
	if budget := mine.get(key); budget != nil {
		controlled, ours := false, false
		for _, one := range budget.Metadata.OwnerReferences {
			controlled = controlled || one.Controller
			ours = ours || one.UID == shop.Metadata.UID
		}
		if controlled && !ours && defect != "takes" {
			return fmt.Errorf("%s belongs to another controller", key)
		}
		if ours && budget.Metadata.Annotations["checked.dev/spare"] == spare {
			return nil
		}
	} else if defect != "takes" {
		// one that has no label of ours is in no store
		there, err := call("GET", "/apis/policy/v1/namespaces/"+namespace+"/poddisruptionbudgets/"+name, "", nil)
		var refused *refusal
		if err != nil && !(errors.As(err, &refused) && refused.code == 404) {
			return err
		}
		if err == nil {
			for _, one := range there.Metadata.OwnerReferences {
				if one.Controller && one.UID != shop.Metadata.UID {
					return fmt.Errorf("%s belongs to another controller", key)
				}
			}
		}
	}
	body := map[string]any{
		"apiVersion": "policy/v1",
		"kind":       "PodDisruptionBudget",
		"metadata": map[string]any{
			"name":            name,
			"labels":          map[string]string{"made-by": "budgets"},
			"annotations":     map[string]string{"checked.dev/spare": spare},
			"ownerReferences": []owner{{"apps/v1", "Deployment", name, shop.Metadata.UID, true}},
		},
		"spec": map[string]any{"maxUnavailable": 1, "selector": map[string]any{"matchLabels": map[string]string{"app": "shop"}}},
	}
	target := "/apis/policy/v1/namespaces/" + namespace + "/poddisruptionbudgets/" + name + "?force=true&fieldManager=" + manager
	_, err := call("PATCH", target, "application/apply-patch+yaml", body)
	return err
}

func main() {
	shops = newStore("/apis/apps/v1/deployments", "budgeted=yes", poke)
	mine = newStore("/apis/policy/v1/poddisruptionbudgets", "made-by=budgets", poke)
	go mine.run()
	shops.run()
}
