// Command structs prints fakekube/data/go_structs_v1_36.txt: the Go types that a pod template reaches, as spew sees them.
// fakekube/controllers/go_structs.py tells what a line means.
package main

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Types that the printer knows by themselves.
var special = map[reflect.Type]bool{
	reflect.TypeFor[resource.Quantity]():  true,
	reflect.TypeFor[metav1.Time]():        true,
	reflect.TypeFor[metav1.FieldsV1]():    true,
	reflect.TypeFor[intstr.IntOrString](): true,
}

var printed = map[reflect.Type]bool{}

func main() {
	describe(reflect.TypeFor[corev1.PodTemplateSpec]())
}

// describe prints the line of a named type, then those of the types in it that have none yet.
func describe(t reflect.Type) {
	if t.PkgPath() == "" {
		parts(t)
		return
	}
	if printed[t] || special[t] {
		return
	}
	printed[t] = true
	if t.Kind() != reflect.Struct {
		fmt.Printf("%s = %s\n", t, shape(t))
		parts(t)
		return
	}
	words := []string{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		words = append(words, fmt.Sprintf("%s:%s:%s", field.Name, name, field.Type))
	}
	fmt.Printf("%s: %s\n", t, strings.Join(words, " "))
	for i := range t.NumField() {
		describe(t.Field(i).Type)
	}
}

// parts describes the types that a pointer, list or map is made of.
func parts(t reflect.Type) {
	switch t.Kind() {
	case reflect.Map:
		describe(t.Key())
		describe(t.Elem())
	case reflect.Pointer, reflect.Slice:
		describe(t.Elem())
	}
}

// shape is the type behind a name.
func shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Map:
		return fmt.Sprintf("map[%s]%s", t.Key(), t.Elem())
	case reflect.Slice:
		return fmt.Sprintf("[]%s", t.Elem())
	}
	return t.Kind().String()
}
