// Command features prints every feature gate of kube-apiserver with its history: the minors at which stage, default or lock change.
// fakekube/apimachinery/features.py tells what a line means.
package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/kubernetes/pkg/features"
)

var stages = map[string]string{"ALPHA": "a", "BETA": "b", "": "g", "DEPRECATED": "d"}

func main() {
	gates := utilfeature.DefaultMutableFeatureGate
	dependencies := map[featuregate.Feature][]featuregate.Feature{}
	if known, ok := gates.(interface {
		Dependencies() map[featuregate.Feature][]featuregate.Feature
	}); ok {
		dependencies = known.Dependencies()
	}
	specs := gates.GetAllVersioned()
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		words := []string{}
		for _, spec := range specs[name] {
			minor := "0"
			if spec.Version != nil {
				minor = fmt.Sprint(spec.Version.Minor())
			}
			word := minor + stages[string(spec.PreRelease)]
			if spec.Default {
				word += "+"
			}
			if spec.LockToDefault {
				word += "!"
			}
			if least := reflect.ValueOf(spec).FieldByName("MinCompatibilityVersion"); least.IsValid() && !least.IsNil() {
				word += fmt.Sprint("@", least.MethodByName("Minor").Call(nil)[0].Uint())
			}
			words = append(words, word)
		}
		for _, needed := range slices.Sorted(slices.Values(dependencies[name])) {
			words = append(words, ">"+string(needed))
		}
		fmt.Printf("%s: %s\n", name, strings.Join(words, " "))
	}
}
