package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
)

// All of 127.0.0.0/8 is loopback on Linux, so that every pod has an address of its own there, and every port is free. The
// API takes no loopback address for an endpoint: in the API a pod is at 10.R.b.c, on the machine at 127.R.b.c. R is the
// cluster's own, which keeps clusters apart. What is read from a snapshot may carry the R of the cluster that it was taken
// of, which is why only the last two numbers count.

// claimPort is where a cluster listens for as long as it has its R. The kernel gives it back, however the process ends.
const claimPort = "10009"

// addresses hands out a cluster's addresses.
type addresses struct {
	cluster int // R
	claim   net.Listener

	mu   sync.Mutex
	used map[string]bool // by the last two numbers
}

func claimAddresses() (*addresses, error) {
	var last error
	for range 500 {
		r := 1 + rand.IntN(254)
		claim, err := net.Listen("tcp", net.JoinHostPort(fmt.Sprintf("127.%d.255.254", r), claimPort))
		if err != nil {
			last = err
			continue
		}
		return &addresses{cluster: r, claim: claim, used: map[string]bool{}}, nil
	}
	return nil, fmt.Errorf("no part of 127.0.0.0/8 is free for a cluster: %w", last)
}

// server is where the cluster's own servers listen.
func (a *addresses) server() string { return fmt.Sprintf("127.%d.0.1", a.cluster) }

// advertised is that address in the API.
func (a *addresses) advertised() string { return fmt.Sprintf("10.%d.0.1", a.cluster) }

// node is the address of the n-th node in the API.
func (a *addresses) node(n int) string { return fmt.Sprintf("10.%d.254.%d", a.cluster, 1+n%254) }

// pod is a free address for a pod, in the API.
func (a *addresses) pod() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		last := fmt.Sprintf("%d.%d", 1+rand.IntN(250), 1+rand.IntN(254))
		if !a.used[last] {
			a.used[last] = true
			return fmt.Sprintf("10.%d.%s", a.cluster, last)
		}
	}
}

// keep marks an address of a pod as used.
func (a *addresses) keep(inAPI string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used[lastTwo(inAPI)] = true
}

// free gives the address of a pod that is gone back.
func (a *addresses) free(inAPI string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.used, lastTwo(inAPI))
}

// onMachine is where the machine finds what the API has at an address.
func (a *addresses) onMachine(inAPI string) (string, error) {
	address := net.ParseIP(inAPI).To4()
	if address == nil || address[0] != 10 {
		return "", fmt.Errorf("%q is not an address of a pod", inAPI)
	}
	return "127." + strconv.Itoa(a.cluster) + "." + lastTwo(inAPI), nil
}

func lastTwo(address string) string {
	parts := strings.Split(address, ".")
	return strings.Join(parts[max(0, len(parts)-2):], ".")
}
