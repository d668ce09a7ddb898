package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file lays a pod's Secret, ConfigMap and projected volumes out as the kubelet does: files are links into ..data, a
// link that is swapped when anything changes.

// tokenLife is how long a token is valid; at half of it there is a new one.
const tokenLife = 24 * time.Hour

type volumes struct {
	process *process
	token   string
	got     time.Time
}

// prepare writes the volumes that the pod mounts below /etc or /run, waits for sources that are not there yet, and returns
// their folders by where they are to be seen. What the pod mounts elsewhere is empty or the host's, and of no use here.
func (v *volumes) prepare(ctx context.Context) (map[string]string, error) {
	pod := v.process.pod
	mounts := map[string]string{}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		at := slices.IndexFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == mount.Name })
		target := strings.Replace(mount.MountPath, "/var/run/", "/run/", 1)
		if at < 0 || mount.SubPath != "" || (!strings.HasPrefix(target, "/etc/") && !strings.HasPrefix(target, "/run/")) {
			continue
		}
		files, known, err := v.files(ctx, pod.Spec.Volumes[at].VolumeSource)
		if err != nil {
			return nil, err
		}
		if !known {
			continue
		}
		folder := filepath.Join(v.process.folder, mount.Name)
		if err := lay(folder, files); err != nil {
			return nil, err
		}
		mounts[mount.MountPath] = folder
	}
	return mounts, nil
}

// files is what the kubelet would write for a volume, if it is of a kind that it writes.
func (v *volumes) files(ctx context.Context, source corev1.VolumeSource) (files map[string][]byte, known bool, err error) {
	switch {
	case source.Secret != nil:
		files, err = v.secret(ctx, source.Secret.SecretName, source.Secret.Optional)
	case source.ConfigMap != nil:
		files, err = v.configMap(ctx, source.ConfigMap.Name, source.ConfigMap.Optional)
	case source.Projected != nil:
		files = map[string][]byte{}
		for _, projection := range source.Projected.Sources {
			more, err := v.projected(ctx, projection)
			if err != nil {
				return nil, true, err
			}
			maps.Copy(files, more)
		}
	default:
		return nil, false, nil
	}
	return files, true, err
}

func (v *volumes) projected(ctx context.Context, source corev1.VolumeProjection) (map[string][]byte, error) {
	pod := v.process.pod
	switch {
	case source.ServiceAccountToken != nil:
		if time.Since(v.got) > tokenLife/2 {
			token, err := v.process.nodes.tokenFor(ctx, pod)
			if err != nil {
				return nil, err
			}
			v.token, v.got = token, time.Now()
		}
		return map[string][]byte{source.ServiceAccountToken.Path: []byte(v.token)}, nil
	case source.ConfigMap != nil:
		return v.configMap(ctx, source.ConfigMap.Name, source.ConfigMap.Optional)
	case source.Secret != nil:
		return v.secret(ctx, source.Secret.Name, source.Secret.Optional)
	case source.DownwardAPI != nil:
		files := map[string][]byte{}
		for _, item := range source.DownwardAPI.Items {
			if item.FieldRef != nil {
				files[item.Path] = []byte(field(pod, item.FieldRef.FieldPath))
			}
		}
		return files, nil
	}
	return nil, fmt.Errorf("a projected volume of a kind that the stand-in does not know: %+v", source)
}

// tokenFor is a token for a pod's service account, bound to the pod.
func (n *nodes) tokenFor(ctx context.Context, pod *corev1.Pod) (string, error) {
	seconds := int64(tokenLife.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	answer, err := n.cluster.Kube.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}

func (v *volumes) secret(ctx context.Context, name string, optional *bool) (map[string][]byte, error) {
	var files map[string][]byte
	err := v.await(ctx, optional, func() error {
		secret, err := v.process.nodes.cluster.Kube.CoreV1().Secrets(v.process.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			files = secret.Data
		}
		return err
	})
	return files, err
}

func (v *volumes) configMap(ctx context.Context, name string, optional *bool) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := v.await(ctx, optional, func() error {
		config, err := v.process.nodes.cluster.Kube.CoreV1().ConfigMaps(v.process.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			maps.Copy(files, config.BinaryData)
			for name, text := range config.Data {
				files[name] = []byte(text)
			}
		}
		return err
	})
	return files, err
}

// await asks for a source until it is there, unless it is optional.
func (v *volumes) await(ctx context.Context, optional *bool, ask func() error) error {
	for {
		err := ask()
		if err == nil || apierrors.IsNotFound(err) && optional != nil && *optional {
			return nil
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// lay writes the files into a folder, all at once.
func lay(folder string, files map[string][]byte) error {
	data := filepath.Join(folder, "..data")
	if same(data, files) {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	version, err := os.MkdirTemp(folder, "..")
	if err != nil {
		return err
	}
	if err := os.Chmod(version, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(version, name), text, 0o644); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(folder, name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	link := filepath.Join(folder, "..data_tmp")
	if err := os.Symlink(filepath.Base(version), link); err != nil {
		return err
	}
	return os.Rename(link, data)
}

func same(folder string, files map[string][]byte) bool {
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != len(files) {
		return false
	}
	for name, text := range files {
		there, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !bytes.Equal(there, text) {
			return false
		}
	}
	return true
}
