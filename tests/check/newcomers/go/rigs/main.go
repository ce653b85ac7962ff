// Keeps a Deployment and a Service for each Widget, with a finalizer and conditions in the status. controller-runtime: predicates on the
// generation, CreateOrUpdate with owner references, patches with an optimistic lock, and a look at everything each 20 seconds.
package main

import (
	"context"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const finalizer = "checked.dev/rig"

type WidgetSpec struct {
	Message string `json:"message,omitempty"`
}

type WidgetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec,omitempty"`
	Status            WidgetStatus `json:"status,omitempty"`
}

func (w *Widget) DeepCopyObject() runtime.Object {
	made := *w
	w.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	made.Status.Conditions = append([]metav1.Condition(nil), w.Status.Conditions...)
	return &made
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	made := *l
	made.Items = nil
	for i := range l.Items {
		made.Items = append(made.Items, *l.Items[i].DeepCopyObject().(*Widget))
	}
	return &made
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := widget.DeepCopyObject().(*Widget)
	if !widget.DeletionTimestamp.IsZero() {
		if !controllerutil.RemoveFinalizer(widget, finalizer) {
			return ctrl.Result{}, nil
		}
		locked := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, widget, locked))
	}
	if controllerutil.AddFinalizer(widget, finalizer) {
		locked := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Patch(ctx, widget, locked); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		before = widget.DeepCopyObject().(*Widget)
	}
	deployment, err := r.keepDeployment(ctx, widget)
	if err == nil {
		err = r.keepService(ctx, widget)
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Running", ObservedGeneration: widget.Generation}
	if err != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Failed", string(apierrors.ReasonForError(err))
	} else if deployment.Status.ReadyReplicas < 1 {
		ready.Status, ready.Reason = metav1.ConditionFalse, "Starting"
	}
	changed := meta.SetStatusCondition(&widget.Status.Conditions, ready)
	if changed || widget.Status.ObservedGeneration != widget.Generation {
		widget.Status.ObservedGeneration = widget.Generation
		if problem := r.Status().Update(ctx, widget); problem != nil && err == nil {
			err = client.IgnoreNotFound(problem)
		}
	}
	return ctrl.Result{RequeueAfter: 20 * time.Second}, err
}

func (r *reconciler) keepDeployment(ctx context.Context, widget *Widget) (*appsv1.Deployment, error) {
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, made, func() error {
		labels := map[string]string{"rig": widget.Name}
		if made.CreationTimestamp.IsZero() {
			made.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			made.Spec.Template.Labels = labels
		}
		containers := made.Spec.Template.Spec.Containers
		if len(containers) == 0 {
			containers = []corev1.Container{{Name: "main"}}
		}
		containers[0].Image = "rig:1"
		containers[0].Env = []corev1.EnvVar{{Name: "MESSAGE", Value: widget.Spec.Message}}
		made.Spec.Template.Spec.Containers = containers
		return controllerutil.SetControllerReference(widget, made, r.Scheme())
	})
	return made, err
}

func (r *reconciler) keepService(ctx context.Context, widget *Widget) error {
	made := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, made, func() error {
		made.Spec.Selector = map[string]string{"rig": widget.Name}
		if len(made.Spec.Ports) == 0 {
			made.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
		}
		return controllerutil.SetControllerReference(widget, made, r.Scheme())
	})
	return err
}

func main() {
	ctrl.SetLogger(zap.New())
	group := schema.GroupVersion{Group: "checked.dev", Version: "v1"}
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	scheme.AddKnownTypes(group, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, group)
	config := ctrl.GetConfigOrDie()
	config.UserAgent = "rigs/2"
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err == nil {
		err = ctrl.NewControllerManagedBy(manager).Named("rigs").
			For(&Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
			Complete(&reconciler{manager.GetClient()})
	}
	if err == nil {
		err = manager.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}
