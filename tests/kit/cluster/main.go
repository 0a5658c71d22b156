// Holds pod templates against Kubernetes' own Pod Security Standard "restricted".
//
// Reads a list of {name, metadata, spec} from standard input, and writes a list of {name, reason} of
// those that a namespace which enforces it would refuse.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

type pod struct {
	Name     string            `json:"name"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     corev1.PodSpec    `json:"spec"`
}

type refusal struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

func refusals(pods []pod) ([]refusal, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	found := []refusal{}
	for i := range pods {
		results := evaluator.EvaluatePod(level, &pods[i].Metadata, &pods[i].Spec)
		if told := policy.AggregateCheckResults(results); !told.Allowed {
			found = append(found, refusal{pods[i].Name, told.ForbiddenDetail()})
		}
	}
	return found, nil
}

func main() {
	var pods []pod
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&pods)
	if err == nil {
		var found []refusal
		if found, err = refusals(pods); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(found)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
