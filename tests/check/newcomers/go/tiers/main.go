// Runs Tiers: a ConfigMap with the environment, a Deployment whose template has a digest of it, and a status. controller-runtime:
// CreateOrUpdate, Owns, a status patch with conditions, four workers.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	digestOf = "tiers.checked.dev/digest"
	tierOf   = "tiers.checked.dev/tier"
)

var (
	defect = os.Getenv("DEFECT")
	kind   = schema.GroupVersionKind{Group: "checked.dev", Version: "v1", Kind: "Tier"}
)

type spec struct {
	Replicas int64             `json:"replicas"`
	Debug    bool              `json:"debug"`
	Image    string            `json:"image"`
	Memory   string            `json:"memory"`
	Env      map[string]string `json:"env"`
	Ports    []int64           `json:"ports"`
}

type reconciler struct {
	client.Client
	done sync.Map
	seen sync.Map
}

func digestOfEnv(env map[string]string) string {
	var lines []string
	for name, value := range env {
		lines = append(lines, name+"="+value)
	}
	if defect != "map-order" {
		slices.Sort(lines)
	}
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:8])
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, request)
	if err != nil && defect == "every-second" {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if apierrors.IsConflict(err) && defect == "conflict-is-fine" {
		return ctrl.Result{}, nil
	}
	return result, err
}

func (r *reconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	tier := &unstructured.Unstructured{}
	tier.SetGroupVersionKind(kind)
	if err := r.Get(ctx, request.NamespacedName, tier); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if tier.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	var wanted spec
	if part, ok := tier.Object["spec"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(part, &wanted); err != nil {
			return ctrl.Result{}, err
		}
	}
	memory, err := resource.ParseQuantity(wanted.Memory)
	if err != nil {
		memory = resource.MustParse("32Mi")
	}
	key := request.String()
	if defect == "by-name" {
		key = request.Name
	}
	generation, known := r.done.Load(key)
	if defect == "generation-only" || defect == "by-name" {
		if known && generation == tier.GetGeneration() {
			return ctrl.Result{}, r.report(ctx, tier)
		}
	}
	labels := map[string]string{tierOf: tier.GetName()}
	if err := r.keepEnvironment(ctx, tier, wanted); err != nil {
		return ctrl.Result{}, err
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: tier.GetNamespace(), Name: tier.GetName() + "-tier"}}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		replicas := int32(wanted.Replicas)
		if deployment.Spec.Replicas == nil || defect != "replicas-once" {
			deployment.Spec.Replicas = &replicas
		}
		if deployment.Labels == nil || defect == "own-labels" {
			deployment.Labels = map[string]string{}
		}
		deployment.Labels[tierOf] = tier.GetName()
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		template := &deployment.Spec.Template
		if template.Labels == nil {
			template.Labels = map[string]string{}
		}
		template.Labels[tierOf] = tier.GetName()
		if template.Annotations == nil {
			template.Annotations = map[string]string{}
		}
		template.Annotations[digestOf] = digestOfEnv(wanted.Env)
		if len(template.Spec.Containers) == 0 {
			template.Spec.Containers = []corev1.Container{{Name: "tier"}}
		}
		container := &template.Spec.Containers[0]
		container.Image = wanted.Image
		container.Args = []string{fmt.Sprintf("--debug=%t", wanted.Debug)}
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: memory}
		container.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: tier.GetName() + "-env"}}}}
		if defect == "ports-once" && container.Ports != nil {
			return controllerutil.SetControllerReference(tier, deployment, r.Scheme())
		}
		container.Ports = nil
		for _, port := range wanted.Ports {
			container.Ports = append(container.Ports, corev1.ContainerPort{Name: fmt.Sprintf("p%d", port), ContainerPort: int32(port), Protocol: corev1.ProtocolTCP})
		}
		return controllerutil.SetControllerReference(tier, deployment, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	r.done.Store(key, tier.GetGeneration())
	return ctrl.Result{}, r.report(ctx, tier)
}

func (r *reconciler) keepEnvironment(ctx context.Context, tier *unstructured.Unstructured, wanted spec) error {
	env := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tier.GetNamespace(), Name: tier.GetName() + "-env"}}
	if defect == "creates-again" {
		found := env.DeepCopy()
		err := r.Get(ctx, client.ObjectKeyFromObject(env), found)
		if err == nil && metav1.IsControlledBy(found, tier) {
			env = found
		} else {
			env.Data = wanted.Env
			if err := controllerutil.SetControllerReference(tier, env, r.Scheme()); err != nil {
				return err
			}
			for {
				err := r.Create(ctx, env)
				if !apierrors.IsAlreadyExists(err) {
					return err
				}
				time.Sleep(400 * time.Millisecond)
			}
		}
	}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, env, func() error {
		if defect == "keeps-keys" && env.Data != nil {
			for name, value := range wanted.Env {
				env.Data[name] = value
			}
		} else {
			env.Data = wanted.Env
		}
		if env.Labels == nil {
			env.Labels = map[string]string{}
		}
		env.Labels[tierOf] = tier.GetName()
		if defect == "takes-over" {
			env.OwnerReferences = nil
		}
		return controllerutil.SetControllerReference(tier, env, r.Scheme())
	})
	return err
}

// report writes the status: how many Deployments there are, and the generation that they follow.
func (r *reconciler) report(ctx context.Context, tier *unstructured.Unstructured) error {
	var deployments appsv1.DeploymentList
	options := []client.ListOption{client.InNamespace(tier.GetNamespace()), client.MatchingLabels{tierOf: tier.GetName()}}
	if defect == "all-namespaces" {
		options = options[1:]
	}
	if err := r.List(ctx, &deployments, options...); err != nil {
		return err
	}
	observed := tier.GetGeneration()
	if defect == "one-behind" {
		last, known := r.seen.Swap(tier.GetUID(), observed)
		if known {
			observed = last.(int64)
		}
	}
	before := tier.DeepCopy()
	status, _, _ := unstructured.NestedMap(tier.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	old, _, _ := unstructured.NestedSlice(status, "conditions")
	var conditions []metav1.Condition
	for _, one := range old {
		var condition metav1.Condition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(one.(map[string]any), &condition); err != nil {
			return err
		}
		conditions = append(conditions, condition)
	}
	meta.SetStatusCondition(&conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Made", ObservedGeneration: observed})
	if defect == "new-times" {
		for number := range conditions {
			conditions[number].LastTransitionTime = metav1.Now()
		}
	}
	var list []any
	for number := range conditions {
		one, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[number])
		if err != nil {
			return err
		}
		list = append(list, one)
	}
	status["conditions"], status["observedGeneration"], status["deployments"] = list, observed, int64(len(deployments.Items))
	tier.Object["status"] = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if defect == "unguarded-status" {
		patch = client.MergeFrom(before)
	}
	if data, err := patch.Data(tier); err == nil && !strings.Contains(string(data), `"status"`) {
		return nil
	}
	return client.IgnoreNotFound(r.Status().Patch(ctx, tier, patch))
}

func main() {
	ctrl.SetLogger(zap.New())
	config := ctrl.GetConfigOrDie()
	config.UserAgent = "tiers/0.4"
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		panic(err)
	}
	tier := &unstructured.Unstructured{}
	tier.SetGroupVersionKind(kind)
	r := &reconciler{Client: manager.GetClient()}
	err = ctrl.NewControllerManagedBy(manager).For(tier).Owns(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(r)
	if err != nil {
		panic(err)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}
