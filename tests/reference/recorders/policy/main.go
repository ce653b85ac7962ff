// Command policy prints the bootstrap policy of RBAC as far as it depends on feature gates: a line for each role and binding that
// is there, or has rules, only if gates are on.
//
// A line is the resource, a space, the namespace (- for none), a space, and the object as JSON, as it is with all gates. Its
// field `gates`, and that of each of its rules, names the gates without which it is not there.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sort"

	rbac "k8s.io/api/rbac/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/kubernetes/pkg/features"
	policy "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

var dependent = regexp.MustCompile(`(\w+) is enabled, but depends on`)

type key struct{ resource, namespace, name string }

type conditionalRule struct {
	rbac.PolicyRule
	Gates []string `json:"gates,omitempty"`
	// URLGates has the gates of single nonResourceURLs.
	URLGates map[string]string `json:"urlGates,omitempty"`
}

type object struct {
	value any
	rules []rbac.PolicyRule
}

func objects() map[key]object {
	found := map[key]object{}
	for _, role := range append(policy.ClusterRoles(), policy.ControllerRoles()...) {
		found[key{"clusterroles", "-", role.Name}] = object{role, role.Rules}
	}
	for _, binding := range append(policy.ClusterRoleBindings(), policy.ControllerRoleBindings()...) {
		found[key{"clusterrolebindings", "-", binding.Name}] = object{binding, nil}
	}
	for namespace, roles := range policy.NamespaceRoles() {
		for _, role := range roles {
			found[key{"roles", namespace, role.Name}] = object{role, role.Rules}
		}
	}
	for namespace, bindings := range policy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			found[key{"rolebindings", namespace, binding.Name}] = object{binding, nil}
		}
	}
	return found
}

// turnOff turns a gate off, and those that depend on it; it returns the names.
func turnOff(gate string) []string {
	off := map[string]bool{gate: false}
	for {
		err := utilfeature.DefaultMutableFeatureGate.SetFromMap(off)
		if err == nil {
			break
		}
		added := false
		for _, found := range dependent.FindAllStringSubmatch(err.Error(), -1) {
			if _, known := off[found[1]]; !known {
				off[found[1]], added = false, true
			}
		}
		if !added {
			panic(fmt.Errorf("cannot turn off %s: %w", gate, err))
		}
	}
	names := []string{}
	for name := range off {
		names = append(names, name)
	}
	return names
}

// missingURLs returns the URLs of a rule that are not in what is left of the rule; none if nothing is left of it.
func missingURLs(rule rbac.PolicyRule, left []rbac.PolicyRule) []string {
	for _, other := range left {
		missing := []string{}
		for _, url := range rule.NonResourceURLs {
			if !slices.Contains(other.NonResourceURLs, url) {
				missing = append(missing, url)
			}
		}
		if len(missing) > 0 && len(missing) < len(rule.NonResourceURLs) {
			return missing
		}
	}
	return nil
}

func main() {
	if err := utilfeature.DefaultMutableFeatureGate.Set("AllAlpha=true,AllBeta=true"); err != nil {
		panic(err)
	}
	everything := objects()
	gatesOf, gatesOfRule, gatesOfURL := map[key][]string{}, map[key][][]string{}, map[key]map[string]string{}
	all := utilfeature.DefaultMutableFeatureGate.GetAll()
	gates := []string{}
	for name, spec := range all {
		if name := string(name); !spec.LockToDefault && name != "AllAlpha" && name != "AllBeta" && utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name)) {
			gates = append(gates, name)
		}
	}
	sort.Strings(gates)
	for _, gate := range gates {
		off := turnOff(gate)
		now := objects()
		for k, whole := range everything {
			left, present := now[k]
			if !present {
				gatesOf[k] = append(gatesOf[k], gate)
				continue
			}
			for i, rule := range whole.rules {
				if gatesOfRule[k] == nil {
					gatesOfRule[k] = make([][]string, len(whole.rules))
				}
				kept := false
				for _, other := range left.rules {
					kept = kept || reflect.DeepEqual(rule, other)
				}
				if missing := missingURLs(rule, left.rules); !kept && len(missing) > 0 {
					if gatesOfURL[k] == nil {
						gatesOfURL[k] = map[string]string{}
					}
					for _, url := range missing {
						gatesOfURL[k][url] = gate
					}
				} else if !kept {
					gatesOfRule[k][i] = append(gatesOfRule[k][i], gate)
				}
			}
		}
		on := map[string]bool{}
		for _, name := range off {
			on[name] = true
		}
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(on); err != nil {
			panic(err)
		}
	}
	keys := []key{}
	for k := range everything {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return fmt.Sprint(keys[i]) < fmt.Sprint(keys[j]) })
	for _, k := range keys {
		conditional := len(gatesOf[k]) > 0
		rules := []conditionalRule{}
		for i, rule := range everything[k].rules {
			made := conditionalRule{PolicyRule: rule}
			if gatesOfRule[k] != nil {
				made.Gates = gatesOfRule[k][i]
			}
			for _, url := range rule.NonResourceURLs {
				if gate, found := gatesOfURL[k][url]; found {
					if made.URLGates == nil {
						made.URLGates = map[string]string{}
					}
					made.URLGates[url] = gate
				}
			}
			conditional = conditional || len(made.Gates)+len(made.URLGates) > 0
			rules = append(rules, made)
		}
		if !conditional {
			continue
		}
		encoded, _ := json.Marshal(everything[k].value)
		printed := map[string]any{}
		_ = json.Unmarshal(encoded, &printed)
		if everything[k].rules != nil {
			printed["rules"] = rules
		}
		if len(gatesOf[k]) > 0 {
			printed["gates"] = gatesOf[k]
		}
		line, _ := json.Marshal(printed)
		fmt.Println(k.resource, k.namespace, string(line))
	}
}
