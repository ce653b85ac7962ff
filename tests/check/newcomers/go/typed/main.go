// A controller made with client-go's typed informers: for a ConfigMap it creates Services with generated names, whose number it
// expects to see in its cache before it creates another one, and holds the ConfigMap by a finalizer.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const (
	finalizer = "typed.dev/services"
	ownerUID  = "typed.dev/owner"
)

var defect = os.Getenv("DEFECT")

type controller struct {
	client   kubernetes.Interface
	maps     listers.ConfigMapLister
	services listers.ServiceLister
	queue    workqueue.TypedRateLimitingInterface[string]
	mu       sync.Mutex
	made     map[types.UID]string // owner → the name of the Service that the cache may not have yet
}

func (c *controller) enqueue(obj any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
		c.queue.Add(key)
	}
}

func (c *controller) service(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok && defect != "no-tombstones" {
		obj = gone.Obj
	}
	service := obj.(*corev1.Service)
	if owner := metav1.GetControllerOf(service); owner != nil && owner.Kind == "ConfigMap" {
		c.queue.Add(service.Namespace + "/" + owner.Name)
	}
}

func (c *controller) seen(service *corev1.Service) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, name := range c.made {
		if name == service.Name {
			delete(c.made, uid)
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
			if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
				c.queue.AddAfter(key, time.Duration(seconds)*time.Second)
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
	source, err := c.maps.ConfigMaps(namespace).Get(name)
	if err != nil {
		return nil
	}
	selector := labels.SelectorFromSet(labels.Set{ownerUID: string(source.UID)})
	known, err := c.services.Services(namespace).List(selector)
	if err != nil {
		return err
	}
	if source.DeletionTimestamp != nil {
		return c.release(ctx, source, known)
	}
	if !slices.Contains(source.Finalizers, finalizer) {
		if defect == "shared-object" {
			source.Finalizers = append(source.Finalizers, finalizer)
			if _, err := c.client.CoreV1().ConfigMaps(namespace).Update(ctx, source, metav1.UpdateOptions{}); err != nil {
				return err
			}
		} else if defect == "blind-list" {
			change := map[string]any{"metadata": map[string]any{"finalizers": append(slices.Clone(source.Finalizers), finalizer)}}
			body, _ := json.Marshal(change)
			maps := c.client.CoreV1().ConfigMaps(namespace)
			if _, err := maps.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
				return err
			}
		} else {
			changed := source.DeepCopy()
			changed.Finalizers = append(changed.Finalizers, finalizer)
			if _, err := c.client.CoreV1().ConfigMaps(namespace).Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
				if apierrors.IsNotFound(err) {
					return nil
				}
				return err
			}
		}
	}
	c.mu.Lock()
	_, waits := c.made[source.UID]
	c.mu.Unlock()
	if len(known) > 0 || waits && defect != "no-expectations" {
		return nil
	}
	if defect != "no-expectations" {
		// the cache may be older than this process: look at the storage before a name is generated
		there, err := c.client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String(), Limit: 5})
		if err != nil || len(there.Items) > 0 {
			return err
		}
	}
	owner := metav1.NewControllerRef(source, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    name + "-",
			Labels:          map[string]string{ownerUID: string(source.UID)},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"app": name}},
	}
	made, err := c.client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.made[source.UID] = made.Name
	c.mu.Unlock()
	if _, err := c.services.Services(namespace).Get(made.Name); err == nil {
		c.seen(made)
	}
	return nil
}

func (c *controller) release(ctx context.Context, source *corev1.ConfigMap, known []*corev1.Service) error {
	if !slices.Contains(source.Finalizers, finalizer) {
		return nil
	}
	for _, service := range known {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(service.UID))}
		err := c.client.CoreV1().Services(service.Namespace).Delete(ctx, service.Name, options)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	kept := slices.DeleteFunc(slices.Clone(source.Finalizers), func(one string) bool { return one == finalizer })
	change := map[string]any{"metadata": map[string]any{"finalizers": kept, "resourceVersion": source.ResourceVersion}}
	body, _ := json.Marshal(change)
	maps := c.client.CoreV1().ConfigMaps(source.Namespace)
	_, err := maps.Patch(ctx, source.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	config.UserAgent = "typed/0.9"
	config.QPS, config.Burst = -1, 0
	client := kubernetes.NewForConfigOrDie(config)
	chosen := func(selector string) informers.SharedInformerOption {
		return informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = selector })
	}
	sources := informers.NewSharedInformerFactoryWithOptions(client, 0, chosen("mirror=yes"))
	children := informers.NewSharedInformerFactoryWithOptions(client, 0, chosen(ownerUID))
	maps, services := sources.Core().V1().ConfigMaps(), children.Core().V1().Services()
	c := &controller{
		client: client, maps: maps.Lister(), services: services.Lister(), made: map[types.UID]string{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueue, UpdateFunc: func(_, obj any) { c.enqueue(obj) }, DeleteFunc: c.enqueue,
	})
	services.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.seen(obj.(*corev1.Service)); c.service(obj) },
		UpdateFunc: func(_, obj any) { c.service(obj) },
		DeleteFunc: c.service,
	})
	ctx := context.Background()
	sources.Start(ctx.Done())
	children.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), maps.Informer().HasSynced, services.Informer().HasSynced) {
		panic("the caches are not filled")
	}
	for range 2 {
		go c.work(ctx)
	}
	select {}
}
