// Fleet gives each selected ConfigMap a NetworkPolicy, while it holds a lease of its own make.
// client-go's typed client, shared informers and work queue; the election is its own, on the Leases API.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

var defect = os.Getenv("DEFECT")

const (
	leaseName = "fleet"
	duration  = 8 * time.Second
	deadline  = 5 * time.Second
	pause     = time.Second
)

// elector holds the lease; lead is called with a context that ends with the leadership.
type elector struct {
	client   kubernetes.Interface
	identity string
	seen     string // the record that was observed last
	seenAt   time.Time
	renewed  time.Time
	mutex    sync.Mutex
	cancel   context.CancelFunc
	lead     func(context.Context)
}

func (e *elector) run(ctx context.Context) {
	for {
		if err := e.try(ctx); err != nil {
			log.Print("lease: ", err)
		}
		if e.cancel != nil && time.Since(e.renewed) > deadline {
			log.Print("lost the lease")
			e.cancel()
			e.cancel = nil
		}
		time.Sleep(time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64())))
	}
}

func (e *elector) try(parent context.Context) error {
	ctx, done := context.WithTimeout(parent, 3*time.Second)
	defer done()
	leases := e.client.CoordinationV1().Leases("default")
	now := meta.NowMicro()
	seconds := int32(duration / time.Second)
	lease, err := leases.Get(ctx, leaseName, meta.GetOptions{})
	if apierrors.IsNotFound(err) {
		if defect == "lease-gone-leads" && e.cancel != nil {
			e.renewed = time.Now()
			return nil
		}
		lease = &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: leaseName}, Spec: coordination.LeaseSpec{
			HolderIdentity: &e.identity, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}}
		begun := time.Now()
		if _, err = leases.Create(ctx, lease, meta.CreateOptions{}); err != nil {
			return err
		}
		e.holds(parent, begun)
		return nil
	}
	if err != nil {
		return err
	}
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	var record string
	if defect == "null-renew" {
		record = holder + lease.Spec.RenewTime.String() + lease.ResourceVersion
	} else {
		record = fmt.Sprint(holder, lease.Spec.RenewTime, lease.ResourceVersion)
	}
	if record != e.seen {
		e.seen, e.seenAt = record, time.Now()
	}
	mine := holder == e.identity
	if !mine {
		if e.cancel != nil { // another one has it
			e.cancel()
			e.cancel = nil
		}
		held := duration
		if lease.Spec.LeaseDurationSeconds != nil {
			held = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
		}
		expired := time.Since(e.seenAt) > held
		if defect == "empty-holder-stuck" {
			if holder == "" {
				return fmt.Errorf("held by %q", holder)
			}
		} else if holder == "" {
			expired = true
		}
		if !expired {
			return nil
		}
		transitions := int32(1)
		if lease.Spec.LeaseTransitions != nil {
			transitions = *lease.Spec.LeaseTransitions + 1
		}
		lease.Spec.LeaseTransitions, lease.Spec.AcquireTime = &transitions, &now
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &e.identity, &seconds, &now
	begun := time.Now()
	if _, err = leases.Update(ctx, lease, meta.UpdateOptions{}); err != nil {
		return err
	}
	e.holds(parent, begun)
	return nil
}

func (e *elector) holds(parent context.Context, begun time.Time) {
	e.renewed = begun
	if e.cancel == nil {
		var ctx context.Context
		ctx, e.cancel = context.WithCancel(parent)
		log.Print("leads")
		e.lead(ctx)
	}
}

type fleet struct {
	client   kubernetes.Interface
	factory  informers.SharedInformerFactory
	sources  cache.SharedIndexInformer
	policies cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string]
}

func (f *fleet) add(object any) {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	one, err := apimeta.Accessor(object)
	if err != nil {
		return
	}
	namespace, name := "", ""
	if _, is := object.(*networking.NetworkPolicy); is {
		owner := meta.GetControllerOf(one)
		if owner == nil || owner.Kind != "ConfigMap" {
			return
		}
		namespace, name = one.GetNamespace(), owner.Name
	} else {
		namespace, name = one.GetNamespace(), one.GetName()
	}
	f.queue.Add(namespace + "/" + name)
}

func (f *fleet) work(ctx context.Context) {
	for {
		key, stop := f.queue.Get()
		if stop {
			return
		}
		if ctx.Err() != nil {
			f.queue.Done(key)
			f.queue.Add(key)
			return
		}
		err := f.reconcile(ctx, key)
		if err != nil {
			log.Print(key, ": ", err)
			after, is := apierrors.SuggestsClientDelay(err)
			if is {
				f.queue.AddAfter(key, time.Duration(after)*time.Second)
			} else {
				f.queue.AddRateLimited(key)
			}
		} else {
			f.queue.Forget(key)
		}
		f.queue.Done(key)
	}
}

func (f *fleet) reconcile(ctx context.Context, key string) error {
	if defect == "works-after-loss" {
		ctx = context.Background()
	}
	namespace, name, _ := strings.Cut(key, "/")
	found, exists, err := f.sources.GetStore().GetByKey(key)
	if err != nil || !exists {
		return err
	}
	source := found.(*core.ConfigMap)
	if source.DeletionTimestamp != nil {
		return nil
	}
	wanted := map[string]string{"app": label(source.Data["text"])}
	policies := f.client.NetworkingV1().NetworkPolicies(namespace)
	if defect == "lists-each" {
		if _, err := f.client.NetworkingV1().NetworkPolicies("").List(ctx, meta.ListOptions{}); err != nil {
			return err
		}
	}
	present, exists, err := f.policies.GetStore().GetByKey(namespace + "/" + name + "-fleet")
	if err != nil {
		return err
	}
	yes := true
	if !exists {
		policy := &networking.NetworkPolicy{ObjectMeta: meta.ObjectMeta{Name: name + "-fleet", Labels: map[string]string{"fleet": "yes"},
			OwnerReferences: []meta.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: source.UID, Controller: &yes}}}}
		policy.Spec.PodSelector.MatchLabels = wanted
		_, err := f.write(ctx, func() (*networking.NetworkPolicy, error) { return policies.Create(ctx, policy, meta.CreateOptions{}) })
		if apierrors.IsAlreadyExists(err) {
			live, err := policies.Get(ctx, policy.Name, meta.GetOptions{})
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("%s has just gone", policy.Name)
			}
			if err != nil {
				return err
			}
			if !meta.IsControlledBy(live, source) && live.Labels["fleet"] != "yes" {
				return nil // of somebody else
			}
			return fmt.Errorf("%s is there, and not yet seen", policy.Name)
		}
		return err
	}
	policy := present.(*networking.NetworkPolicy)
	if !meta.IsControlledBy(policy, source) {
		if policy.Labels["fleet"] == "yes" && policy.DeletionTimestamp == nil && ownedByConfigMap(policy, name) {
			err := policies.Delete(ctx, policy.Name, meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &policy.UID}})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return err
			}
		}
		return nil
	}
	if labels.Equals(policy.Spec.PodSelector.MatchLabels, wanted) {
		return nil
	}
	changed := policy.DeepCopy()
	changed.Spec.PodSelector.MatchLabels = wanted
	_, err = f.write(ctx, func() (*networking.NetworkPolicy, error) { return policies.Update(ctx, changed, meta.UpdateOptions{}) })
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (f *fleet) write(ctx context.Context, send func() (*networking.NetworkPolicy, error)) (*networking.NetworkPolicy, error) {
	made, err := send()
	if defect == "works-after-loss" && err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		for attempt := time.Second; attempt < 20*time.Second && err != nil; attempt *= 2 {
			time.Sleep(attempt)
			made, err = send()
		}
	}
	return made, err
}

func ownedByConfigMap(policy *networking.NetworkPolicy, name string) bool {
	owner := meta.GetControllerOf(policy)
	return owner != nil && owner.Kind == "ConfigMap" && owner.Name == name
}

// label makes a label's value of a text.
func label(text string) string {
	kept := strings.Map(func(one rune) rune {
		if one >= 'a' && one <= 'z' || one >= 'A' && one <= 'Z' || one >= '0' && one <= '9' {
			return one
		}
		return '-'
	}, text)
	if len(kept) > 60 {
		kept = kept[:60]
	}
	return "t" + kept + "t"
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	config.UserAgent = "fleet/0.9 (checked.dev)"
	config.Timeout = 0
	client := kubernetes.NewForConfigOrDie(config)
	election := rest.CopyConfig(config)
	election.Timeout = 4 * time.Second
	for {
		version, err := client.Discovery().ServerVersion()
		if err != nil {
			time.Sleep(time.Duration(float64(2*time.Second) * (0.7 + 0.6*rand.Float64())))
			continue
		}
		minor := version.Minor
		if defect != "minor-plus" {
			minor = strings.TrimRight(minor, "+")
		}
		if found, err := strconv.Atoi(minor); err != nil || found < 20 {
			log.Fatal("cannot work with ", version.String(), " ", minor, " ", err)
		}
		break
	}
	f := &fleet{client: client}
	f.factory = informers.NewSharedInformerFactory(client, 0)
	selected := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(options *meta.ListOptions) {
		options.LabelSelector = "mirror=yes"
	}))
	f.sources = selected.Core().V1().ConfigMaps().Informer()
	f.policies = f.factory.Networking().V1().NetworkPolicies().Informer()
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, 30*time.Second))
	handler := cache.ResourceEventHandlerFuncs{AddFunc: f.add, UpdateFunc: func(_, object any) { f.add(object) }, DeleteFunc: f.add}
	_, _ = f.sources.AddEventHandler(handler)
	_, _ = f.policies.AddEventHandler(handler)
	ctx := context.Background()
	f.factory.Start(ctx.Done())
	selected.Start(ctx.Done())
	f.factory.WaitForCacheSync(ctx.Done())
	selected.WaitForCacheSync(ctx.Done())
	host, _ := os.Hostname()
	identity := fmt.Sprint(host, "-", os.Getpid(), "-", rand.Int63())
	e := &elector{client: kubernetes.NewForConfigOrDie(election), identity: identity}
	e.lead = func(ctx context.Context) {
		for range 2 {
			go f.work(ctx)
		}
	}
	e.run(ctx)
}
