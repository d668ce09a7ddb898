package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	v1 "kubevirt.io/api/core/v1"
)

// This file is a proxy in front of the API server that changes some of its answers and passes on the rest.

// lies are what a proxy changes. asked says whether an eviction has been asked for by then.
type lies struct {
	eviction  *metav1.Status
	vmi       func(vmi *v1.VirtualMachineInstance, asked bool)
	launchers func(pods []corev1.Pod, asked bool) []corev1.Pod
}

// behindProxy returns the kubeconfig of a proxy that tells these lies, about a VM or about every eviction, until the test
// ends.
func behindProxy(t *testing.T, vm string, told lies) (kubeconfig string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	require.NoError(t, err)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	var asked atomic.Bool
	server := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			request.Out.Header.Del("Accept-Encoding") // the transport's own is undone before the answer is changed
			if strings.Contains(request.Out.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
				request.Out.Header.Set("Accept", runtime.ContentTypeJSON)
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			switch path, method := answer.Request.URL.Path, answer.Request.Method; {
			case method == http.MethodPost && strings.HasSuffix(path, "/eviction"):
				asked.Store(true)
				if told.eviction != nil {
					answer.StatusCode = int(told.eviction.Code)
					answer.Status = http.StatusText(answer.StatusCode)
					return replace(answer, told.eviction)
				}
			case method != http.MethodGet || vm == "":
			case strings.HasSuffix(path, "/virtualmachineinstances/"+vm) && told.vmi != nil:
				return change(answer, func(vmi *v1.VirtualMachineInstance) { told.vmi(vmi, asked.Load()) })
			case strings.HasSuffix(path, "/virtualmachineinstances") && told.vmi != nil:
				return change(answer, func(list *v1.VirtualMachineInstanceList) {
					for i := range list.Items {
						if list.Items[i].Name == vm {
							told.vmi(&list.Items[i], asked.Load())
						}
					}
				})
			case strings.HasSuffix(path, "/pods") && told.launchers != nil:
				return change(answer, func(list *corev1.PodList) {
					isLauncher := func(pod corev1.Pod) bool { return pod.Annotations[v1.DomainAnnotation] == vm }
					launchers := slices.DeleteFunc(slices.Clone(list.Items), func(pod corev1.Pod) bool { return !isLauncher(pod) })
					list.Items = append(slices.DeleteFunc(list.Items, isLauncher), told.launchers(launchers, asked.Load())...)
				})
			}
			return nil
		},
	})
	t.Cleanup(server.Close)

	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"proxy": {Server: server.URL}},
		Contexts:       map[string]*api.Context{"proxy": {Cluster: "proxy"}},
		CurrentContext: "proxy",
	}, kubeconfig))
	return kubeconfig
}

func change[T any](answer *http.Response, change func(*T)) error {
	if answer.StatusCode != http.StatusOK {
		return nil
	}
	object := new(T)
	if err := json.NewDecoder(answer.Body).Decode(object); err != nil {
		return err
	}
	change(object)
	return replace(answer, object)
}

func replace(answer *http.Response, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	answer.ContentLength = int64(len(body))
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	answer.Header.Set("Content-Type", "application/json")
	return nil
}
