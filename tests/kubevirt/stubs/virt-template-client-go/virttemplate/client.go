// Package virttemplate stands in for the virt-template client: KubeVirt's informer factory asks it for a REST client
// of the template group, for an informer that nothing here starts.
package virttemplate

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

type Clientset struct{ client rest.Interface }

func NewForConfig(config *rest.Config) (*Clientset, error) {
	shallow := *config
	shallow.GroupVersion = &schema.GroupVersion{Group: "template.kubevirt.io", Version: "v1beta1"}
	shallow.APIPath = "/apis"
	shallow.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.RESTClientFor(&shallow)
	if err != nil {
		return nil, err
	}
	return &Clientset{client: client}, nil
}

func (c *Clientset) TemplateV1beta1() *TemplateV1beta1Client { return &TemplateV1beta1Client{c.client} }

type TemplateV1beta1Client struct{ client rest.Interface }

func (c *TemplateV1beta1Client) RESTClient() rest.Interface { return c.client }
