// A program that uses a client of the control API whose code is generated from its OpenAPI document.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"example.com/generated/control"
)

// check ends the program if a call failed.
func check[T any](answer T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return answer
}

// pointer returns a pointer to a value, for optional members.
func pointer[T any](value T) *T { return &value }

func main() {
	ctx := context.Background()
	pool := check(control.NewClientWithResponses(os.Getenv("FAKEKUBE_POOL")))
	fork := control.PostClustersJSONRequestBody{Seed: pointer(int64(7))}
	made := check(pool.PostClustersWithResponse(ctx, fork)).JSON201
	if made == nil {
		log.Fatal("the pool makes no cluster")
	}
	own := check(control.NewClientWithResponses(made.Url))

	fault := control.PostFaultsJSONRequestBody{
		On:    control.FaultSelector{Verbs: pointer("list"), Resource: pointer("pods")},
		Do:    control.FaultAction{Status: &control.FaultStatus{Code: 503}},
		Times: pointer(int64(1)),
	}
	armed := check(own.PostFaultsWithResponse(ctx, fault)).JSON201
	refused := check(http.Get(made.Url + "/api/v1/pods"))
	refused.Body.Close()
	hits := check(own.GetFaultsByIdWithResponse(ctx, armed.Id)).JSON200.Hits

	requests := check(own.GetRequestsWithResponse(ctx, &control.GetRequestsParams{Resource: pointer("pods")})).JSON200
	var statuses []string
	for _, one := range requests.Items {
		statuses = append(statuses, fmt.Sprint(*one.Status))
	}
	held := check(own.PostClockHoldWithResponse(ctx)).JSON200
	moved := check(own.PostClockAdvanceWithResponse(ctx, control.PostClockAdvanceJSONRequestBody{Seconds: 60})).JSON200
	wrong := check(own.PostClockAdvanceWithResponse(ctx, control.PostClockAdvanceJSONRequestBody{Seconds: -1})).JSONDefault
	check(pool.DeleteClustersByNameWithResponse(ctx, made.Name))
	fmt.Println(refused.StatusCode, hits, strings.Join(statuses, ","), held.Now, moved.Now, *wrong.Error)
}
