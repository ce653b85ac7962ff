// Runs a Job for each version of a ConfigMap, and notes its end in an annotation. client-go with its usual limit of five requests a second:
// informers, listers, the work queue with its default limiter, names that follow from the data, older Jobs deleted.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const rendered = "renders.checked.dev/rendered"

type controller struct {
	client  kubernetes.Interface
	configs corelisters.ConfigMapLister
	jobs    batchlisters.JobLister
	queue   workqueue.TypedRateLimitingInterface[string]
}

func (c *controller) configChanged(obj any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
		c.queue.Add(key)
	}
}

func (c *controller) jobChanged(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	job := obj.(metav1.Object)
	if owner := metav1.GetControllerOf(job); owner != nil && owner.Kind == "ConfigMap" {
		c.queue.Add(job.GetNamespace() + "/" + owner.Name)
	}
}

func (c *controller) work(ctx context.Context) {
	for c.next(ctx) {
	}
}

func (c *controller) next(ctx context.Context) bool {
	key, stop := c.queue.Get()
	if stop {
		return false
	}
	defer c.queue.Done(key)
	if err := c.sync(ctx, key); err != nil {
		c.queue.AddRateLimited(key)
		utilruntime.HandleError(fmt.Errorf("%s: %w", key, err))
		return true
	}
	c.queue.Forget(key)
	return true
}

func versionOf(config *corev1.ConfigMap) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(config.Data)) {
		fmt.Fprintf(sum, "%q=%q\n", name, config.Data[name])
	}
	return hex.EncodeToString(sum.Sum(nil))[:10]
}

func (c *controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	config, err := c.configs.ConfigMaps(namespace).Get(name)
	if apierrors.IsNotFound(err) || (err == nil && config.DeletionTimestamp != nil) {
		return nil
	}
	if err != nil {
		return err
	}
	version := versionOf(config)
	job, err := c.keepJob(ctx, config, version)
	if err != nil || job == nil {
		return err
	}
	if err := c.dropOlder(ctx, config, job.Name); err != nil {
		return err
	}
	if config.Annotations[rendered] == version {
		return nil
	}
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": config.UID, "resourceVersion": config.ResourceVersion, "annotations": map[string]string{rendered: version}}})
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, change, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// keepJob returns the Job of a version, which it creates if there is none; nil if it is about to be deleted.
func (c *controller) keepJob(ctx context.Context, config *corev1.ConfigMap, version string) (*batchv1.Job, error) {
	name := config.Name + "-" + version
	job, err := c.jobs.Jobs(config.Namespace).Get(name)
	if apierrors.IsNotFound(err) {
		job, err = c.client.BatchV1().Jobs(config.Namespace).Create(ctx, jobOf(config, name, version), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			job, err = c.client.BatchV1().Jobs(config.Namespace).Get(ctx, name, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(job, config) {
		if owner := metav1.GetControllerOf(job); owner != nil && owner.Kind == "ConfigMap" && owner.Name == config.Name {
			return nil, fmt.Errorf("the Job %s of a former ConfigMap is still there", name)
		}
		return nil, fmt.Errorf("the Job %s belongs to somebody else", name)
	}
	if job.DeletionTimestamp != nil { // its end is an event
		return nil, nil
	}
	return job, nil
}

func jobOf(config *corev1.ConfigMap, name, version string) *batchv1.Job {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: config.Namespace, Labels: map[string]string{"renders": "yes"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(config, kind)},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "render", Image: "render:1", Env: []corev1.EnvVar{{Name: "VERSION", Value: version}}}},
		}}},
	}
}

func (c *controller) dropOlder(ctx context.Context, config *corev1.ConfigMap, kept string) error {
	all, err := c.jobs.Jobs(config.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	for _, job := range all {
		if job.Name == kept || !metav1.IsControlledBy(job, config) || job.DeletionTimestamp != nil {
			continue
		}
		options := metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &job.UID}}
		err := c.client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, options)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	config.UserAgent = "renders/0.4"
	client := kubernetes.NewForConfigOrDie(config)
	only := func(label string) informers.SharedInformerOption {
		return informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = label })
	}
	sources := informers.NewSharedInformerFactoryWithOptions(client, 10*time.Minute, only("mirror=yes"))
	results := informers.NewSharedInformerFactoryWithOptions(client, 10*time.Minute, only("renders=yes"))
	configs, jobs := sources.Core().V1().ConfigMaps(), results.Batch().V1().Jobs()
	c := &controller{client: client, configs: configs.Lister(), jobs: jobs.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	_, _ = configs.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.configChanged, UpdateFunc: func(_, obj any) { c.configChanged(obj) }, DeleteFunc: c.configChanged})
	_, _ = jobs.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.jobChanged, UpdateFunc: func(_, obj any) { c.jobChanged(obj) }, DeleteFunc: c.jobChanged})
	ctx := context.Background()
	sources.Start(ctx.Done())
	results.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), configs.Informer().HasSynced, jobs.Informer().HasSynced) {
		panic("the caches are not filled")
	}
	for range 2 {
		go wait.UntilWithContext(ctx, c.work, time.Second)
	}
	select {}
}
