package controlplane

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/klog/v2"
)

// This file is the network between the API server and pods: with --enable-aggregator-routing the API server picks a ready
// endpoint itself, and asks the proxy that --egress-selector-config-file names for its address and port.

const egressFile = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: `

// startProxy serves until stop is called, and returns the file that leads the API server to it.
func startProxy(folder string, addresses *addresses) (file string, stop func(), err error) {
	socket := filepath.Join(folder, "egress.sock")
	_ = os.Remove(socket) // a snapshot's
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := connect(w, r, addresses); err != nil {
			klog.Infof("proxy: %s: %v", r.Host, err)
		}
	})}
	go func() { _ = server.Serve(listener) }()
	file = filepath.Join(folder, "egress.yaml")
	return file, func() { _ = server.Close() }, os.WriteFile(file, []byte(egressFile+socket+"\n"), 0o600)
}

func connect(w http.ResponseWriter, r *http.Request, addresses *addresses) error {
	host, port, err := net.SplitHostPort(r.Host)
	if err == nil {
		host, err = addresses.onMachine(host)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return err
	}
	pod, err := net.Dial("tcp", net.JoinHostPort(host, port))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return err
	}
	defer func() { _ = pod.Close() }()
	w.WriteHeader(http.StatusOK)
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(pod, buffered); _ = pod.(*net.TCPConn).CloseWrite() })
	both.Go(func() { _, _ = io.Copy(client, pod); _ = client.(*net.UnixConn).CloseWrite() })
	both.Wait()
	return nil
}
