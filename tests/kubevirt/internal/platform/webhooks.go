package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/client-go/kubecli"
	"kubevirt.io/kubevirt/pkg/controller"
	netadmitter "kubevirt.io/kubevirt/pkg/network/admitter"
	validating_webhooks "kubevirt.io/kubevirt/pkg/util/webhooks/validating-webhooks"
	"kubevirt.io/kubevirt/pkg/virt-api/webhooks"
	mutating_webhook "kubevirt.io/kubevirt/pkg/virt-api/webhooks/mutating-webhook"
	validating_webhook "kubevirt.io/kubevirt/pkg/virt-api/webhooks/validating-webhook"
	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	operatorwebhooks "kubevirt.io/kubevirt/pkg/virt-operator/webhooks"

	"cozy-kubevirt/internal/chart"
)

// This file serves KubeVirt's webhooks as virt-api and virt-operator do, under the registrations that KubeVirt
// generates. Registrations for kinds that no scenario has (snapshots, clones, …) are left out, and so is the one for
// creating a KubeVirt: it allows one in the cluster, and every scenario has a copy of it (virtcontroller.go).

type webhookServer struct {
	informers *webhooks.Informers
	server    *http.Server

	mu        sync.Mutex
	down      map[string]bool // the namespaces for which the eviction webhook hangs up
	evictions map[string][]Eviction
}

// Eviction is one that the eviction webhook was asked about.
type Eviction struct {
	At  time.Time
	Pod string
}

// Evictions lists what the eviction webhook was asked about a namespace, in order.
func (p *Platform) Evictions(namespace string) []Eviction {
	p.webhooks.mu.Lock()
	defer p.webhooks.mu.Unlock()
	return slices.Clone(p.webhooks.evictions[namespace])
}

func newWebhookServer(factory controller.KubeInformerFactory) *webhookServer {
	return &webhookServer{
		informers: &webhooks.Informers{
			VMIPresetInformer:  factory.VirtualMachinePreset(),
			VMRestoreInformer:  factory.VirtualMachineRestore(),
			VMBackupInformer:   factory.VirtualMachineBackup(),
			DataSourceInformer: factory.DummyDataSource(),
			NamespaceInformer:  factory.Namespace(),
		},
		down:      map[string]bool{},
		evictions: map[string][]Eviction{},
	}
}

// SetEvictionWebhookDown makes the eviction webhook hang up on requests about a namespace, which is what the API
// server sees of a dead one, or answer them again.
func (p *Platform) SetEvictionWebhookDown(namespace string, down bool) {
	p.webhooks.mu.Lock()
	defer p.webhooks.mu.Unlock()
	p.webhooks.down[namespace] = down
}

// serve opens the server and then registers the webhooks: no request finds it closed.
func (s *webhookServer) serve(config *rest.Config, clusterConfig *virtconfig.ClusterConfig, client kubecli.KubevirtClient) error {
	handlers := s.handlers(clusterConfig, client)
	mutating := components.NewVirtAPIMutatingWebhookConfiguration(chart.Namespace)
	mutating.Webhooks = keep(mutating.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return handlers[*w.ClientConfig.Service.Path] != nil
	})
	validating := components.NewVirtAPIValidatingWebhookConfiguration(chart.Namespace)
	operator := components.NewOpertorValidatingWebhookConfiguration(chart.Namespace)
	for _, configuration := range []*admissionregistrationv1.ValidatingWebhookConfiguration{validating, operator} {
		configuration.Webhooks = keep(configuration.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
			return handlers[*w.ClientConfig.Service.Path] != nil
		})
	}
	options := envtest.WebhookInstallOptions{
		LocalServingHost:   "127.0.0.1",
		MutatingWebhooks:   []*admissionregistrationv1.MutatingWebhookConfiguration{mutating},
		ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{validating, operator},
	}
	if err := options.PrepWithoutInstalling(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(options.LocalServingHost, strconv.Itoa(options.LocalServingPort)))
	if err != nil {
		return err
	}
	s.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler := handlers[path.Clean(r.URL.Path)] // envtest registers //path
		if handler == nil {
			http.NotFound(w, r)
			return
		}
		handler(w, r)
	})}
	certificates := options.LocalServingCertDir
	go func() {
		err := s.server.ServeTLS(listener, filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
		if !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return options.Install(config)
}

func (s *webhookServer) handlers(config *virtconfig.ClusterConfig, client kubecli.KubevirtClient) map[string]http.HandlerFunc {
	accounts := webhooks.KubeVirtServiceAccounts(chart.Namespace)
	type (
		w = http.ResponseWriter
		r = *http.Request
	)
	return map[string]http.HandlerFunc{
		components.PodEvictionValidatePath: s.guarded(func(w w, r r) {
			validating_webhook.ServePodEvictionInterceptor(w, r, config, client)
		}),
		components.VMMutatePath:        func(w w, r r) { mutating_webhook.ServeVMs(w, r, config, client) },
		components.VMIMutatePath:       func(w w, r r) { mutating_webhook.ServeVMIs(w, r, config, s.informers, accounts) },
		components.MigrationMutatePath: func(w w, r r) { mutating_webhook.ServeMigrationCreate(w, r) },
		components.VMValidatePath: func(w w, r r) {
			validating_webhook.ServeVMs(w, r, config, client, s.informers, accounts)
		},
		components.VMICreateValidatePath: func(w w, r r) {
			validating_webhook.ServeVMICreate(w, r, config, accounts,
				func(path *field.Path, spec *v1.VirtualMachineInstanceSpec, config *virtconfig.ClusterConfig) []metav1.StatusCause {
					return netadmitter.Validate(path, spec, config)
				})
		},
		components.VMIUpdateValidatePath: func(w w, r r) { validating_webhook.ServeVMIUpdate(w, r, config, accounts) },
		components.StatusValidatePath: func(w w, r r) {
			validating_webhook.ServeStatusValidation(w, r, config, client, s.informers, accounts)
		},
		components.MigrationCreateValidatePath: func(w w, r r) {
			validating_webhook.ServeMigrationCreate(w, r, config, client, accounts)
		},
		components.MigrationUpdateValidatePath: validating_webhook.ServeMigrationUpdate,
		"/kubevirt-validate-delete": func(w w, r r) {
			validating_webhooks.Serve(w, r, operatorwebhooks.NewKubeVirtDeletionAdmitter(client))
		},
		components.KubeVirtUpdateValidatePath: func(w w, r r) {
			validating_webhooks.Serve(w, r, operatorwebhooks.NewKubeVirtUpdateAdmitter(client, config))
		},
	}
}

func (s *webhookServer) guarded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		namespace, pod, err := reviewed(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		down := s.down[namespace]
		s.evictions[namespace] = append(s.evictions[namespace], Eviction{time.Now(), pod})
		s.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler)
		}
		next(w, r)
	}
}

func (s *webhookServer) close() {
	if s.server != nil {
		_ = s.server.Shutdown(context.Background())
	}
}

func keep[T any](all []T, wanted func(T) bool) []T {
	var kept []T
	for _, one := range all {
		if wanted(one) {
			kept = append(kept, one)
		}
	}
	return kept
}

// reviewed reads which object a review is about, and puts the request's body back.
func reviewed(r *http.Request) (namespace, name string, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", "", err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	review := struct {
		Request struct{ Namespace, Name string }
	}{}
	err = json.Unmarshal(body, &review)
	return review.Request.Namespace, review.Request.Name, err
}
