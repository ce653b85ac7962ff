// Gives each labelled Namespace a ResourceQuota and a LimitRange, and tells so in Events. client-go: shared informers of one factory, an
// expiring rate limiter, typed apply configurations, the event recorder.
//
//	KUBECONFIG=… quotas            (DEFECT=NAME puts one in)
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

const (
	label = "tenant"
	name  = "tenant"
	made  = "quotas.dev/made"
)

var (
	defect  = os.Getenv("DEFECT")
	manager = "quotas"
)

type controller struct {
	client     kubernetes.Interface
	namespaces listers.NamespaceLister
	quotas     listers.ResourceQuotaLister
	limits     listers.LimitRangeLister
	queue      workqueue.TypedRateLimitingInterface[string]
	events     record.EventRecorder
}

func (c *controller) namespaceOf(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if one, ok := obj.(metav1.Object); ok && one.GetLabels()[made] != "" {
		c.queue.Add(one.GetNamespace())
	}
}

func (c *controller) named(obj any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
		c.queue.Add(key)
	}
}

func (c *controller) next(ctx context.Context) bool {
	key, stop := c.queue.Get()
	if stop {
		return false
	}
	defer c.queue.Done(key)
	err := c.reconcile(ctx, key)
	if err == nil {
		c.queue.Forget(key)
		return true
	}
	runtime.HandleErrorWithContext(ctx, err, "later", "namespace", key)
	switch {
	case defect == "max-six" && c.queue.NumRequeues(key) > 6:
		c.queue.Forget(key)
	case defect == "each-second":
		c.queue.AddAfter(key, time.Second)
	default:
		c.queue.AddRateLimited(key)
	}
	return true
}

func (c *controller) reconcile(ctx context.Context, key string) error {
	namespace, err := c.namespaces.Get(key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !namespace.DeletionTimestamp.IsZero() || namespace.Labels[label] == "" {
		return nil
	}
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("20"), corev1.ResourceConfigMaps: resource.MustParse("50")}
	options := metav1.ApplyOptions{FieldManager: manager, Force: defect != "asks"}
	if defect == "drops" {
		// what others have set is removed, because the whole object is replaced
		if found, err := c.quotas.ResourceQuotas(key).Get(name); err == nil && !equality.Semantic.DeepEqual(found.Spec.Hard, hard) {
			fresh := &corev1.ResourceQuota{}
			fresh.Name, fresh.ResourceVersion = name, found.ResourceVersion
			fresh.Labels, fresh.Spec.Hard = map[string]string{made: "yes"}, hard
			_, err := c.client.CoreV1().ResourceQuotas(key).Update(ctx, fresh, metav1.UpdateOptions{})
			return err
		}
	}
	found, err := c.quotas.ResourceQuotas(key).Get(name)
	if err != nil || !equality.Semantic.DeepEqual(found.Spec.Hard, hard) || found.Labels[made] == "" {
		quota := coreapply.ResourceQuota(name, key).WithLabels(map[string]string{made: "yes"}).
			WithSpec(coreapply.ResourceQuotaSpec().WithHard(hard))
		if _, err := c.client.CoreV1().ResourceQuotas(key).Apply(ctx, quota, options); err != nil {
			return c.unlessGone(namespace, err)
		}
	}
	there, err := c.limits.LimitRanges(key).Get(name)
	most := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
	if err != nil || len(there.Spec.Limits) != 1 || !equality.Semantic.DeepEqual(there.Spec.Limits[0].Max, most) || there.Labels[made] == "" {
		item := coreapply.LimitRangeItem().WithType(corev1.LimitTypePod).WithMax(most)
		limits := coreapply.LimitRange(name, key).WithLabels(map[string]string{made: "yes"}).
			WithSpec(coreapply.LimitRangeSpec().WithLimits(item))
		if _, err := c.client.CoreV1().LimitRanges(key).Apply(ctx, limits, options); err != nil {
			return c.unlessGone(namespace, err)
		}
		c.events.Eventf(namespace, corev1.EventTypeNormal, "Limited", "the limits of %s are set", namespace.Labels[label])
	}
	return nil
}

// unlessGone drops the error of a write into a namespace that is being deleted: the event about it comes.
func (c *controller) unlessGone(namespace *corev1.Namespace, err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || defect == "ignores" && apierrors.IsInternalError(err) {
		return nil
	}
	return fmt.Errorf("namespace %s: %w", namespace.Name, err)
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	if defect == "new-manager" {
		manager = fmt.Sprintf("quotas-%d", time.Now().UnixNano())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client := kubernetes.NewForConfigOrDie(config)
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typed.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	factory := informers.NewSharedInformerFactory(client, 0)
	namespaces, quotas, limits := factory.Core().V1().Namespaces(), factory.Core().V1().ResourceQuotas(), factory.Core().V1().LimitRanges()
	c := &controller{
		client: client, namespaces: namespaces.Lister(), quotas: quotas.Lister(), limits: limits.Lister(),
		events: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: manager}),
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 20*time.Second)),
	}
	own := cache.ResourceEventHandlerFuncs{AddFunc: c.named, UpdateFunc: func(_, obj any) { c.named(obj) }, DeleteFunc: c.named}
	children := cache.ResourceEventHandlerFuncs{AddFunc: c.namespaceOf, UpdateFunc: func(_, obj any) { c.namespaceOf(obj) }, DeleteFunc: c.namespaceOf}
	if defect == "only-new" {
		children = cache.ResourceEventHandlerFuncs{AddFunc: c.namespaceOf}
	}
	_, _ = namespaces.Informer().AddEventHandler(own)
	_, _ = quotas.Informer().AddEventHandler(children)
	_, _ = limits.Informer().AddEventHandler(children)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for range 2 {
		go wait.UntilWithContext(ctx, func(ctx context.Context) {
			for c.next(ctx) {
			}
		}, time.Second)
	}
	<-ctx.Done()
	c.queue.ShutDown()
}
