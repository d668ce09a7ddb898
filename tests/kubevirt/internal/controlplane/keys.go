package controlplane

import (
	"crypto/ecdsa"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	"kubevirt.io/kubevirt/pkg/certificates/triple"
	"kubevirt.io/kubevirt/pkg/certificates/triple/cert"
)

// This file is the cluster's keys and certificates. Those that sign outlive a snapshot; the rest is made at each start.

const validity = 10 * 24 * time.Hour

// authority signs certificates.
type authority struct{ pair *triple.KeyPair }

// newAuthority reads an authority from a folder, or makes one there.
func newAuthority(folder, name string) (*authority, error) {
	certificate, key := filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")
	if _, err := os.Stat(key); errors.Is(err, fs.ErrNotExist) {
		pair, err := triple.NewCA(name, validity)
		if err != nil {
			return nil, err
		}
		return &authority{pair}, writePair(folder, name, pair)
	}
	certificates, err := os.ReadFile(certificate)
	if err != nil {
		return nil, err
	}
	parsed, err := cert.ParseCertsPEM(certificates)
	if err != nil {
		return nil, err
	}
	signer, err := keyutil.PrivateKeyFromFile(key)
	if err != nil {
		return nil, err
	}
	pair := &triple.KeyPair{Cert: parsed[0]}
	var ok bool
	if pair.Key, ok = signer.(*ecdsa.PrivateKey); !ok {
		return nil, errors.New(key + " holds another kind of key than it was given")
	}
	return &authority{pair}, nil
}

func (a *authority) server(folder, name string, address string) error {
	pair, err := triple.NewServerKeyPair(a.pair, name, name, "default", "cluster.local", []string{address}, []string{"localhost"}, validity)
	if err != nil {
		return err
	}
	return writePair(folder, name, pair)
}

func (a *authority) client(folder, name string, groups ...string) error {
	pair, err := triple.NewClientKeyPair(a.pair, name, groups, validity)
	if err != nil {
		return err
	}
	return writePair(folder, name, pair)
}

// kubeconfig writes one for a user that a certificate in the folder is for.
func writeKubeconfig(path, server, keys, user string) error {
	return clientcmd.WriteToFile(api.Config{
		Clusters: map[string]*api.Cluster{"rehearsal": {Server: server, CertificateAuthorityData: read(keys, "ca.crt")}},
		AuthInfos: map[string]*api.AuthInfo{user: {
			ClientCertificateData: read(keys, user+".crt"), ClientKeyData: read(keys, user+".key"),
		}},
		Contexts:       map[string]*api.Context{"rehearsal": {Cluster: "rehearsal", AuthInfo: user}},
		CurrentContext: "rehearsal",
	}, path)
}

func read(folder, name string) []byte {
	text, _ := os.ReadFile(filepath.Join(folder, name)) // what is missing the client complains of
	return text
}

func writePair(folder, name string, pair *triple.KeyPair) error {
	key, err := keyutil.MarshalPrivateKeyToPEM(pair.Key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, name+".key"), key, 0o600); err != nil {
		return err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Cert.Raw})
	return os.WriteFile(filepath.Join(folder, name+".crt"), certificate, 0o644)
}
