// Package install runs what docs/install.md and docs/cronjob show on a real kube-apiserver. Of the CronJob this file holds
// that its rights are enough and nothing more, that a node that a VM blocks fails the Job, and that the alert is about that Job.
package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/internal/sandbox"
)

const name = "drain-preview" // of the namespace, the account, the role and the Job

var (
	root   = filepath.Join("..", "..", "..")
	folder = filepath.Join(root, "docs", "cronjob")

	admin      kubernetes.Interface
	config     *rest.Config
	kubeconfig string // the administrator's
)

func TestMain(m *testing.M) { os.Exit(sandbox.Within(func() int { return run(m) })) }

func run(m *testing.M) int {
	if err := start(); err != nil {
		fmt.Println("the API server does not start:", err)
		return 1
	}
	return m.Run()
}

// start brings up an API server that knows KubeVirt's kinds, with a node, and a VM that blocks its drain.
func start() error {
	servers, err := sandbox.Folder("cronjob-")
	if err != nil {
		return err
	}
	binaries := os.Getenv("KUBEBUILDER_ASSETS")
	if binaries == "" {
		binaries = filepath.Join(root, "bin")
	}
	for _, binary := range []string{"etcd", "kube-apiserver"} {
		if _, err := sandbox.Server(servers, filepath.Join(binaries, binary)); err != nil {
			return err
		}
	}
	os.Setenv("KUBEBUILDER_ASSETS", servers) // where envtest looks for them
	environment := &envtest.Environment{ControlPlaneStartTimeout: time.Minute}
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	environment.ControlPlane.Etcd.Configure().Append("unsafe-no-fsync") // its data is gone after the run anyway
	for _, definition := range []func() (*extv1.CustomResourceDefinition, error){
		components.NewKubeVirtCrd, components.NewVirtualMachineCrd, components.NewVirtualMachineInstanceCrd, components.NewVirtualMachineInstanceMigrationCrd,
	} {
		crd, err := definition()
		if err != nil {
			return err
		}
		environment.CRDs = append(environment.CRDs, crd)
	}
	for kind, plural := range map[string]string{"OCIRepository": "ocirepositories.source.toolkit.fluxcd.io", "HelmRelease": "helmreleases.helm.toolkit.fluxcd.io"} {
		environment.CRDs = append(environment.CRDs, anything(kind, plural))
	}
	if config, err = environment.Start(); err != nil {
		return err
	}
	if admin, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	kubeconfig = filepath.Join(servers, "kubeconfig")
	user, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	content, err := user.KubeConfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		return err
	}
	apply := exec.Command(filepath.Join(root, "bin", "kubectl"), "apply", "--server-side", "--validate=strict", "--filename", filepath.Join(folder, "drain-preview.yaml"), "--kubeconfig", kubeconfig)
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", apply.Args, err, out)
	}
	return world()
}

// anything is a kind of Flux's that takes what is there.
func anything(kind, plural string) *extv1.CustomResourceDefinition {
	all := true
	name, group, _ := strings.Cut(plural, ".")
	version := map[string]string{"OCIRepository": "v1", "HelmRelease": "v2"}[kind]
	return &extv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural},
		Spec: extv1.CustomResourceDefinitionSpec{
			Group: group, Scope: extv1.NamespaceScoped, Names: extv1.CustomResourceDefinitionNames{Kind: kind, Plural: name},
			Versions: []extv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &all}},
			}},
		},
	}
}

// world makes two nodes and three VMs on the first one: "old" cannot migrate and carries LiveMigrate, "web" can go to the other
// node, and "full" has a volume of which the other node takes none. No controller runs that would judge them.
func world() error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	create := func(resource, kind, text string, of ...any) (uid string, err error) {
		var content map[string]any
		if err := yaml.Unmarshal(fmt.Appendf(nil, text, of...), &content); err != nil {
			return "", fmt.Errorf("%s: %w", kind, err)
		}
		part := strings.Split(resource, "/")
		made := &unstructured.Unstructured{Object: content}
		made.SetAPIVersion(strings.TrimPrefix(part[0]+"/"+part[1], "/"))
		made.SetKind(kind)
		resources := client.Resource(schema.GroupVersionResource{Group: part[0], Version: part[1], Resource: part[2]}).Namespace(made.GetNamespace())
		created, err := resources.Create(context.Background(), made, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("%s: %w", kind, err)
		}
		if status := content["status"]; status != nil && part[0] == "" { // KubeVirt's VMIs have no subresource of it
			created.Object["status"] = status
			_, err = resources.UpdateStatus(context.Background(), created, metav1.UpdateOptions{})
		}
		return string(created.GetUID()), err
	}
	if _, err := create("kubevirt.io/v1/kubevirts", "KubeVirt", `{metadata: {name: kubevirt, namespace: default}, spec: {configuration: {evictionStrategy: LiveMigrateIfPossible},
		workloadUpdateStrategy: {workloadUpdateMethods: [LiveMigrate]}}}`); err != nil {
		return err
	}
	for _, node := range []string{"node-a", "node-b"} {
		if _, err := create("/v1/nodes", "Node", `{metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s, kubernetes.io/arch: amd64, kubevirt.io/schedulable: "true"}},
			status: {allocatable: {cpu: "8", memory: 32Gi, pods: "20"}, conditions: [{type: Ready, status: "True"}]}}`, node); err != nil {
			return err
		}
		// A node is created with the taint of one that is not ready, which a controller would take away.
		if _, err := admin.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType, []byte(`{"spec": {"taints": null}}`), metav1.PatchOptions{}); err != nil {
			return err
		}
		if _, err := create("storage.k8s.io/v1/csinodes", "CSINode", `{metadata: {name: %s}, spec: {drivers: [{name: full.example.org, nodeID: a, allocatable: {count: 0}}]}}`, node); err != nil {
			return err
		}
	}
	for _, vm := range []struct{ name, strategy, canMigrate string }{{"old", "LiveMigrate", "False"}, {"web", "LiveMigrateIfPossible", "True"}, {"full", "LiveMigrateIfPossible", "True"}} {
		uid, err := create("kubevirt.io/v1/virtualmachines", "VirtualMachine", `{metadata: {name: %[1]s, namespace: default}, spec: {runStrategy: Always, template: {spec: {
			domain: {devices: {}}, volumes: [{name: root, persistentVolumeClaim: {claimName: %[1]s}}]}}}}`, vm.name)
		if err != nil {
			return err
		}
		if uid, err = create("kubevirt.io/v1/virtualmachineinstances", "VirtualMachineInstance", `{metadata: {name: %[1]s, namespace: default,
			ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: %[1]s, uid: %[2]s, controller: true}]},
			spec: {evictionStrategy: %[3]s, architecture: amd64, domain: {devices: {}}, volumes: [{name: root, persistentVolumeClaim: {claimName: %[1]s}}]},
			status: {phase: Running, nodeName: node-a, conditions: [{type: LiveMigratable, status: "%[4]s", reason: Found}]}}`, vm.name, uid, vm.strategy, vm.canMigrate); err != nil {
			return err
		}
		if _, err = create("/v1/pods", "Pod", `{metadata: {name: virt-launcher-%[1]s, namespace: default, labels: {kubevirt.io: virt-launcher, kubevirt.io/created-by: %[2]s},
			annotations: {kubevirt.io/domain: %[1]s}, ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, name: %[1]s, uid: %[2]s, controller: true}]},
			spec: {nodeName: node-a, containers: [{name: compute, image: launcher}], volumes: [{name: root, persistentVolumeClaim: {claimName: %[1]s}}],
				affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
					{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: none}}, namespaceSelector: {matchLabels: {team: none}}}]}}},
			status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, vm.name, uid); err != nil {
			return err
		}
		if _, err = create("/v1/persistentvolumeclaims", "PersistentVolumeClaim", `{metadata: {name: %[1]s, namespace: default}, spec: {volumeName: pv-%[1]s, storageClassName: "",
			accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}, status: {phase: Bound}}`, vm.name); err != nil {
			return err
		}
		if _, err = create("/v1/persistentvolumes", "PersistentVolume", `{metadata: {name: pv-%[1]s}, spec: {accessModes: [ReadWriteMany], capacity: {storage: 1Gi},
			claimRef: {namespace: default, name: %[1]s}, csi: {driver: %[1]s.example.org, volumeHandle: %[1]s}}}`, vm.name); err != nil {
			return err
		}
	}
	return nil
}

func TestTheJobFailsWhereAVMBlocksItsNode(t *testing.T) {
	said, status := preview(t, "")
	assert.Equal(t, 3, status, said)
	assert.Regexp(t, `(?m)^default +old .* blocks `, said)
	assert.Regexp(t, `(?m)^default +web .* migrates `, said)
	assert.NotContains(t, said, "may not")
	assert.NotContains(t, said, "unknown")
}

// Each right is taken away in turn: the preview has to say that it misses it, or to say something else than with it.
func TestWithoutAnyOneOfItsRightsThePreviewSaysLess(t *testing.T) {
	role, rights := roleOf(t), 0
	whole, _ := preview(t, "")
	for i, rule := range role.Rules {
		require.Equal(t, []string{"list"}, rule.Verbs)
		for j, resource := range rule.Resources {
			rights++
			t.Run(resource, func(t *testing.T) {
				less := role.DeepCopy()
				less.ObjectMeta = metav1.ObjectMeta{Name: "without-" + resource}
				less.Rules[i].Resources = slices.Delete(less.Rules[i].Resources, j, j+1)
				said, _ := preview(t, accountWith(t, *less))
				if resource == "csinodes" { // docs/preview.md: attach limits are only looked at where they could be read
					assert.NotEqual(t, verdicts(whole), verdicts(said))
					return
				}
				assert.Contains(t, said, "may not list "+resource)
			})
		}
	}
	assert.Equal(t, 11, rights, "one for each kind that a preview reads")
}

// verdicts is the table without the rest.
func verdicts(said string) string {
	table, _, _ := strings.Cut(said, "\n\n")
	return table
}

func TestTheAccountMayListAndNothingElse(t *testing.T) {
	own := *config
	own.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + name + ":" + name, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + name, "system:authenticated"}}
	account, err := kubernetes.NewForConfig(&own)
	require.NoError(t, err)
	review, err := account.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.False(t, review.Status.Incomplete)
	listed := 0
	for _, rule := range review.Status.ResourceRules {
		if slices.Contains(rule.APIGroups, "authorization.k8s.io") || slices.Contains(rule.APIGroups, "authentication.k8s.io") {
			continue // every user may ask about itself
		}
		assert.Equal(t, []string{"list"}, rule.Verbs, "%v", rule.Resources)
		listed += len(rule.Resources)
	}
	assert.Equal(t, 11, listed)
}

func TestTheJobsPodFitsTheNamespaceItsImageAndItsAccount(t *testing.T) {
	job, err := admin.BatchV1().CronJobs(name).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	template := job.Spec.JobTemplate.Spec.Template
	// The pod security of the namespace judges pods; a CronJob with a bad one is taken, and then makes none.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: name}, Spec: template.Spec}
	_, err = admin.CoreV1().Pods(name).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	root := int64(0)
	pod.Spec.SecurityContext.RunAsUser, pod.Spec.SecurityContext.RunAsNonRoot = &root, nil
	_, err = admin.CoreV1().Pods(name).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	assert.ErrorContains(t, err, "violates PodSecurity", "the namespace judges pods")

	require.Len(t, template.Spec.Containers, 1)
	assert.Empty(t, template.Spec.Containers[0].Command, "the image's entrypoint is the preview")
	assert.Equal(t, name, template.Spec.ServiceAccountName)
	assert.Equal(t, corev1.RestartPolicyNever, template.Spec.RestartPolicy)
	assert.Zero(t, *job.Spec.JobTemplate.Spec.BackoffLimit, "an answer is not asked for again at once")
}

// The metric is kube-state-metrics'; what is held here is that the alert selects the Jobs that this CronJob makes.
func TestTheAlertIsAboutTheFailedJobsOfTheCronJob(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "alert.yaml"))
	require.NoError(t, err)
	var rule struct {
		Spec struct {
			Groups []struct{ Rules []struct{ Expr string } }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &rule))
	expression := rule.Spec.Groups[0].Rules[0].Expr
	selector := regexp.MustCompile(`kube_job_status_failed\{namespace="([^"]*)", job_name=~"([^"]*)"\}\) > 0$`).FindStringSubmatch(expression)
	require.NotNil(t, selector, expression)
	assert.Equal(t, name, selector[1])
	// The controller names a Job by the minute of its schedule (k8s.io/kubernetes v1.34.2, pkg/controller/cronjob/cronjob_controllerv2.go:671).
	jobs := regexp.MustCompile("^(?:" + selector[2] + ")$")
	assert.Regexp(t, jobs, name+"-29412345")
	assert.NotRegexp(t, jobs, name+"-by-hand")
}

// preview runs the binary as the container of the CronJob, under an account of its namespace; "" is its own.
func preview(t *testing.T, account string) (said string, status int) {
	t.Helper()
	if account == "" {
		account = name
	}
	job, err := admin.BatchV1().CronJobs(name).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	token, err := admin.CoreV1().ServiceAccounts(name).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	server, err := url.Parse(config.Host)
	require.NoError(t, err)
	command := inPod(t, token.Status.Token, server.Hostname(), server.Port(), "kubectl-drain_preview", arguments(job)...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err = command.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		require.NoError(t, err)
	}
	return out.String(), command.ProcessState.ExitCode()
}

func arguments(job *batchv1.CronJob) []string {
	return job.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Args
}

func roleOf(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	role, err := admin.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return role
}

// accountWith is an account that has a role and no other.
func accountWith(t *testing.T, role rbacv1.ClusterRole) string {
	t.Helper()
	for i := len(role.Rules) - 1; i >= 0; i-- {
		if len(role.Rules[i].Resources) == 0 {
			role.Rules = slices.Delete(role.Rules, i, i+1)
		}
	}
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &role, metav1.CreateOptions{})
	require.NoError(t, err)
	account := role.Name
	_, err = admin.CoreV1().ServiceAccounts(name).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return account
}
