// An operator made with controller-runtime: for a ConfigMap it keeps a finalizer, an annotation, and a child with the same data.
package main

import (
	"context"
	"flag"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "checked.dev/child"

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	config := &corev1.ConfigMap{}
	if err := r.Get(ctx, request.NamespacedName, config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if config.Labels["app"] != "checked" {
		return ctrl.Result{}, nil
	}
	child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name + "-child"}}
	if !config.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(config, finalizer) {
			return ctrl.Result{}, nil
		}
		if err := r.Get(ctx, client.ObjectKeyFromObject(child), child); err == nil && metav1.IsControlledBy(child, config) {
			uid := client.Preconditions{UID: &child.UID}
			if err := r.Delete(ctx, child, uid); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
		} else if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(config, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, config))
	}
	if controllerutil.AddFinalizer(config, finalizer) {
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, config))
	}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.StringData = nil
		child.Data = map[string][]byte{"message": []byte(config.Data["message"])}
		return controllerutil.SetControllerReference(config, child, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	if config.Annotations["checked.dev/seen"] == config.Data["message"] {
		return ctrl.Result{}, nil
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		present := &corev1.ConfigMap{}
		if err := r.Get(ctx, request.NamespacedName, present); err != nil {
			return err
		}
		if present.UID != config.UID {
			return nil
		}
		metav1.SetMetaDataAnnotation(&present.ObjectMeta, "checked.dev/seen", present.Data["message"])
		return r.Update(ctx, present)
	})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return ctrl.Result{}, err
}

func main() {
	lease := flag.Bool("lease", false, "work only as the holder of a lease")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          *lease,
		LeaderElectionID:        "checked-operator",
		LeaderElectionNamespace: "default",
	})
	if err != nil {
		panic(err)
	}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Named("checked").
		Complete(&reconciler{manager.GetClient()})
	if err != nil {
		panic(err)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}
