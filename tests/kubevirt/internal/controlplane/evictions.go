package controlplane

import (
	"bufio"
	"encoding/json"
	"os"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Eviction is one that the API server was asked for.
type Eviction struct {
	At     time.Time
	Pod    string
	User   string
	Status int32 // of the answer, such as 429
}

// Evictions lists what the API server was asked for in a namespace, in order: its own audit log.
func (c *Cluster) Evictions(namespace string) ([]Eviction, error) {
	log, err := os.Open(c.auditLog())
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	var found []Eviction
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditv1.Event
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // a line that is being written
		}
		if event.ObjectRef == nil || event.ObjectRef.Namespace != namespace || event.ResponseStatus == nil {
			continue
		}
		found = append(found, Eviction{event.RequestReceivedTimestamp.Time, event.ObjectRef.Name, event.User.Username, event.ResponseStatus.Code})
	}
	return found, lines.Err()
}
