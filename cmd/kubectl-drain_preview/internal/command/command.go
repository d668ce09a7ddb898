// Package command is the command line: what is asked, of what, and how the answer is printed.
package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/output"
	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/source"
	"cozy-kubevirt/cmd/kubectl-drain_preview/plain"
	"cozy-kubevirt/cmd/kubectl-drain_preview/report"
)

const about = `What the next drain of a node, and the next upgrade of KubeVirt, do to each VM.

It only lists. A node is judged as if it alone were drained, and only by its VMs:
other pods may hold a drain up as well. Whether another node takes a VM is asked
of Kubernetes' own scheduler plugins.

Exit status: 0 if the drains would end, 3 if a VM would block one, 1 if that
could not be answered, 4 if the cluster itself says otherwise (--verify).`

const examples = `  # every node
  kubectl drain-preview

  # one node, in a script
  kubectl drain-preview node-a -o json

  # and ask the cluster itself, in a dry run
  kubectl drain-preview node-a --verify

  # from a dump, on another machine
  kubectl drain-preview -f dump.json.gz node-a`

// options are the flags.
type options struct {
	genericiooptions.IOStreams
	config        *genericclioptions.ConfigFlags
	allNamespaces bool
	selector      string
	vms           []string
	dumps         source.Dumps
	verify        bool
	format        string
}

// frugal is how much memory is used before the garbage collector works harder: enough for a cluster of 10,000 VMs.
const frugal = 420 << 20 // bytes

// Frugally sets the process up for large clusters.
func Frugally() {
	debug.SetMemoryLimit(frugal)
	debug.SetGCPercent(200)
}

// Run runs the command and returns its exit status.
func Run(args []string, streams genericiooptions.IOStreams) int {
	status := report.ExitUnanswered
	cmd := command(streams, &status)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(streams.ErrOut, "error:", plain.Text(err.Error()))
		return report.ExitUnanswered
	}
	for _, asked := range []string{"help", "version"} {
		if told, _ := cmd.Flags().GetBool(asked); told {
			return report.ExitEnds
		}
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "__complete") {
		return report.ExitEnds
	}
	return status
}

// New is the command line, for who writes its manual.
func New(streams genericiooptions.IOStreams) *cobra.Command { return command(streams, new(int)) }

// command is the command line, which leaves its exit status in status.
func command(streams genericiooptions.IOStreams, status *int) *cobra.Command {
	o := &options{IOStreams: streams, config: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:           "drain-preview [NODE...]",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl drain-preview"},
		Short:         "What a drain and an upgrade of KubeVirt will do to each VM",
		Long:          about,
		Example:       examples,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, nodes []string) error {
			r, err := o.answer(cmd, nodes)
			if err != nil {
				return err
			}
			if err := output.Print(o.Out, r, o.format, colourful(o.Out)); err != nil {
				return err
			}
			*status = r.ExitStatus()
			return nil
		},
		ValidArgsFunction: o.completeNodes,
	}
	cmd.SetUsageTemplate(usage)
	cmd.SetVersionTemplate("kubectl drain-preview {{.Version}}\n")
	o.addFlags(cmd)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	return cmd
}

// own marks the flags that are this command's and not kubectl's.
const own = "own"

func (o *options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "VMs of all namespaces, as without --namespace")
	flags.StringVarP(&o.selector, "selector", "l", "", "label selector for the VMIs")
	flags.StringSliceVar(&o.vms, "vm", nil, "only these VMs: NAME or NAMESPACE/NAME; several add up")
	flags.StringVarP(&o.format, "output", "o", "", "wide, json, yaml, markdown or jsonpath=… instead of the table")
	flags.BoolVar(&o.verify, "verify", false, "ask the cluster for a dry-run eviction of each launcher, and compare (needs create on pods/eviction)")
	flags.StringArrayVarP(&o.dumps.Files, "filename", "f", nil, "read a dump of kubectl get -o json instead of a cluster; - is standard input; several add up")
	flags.BoolVar(&o.dumps.Complete, "complete", false, "the dump was made by the command in docs/preview.md: what it has none of is not there")
	flags.Int64Var(&o.dumps.MaxUnpacked, "max-unpacked", 2<<30, "bytes that a gzipped dump may unpack to")
	flags.VisitAll(func(f *pflag.Flag) { _ = flags.SetAnnotation(f.Name, own, nil) })
	o.config.AddFlags(flags)
}

// usage lists this command's own flags first.
const usage = `Usage:
  {{.UseLine}}

Examples:
{{.Example}}

Flags:
{{ownFlags . | trimTrailingWhitespaces}}

Flags of kubectl:
{{otherFlags . | trimTrailingWhitespaces}}
`

func init() {
	pick := func(isOwn bool) func(*cobra.Command) string {
		return func(cmd *cobra.Command) string {
			picked := pflag.NewFlagSet("", pflag.ContinueOnError)
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				_, marked := f.Annotations[own]
				if (marked || f.Name == "help" || f.Name == "version") == isOwn {
					picked.AddFlag(f)
				}
			})
			return picked.FlagUsagesWrapped(80)
		}
	}
	cobra.AddTemplateFunc("ownFlags", pick(true))
	cobra.AddTemplateFunc("otherFlags", pick(false))
}

// completeNodes completes the names of nodes. kubectl asks for them through a program kubectl_complete-drain_preview
// (k8s.io/kubectl v0.34.2, pkg/cmd/plugin_completion.go), which calls this command with __complete.
func (o *options) completeNodes(cmd *cobra.Command, have []string, begun string) ([]string, cobra.ShellCompDirective) {
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	nodes, err := client.CoreV1().Nodes().List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, node := range nodes.Items {
		if strings.HasPrefix(node.Name, begun) && !slices.Contains(have, node.Name) {
			names = append(names, node.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// answer reads what the question is about, and answers it.
func (o *options) answer(cmd *cobra.Command, nodes []string) (*report.Report, error) {
	asked := report.Selection{Nodes: nodes, VMs: o.vms}
	if err := output.Known(o.format); err != nil {
		return nil, err
	}
	if !o.allNamespaces {
		asked.Namespace = *o.config.Namespace
	}
	var err error
	if asked.Labels, err = labels.Parse(o.selector); err != nil {
		return nil, fmt.Errorf("-l %q: %w", o.selector, err)
	}
	if o.verify && len(o.dumps.Files) > 0 {
		return nil, errors.New("--verify asks a cluster, and -f reads a dump: leave one of them out")
	}
	objects, err := o.read(cmd, asked.Namespace)
	if err != nil {
		return nil, err
	}
	r, err := report.Build(objects, asked)
	if err != nil || !o.verify {
		return r, err
	}
	cluster, err := o.cluster()
	if err != nil {
		return nil, err
	}
	return r, r.Verify(cmd.Context(), cluster)
}

func (o *options) read(cmd *cobra.Command, namespace string) (*source.Objects, error) {
	spinner := startSpinner(o.ErrOut)
	defer spinner.stop()
	if len(o.dumps.Files) > 0 {
		spinner.say("reading the dump")
		return o.readDumps()
	}
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, -1 // a dozen lists, page by page, one after the other
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return source.Cluster(cmd.Context(), client.RESTClient(), namespace, func(kind source.Kind) { spinner.say("listing " + string(kind)) })
}

func (o *options) readDumps() (*source.Objects, error) {
	o.dumps.In = o.In
	objects, err := o.dumps.Read()
	if err == nil && len(objects.VMIs)+len(objects.Nodes) == 0 {
		err = fmt.Errorf("%s: it has neither VMIs nor nodes; make one with: %s", strings.Join(o.dumps.Files, ", "), source.Command)
	}
	return objects, err
}

// colourful says whether colour may be used: on a terminal, unless NO_COLOR is set (no-color.org).
func colourful(w io.Writer) bool { return os.Getenv("NO_COLOR") == "" && isTerminal(w) }

func isTerminal(w io.Writer) bool {
	file, isFile := w.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}
