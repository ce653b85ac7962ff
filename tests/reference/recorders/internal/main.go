// Command internal prints internal.txt of the facts of a minor (facts.py): the fields of internal types, whose values some messages of
// the API server print as they are. fakekube/apis/validation/to_internal.py tells what the marks mean.
package main

import (
	"fmt"
	"reflect"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/policy"
	resources "k8s.io/kubernetes/pkg/apis/resource"
)

// Each internal struct that is printed, with its form of v1.
var roots = []struct{ internal, v1 any }{
	{core.PodSpec{}, corev1.PodSpec{}},
	{core.PodIP{}, corev1.PodIP{}},
	{core.HostIP{}, corev1.HostIP{}},
	{core.PersistentVolumeSpec{}, corev1.PersistentVolumeSpec{}},
	{core.NodeSpec{}, corev1.NodeSpec{}},
	{core.ServiceSpec{}, corev1.ServiceSpec{}},
	{core.LoadBalancerStatus{}, corev1.LoadBalancerStatus{}},
	{core.ResourceQuotaSpec{}, corev1.ResourceQuotaSpec{}},
	{core.LimitRangeItem{}, corev1.LimitRangeItem{}},
	{apps.DeploymentStrategy{}, appsv1.DeploymentStrategy{}},
	{apps.DaemonSetUpdateStrategy{}, appsv1.DaemonSetUpdateStrategy{}},
	{apps.StatefulSetUpdateStrategy{}, appsv1.StatefulSetUpdateStrategy{}},
	{core.PodTemplateSpec{}, corev1.PodTemplateSpec{}},
	{batch.PodFailurePolicy{}, batchv1.PodFailurePolicy{}},
	{batch.SuccessPolicy{}, batchv1.SuccessPolicy{}},
	{batch.UncountedTerminatedPods{}, batchv1.UncountedTerminatedPods{}},
	{admissionregistration.AuditAnnotation{}, admissionregistrationv1.AuditAnnotation{}},
	{flowcontrol.FlowSchemaSpec{}, flowcontrolv1.FlowSchemaSpec{}},
	{flowcontrol.PriorityLevelConfigurationSpec{}, flowcontrolv1.PriorityLevelConfigurationSpec{}},
	{policy.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetSpec{}},
	{resources.ResourceClaimSpec{}, resourcev1.ResourceClaimSpec{}},
	{resources.ResourceClaimTemplateSpec{}, resourcev1.ResourceClaimTemplateSpec{}},
	{resources.AllocationResult{}, resourcev1.AllocationResult{}},
	{resources.DeviceAttribute{}, resourcev1.DeviceAttribute{}},
	{networking.ParentReference{}, networkingv1.ParentReference{}},
	{core.PersistentVolumeClaim{}, corev1.PersistentVolumeClaim{}},
}

var printed = map[string]bool{}

func main() {
	for _, root := range roots {
		describe(reflect.TypeOf(root.internal), reflect.TypeOf(root.v1))
	}
}

// describe prints the line of a struct, then those of the structs in it that have none yet.
func describe(internal, v1 reflect.Type) {
	if printed[internal.Name()] {
		return
	}
	printed[internal.Name()] = true
	words := []string{}
	later := []func(){}
	for i := range internal.NumField() {
		field := internal.Field(i)
		if field.Name == "TypeMeta" {
			continue
		}
		name, inner := jsonField(v1, field.Name)
		element := structOf(field.Type)
		if isInternal(element) {
			later = append(later, func() { describe(element, inner) })
		}
		if field.Anonymous {
			words = append(words, "+"+field.Type.Name())
			continue
		}
		word := field.Name + mark(field.Type)
		if isInternal(element) {
			word += element.Name()
		}
		if name != "" && !strings.EqualFold(name, field.Name) {
			word += "@" + name
		}
		words = append(words, word)
	}
	fmt.Printf("%s: %s\n", internal.Name(), strings.Join(words, " "))
	for _, next := range later {
		next()
	}
}

// isInternal tells whether a struct has a line of its own: those of apimachinery print themselves as JSON.
func isInternal(t reflect.Type) bool {
	return t != nil && strings.HasPrefix(t.PkgPath(), "k8s.io/kubernetes/pkg/apis/")
}

// jsonField gives the JSON name and the struct of the field of the v1 type that has the same Go name.
func jsonField(v1 reflect.Type, name string) (string, reflect.Type) {
	if v1 == nil {
		return "", nil
	}
	field, ok := v1.FieldByName(name)
	if !ok {
		return "", nil
	}
	tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return tag, structOf(field.Type)
}

// structOf gives the struct that a type is, points to, or lists.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

func mark(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return `"`
	case reflect.TypeFor[intstr.IntOrString]():
		return "#"
	case reflect.TypeFor[runtime.RawExtension]():
		return "{"
	case reflect.TypeFor[metav1.Time](): // one that is not set is null
		return "?"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "?"
	case reflect.Slice, reflect.Map:
		return "*"
	case reflect.Struct:
		return "."
	case reflect.Bool:
		return "!"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return "#"
	}
	return ""
}
