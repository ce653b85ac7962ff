//go:build !v1.33 && !v1.34 && !v1.35 && !v1.36

package main

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/kubernetes/pkg/apis/scheduling"
)

// Structs that minors before 1.37 have not; facts.py says the minor by a build tag.
func init() {
	roots = append(roots, struct{ internal, v1 any }{scheduling.CompositePodGroupTemplate{}, schedulingv1beta1.CompositePodGroupTemplate{}})
}
