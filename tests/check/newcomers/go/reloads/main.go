// Restarts the pods of Deployments when what they are configured with changes: a digest of the ConfigMaps and Secrets of a Deployment
// is an annotation of its template. client-go: typed informers with indices, listers, a work queue, and Events by a recorder.
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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

const (
	digestOf = "reload.checked.dev/digest"
	bySource = "source"
)

var defect = os.Getenv("DEFECT")

type controller struct {
	client      kubernetes.Interface
	deployments appslisters.DeploymentLister
	index       cache.Indexer
	configs     corelisters.ConfigMapLister
	secrets     corelisters.SecretLister
	queue       workqueue.TypedRateLimitingInterface[types.NamespacedName]
	events      record.EventRecorder
}

// sourcesOf returns the ConfigMaps and Secrets that the containers of a Deployment name: kind/namespace/name.
func sourcesOf(obj any) ([]string, error) {
	var found []string
	deployment := obj.(*appsv1.Deployment)
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, from := range container.EnvFrom {
			if from.ConfigMapRef != nil {
				found = append(found, "ConfigMap/"+deployment.Namespace+"/"+from.ConfigMapRef.Name)
			}
			if from.SecretRef != nil {
				found = append(found, "Secret/"+deployment.Namespace+"/"+from.SecretRef.Name)
			}
		}
	}
	return found, nil
}

func present(obj any) metav1.Object {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	return obj.(metav1.Object)
}

func (c *controller) deploymentChanged(obj any) {
	meta := present(obj)
	c.queue.Add(types.NamespacedName{Namespace: meta.GetNamespace(), Name: meta.GetName()})
}

func (c *controller) sourceChanged(kind string) func(any) {
	return func(obj any) {
		meta := present(obj)
		users, err := c.index.ByIndex(bySource, kind+"/"+meta.GetNamespace()+"/"+meta.GetName())
		if err != nil {
			return
		}
		for _, user := range users {
			c.deploymentChanged(user)
		}
	}
}

func (c *controller) work(ctx context.Context) {
	for {
		key, stop := c.queue.Get()
		if stop {
			return
		}
		err := c.reconcile(ctx, key)
		delay := 0
		if err != nil {
			fmt.Println("later:", key, err)
			delay, _ = apierrors.SuggestsClientDelay(err)
		}
		switch {
		case err == nil:
			c.queue.Forget(key)
		case delay > 0:
			c.queue.AddAfter(key, time.Duration(delay)*time.Second)
		case defect == "forgets-first":
			c.queue.Forget(key)
			c.queue.AddRateLimited(key)
		default:
			c.queue.AddRateLimited(key)
		}
		if err == nil && defect == "looks-often" {
			c.queue.AddAfter(key, time.Second)
		}
		c.queue.Done(key)
	}
}

func (c *controller) reconcile(ctx context.Context, key types.NamespacedName) error {
	deployment, err := c.deployments.Deployments(key.Namespace).Get(key.Name)
	if err != nil || deployment.DeletionTimestamp != nil {
		return nil
	}
	if defect == "looks-often" {
		if deployment, err = c.client.AppsV1().Deployments(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{}); err != nil {
			return nil
		}
	}
	digest, complete := c.digest(deployment)
	if !complete && defect != "without" { // their arrival is an event
		return nil
	}
	if deployment.Spec.Template.Annotations[digestOf] == digest {
		return nil
	}
	if err := c.write(ctx, deployment, digest); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	c.events.Event(deployment, corev1.EventTypeNormal, "Reloaded", "the configuration is "+digest[:12])
	return nil
}

func (c *controller) write(ctx context.Context, deployment *appsv1.Deployment, digest string) error {
	deployments := c.client.AppsV1().Deployments(deployment.Namespace)
	switch defect {
	case "cache-mutated":
		if deployment.Spec.Template.Annotations == nil {
			deployment.Spec.Template.Annotations = map[string]string{}
		}
		deployment.Spec.Template.Annotations[digestOf] = digest
		_, err := deployments.Update(ctx, deployment.DeepCopy(), metav1.UpdateOptions{})
		return err
	case "puts-unguarded":
		changed := deployment.DeepCopy()
		metav1.SetMetaDataAnnotation(&changed.Spec.Template.ObjectMeta, digestOf, digest)
		changed.ResourceVersion = ""
		_, err := deployments.Update(ctx, changed, metav1.UpdateOptions{})
		return err
	}
	template := map[string]any{"metadata": map[string]any{"annotations": map[string]string{digestOf: digest}}}
	change := map[string]any{"metadata": map[string]any{"uid": deployment.UID}, "spec": map[string]any{"template": template}}
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = deployments.Patch(ctx, deployment.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsConflict(err) { // another uid: the Deployment that the cache knows is gone
		return nil
	}
	return err
}

// digest returns the digest of all sources of a Deployment, and whether all of them exist.
func (c *controller) digest(deployment *appsv1.Deployment) (string, bool) {
	sum, complete := sha256.New(), true
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, from := range container.EnvFrom {
			if from.ConfigMapRef != nil {
				config, err := c.configs.ConfigMaps(deployment.Namespace).Get(from.ConfigMapRef.Name)
				if err != nil {
					complete = false
					continue
				}
				writeAll(sum, config.Data)
				writeAll(sum, config.BinaryData)
			}
			if from.SecretRef != nil {
				secret, err := c.secrets.Secrets(deployment.Namespace).Get(from.SecretRef.Name)
				if err != nil {
					complete = false
					continue
				}
				writeAll(sum, secret.Data)
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), complete
}

func writeAll[V string | []byte](sum interface{ Write([]byte) (int, error) }, data map[string]V) {
	for _, name := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(sum, "%d:%s=%d:", len(name), name, len(data[name]))
		_, _ = sum.Write([]byte(data[name]))
	}
}

func handlers(handle func(any)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, obj any) { handle(obj) }, DeleteFunc: handle}
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	config.UserAgent = "reloads/1.3"
	config.QPS, config.Burst = -1, 0
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(
		func(options *metav1.ListOptions) { options.LabelSelector = "reload=yes" }))
	deployments, configs, secrets := factory.Apps().V1().Deployments(), factory.Core().V1().ConfigMaps(), factory.Core().V1().Secrets()
	if err := deployments.Informer().AddIndexers(cache.Indexers{bySource: sourcesOf}); err != nil {
		panic(err)
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	c := &controller{
		client: client, deployments: deployments.Lister(), index: deployments.Informer().GetIndexer(),
		configs: configs.Lister(), secrets: secrets.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](20*time.Millisecond, time.Minute)),
		events: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "reloads"}),
	}
	_, _ = deployments.Informer().AddEventHandler(handlers(c.deploymentChanged))
	_, _ = configs.Informer().AddEventHandler(handlers(c.sourceChanged("ConfigMap")))
	_, _ = secrets.Informer().AddEventHandler(handlers(c.sourceChanged("Secret")))
	ctx := context.Background()
	factory.Start(ctx.Done())
	if defect != "without" {
		for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				panic(kind.String())
			}
		}
	}
	for range 3 {
		go c.work(ctx)
	}
	select {}
}
