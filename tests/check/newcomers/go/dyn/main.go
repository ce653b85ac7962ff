// A controller made with client-go's dynamic informers: for a Widget it applies a Job, and patches the Widget's status. It works
// as the holder of a lease.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
)

var (
	defect  = os.Getenv("DEFECT")
	widgets = schema.GroupVersionResource{Group: "checked.dev", Version: "v1", Resource: "widgets"}
	jobs    = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

type controller struct {
	client  dynamic.Interface
	widgets cache.GenericLister
	jobs    cache.GenericLister
	queue   workqueue.TypedRateLimitingInterface[string]
}

func (c *controller) enqueue(obj any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
		c.queue.Add(key)
	}
}

func (c *controller) child(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		if defect == "ignores-tombstones" {
			return
		}
		obj = gone.Obj
	}
	if one, err := meta.Accessor(obj); err == nil {
		if owner := metav1.GetControllerOf(one); owner != nil && owner.Kind == "Widget" {
			c.queue.Add(one.GetNamespace() + "/" + owner.Name)
		}
	}
}

func (c *controller) work(ctx context.Context) {
	for {
		key, stop := c.queue.Get()
		if stop {
			return
		}
		if err := c.reconcile(ctx, key); err != nil {
			fmt.Println("later:", key, err)
			if defect == "max-two" && c.queue.NumRequeues(key) >= 2 {
				c.queue.Forget(key)
			} else if defect == "immediate" {
				c.queue.Add(key)
			} else {
				c.queue.AddRateLimited(key)
			}
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

func (c *controller) reconcile(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	found, err := c.widgets.ByNamespace(namespace).Get(name)
	if err != nil {
		return nil
	}
	widget := found.(*unstructured.Unstructured)
	if widget.GetDeletionTimestamp() != nil {
		return nil
	}
	child := name + "-run"
	known, err := c.jobs.ByNamespace(namespace).Get(child)
	if err == nil {
		if !metav1.IsControlledBy(known.(*unstructured.Unstructured), widget) && defect != "adopts" {
			return fmt.Errorf("%s belongs to another object", child)
		}
	}
	if err != nil || defect == "adopts" {
		if defect == "no-uid-check" {
			_ = widget
		}
		controller := true
		job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{
			"suspend": true, "template": map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{
				map[string]any{"name": "run", "image": "run:1"}}}}}}}
		job.SetName(child)
		job.SetNamespace(namespace)
		job.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "checked.dev/v1", Kind: "Widget", Name: name, UID: widget.GetUID(), Controller: &controller}})
		if defect == "creates" {
			if _, err := c.client.Resource(jobs).Namespace(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
				if apierrors.IsAlreadyExists(err) {
					panic(err)
				}
				return err
			}
		} else if _, err := c.client.Resource(jobs).Namespace(namespace).Apply(ctx, child, job, metav1.ApplyOptions{FieldManager: "runner", Force: true}); err != nil {
			return err
		}
	}
	message, _, _ := unstructured.NestedString(widget.Object, "spec", "message")
	if seen, _, _ := unstructured.NestedString(widget.Object, "status", "message"); seen != message {
		patch := map[string]any{"status": map[string]any{"message": message}, "metadata": map[string]any{"uid": string(widget.GetUID()), "resourceVersion": widget.GetResourceVersion()}}
		if defect == "retries-conflict" {
			body, _ := json.Marshal(patch)
			for {
				_, err := c.client.Resource(widgets).Namespace(namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
				if !apierrors.IsConflict(err) {
					return err
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		body, _ := json.Marshal(patch)
		_, err := c.client.Resource(widgets).Namespace(namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		if apierrors.IsNotFound(err) {
			if defect == "exits-404" {
				os.Exit(4)
			}
			return nil
		}
		return err
	}
	return nil
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	config.UserAgent = "runner/1.0"
	client := dynamic.NewForConfigOrDie(config)
	run := func(ctx context.Context) {
		factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		c := &controller{client: client, widgets: factory.ForResource(widgets).Lister(), jobs: factory.ForResource(jobs).Lister()}
		c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		factory.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: c.enqueue, UpdateFunc: func(old, new any) { c.enqueue(new) }, DeleteFunc: c.enqueue})
		factory.ForResource(jobs).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: c.child, UpdateFunc: func(old, new any) { c.child(new) }, DeleteFunc: c.child})
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		go c.work(ctx)
		go c.work(ctx)
		<-ctx.Done()
	}
	name, _ := os.Hostname()
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, "default", "runner",
		resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s-%d", name, os.Getpid())}, config, 5*time.Second)
	if err != nil {
		panic(err)
	}
	_ = kubernetes.NewForConfigOrDie(config)
	lost := func() { fmt.Println("fatal: lost the lease"); os.Exit(1) }
	if defect == "leads-on" {
		lost = func() { select {} }
	}
	election := context.Background()
	leaderelection.RunOrDie(election, leaderelection.LeaderElectionConfig{Lock: lock, LeaseDuration: 8 * time.Second, RenewDeadline: 5 * time.Second,
		RetryPeriod: 1 * time.Second, Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(ctx context.Context) {
			if defect == "leads-on" {
				ctx = context.Background()
			}
			run(ctx)
		}, OnStoppedLeading: lost}})
}
