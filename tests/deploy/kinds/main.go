// Program kinds reads objects of operators' kinds, one JSON a line, and says of each what its Go type does not take.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

func fresh(kind string) any {
	switch kind {
	case "ServiceMonitor":
		return &monitoring.ServiceMonitor{}
	case "PrometheusRule":
		return &monitoring.PrometheusRule{}
	case "HTTPRoute":
		return &gateway.HTTPRoute{}
	}
	return nil
}

func check(line []byte) error {
	var named struct{ Kind string }
	if err := json.Unmarshal(line, &named); err != nil {
		return err
	}
	into := fresh(named.Kind)
	if into == nil {
		return fmt.Errorf("%s: no type of it is known", named.Kind)
	}
	reader := json.NewDecoder(bytes.NewReader(line))
	reader.DisallowUnknownFields()
	if err := reader.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", named.Kind, err)
	}
	return nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	failed := false
	for lines.Scan() {
		if err := check(lines.Bytes()); err != nil {
			fmt.Println(err)
			failed = true
		}
	}
	if failed || lines.Err() != nil {
		os.Exit(1)
	}
}
