// Two controllers made with controller-runtime in one manager, four workers each: an Order keeps a Package for each item, and a Package keeps
// a ConfigMap, both by server-side apply with a field manager of their own. An index tells which Packages an Order has; those whose item is
// gone are deleted with preconditions.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const owner = "index.owner"

var defect = os.Getenv("DEFECT")

func newObject(kind string) *unstructured.Unstructured {
	one := &unstructured.Unstructured{}
	one.SetGroupVersionKind(schema.GroupVersionKind{Group: "checked.dev", Version: "v1", Kind: kind})
	return one
}

func newList(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "checked.dev", Version: "v1", Kind: kind + "List"})
	return list
}

func reference(one client.Object, kind string) []interface{} {
	return []interface{}{map[string]interface{}{
		"apiVersion": "checked.dev/v1", "kind": kind, "name": one.GetName(), "uid": string(one.GetUID()),
		"controller": true, "blockOwnerDeletion": true,
	}}
}

// apply sends a configuration as a field manager.
func apply(ctx context.Context, to client.Client, body map[string]interface{}, manager string, subresource bool) error {
	options := []client.ApplyOption{client.FieldOwner(manager)}
	if defect != "not-forced" {
		options = append(options, client.ForceOwnership)
	}
	one := &unstructured.Unstructured{Object: body}
	if subresource {
		return to.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(one), client.FieldOwner(manager), client.ForceOwnership)
	}
	return to.Apply(ctx, client.ApplyConfigurationFromUnstructured(one), options...)
}

type orders struct{ client.Client }

func (r *orders) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	order := newObject("Order")
	if err := r.Get(ctx, request.NamespacedName, order); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if order.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	items, _, _ := unstructured.NestedStringSlice(order.Object, "spec", "items")
	note, _, _ := unstructured.NestedString(order.Object, "spec", "note")
	packages := newList("Package")
	key := string(order.GetUID())
	if err := r.List(ctx, packages, client.InNamespace(order.GetNamespace()), client.MatchingFields{owner: key}); err != nil {
		return ctrl.Result{}, err
	}
	wanted := map[string]bool{}
	packed := 0
	for _, item := range items {
		name := fmt.Sprintf("%s-%s", order.GetName(), item)
		wanted[name] = true
		existing := newObject("Package")
		err := r.Get(ctx, client.ObjectKey{Namespace: order.GetNamespace(), Name: name}, existing)
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		if err == nil && !metav1.IsControlledBy(existing, order) {
			continue
		}
		if phase, _, _ := unstructured.NestedString(existing.Object, "status", "phase"); phase == "Packed" {
			packed++
		}
		manager := "duo-orders"
		if defect == "pid-manager" {
			manager = fmt.Sprintf("duo-%d", os.Getpid())
		}
		body := map[string]interface{}{
			"apiVersion": "checked.dev/v1", "kind": "Package",
			"metadata": map[string]interface{}{"name": name, "namespace": order.GetNamespace(), "ownerReferences": reference(order, "Order")},
			"spec":     map[string]interface{}{"item": item, "note": note},
		}
		if err := apply(ctx, r.Client, body, manager, false); err != nil {
			return ctrl.Result{}, err
		}
	}
	for i := range packages.Items {
		one := &packages.Items[i]
		if wanted[one.GetName()] || one.GetDeletionTimestamp() != nil {
			continue
		}
		uid, version := one.GetUID(), one.GetResourceVersion()
		if err := r.Delete(ctx, one, client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	shown := fmt.Sprintf("%d/%d", packed, len(items))
	if old, _, _ := unstructured.NestedString(order.Object, "status", "packed"); old == shown {
		return ctrl.Result{}, nil
	}
	before := order.DeepCopy()
	if err := unstructured.SetNestedField(order.Object, shown, "status", "packed"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Patch(ctx, order, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

type packages struct{ client.Client }

func (r *packages) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	one := newObject("Package")
	if err := r.Get(ctx, request.NamespacedName, one); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if one.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	item, _, _ := unstructured.NestedString(one.Object, "spec", "item")
	note, _, _ := unstructured.NestedString(one.Object, "spec", "note")
	name := one.GetName() + "-label"
	label := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKey{Namespace: one.GetNamespace(), Name: name}, label)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err == nil && !metav1.IsControlledBy(label, one) {
		return ctrl.Result{}, nil
	}
	body := map[string]interface{}{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]interface{}{"name": name, "namespace": one.GetNamespace(), "ownerReferences": reference(one, "Package")},
		"data":     map[string]interface{}{"text": item + " (" + note + ")"},
	}
	if label.Data["text"] != item+" ("+note+")" {
		if err := apply(ctx, r.Client, body, "duo-labels", false); err != nil {
			if defect == "forgets-failed" {
				return ctrl.Result{}, nil
			}
			return ctrl.Result{}, err
		}
	}
	if phase, _, _ := unstructured.NestedString(one.Object, "status", "phase"); phase == "Packed" {
		return ctrl.Result{}, nil
	}
	status := map[string]interface{}{
		"apiVersion": "checked.dev/v1", "kind": "Package",
		"metadata": map[string]interface{}{"name": one.GetName(), "namespace": one.GetNamespace(), "uid": string(one.GetUID())},
		"status":   map[string]interface{}{"phase": "Packed"},
	}
	err = apply(ctx, r.Client, status, "duo-phases", true)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil // another one has its name by now, or none; its event comes
	}
	return ctrl.Result{}, err
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "duo:", err)
		os.Exit(1)
	}
}

func main() {
	ctrl.SetLogger(zap.New())
	config := ctrl.GetConfigOrDie()
	config.UserAgent = "duo/1.0"
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	must(err)
	must(manager.GetFieldIndexer().IndexField(context.Background(), newObject("Package"), owner, func(one client.Object) []string {
		found := metav1.GetControllerOf(one)
		if found == nil || found.Kind != "Order" {
			return nil
		}
		return []string{string(found.UID)}
	}))
	workers := controller.Options{MaxConcurrentReconciles: 4}
	must(ctrl.NewControllerManagedBy(manager).Named("orders").For(newObject("Order")).Owns(newObject("Package")).WithOptions(workers).Complete(&orders{manager.GetClient()}))
	must(ctrl.NewControllerManagedBy(manager).Named("packages").For(newObject("Package")).Owns(&corev1.ConfigMap{}).WithOptions(workers).Complete(&packages{manager.GetClient()}))
	must(manager.Start(ctrl.SetupSignalHandler()))
}
