// An operator made with controller-runtime: for a Widget it keeps a Deployment and a Service, conditions in the status, Events, and a
// finalizer that it adds by a patch with the resourceVersion.
package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "checked.dev/frontend"

var defect = os.Getenv("DEFECT")

func newWidget() *unstructured.Unstructured {
	one := &unstructured.Unstructured{}
	one.SetGroupVersionKind(schema.GroupVersionKind{Group: "checked.dev", Version: "v1", Kind: "Widget"})
	return one
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := newWidget()
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if widget.GetDeletionTimestamp() != nil {
		before := widget.DeepCopy()
		if controllerutil.RemoveFinalizer(widget, finalizer) {
			if defect == "clears-finalizers" {
				widget.SetFinalizers(nil)
			}
			patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			if defect == "unguarded" {
				patch = client.MergeFrom(before)
			}
			return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, widget, patch))
		}
		return ctrl.Result{}, nil
	}
	before := widget.DeepCopy()
	if controllerutil.AddFinalizer(widget, finalizer) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if defect == "unguarded" {
			patch = client.MergeFrom(before)
		}
		if err := r.Patch(ctx, widget, patch); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	message, _, _ := unstructured.NestedString(widget.Object, "spec", "message")
	labels := map[string]string{"widget": widget.GetName()}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: widget.GetNamespace(), Name: widget.GetName() + "-web"}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		if defect == "resets-labels" {
			deployment.Labels, deployment.Annotations = labels, nil
		}
		replicas := int32(1)
		deployment.Spec.Replicas = &replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) != 1 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
		}
		deployment.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MESSAGE", Value: message}}
		if defect == "no-owner-check" {
			deployment.OwnerReferences = nil
		}
		return controllerutil.SetControllerReference(widget, deployment, r.Scheme())
	}); err != nil {
		if defect == "conflict-exits" && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
			fmt.Println("fatal:", err)
			os.Exit(3)
		}
		return ctrl.Result{}, err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: widget.GetNamespace(), Name: widget.GetName() + "-web"}}
	if defect != "marks-first" || widget.Object["status"] == nil {
		if defect == "marks-first" {
			if err := r.status(ctx, widget, message); err != nil {
				return ctrl.Result{}, err
			}
		}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
			service.Spec.Selector = labels
			if len(service.Spec.Ports) != 1 {
				service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
			}
			return controllerutil.SetControllerReference(widget, service, r.Scheme())
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.status(ctx, widget, message)
}

func (r *reconciler) status(ctx context.Context, widget *unstructured.Unstructured, message string) error {
	seen, _, _ := unstructured.NestedString(widget.Object, "status", "message")
	if seen == message {
		return nil
	}
	widget = widget.DeepCopy()
	widget.Object["status"] = map[string]any{"message": message, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	if defect == "status-no-version" {
		widget.SetResourceVersion("")
		widget.SetUID("")
	}
	return client.IgnoreNotFound(r.Status().Update(ctx, widget))
}

func main() {
	ctrl.SetLogger(zap.New())
	config := ctrl.GetConfigOrDie()
	config.UserAgent = "frontend/0.2"
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		panic(err)
	}
	if err := ctrl.NewControllerManagedBy(manager).Named("frontend").For(newWidget()).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).
		Complete(&reconciler{manager.GetClient()}); err != nil {
		panic(err)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}
